// server.mjs, for node server.mjs
import { createServer } from 'node:http';

const key = process.env.NAS_API_KEY;
if (!key) {
  console.error('NAS_API_KEY is not set');
  process.exit(1);
}

const server = createServer(async (request, response) => {
  if (request.url.split('?')[0] !== '/widget-token') {
    response.writeHead(404).end();
    return;
  }
  if (request.method !== 'POST') {
    response.writeHead(405, { Allow: 'POST' }).end();
    return;
  }
  // Check here that the visitor may talk to the agent.
  try {
    const token = await exchange();
    response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(token);
  } catch (error) {
    console.error('no widget token:', error.message);
    response.writeHead(502).end('no widget token');
  }
});
server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});

async function exchange() {
  const response = await fetch('TOKEN_URL', {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ agentId: 'AGENT_ID' }),
    signal: AbortSignal.timeout(10_000),
  });
  const body = await response.text();
  if (!response.ok) {
    throw new Error(`${response.status} ${response.statusText}: ${body}`); // the body says why
  }
  return body;
}
