// Repeats a request after 429, 502, 503 and 504, and if no response arrives. Proxies in front of the
// portal send 502 and 504.
export async function fetchWithRetry(url, options, attempts = 5) {
  for (let attempt = 1; ; attempt += 1) {
    let response;
    try {
      response = await fetch(url, { ...options, signal: AbortSignal.timeout(10_000) });
    } catch (error) {
      if (attempt === attempts) {
        throw error;
      }
    }
    if (response && ![429, 502, 503, 504].includes(response.status) || attempt === attempts) {
      return response;
    }
    // Wait at least as long as Retry-After says, and longer each time.
    const asked = Number(response?.headers.get('Retry-After') ?? 0) * 1000;
    const backoff = Math.min(250 * 2 ** attempt, 10_000) * Math.random();
    await new Promise((resolve) => setTimeout(resolve, asked + backoff));
  }
}
