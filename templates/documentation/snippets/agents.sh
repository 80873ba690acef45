curl -sS --fail-with-body BASE_URL/api/agents \
  -H "Authorization: Bearer $NAS_API_KEY"
