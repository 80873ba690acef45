# backend.py, for python3 backend.py
#
# The backend of a page with a voice widget. It serves widget.html from this folder, and exchanges
# the API key in NAS_API_KEY for a token with POST /token, which is also a token endpoint for
# LiveKit's SDKs. It needs no packages.
#
# ALLOWED_ORIGINS lists the pages that may request tokens, such as https://www.example.com.
# LIVEKIT_URL is the voice server that the page may connect to, such as wss://voice.example.com.
# BEHIND_PROXY=1 reads the visitor's address from the last entry of X-Forwarded-For.
# SESSIONS stands for your site's sessions, such as {"a session": {"id": "7", "name": "Maria"}}.
# The one with an empty name is for visitors without a session.
import contextlib
import http.client
import ipaddress
import json
import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

TOKENS_PER_MINUTE = 10  # for one visitor
MAX_VISITORS = 10_000  # in one minute; further visitors wait for the next one
MAX_CONNECTIONS = 500  # further ones are closed
MAX_BODY = 16_384  # bytes

LIBRARY = "node_modules/livekit-client/dist/livekit-client.esm.mjs"  # npm install livekit-client@2.23.0

KEY = os.environ.get("NAS_API_KEY", "").strip()
PORT = os.environ.get("PORT") or "3000"
VOICE = os.environ.get("LIVEKIT_URL") or "wss:"
PROXIED = os.environ.get("BEHIND_PROXY") == "1"
ORIGINS = (os.environ.get("ALLOWED_ORIGINS") or f"http://localhost:{PORT},http://127.0.0.1:{PORT}").split(",")
SESSIONS = json.loads(os.environ.get("SESSIONS") or "{}")


