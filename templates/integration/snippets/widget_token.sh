curl -sS --fail-with-body TOKEN_URL \
  -H "Authorization: Bearer $NAS_API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"agentId": "AGENT_ID"}'
