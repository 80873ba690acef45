// Requests a token from your own server. The key stays on the server.
async function widgetToken() {
  const response = await fetch('/widget-token', { method: 'POST' });
  if (!response.ok) {
    throw new Error(`No widget token: ${response.status}`);
  }
  // The token expires after expires_in seconds. Request a new one before that.
  const { access_token, expires_in } = await response.json();
  return { token: access_token, seconds: expires_in };
}
