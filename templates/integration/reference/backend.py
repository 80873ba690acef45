# backend.py, for python3 backend.py
#
# The backend of a page with a voice widget. It serves widget.html from this folder, and exchanges
# the API key in NAS_API_KEY for a token with POST /token. It needs no packages.
#
# ALLOWED_ORIGINS lists the pages that may request tokens, such as https://www.example.com.
# LIVEKIT_URL is the voice server that the page may connect to, such as wss://voice.example.com.
# BEHIND_PROXY=1 reads the visitor's address from the last entry of X-Forwarded-For.
import http.client
import ipaddress
import json
import os
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

TOKENS_PER_MINUTE = 10  # for one visitor
MAX_VISITORS = 10_000  # in one minute; further visitors wait for the next one

KEY = os.environ.get("NAS_API_KEY") or sys.exit("NAS_API_KEY is not set")
PORT = os.environ.get("PORT") or "3000"
VOICE = os.environ.get("LIVEKIT_URL") or "wss:"
PROXIED = os.environ.get("BEHIND_PROXY") == "1"
ORIGINS = (os.environ.get("ALLOWED_ORIGINS") or f"http://localhost:{PORT},http://127.0.0.1:{PORT}").split(",")


class Handler(BaseHTTPRequestHandler):
    timeout = 10  # for each read and write of the connection

    def do_GET(self):
        if self.route() == "/":
            self.page()
        elif self.route() == "/livekit-client.js":
            self.send_library()
        else:
            self.missing("not found")

    def do_OPTIONS(self):
        if self.route() != "/token":
            self.missing("not found")
        elif cors := self.allowed():
            methods = {"Access-Control-Allow-Methods": "POST", "Access-Control-Allow-Headers": "Content-Type"}
            self.send(204, b"", {**cors, **methods})

    def do_POST(self):
        if self.route() != "/token":
            self.missing("not found")
        elif cors := self.allowed():
            self.token(cors)

    def page(self):
        """Serves widget.html. Only scripts and styles with the nonce of this response run."""
        try:
            html = Path("widget.html").read_bytes()
        except OSError:
            self.missing("widget.html is missing")
            return
        nonce = secrets.token_hex(16)
        policy = (
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            f"script-src 'self' 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
            f"connect-src 'self' {VOICE} {VOICE.replace('ws', 'http', 1)}"
        )
        self.send(200, html.replace(b"NONCE", nonce.encode()), {
            "Content-Type": "text/html; charset=utf-8",
            "Cache-Control": "no-store",
            "Permissions-Policy": "microphone=(self)",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": policy,
        })

    def send_library(self):
        """Serves the browser library of npm install livekit-client@2.23.0."""
        try:
            script = Path("node_modules/livekit-client/dist/livekit-client.esm.mjs").read_bytes()
        except OSError:
            self.missing("not found")
            return
        self.send(200, script, {"Content-Type": "text/javascript; charset=utf-8", "X-Content-Type-Options": "nosniff"})

    def allowed(self):
        """Returns the CORS headers for a page that may request tokens. Refuses other pages."""
        origin = self.headers.get("Origin")
        if origin not in ORIGINS:
            self.fail(403, "ORIGIN_NOT_ALLOWED", "This page may not request tokens.", {})
            return None
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": "Retry-After",
            "Vary": "Origin",
        }

    def token(self, cors):
        if seconds := wait(self.visitor()):
            message = "Too many requests. Wait a minute, then try again."
            self.fail(429, "RATE_LIMITED", message, {**cors, "Retry-After": str(seconds)})
            return
        # Check here that this visitor may talk to the agent.
        status, retry_after, raw, body, error = exchange()
        if error or status == 429 or status >= 500:
            log("no token, try again:", status, error or body.get("error"))
            message = "The voice service is busy. Try again shortly."
            self.fail(503, "UNAVAILABLE", message, {**cors, "Retry-After": retry_after or "5"})
        elif status != 200:
            log(f"no token: {status} {body.get('code')}: {body.get('error')}")  # the error says what to do
            self.fail(502, body.get("code"), "The voice service refused this site.", cors)
        else:
            self.json(200, raw, cors)

    def visitor(self):
        """Returns the address of the request. A visitor with IPv6 has 2^64 addresses, so only the
        network counts."""
        address = self.client_address[0]
        if PROXIED and (forwarded := self.headers.get_all("X-Forwarded-For")):
            address = forwarded[-1].split(",")[-1].strip()
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return address
        if parsed.version == 4 or parsed.ipv4_mapped:
            return str(getattr(parsed, "ipv4_mapped", None) or parsed)
        return str(ipaddress.ip_network((int(parsed), 64), strict=False))

    def route(self):
        return self.path.split("?")[0]

    def missing(self, text):
        self.send(404, text.encode(), {"Content-Type": "text/plain"})

    def fail(self, status, code, message, headers):
        self.json(status, json.dumps({"error": message, "code": code}).encode(), headers)

    def json(self, status, body, headers):
        self.send(status, body, {"Content-Type": "application/json", "Cache-Control": "no-store", **headers})

    def send(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass  # no line for each request


def exchange():
    """Requests a token from the portal. http.client follows no redirect, which could send the key
    to another server."""
    url = urlsplit("TOKEN_URL")
    connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connect(url.netloc, timeout=5)
    status, retry_after = 0, None
    try:
        connection.request("POST", url.path, json.dumps({"agentId": "AGENT_ID"}), {
            "Authorization": f"Bearer {KEY}",
            "Content-Type": "application/json",
        })
        response = connection.getresponse()
        status, retry_after = response.status, response.headers.get("Retry-After")
        raw = response.read(65536)
        return status, retry_after, raw, json.loads(raw), None  # a token, or an error with two fields
    except (OSError, http.client.HTTPException, ValueError) as error:
        return status, retry_after, b"", {}, error
    finally:
        connection.close()


def log(*words):
    print(*words, file=sys.stderr, flush=True)


lock = threading.Lock()
visitors = {}  # requests in this minute
minute = 0.0  # its end


def wait(visitor):
    """Counts a request. Returns how many seconds the visitor must wait, or 0."""
    global minute
    with lock:
        now = time.monotonic()
        if now > minute:
            visitors.clear()
            minute = now + 60
        count = visitors.get(visitor, 0)
        if count >= TOKENS_PER_MINUTE or (count == 0 and len(visitors) >= MAX_VISITORS):
            return int(minute - now) + 1
        visitors[visitor] = count + 1
        return 0


server = ThreadingHTTPServer(("127.0.0.1", int(PORT)), Handler)
print("listening on http://%s:%d" % server.server_address, flush=True)
server.serve_forever()
