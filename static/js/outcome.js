// A revocation that got no answer may have happened or not. The row says so and
// asks until it knows; it never guesses.
(() => {
  'use strict';

  const first = 1000; // ms until the first check
  const longest = 15000; // ms between two checks

  document.addEventListener('htmx:finally:request', ({ detail: { ctx } }) => {
    const { sourceElement: form } = ctx;
    if (!form?.matches?.('[data-check]') || !form.isConnected) {
      return;
    }
    const answered = ctx.text !== undefined && ctx.response.status < 500;
    if (!answered) {
      const row = form.closest('tr');
      const region = row.querySelector('[data-outcome]');
      region.textContent = region.dataset.outcome;
      checkLater(row, form.dataset.check, first);
    }
  });

  const checking = new WeakMap(); // the timer of a row

  function checkLater(row, address, wait) {
    clearTimeout(checking.get(row));
    checking.set(row, setTimeout(() => check(row, address, wait), wait));
  }

  async function check(row, address, wait) {
    if (!row.isConnected) {
      return;
    }
    const html = await ask(address);
    if (!row.isConnected) {
      return;
    }
    if (html === undefined) {
      checkLater(row, address, Math.min(2 * wait, longest));
      return;
    }
    const template = document.createElement('template');
    template.innerHTML = html;
    const active = template.content.querySelector(`#${row.id} [data-outcome]`);
    if (active) {
      // For now: what was under way in the database may yet be done.
      row.querySelector('[data-outcome]').textContent = active.textContent;
      checkLater(row, address, longest);
      return;
    }
    const focused = row.contains(document.activeElement);
    const before = document.activeElement;
    await htmx.swap({ text: html, target: row, swap: 'outerHTML swapEmpty:true', sourceElement: row });
    document.getElementById('failure').replaceChildren();
    if (!focused) {
      before?.focus({ preventScroll: true });
    }
  }

  // Returns what the portal says of the key, or undefined while it cannot.
  async function ask(address) {
    try {
      const response = await fetch(address, { headers: { 'HX-Request': 'true' }, signal: AbortSignal.timeout(longest) });
      if (response.headers.has('HX-Redirect')) {
        location.reload();
      }
      return response.status === 200 ? await response.text() : undefined;
    } catch {
      return undefined;
    }
  }
})();
