# verify.py, for pip install 'pyjwt[crypto]' && python3 verify.py TOKEN
import sys

import jwt

ISSUER = "BASE_URL"

# Keeps the keys for five minutes.
keys = jwt.PyJWKClient(ISSUER + "/.well-known/jwks.json", lifespan=300)


def verify(token):
    if jwt.get_unverified_header(token).get("typ") != "at+jwt":
        raise jwt.InvalidTokenError("not a widget token")
    return jwt.decode(
        token,
        keys.get_signing_key_from_jwt(token).key,
        algorithms=["EdDSA", "ES256"],
        issuer=ISSUER,
        audience="widget",
        options={"require": ["exp", "agent_id"]},
    )


try:
    print(verify(sys.argv[1])["agent_id"])
except jwt.PyJWTError as error:
    sys.exit(f"invalid token: {error}")
