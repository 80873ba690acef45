"""An SMTP server for tests. It prints its port, then each accepted mail as one line of JSON. It
writes a line to standard error for each password that it receives.

A recipient decides what happens to the mail: refused@ is refused for ever, later@ for now, and the
connection ends before the response to a mail for lost@, although the mail is accepted.
"""

import argparse
import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--password")
parser.add_argument("--certificate")
parser.add_argument("--smtps", action="store_true")
arguments = parser.parse_args()


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("refused@"):
            return "550 5.1.1 <" + address + "> does not exist"
        if address.startswith("later@"):
            return "451 4.7.1 <" + address + "> try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "data": envelope.content.decode(),
            "tls": session.ssl is not None or arguments.smtps,
            "user": session.auth_data.login.decode() if session.auth_data else "",
        }
        print(json.dumps(mail), flush=True)
        if envelope.rcpt_tos[0].startswith("lost@"):
            server.transport.abort()
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    print("password received", file=sys.stderr, flush=True)
    right = data.login == b"portal" and data.password == arguments.password.encode()
    return AuthResult(success=right, handled=False, auth_data=data)


async def main():
    context = None
    if arguments.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments.certificate)

    def new_server():
        starttls = None if arguments.smtps else context
        return SMTP(
            Handler(),
            hostname="mail.example.com",
            tls_context=starttls,
            require_starttls=starttls is not None,
            authenticator=authenticate if arguments.password else None,
            auth_required=bool(arguments.password),
            auth_require_tls=starttls is not None,
        )

    server = await asyncio.get_running_loop().create_server(
        new_server, "127.0.0.1", arguments.port, ssl=context if arguments.smtps else None
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
