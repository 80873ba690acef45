curl -sS --fail-with-body BASE_URL/api/widget/introspect \
  -H "Authorization: Bearer $NAS_API_KEY" \
  --data-urlencode "token=$WIDGET_TOKEN"
