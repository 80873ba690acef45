// verify.mjs, for npm install jose && node verify.mjs TOKEN
import { createRemoteJWKSet, jwtVerify } from 'jose';

// Fetches the keys once, and again for an unknown key id.
const keys = createRemoteJWKSet(new URL('BASE_URL/.well-known/jwks.json'));

export async function verify(token) {
  const { payload } = await jwtVerify(token, keys, {
    issuer: 'BASE_URL',
    audience: 'widget',
    algorithms: ['EdDSA', 'ES256'],
    typ: 'at+jwt',
    requiredClaims: ['exp', 'agent_id'],
  });
  return payload;
}

const claims = await verify(process.argv[2]);
console.log(claims.agent_id);
