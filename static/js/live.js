// What is told again when it changes: data-live is the address to ask. One such
// element is asked for at a time, the one of a dialog first; the server may hold
// its answer until there is something to tell. Only a page that is looked at asks,
// at most every 15 s, and no longer than ten minutes after it was last looked at.
(() => {
  'use strict';

  const pause = 15000;
  const patience = 10 * 60000;

  let lookedAt = 0;
  let asking = null; // what is being asked for
  let asked = { address: '', at: 0 };

  document.addEventListener('visibilitychange', () => { lookedAt = performance.now(); });

  setInterval(() => {
    const now = performance.now();
    if (asking && !asking.element.isConnected) {
      asking.controller.abort();
      asked = { address: '', at: 0 }; // another element is no repetition
    }
    const element = document.querySelector('dialog[open] [data-live]') ?? document.querySelector('[data-live]');
    if (!element || asking || document.hidden || now - lookedAt > patience) {
      return;
    }
    const { pathname } = new URL(element.dataset.live, location.href);
    if (pathname !== asked.address || now - asked.at >= pause) {
      asked = { address: pathname, at: now };
      ask(element);
    }
  }, 500);

  async function ask(element) {
    const controller = new AbortController();
    asking = { element, controller };
    try {
      const answer = await fetch(element.dataset.live, {
        headers: { 'HX-Request': 'true', Prefer: 'wait=15' }, signal: controller.signal, cache: 'no-store',
      });
      const elsewhere = answer.headers.get('HX-Redirect');
      if (elsewhere) {
        go(element, elsewhere);
      } else if (answer.status === 200) {
        tell(await answer.text());
      } else if (answer.status < 500 && !answer.ok) {
        delete element.dataset.live; // there is nothing more to be told
      }
    } catch {
      // No connection, or nobody wants to know any more.
    } finally {
      asking = null;
    }
  }

  // The page is another one now. But nobody is led away from a key that is shown
  // once, nor to sign in by a page that asks of its own accord.
  function go(element, address) {
    delete element.dataset.live;
    if (!document.querySelector('dialog[open]') && !address.startsWith('/login')) {
      location.assign(address);
    }
  }

  // Each part of the answer goes into the element of its id, which stays: a live
  // region is one only while it stays. Whatever asks or has the focus is left as it
  // is, and told another time: then the address to ask, which comes last, is too.
  function tell(html) {
    const answer = document.createElement('template');
    answer.innerHTML = html;
    let left = false;
    for (const part of answer.content.children) {
      const element = document.getElementById(part.id);
      if (!element || (left && part.dataset.live)) {
        continue;
      }
      if (element.contains(document.activeElement) || element.querySelector('[data-confirmation]')) {
        left = true;
        continue;
      }
      for (const { name } of [...element.attributes]) {
        if (!part.hasAttribute(name) && name !== 'role' && name !== 'class') {
          element.removeAttribute(name);
        }
      }
      for (const { name, value } of part.attributes) {
        element.setAttribute(name, value);
      }
      if (element.innerHTML !== part.innerHTML) {
        element.replaceChildren(...part.childNodes);
        window.htmx?.process(element);
      }
    }
  }
})();
