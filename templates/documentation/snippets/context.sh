curl -sS --fail-with-body BASE_URL/api/widget/token \
  -H "Authorization: Bearer $NAS_API_KEY" \
  -H "Content-Type: application/json" \
  -d '{
    "agentId": "AGENT_ID",
    "user": { "id": "customer-1042", "name": "Maria" },
    "metadata": { "plan": "gold" },
    "expiresIn": 300
  }'
