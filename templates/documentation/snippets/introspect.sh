# WIDGET_TOKEN is the access_token that your server got for the browser.
curl -sS --fail-with-body BASE_URL/api/widget/introspect \
  -H "Authorization: Bearer $NAS_API_KEY" \
  --data-urlencode "token=$WIDGET_TOKEN"
