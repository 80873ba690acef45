// Calls use(token) now, and again with a new token at 80 % of each token's life.
// fetchToken returns { access_token, expires_in }. Call the returned function to stop.
function keepToken(fetchToken, use) {
  let timer;
  let failures = 0;
  let stopped = false;

  async function renew() {
    let wait;
    try {
      const { access_token, expires_in } = await fetchToken();
      failures = 0;
      // With jitter, pages do not all send their requests at the same moment.
      wait = expires_in * 1000 * (0.8 - 0.05 * Math.random());
      if (!stopped) {
        use(access_token);
      }
    } catch {
      // The old token is still valid for a fifth of its life.
      failures += 1;
      wait = Math.min(1000 * 2 ** failures, 30_000) * Math.random();
    }
    if (!stopped) {
      timer = setTimeout(renew, wait);
    }
  }

  renew();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
