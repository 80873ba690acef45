// "Try it". The key goes from its field to the API on this origin and nowhere else. It is forgotten
// when the panel is closed, when the page is left, and after five minutes.
(() => {
  'use strict';

  const keptFor = 5 * 60 * 1000; // ms
  const shownHeaders = ['Retry-After', 'RateLimit', 'WWW-Authenticate', 'Allow', 'X-Request-Id'];

  document.addEventListener('submit', (event) => {
    const form = event.target.closest('[data-try]');
    if (form) {
      event.preventDefault();
      send(form);
    }
  });

  async function send(form) {
    const { method, path, type } = form.dataset;
    const key = form.querySelector('[data-try-key]');
    const result = form.parentElement.querySelector('[data-try-result]');
    const status = result.querySelector('[data-try-status]');
    const output = result.querySelector('[data-try-response]');
    const headers = new Headers();
    if (type) {
      headers.set('Content-Type', type);
    }
    result.hidden = false;
    output.textContent = '';
    status.textContent = 'Sending…';
    try {
      if (key) {
        headers.set('Authorization', `Bearer ${key.value.trim()}`);
        forgetLater(key);
      }
      const url = new URL(form.querySelector('[data-try-path]')?.value ?? path, location.origin);
      if (url.origin !== location.origin) {
        throw new TypeError('The key must not leave this origin.');
      }
      const response = await fetch(url, {
        method, headers, body: form.querySelector('[data-try-body]')?.value, credentials: 'omit',
        cache: 'no-store', redirect: 'error', referrerPolicy: 'no-referrer', signal: AbortSignal.timeout(15000),
      });
      const text = await response.text();
      status.textContent = `${response.status} ${response.statusText}`.trim();
      const sent = shownHeaders.filter((name) => response.headers.has(name)).map((name) => `${name}: ${response.headers.get(name)}`);
      output.textContent = `${sent.join('\n')}\n\n${indented(text)}`;
    } catch (error) {
      status.textContent = error instanceof TypeError
        ? 'The request could not be sent. Check the path, the key for stray characters, and your connection.'
        : 'No response within 15 seconds. Try again.';
    }
  }

  function indented(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }

  const timers = new WeakMap();

  function forgetLater(key) {
    clearTimeout(timers.get(key));
    timers.set(key, setTimeout(() => { key.value = ''; }, keptFor));
  }

  function forget(root) {
    for (const key of root.querySelectorAll('[data-try-key]')) {
      key.value = '';
    }
    for (const output of root.querySelectorAll('[data-try-response]')) {
      output.textContent = ''; // it may have a widget token
    }
    for (const result of root.querySelectorAll('[data-try-result]')) {
      result.hidden = true;
    }
  }

  document.addEventListener('toggle', (event) => {
    if (event.target.matches('.try') && !event.target.open) {
      forget(event.target);
    }
  }, { capture: true });
  addEventListener('pagehide', () => forget(document));
})();
