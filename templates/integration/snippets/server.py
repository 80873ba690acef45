# server.py, for python3 server.py
import json
import os
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = os.environ.get("NAS_API_KEY") or sys.exit("NAS_API_KEY is not set")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(405 if self.is_ours() else 404)

    def is_ours(self):
        return self.path.split("?")[0] == "/widget-token"

    def do_POST(self):
        if not self.is_ours():
            self.send_error(404)
            return
        # Check here that the visitor may talk to the agent.
        try:
            token = exchange()
        except OSError as error:  # what urllib raises
            self.log_error("no widget token: %s", error)
            self.send_error(502, "no widget token")
            return
        self.send_response(200)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(token)


def exchange():
    request = urllib.request.Request(
        "TOKEN_URL",
        method="POST",
        data=json.dumps({"agentId": "AGENT_ID"}).encode(),
        headers={
            "Authorization": f"Bearer {KEY}",
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.read()
    except urllib.error.HTTPError as error:  # the body says why
        raise OSError(f"{error}: {error.read().decode(errors='replace')}")


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler)
print("listening on http://%s:%d" % server.server_address, flush=True)
server.serve_forever()
