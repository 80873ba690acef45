"""An SMTP server for tests. It prints its port, then each accepted mail as one line of JSON. It
writes a line to standard error for each password that it receives.

A recipient decides what happens to the mail: refused@ is refused for ever, later@ for now, and the
connection ends before the response to a mail for lost@, although the mail is accepted. The responses
to RCPT and to the content of a mail for rcpt-550-5.7.1@ and data-554@ begin with these codes.

Each command AUTH with a mechanism that the server knows writes a line to standard error. Those that
are offered but not accepted refuse the right password.
"""

import argparse
import asyncio
import json
import re
import ssl
import sys

from aiosmtpd.smtp import MISSING, SMTP, AuthResult

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--password")
parser.add_argument("--certificate")
parser.add_argument("--smtps", action="store_true")
parser.add_argument("--offer", default="LOGIN PLAIN", help="mechanisms in the response to EHLO")
parser.add_argument("--announce", default="AUTH ", help="what comes before the mechanisms")
parser.add_argument("--small", action="store_true", help="write the response to EHLO in small letters")
parser.add_argument("--no-starttls", action="store_true", help="offer STARTTLS and refuse it")
parser.add_argument("--no-bye", action="store_true", help="never respond to QUIT")
parser.add_argument("--accept", default="LOGIN PLAIN", help="mechanisms that take the password")
parser.add_argument("--hang-up", action="store_true", help="end the connection at a second command AUTH")
arguments = parser.parse_args()


def response(stage, address):
    """Returns the response that a recipient asks for at a stage, or None."""
    asked = re.match(stage + r"-(\d{3})(?:-([\d.]+))?@", address)
    return asked and f"{asked[1]} {asked[2] + ' ' if asked[2] else ''}<{address}> refused"


class Handler:
    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        session.host_name = hostname
        offer = "250-" + arguments.announce + arguments.offer
        lines = [offer if "AUTH" in line else line for line in responses]
        if arguments.no_starttls:
            lines.insert(1, "250-STARTTLS")
        return [line.lower() for line in lines] if arguments.small else lines

    async def handle_AUTH(self, server, session, envelope, args):
        if arguments.hang_up and getattr(session, "refused", False):
            server.transport.abort()
            return "421 Bye"
        print("AUTH", args[0], file=sys.stderr, flush=True)
        return MISSING

    async def auth_CRAM__MD5(self, server, args):
        """Refuses every response, as a server does that stores only hashes of passwords."""
        await server.challenge_auth("<1.2@mail.example.com>")
        return AuthResult(success=False)

    async def handle_QUIT(self, server, session, envelope):
        if arguments.no_bye:
            await asyncio.sleep(3600)
        return "221 Bye"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if refusal := response("rcpt", address):
            return refusal
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
            "hello": session.host_name,
            "utf8": bool(envelope.smtp_utf8),
            "user": session.auth_data.login.decode() if session.auth_data else "",
        }
        print(json.dumps(mail), flush=True)
        if envelope.rcpt_tos[0].startswith("lost@"):
            server.transport.abort()
        return response("data", envelope.rcpt_tos[0]) or "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    print("password received", file=sys.stderr, flush=True)
    right = data.login == b"portal" and data.password == arguments.password.encode()
    right = right and mechanism in arguments.accept.split()
    session.refused = not right
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
            enable_SMTPUTF8=True,
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
