// Works in browsers whose Web Crypto has Ed25519: Chromium 137, Firefox 129, Safari 17 and later.
async function verify(token) {
  const [header, payload, signature] = token.split('.');
  const { alg, typ, kid } = decode(header);
  const response = await fetch('BASE_URL/.well-known/jwks.json');
  const { keys } = await response.json();
  const jwk = keys.find((key) => key.kid === kid);
  if (alg !== 'EdDSA' || typ !== 'at+jwt' || !jwk) {
    throw new Error('not a widget token of this portal');
  }
  const key = await crypto.subtle.importKey('jwk', jwk, 'Ed25519', false, ['verify']);
  const signed = new TextEncoder().encode(`${header}.${payload}`);
  if (!await crypto.subtle.verify('Ed25519', key, bytes(signature), signed)) {
    throw new Error('the signature is wrong');
  }
  const claims = decode(payload);
  const now = Date.now() / 1000;
  if (claims.iss !== 'BASE_URL' || claims.aud !== 'widget' || claims.nbf > now || claims.exp <= now) {
    throw new Error('the token is not valid here and now');
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
