# Receives webhooks at PORT, with WEBHOOK_SECRET (whsec_...), both in the environment. It needs no
# package.
import base64, hashlib, hmac, json, os, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
seen = set()  # Use a unique column of your database.


def verified(headers, body):
    try:
        at = int(headers.get("webhook-timestamp", ""))
    except ValueError:
        return False
    signed = b"%s.%d.%s" % (headers.get("webhook-id", "").encode(), at, body)
    want = base64.b64encode(hmac.digest(SECRET, signed, hashlib.sha256))
    # During a rotation there are two signatures.
    given = [s[3:].encode() for s in headers.get("webhook-signature", "").split() if s.startswith("v1,")]
    return abs(time.time() - at) <= 300 and any(hmac.compare_digest(want, s) for s in given)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length) if length <= 1 << 20 else b""
        if not verified(self.headers, body):
            return self.answer(400)
        event = json.loads(body)
        self.answer(204)  # Answer first. Use a queue that survives a restart.
        key = (self.headers["webhook-id"], event["type"])
        if key not in seen:
            seen.add(key)
            print(f"event {event['type']} {json.dumps(event['data'])}", flush=True)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
