// backend.mjs, for node backend.mjs
//
// The backend of a page with a voice widget. It serves widget.html from this folder, and exchanges
// the API key in NAS_API_KEY for a token with POST /token. It needs no packages.
//
// ALLOWED_ORIGINS lists the pages that may request tokens, such as https://www.example.com.
// LIVEKIT_URL is the voice server that the page may connect to, such as wss://voice.example.com.
// BEHIND_PROXY=1 reads the visitor's address from the last entry of X-Forwarded-For.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { isIPv6 } from 'node:net';

const tokensPerMinute = 10; // for one visitor
const maxVisitors = 10_000; // in one minute; further visitors wait for the next one

const key = process.env.NAS_API_KEY;
const port = process.env.PORT || '3000';
const voice = process.env.LIVEKIT_URL || 'wss:';
const proxied = process.env.BEHIND_PROXY === '1';
const origins = (process.env.ALLOWED_ORIGINS || `http://localhost:${port},http://127.0.0.1:${port}`).split(',');

if (!key) {
  console.error('NAS_API_KEY is not set');
  process.exit(1);
}

const routes = {
  'GET /': page,
  'GET /livekit-client.js': library,
  'OPTIONS /token': preflight,
  'POST /token': token,
};

const server = createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, async (request, response) => {
  request.resume(); // no route reads the body
  const path = request.url.split('?')[0];
  const route = routes[`${request.method} ${path}`];
  try {
    await (route ?? missing)(request, response);
  } catch (error) {
    console.error(`${request.method} ${path}:`, error.message);
    response.writeHead(500).end();
  }
});
server.listen(port, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});

function missing(_, response) {
  response.writeHead(404, { 'Content-Type': 'text/plain' }).end('not found');
}

// Serves widget.html. Only scripts and styles with the nonce of this response run.
async function page(request, response) {
  const html = await readFile('widget.html', 'utf8').catch(() => null);
  if (html === null) {
    response.writeHead(404, { 'Content-Type': 'text/plain' }).end('widget.html is missing');
    return;
  }
  const nonce = randomBytes(16).toString('hex');
  response.writeHead(200, {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    'Permissions-Policy': 'microphone=(self)',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
      + `script-src 'self' 'nonce-${nonce}'; style-src 'nonce-${nonce}'; img-src data:; `
      + `connect-src 'self' ${voice} ${voice.replace('ws', 'http')}`,
  }).end(html.replaceAll('NONCE', nonce));
}

// Serves the browser library of npm install livekit-client@2.23.0.
async function library(request, response) {
  const script = await readFile('node_modules/livekit-client/dist/livekit-client.esm.mjs').catch(() => null);
  if (script === null) {
    missing(request, response);
    return;
  }
  response.writeHead(200, { 'Content-Type': 'text/javascript; charset=utf-8', 'X-Content-Type-Options': 'nosniff' }).end(script);
}

// Reports whether the page that sent the request may request tokens. Adds the CORS headers for
// this page.
function allowed(request, response) {
  const origin = request.headers.origin;
  if (!origins.includes(origin)) {
    fail(response, 403, 'ORIGIN_NOT_ALLOWED', 'This page may not request tokens.');
    return false;
  }
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Expose-Headers', 'Retry-After');
  response.setHeader('Vary', 'Origin');
  return true;
}

function preflight(request, response) {
  if (allowed(request, response)) {
    response.writeHead(204, { 'Access-Control-Allow-Methods': 'POST', 'Access-Control-Allow-Headers': 'Content-Type' }).end();
  }
}

async function token(request, response) {
  if (!allowed(request, response)) {
    return;
  }
  const seconds = wait(visitor(request));
  if (seconds > 0) {
    response.setHeader('Retry-After', seconds);
    fail(response, 429, 'RATE_LIMITED', 'Too many requests. Wait a minute, then try again.');
    return;
  }
  // Check here that this visitor may talk to the agent.
  const { status = 0, retryAfter, raw, body, error } = await exchange().catch((error) => ({ error }));
  if (error || status === 429 || status >= 500) {
    console.error('no token, try again:', status, error ? `${error.message} ${error.cause ?? ''}` : body.error);
    response.setHeader('Retry-After', retryAfter || '5');
    fail(response, 503, 'UNAVAILABLE', 'The voice service is busy. Try again shortly.');
  } else if (status !== 200) {
    console.error(`no token: ${status} ${body.code}: ${body.error}`); // the error says what to do
    fail(response, 502, body.code, 'The voice service refused this site.');
  } else {
    send(response, 200, raw);
  }
}

// Requests a token from the portal. A redirect could send the key to another server, so it is an
// error.
async function exchange() {
  const response = await fetch('TOKEN_URL', {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ agentId: 'AGENT_ID' }),
    redirect: 'error',
    signal: AbortSignal.timeout(5000),
  });
  const raw = await response.text();
  const answer = { status: response.status, retryAfter: response.headers.get('Retry-After'), raw };
  try {
    return { ...answer, body: JSON.parse(raw) }; // a token, or an error with two fields
  } catch (error) {
    return { ...answer, error };
  }
}

function fail(response, status, code, message) {
  send(response, status, JSON.stringify({ error: message, code }));
}

function send(response, status, body) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(body);
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
// counts.
function visitor(request) {
  const forwarded = proxied && request.headers['x-forwarded-for']?.split(',').at(-1).trim();
  const address = (forwarded || request.socket.remoteAddress || '').replace(/^::ffff:(?=\d+\.)/i, '');
  if (!isIPv6(address)) {
    return address;
  }
  const [head, tail = ''] = new URL(`http://[${address.split('%')[0]}]`).hostname.slice(1, -1).split('::');
  const before = head.split(':');
  const after = tail.split(':');
  const zeros = Array(Math.max(0, 8 - before.length - after.length)).fill('0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
