// The list of keys. It refreshes itself without touching anything that can have
// the focus, and nothing that asks for an answer; it is filtered as one types; and
// a row's details open and close.
(() => {
  'use strict';

  const every = 15000; // ms
  // A list that nobody has looked at for so long stands still: a page left open
  // must not keep a session alive.
  const attention = 30 * 60000; // ms

  const list = () => document.getElementById('api-key-list');
  const rowsOf = (root) => root.querySelector('#api-key-rows');
  const keyRows = (rows) => rows.querySelectorAll(':scope > tr:not(.details)');
  const detailsOf = (row) => document.getElementById(`${row.id}-details`);

  if (!list()) {
    return;
  }

  // Refreshing.
  let swaps = 0; // by others: what was asked for before one is older than the page
  let asked = Date.now();
  let attended = asked;
  for (const sign of ['pointerdown', 'keydown', 'visibilitychange']) {
    document.addEventListener(sign, () => {
      attended = Date.now();
    }, { passive: true });
  }
  setInterval(refreshIfDue, 1000);
  document.addEventListener('visibilitychange', refreshIfDue);

  function refreshIfDue() {
    const now = Date.now();
    if (document.visibilityState === 'visible' && now - asked >= every && now - attended < attention) {
      asked = now;
      refresh();
    }
  }

  // What fails is tried again later: nobody asked for it, so nobody is told.
  async function refresh() {
    const { refresh: address, version } = list().dataset;
    const before = swaps;
    try {
      const response = await fetch(`${address}?seen=${version}`, {
        headers: { 'HX-Request': 'true' }, signal: AbortSignal.timeout(every),
      });
      const html = await response.text();
      if (response.headers.has('HX-Redirect')) {
        askToSignIn();
      } else if (response.status === 200 && swaps === before) {
        update(html);
      }
    } catch {
      // No connection.
    }
  }

  // The session has ended. Whoever is in the middle of something finds out by
  // doing it, and loses nothing that is typed before.
  function askToSignIn() {
    const typed = [...document.querySelectorAll('#label, [data-confirmation] input')].some((field) => field.value !== field.defaultValue);
    if (!typed && !document.querySelector('dialog[open], [data-confirmation]')) {
      location.reload();
    }
  }

  function update(html) {
    const old = list();
    const template = document.createElement('template');
    template.innerHTML = html;
    const fresh = template.content.querySelector('#api-key-list');
    if (!fresh) {
      return;
    }
    const rows = rowsOf(old);
    const freshRows = rowsOf(fresh);
    if (!rows || !freshRows) {
      if (Boolean(rows) !== Boolean(freshRows) && !isBusy(old)) {
        old.replaceWith(fresh);
        htmx.process(fresh);
      }
      return;
    }
    const left = removeRows(rows, freshRows);
    addRows(rows, freshRows);
    old.querySelector('.count')?.replaceWith(fresh.querySelector('.count'));
    filter();
    if (!left) {
      old.dataset.version = fresh.dataset.version;
    }
  }

  function isBusy(element) {
    return element.matches('[data-confirmation]') || element.contains(document.activeElement) ||
      Boolean(element.querySelector('[data-confirmation]'));
  }

  // A row that is gone stays while somebody is at it; it then says so itself. It
  // returns whether there are such.
  function removeRows(rows, fresh) {
    let left = false;
    for (const row of keyRows(rows)) {
      if (fresh.querySelector(`#${row.id}`)) {
        continue;
      }
      if (isBusy(row) || detailsOf(row)?.contains(document.activeElement)) {
        left = true;
      } else {
        detailsOf(row)?.remove();
        row.remove();
      }
    }
    return left;
  }

  // Rows keep their places, so that nothing moves away under a pointer.
  function addRows(rows, fresh) {
    let before = null;
    for (const row of keyRows(fresh)) {
      const old = document.getElementById(row.id);
      if (old) {
        renew(old, row, '.key-label');
        renew(old, row, '.key-used');
        old.querySelector('.sparkline')?.replaceChildren(...row.querySelector('.sparkline').childNodes);
        before = detailsOf(old) ?? old;
        continue;
      }
      if (before) {
        before.after(row);
      } else {
        rows.prepend(row);
      }
      htmx.process(row);
      before = row;
    }
  }

  function renew(row, fresh, cell) {
    const [old, now] = [row.querySelector(cell), fresh.querySelector(cell)];
    const said = (element) => element.querySelector('time')?.dateTime ?? element.textContent;
    if (said(old) !== said(now)) {
      old.replaceChildren(...now.childNodes);
    }
  }

  // Filtering.
  document.addEventListener('input', ({ target }) => {
    if (target.matches('#key-filter')) {
      filter();
      const address = new URL(list().dataset.address, location.href);
      address.searchParams.delete('filter');
      if (target.value.trim()) {
        address.searchParams.set('filter', target.value.trim());
      }
      list().dataset.address = address.pathname + address.search;
      show(list());
    }
  });
  document.addEventListener('submit', (event) => {
    if (event.target.matches('[data-filter]')) {
      event.preventDefault();
    }
  });

  function filter() {
    const field = document.getElementById('key-filter');
    const rows = rowsOf(list());
    if (!field || !rows) {
      return;
    }
    const text = field.value.trim().toLowerCase();
    for (const row of keyRows(rows)) {
      const matches = ['.key-label', '.key-masked'].some((cell) => row.querySelector(cell).textContent.toLowerCase().includes(text));
      row.hidden = !matches && !isBusy(row);
      const details = detailsOf(row);
      if (details) {
        details.hidden = row.hidden;
      }
    }
    tellShown();
  }

  // A key that was just made is shown whether it matches or not.
  function tellShown() {
    const field = document.getElementById('key-filter');
    const rows = rowsOf(list());
    if (!field || !rows) {
      return;
    }
    const all = [...keyRows(rows)];
    const shown = all.filter((row) => !row.hidden).length;
    const count = list().querySelector('[data-filter-count]');
    const told = field.value.trim() ? `${shown} of ${all.length} shown` : '';
    if (count.textContent !== told) {
      count.textContent = told;
    }
    list().querySelector('[data-no-match]').hidden = shown > 0;
  }

  // The address is that of what is shown, for reloading and for coming back to.
  function show({ dataset }) {
    if (location.pathname + location.search !== dataset.address) {
      history.replaceState(history.state, '', dataset.address);
    }
  }

  // Details. They are fetched to open, and closed here.
  document.addEventListener('submit', (event) => {
    const details = event.target.matches('[data-discloses]') && detailsOf(event.target.closest('tr'));
    if (details) {
      event.preventDefault();
      event.stopPropagation();
      details.remove();
      tellOpen();
    }
  }, { capture: true });

  function tellOpen() {
    for (const form of document.querySelectorAll('[data-discloses]')) {
      form.querySelector('button').setAttribute('aria-expanded', Boolean(detailsOf(form.closest('tr'))));
    }
  }

  document.addEventListener('htmx:after:swap', ({ detail: { ctx } }) => {
    swaps += 1;
    tellOpen();
    tellShown();
    if (/^\/api-keys(\?|$)/.test(ctx.request?.action) && ctx.request.method === 'GET') {
      show(list());
    }
    const field = document.activeElement;
    if (field?.matches('[data-select]')) {
      field.select();
    }
    // The first key was made elsewhere, and this page had no table for another.
    if (document.querySelector('dialog[data-reveal]') && !rowsOf(list())) {
      refresh();
    }
  });
})();