class Handler(BaseHTTPRequestHandler):
    timeout = 10  # for each read and write

    def serve(self):
        self.added = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        if not self.read_body():
            self.fail(413, "PAYLOAD_TOO_LARGE", "The request is too large.")
            return
        match f"{self.command} {self.path.split('?')[0]}":
            case "GET /":
                self.page()
            case "GET /livekit-client.js":
                self.file(LIBRARY, "text/javascript; charset=utf-8", "")
            case "OPTIONS /token" | "POST /token":
                self.token()
            case _:
                self.fail(404, "NOT_FOUND", "There is no such page.")

    do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_PATCH = do_DELETE = serve

    def read_body(self):
        """Reads the body, which no route needs, and reports whether it is short enough."""
        if "Transfer-Encoding" not in self.headers:
            length = self.headers.get("Content-Length", "0")
            if not length.isdecimal() or int(length) > MAX_BODY:
                return False
            self.rfile.read(int(length))
            return True
        left = MAX_BODY
        while chunk := re.match(rb"([0-9A-Fa-f]{1,4})[;\r\n]", self.rfile.readline(1024)):
            size = int(chunk[1], 16)
            left -= size
            if left < 0:
                return False
            # Also after the last chunk, which is empty: unread data would reset the connection.
            self.rfile.read(size + len("\r\n"))
            if size == 0:
                return True
        return False

    def page(self):
        """Serves the widget. Only scripts and styles with the nonce of this response run."""
        nonce = secrets.token_hex(16)
        self.added["Permissions-Policy"] = "microphone=(self)"
        self.added["Referrer-Policy"] = "no-referrer"
        self.added["Content-Security-Policy"] = (
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            f"script-src 'self' 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
            f"connect-src 'self' {VOICE} {VOICE.replace('ws', 'http', 1)}"
        )
        self.file("widget.html", "text/html; charset=utf-8", nonce)

    def file(self, name, content_type, nonce):
        try:
            content = Path(name).read_bytes()
        except OSError:
            self.fail(404, "NOT_FOUND", f"A file is missing: {name}")
            return
        if not nonce:
            self.added["Cache-Control"] = "max-age=3600"
        self.send(200, content_type, content.replace(b"NONCE", nonce.encode()))

    def signed_in(self):
        """Returns the user of the request, or None. Replace it by a look-up in your site's
        sessions: an app sends its session as a bearer token, and a browser as a cookie. The agent
        and the visitor can read the user in the token, which is signed, not secret."""
        if authorization := self.headers.get("Authorization"):
            bearer = re.fullmatch("Bearer (.+)", authorization.strip(), re.IGNORECASE)
            return SESSIONS.get(bearer[1]) if bearer else None
        cookie = re.search("(?:^|; )session=([^;]*)", self.headers.get("Cookie", ""))
        return SESSIONS.get(cookie[1] if cookie else "")

    def allowed(self):
        """Reports whether the page or app that sent the request may request tokens, and adds the
        CORS headers for a page. An app has no origin, and needs a session."""
        self.added["Vary"] = "Origin"
        origin = self.headers.get("Origin")
        if not origin and self.headers.get("Authorization") and self.signed_in():
            return True
        if origin not in ORIGINS:
            self.fail(403, "ORIGIN_NOT_ALLOWED", "This page may not request tokens.")
            return False
        self.added["Access-Control-Allow-Origin"] = origin
        self.added["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
        self.added["Access-Control-Expose-Headers"] = "Retry-After"
        return True

    def token(self):
        if not self.allowed():
            return
        if self.command == "OPTIONS":
            self.send(204, "text/plain", b"")
            return
        if seconds := wait(self.visitor()):
            self.added["Retry-After"] = str(seconds)
            self.fail(429, "RATE_LIMITED", "Too many requests. Wait a minute, then try again.")
            return
        # Check here that this visitor may talk to the agent.
        status, retry_after, raw, body, error = exchange(self.signed_in())
        if error or status == 429 or status >= 500:
            log("no token, try again:", status, error or body.get("error"))
            self.added["Retry-After"] = retry_after or "5"
            self.fail(503, "UNAVAILABLE", "The voice service is busy. Try again shortly.")
        elif "access_token" not in body:
            log(f"no token: {status} {body['code']}: {body.get('error')}")  # the error says what to do
            self.fail(502, body["code"], "The voice service refused this site.")
        else:
            self.send(200, "application/json", raw)

    def visitor(self):
        """Returns the address of the request. A visitor with IPv6 has 2^64 addresses, so only the
        network counts. All invalid addresses count as one."""
        address = self.client_address[0]
        if PROXIED and (forwarded := self.headers.get_all("X-Forwarded-For")):
            address = forwarded[-1].split(",")[-1].strip()
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return ""
        if parsed.version == 4 or parsed.ipv4_mapped:
            return str(getattr(parsed, "ipv4_mapped", None) or parsed)
        return str(ipaddress.ip_network((int(parsed), 64), strict=False))

    def fail(self, status, code, message):
        self.send(status, "application/json", json.dumps({"error": message, "code": code}).encode())

    def send(self, status, content_type, body):
        self.send_response_only(status)
        for name, value in self.added.items():
            self.send_header(name, value)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass  # no line for each request


class Server(ThreadingHTTPServer):
    """Limits the number of connections, and ends each after 20 seconds."""

    connections = {}  # with the time at which each ends

    def process_request(self, connection, address):
        if len(self.connections) >= MAX_CONNECTIONS:
            self.shutdown_request(connection)
            return
        self.connections[connection] = time.monotonic() + 20
        super().process_request(connection, address)

    def service_actions(self):  # twice a second
        for connection, end in self.connections.copy().items():
            if time.monotonic() > end:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, connection):
        super().shutdown_request(connection)
        self.connections.pop(connection, None)

    def handle_error(self, *_):
        log("a request failed:", sys.exc_info()[1])


def exchange(user):
    """Requests a token from the portal. Nothing in it comes from the body of the visitor's request,
    which could ask for another room or agent. http.client follows no redirect, which could send
    the key to another server."""
    url = urlsplit("TOKEN_URL")
    connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connect(url.netloc, timeout=5)
    status, retry_after, raw = 0, None, b""
    try:
        connection.request("POST", url.path, json.dumps({"agentId": "AGENT_ID", "user": user}), {
            "Authorization": f"Bearer {KEY}",
            "Content-Type": "application/json",
        })
        response = connection.getresponse()
        status, retry_after = response.status, response.headers.get("Retry-After")
        raw = response.read(65536)
        body = json.loads(raw)  # a token, or an error with two fields
        if not isinstance(body, dict) or not body.keys() & {"access_token", "code"}:
            raise ValueError("this is not a response of the portal")
        return status, retry_after, raw, body, None
    except (OSError, http.client.HTTPException, ValueError) as error:
        return status, retry_after, raw, {}, error
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


if not re.fullmatch("nas_[0-9A-Za-z]+", KEY):
    sys.exit("NAS_API_KEY is missing or malformed")
server = Server(("127.0.0.1", int(PORT)), Handler)
print("listening on http://%s:%d" % server.server_address, flush=True)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
server.server_close()
deadline = time.monotonic() + 10
while server.connections and time.monotonic() < deadline:  # requests in flight
    time.sleep(0.1)
