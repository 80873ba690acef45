// Asks your own server: the key stays there.
async function widgetToken() {
  const answer = await fetch('/widget-token', { method: 'POST' });
  if (!answer.ok) {
    throw new Error(`No widget token: ${answer.status}`);
  }
  // Good for expires_in seconds; ask for another one then.
  const { access_token, expires_in } = await answer.json();
  return { token: access_token, seconds: expires_in };
}
