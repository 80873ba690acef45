// server.mjs, for node server.mjs
import { createServer } from 'node:http';

createServer(async (request, response) => {
  if (request.method !== 'POST' || request.url !== '/widget-token') {
    response.writeHead(404).end();
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
}).listen(process.env.PORT ?? 3000, '127.0.0.1');

async function exchange() {
  const answer = await fetch('TOKEN_URL', {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${process.env.NAS_API_KEY}`,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ agentId: 'AGENT_ID' }),
    signal: AbortSignal.timeout(10_000),
  });
  if (!answer.ok) {
    throw new Error(`${answer.status} ${answer.statusText}`);
  }
  return answer.text();
}
