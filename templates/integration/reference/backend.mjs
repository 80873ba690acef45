// backend.mjs, for node backend.mjs
//
// The backend of a page with a voice widget. It serves widget.html from this folder, and exchanges
// the API key in NAS_API_KEY for a token with POST /token, which is also a token endpoint for
// LiveKit's SDKs. It needs no packages.
//
// ALLOWED_ORIGINS lists the pages that may request tokens, such as https://www.example.com.
// LIVEKIT_URL is the voice server that the page may connect to, such as wss://voice.example.com.
// BEHIND_PROXY=1 reads the visitor's address from the last entry of X-Forwarded-For.
// SESSIONS stands for your site's sessions, such as {"a session": {"id": "7", "name": "Maria"}}.
// The one with an empty name is for visitors without a session.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { isIP, isIPv6 } from 'node:net';

const tokensPerMinute = 10; // for one visitor
const maxVisitors = 10_000; // in one minute; further visitors wait for the next one
const maxConnections = 500; // further ones are closed
const maxBody = 16_384; // bytes

const library = 'node_modules/livekit-client/dist/livekit-client.esm.mjs'; // npm install livekit-client@2.23.0

const key = (process.env.NAS_API_KEY ?? '').trim();
const port = process.env.PORT || '3000';
const voice = process.env.LIVEKIT_URL || 'wss:';
const proxied = process.env.BEHIND_PROXY === '1';
const origins = (process.env.ALLOWED_ORIGINS || `http://localhost:${port},http://127.0.0.1:${port}`).split(',');
const sessions = new Map(Object.entries(JSON.parse(process.env.SESSIONS || '{}')));

async function serve(request, response) {
  const timer = setTimeout(() => response.destroy(), 20_000);
  response.on('close', () => clearTimeout(timer));
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  if (Number(request.headers['content-length'] ?? 0) > maxBody || !(await readBody(request))) {
    response.setHeader('Connection', 'close');
    fail(response, 413, 'PAYLOAD_TOO_LARGE', 'The request is too large.');
    return;
  }
  switch (`${request.method} ${request.url.split('?')[0]}`) {
    case 'GET /':
      await page(response);
      break;
    case 'GET /livekit-client.js':
      await file(response, library, 'text/javascript; charset=utf-8', '');
      break;
    case 'OPTIONS /token':
    case 'POST /token':
      await token(request, response);
      break;
    default:
      fail(response, 404, 'NOT_FOUND', 'There is no such page.');
  }
}

// Reads the body, which no route needs, and reports whether it is short enough.
async function readBody(request) {
  let length = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > maxBody) {
      return false;
    }
  }
  return true;
}

// Serves the widget. Only scripts and styles with the nonce of this response run.
function page(response) {
  const nonce = randomBytes(16).toString('hex');
  response.setHeader('Permissions-Policy', 'microphone=(self)');
  response.setHeader('Referrer-Policy', 'no-referrer');
  response.setHeader('Content-Security-Policy', "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    + `script-src 'self' 'nonce-${nonce}'; style-src 'nonce-${nonce}'; img-src data:; `
    + `connect-src 'self' ${voice} ${voice.replace('ws', 'http')}`);
  return file(response, 'widget.html', 'text/html; charset=utf-8', nonce);
}

async function file(response, name, contentType, nonce) {
  const content = await readFile(name, 'utf8').catch(() => null);
  if (content === null) {
    fail(response, 404, 'NOT_FOUND', `A file is missing: ${name}`);
    return;
  }
  if (nonce === '') {
    response.setHeader('Cache-Control', 'max-age=3600');
  }
  send(response, 200, contentType, content.replaceAll('NONCE', nonce));
}

// Returns the user of the request, or undefined. Replace it by a look-up in your site's sessions:
// an app sends its session as a bearer token, and a browser as a cookie. The agent and the visitor
// can read the user in the token, which is signed, not secret.
function signedIn({ headers }) {
  if (headers.authorization) {
    return sessions.get(/^Bearer (.+)/i.exec(headers.authorization)?.[1]);
  }
  return sessions.get(/(?:^|; )session=([^;]*)/.exec(headers.cookie ?? '')?.[1] ?? '');
}

