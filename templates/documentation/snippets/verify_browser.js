// Ed25519 needs Chromium 137, Firefox 129, Safari 17 or later. ES256 works in every browser.
const algorithms = {
  EdDSA: { name: 'Ed25519' },
  ES256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
};

async function verify(token) {
  const [header, payload, signature] = token.split('.');
  const { alg, typ, kid } = decode(header);
  const response = await fetch('BASE_URL/.well-known/jwks.json');
  const { keys } = await response.json();
  const jwk = keys.find((key) => key.kid === kid);
  if (typ !== 'at+jwt' || !jwk || alg !== jwk.alg || !(alg in algorithms)) {
    throw new Error('not a widget token of this portal');
  }
  const algorithm = algorithms[alg];
  const key = await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['verify']);
  const signed = new TextEncoder().encode(`${header}.${payload}`);
  if (!await crypto.subtle.verify(algorithm, key, bytes(signature), signed)) {
    throw new Error('the signature is wrong');
  }
  const claims = decode(payload);
  const now = Date.now() / 1000;
  if (claims.iss !== 'BASE_URL' || claims.aud !== 'widget' || claims.nbf > now || claims.exp <= now) {
    throw new Error('the token has expired or is for another service');
  }
  return claims;
}

function bytes(part) {
  const base64 = part.replaceAll('-', '+').replaceAll('_', '/');
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function decode(part) {
  return JSON.parse(new TextDecoder().decode(bytes(part)));
}
