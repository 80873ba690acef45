// Receives webhooks at PORT, with WEBHOOK_SECRET (whsec_...), both in the environment.
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

const secret = new Webhook(process.env.WEBHOOK_SECRET)
const seen = new Set() // Use a unique column of your database.

createServer(async (request, response) => {
  const chunks = []
  let size = 0
  for await (const chunk of request) {
    if ((size += chunk.length) > 1 << 20) return response.writeHead(413).end()
    chunks.push(chunk)
  }
  const body = Buffer.concat(chunks).toString()
  let event
  try {
    event = secret.verify(body, request.headers)
  } catch {
    return response.writeHead(400).end('invalid signature')
  }
  response.writeHead(204).end() // Answer first. Use a queue that survives a restart.
  const key = `${request.headers['webhook-id']} ${event.type}`
  if (!seen.has(key)) {
    seen.add(key)
    console.log('event', event.type, JSON.stringify(event.data))
  }
}).listen(process.env.PORT, '127.0.0.1')