// Reports whether the page or app that sent the request may request tokens, and adds the CORS
// headers for a page. An app has no origin, and needs a session.
function allowed(request, response) {
  response.setHeader('Vary', 'Origin');
  const { origin, authorization } = request.headers;
  if (!origin && authorization && signedIn(request)) {
    return true;
  }
  if (!origins.includes(origin)) {
    fail(response, 403, 'ORIGIN_NOT_ALLOWED', 'This page may not request tokens.');
    return false;
  }
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Allow-Headers', 'Authorization, Content-Type');
  response.setHeader('Access-Control-Expose-Headers', 'Retry-After');
  return true;
}

async function token(request, response) {
  if (!allowed(request, response)) {
    return;
  }
  if (request.method === 'OPTIONS') {
    response.writeHead(204).end();
    return;
  }
  const seconds = wait(visitor(request));
  if (seconds > 0) {
    response.setHeader('Retry-After', seconds);
    fail(response, 429, 'RATE_LIMITED', 'Too many requests. Wait a minute, then try again.');
    return;
  }
  // Check here that this visitor may talk to the agent.
  const { status = 0, retryAfter, raw, body, error } = await exchange(signedIn(request)).catch((error) => ({ error }));
  if (error || status === 429 || status >= 500) {
    console.error('no token, try again:', status, error ? `${error.message} ${error.cause ?? ''}` : body.error);
    response.setHeader('Retry-After', retryAfter || '5');
    fail(response, 503, 'UNAVAILABLE', 'The voice service is busy. Try again shortly.');
  } else if (!body.access_token) {
    console.error(`no token: ${status} ${body.code}: ${body.error}`); // the error says what to do
    fail(response, 502, body.code, 'The voice service refused this site.');
  } else {
    send(response, 200, 'application/json', raw);
  }
}

// Requests a token from the portal. Nothing in it comes from the body of the visitor's request,
// which could ask for another room or agent. A redirect could send the key to another server, so it
// is an error.
async function exchange(user) {
  const response = await fetch('TOKEN_URL', {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ agentId: 'AGENT_ID', user }),
    redirect: 'error',
    signal: AbortSignal.timeout(5000),
  });
  const answer = { status: response.status, retryAfter: response.headers.get('Retry-After'), raw: await response.text() };
  try {
    const body = JSON.parse(answer.raw); // a token, or an error with two fields
    if (body.access_token || body.code) {
      return { ...answer, body };
    }
  } catch {}
  return { ...answer, error: new Error('this is not a response of the portal') };
}

function fail(response, status, code, message) {
  send(response, status, 'application/json', JSON.stringify({ error: message, code }));
}

function send(response, status, contentType, body) {
  response.writeHead(status, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) }).end(body);
}

const visitors = new Map(); // requests in this minute
let minute = 0; // its end

// Counts a request. Returns how many seconds the visitor must wait, or 0.
function wait(visitor) {
  const now = performance.now();
  if (now > minute) {
    visitors.clear();
    minute = now + 60_000;
  }
  const count = visitors.get(visitor) ?? 0;
  if (count >= tokensPerMinute || (count === 0 && visitors.size >= maxVisitors)) {
    return Math.floor((minute - now) / 1000) + 1;
  }
  visitors.set(visitor, count + 1);
  return 0;
}

// Returns the address of the request. A visitor with IPv6 has 2^64 addresses, so only the network
// counts. All invalid addresses count as one.
function visitor(request) {
  const forwarded = proxied && request.headers['x-forwarded-for']?.split(',').at(-1).trim();
  const address = (forwarded || request.socket.remoteAddress || '').replace(/^::ffff:(?=\d+\.)/i, '');
  if (!isIPv6(address)) {
    return isIP(address) ? address : '';
  }
  const [head, tail = ''] = new URL(`http://[${address.split('%')[0]}]`).hostname.slice(1, -1).split('::');
  const before = head.split(':');
  const after = tail.split(':');
  const zeros = Array(Math.max(0, 8 - before.length - after.length)).fill('0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}

if (!/^nas_[0-9A-Za-z]+$/.test(key)) {
  console.error('NAS_API_KEY is missing or malformed');
  process.exit(1);
}
const timeouts = { requestTimeout: 10_000, headersTimeout: 10_000, connectionsCheckingInterval: 1000 };
const server = createServer(timeouts, (request, response) => {
  serve(request, response).catch((error) => {
    console.error('a request failed:', error.message);
    response.destroy();
  });
});
server.maxConnections = maxConnections;
server.listen(port, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
function stop() {
  server.close(); // the process ends after the requests in flight
  setTimeout(() => server.closeAllConnections(), 10_000).unref();
}
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
