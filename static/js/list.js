// The list of keys: filtering while the user types, closing details, and merging polled changes.
(() => {
  'use strict';

  const list = () => document.getElementById('api-key-list');
  const rowsOf = (root) => root.querySelector('#api-key-rows');
  const keyRows = (rows) => [...rows.querySelectorAll(':scope > tr:not(.details)')];
  const detailsOf = (row) => document.getElementById(`${row.id}-details`);

  if (!list()) {
    return;
  }

  // Polling: #api-key-seen fetches the list, and HTMX morphs it into the page.
  document.addEventListener('htmx:before:swap', (event) => {
    const { ctx, tasks } = event.detail;
    if (ctx.sourceElement.id !== 'api-key-seen') {
      return;
    }
    const { fragment } = tasks[0];
    const [rows, newRows] = [rowsOf(list()), rowsOf(fragment)];
    if (rows && newRows) {
      arrange(rows, newRows, fragment);
    } else if (isInUse(list())) {
      event.preventDefault();
    }
  });

  // Sorts the new rows like the rows of the page, so that nothing moves under a pointer. Rows in
  // use and open details stay. A new row follows the same row as in the new list.
  function arrange(rows, newRows, fragment) {
    const places = new Map(keyRows(rows).map((row, place) => [row.id, place]));
    let last = -1;
    const arranged = keyRows(newRows).map((row) => {
      last = places.get(row.id) ?? last;
      return { row, place: last };
    });
    for (const row of keyRows(rows)) {
      const found = arranged.find(({ row: { id } }) => id === row.id);
      const details = detailsOf(row);
      if (!found && (isInUse(row) || details && isInUse(details))) {
        arranged.push({ row: row.cloneNode(true), place: places.get(row.id) });
        fragment.querySelector('#api-key-seen').value = document.getElementById('api-key-seen').value;
      } else if (found && row.matches('[data-confirmation]')) {
        const copy = row.cloneNode(true);
        for (const cell of ['.key-label', '.key-used']) {
          copy.querySelector(cell).replaceWith(found.row.querySelector(cell));
        }
        found.row = copy;
      } else if (found && row.querySelector('[data-menu][open]')) {
        found.row.querySelector('[data-menu]').open = true;
      }
    }
    arranged.sort((a, b) => a.place - b.place);
    newRows.replaceChildren(...arranged.flatMap(({ row }) => [row, detailsOf(row)?.cloneNode(true) ?? '']));
  }

  function isInUse(element) {
    return element.matches('[data-confirmation]') || element.contains(document.activeElement) ||
      Boolean(element.querySelector('[data-confirmation]'));
  }

  // Filtering. At most the last four characters of a key may reach the address bar or a request.
  const keyInText = /nas_[0-9a-z]+/gi;
  const wholeKey = /nas_[0-9a-z]{36}/i;
  const redact = (text) => text.match(keyInText)?.find((key) => wholeKey.test(key))?.slice(-4) ??
    text.replace(keyInText, (key) => key.slice(4).slice(-4)).trim();

  document.addEventListener('input', ({ target }) => {
    if (!target.matches('#key-filter')) {
      return;
    }
    document.getElementById('api-key-pasted')?.remove();
    const pasted = wholeKey.test(target.value);
    if (pasted) {
      target.value = redact(target.value);
    }
    filter();
    const address = new URL(list().dataset.address, location.href);
    address.searchParams.delete('filter');
    address.searchParams.delete('whole');
    if (redact(target.value)) {
      address.searchParams.set('filter', redact(target.value));
    }
    list().dataset.address = address.pathname + address.search;
    updateAddress();
    if (pasted) {
      address.searchParams.set('whole', 'yes');
      htmx.ajax('GET', address.pathname + address.search, { source: target, target: '#api-key-list', swap: 'outerHTML' });
    }
  });
  document.addEventListener('htmx:config:request', ({ detail: { ctx: { request: { body } } } }) => {
    if (body.has('filter')) {
      body.set('filter', redact(body.get('filter')));
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
    const text = redact(field.value).toLowerCase();
    for (const row of keyRows(rows)) {
      const matches = ['.key-label', '.key-masked'].some((cell) => row.querySelector(cell).textContent.toLowerCase().includes(text));
      row.hidden = !matches && !isInUse(row);
      const details = detailsOf(row);
      if (details) {
        details.hidden = row.hidden;
      }
    }
    updateCount();
  }

  // A new key is shown whether it matches or not, so this counts rows.
  function updateCount() {
    const field = document.getElementById('key-filter');
    const rows = rowsOf(list());
    if (!field || !rows) {
      return;
    }
    const all = keyRows(rows);
    const shown = all.filter((row) => !row.hidden).length;
    const count = list().querySelector('[data-filter-count]');
    const text = field.value.trim() ? `${shown} of ${all.length} shown` : '';
    if (count.textContent !== text) {
      count.textContent = text;
    }
    list().querySelector('[data-no-match]').hidden = shown > 0;
  }

  // The address bar shows the order and the filter, for a reload and for going back.
  function updateAddress() {
    const { address } = list().dataset;
    if (location.pathname + location.search !== address) {
      history.replaceState(history.state, '', address);
    }
  }

  // Details: the server sends them, and they close here.
  document.addEventListener('submit', (event) => {
    const details = event.target.matches('[data-discloses]') && detailsOf(event.target.closest('tr'));
    if (details) {
      event.preventDefault();
      event.stopPropagation();
      details.remove();
      markOpen();
    }
  }, { capture: true });

  function markOpen() {
    for (const form of document.querySelectorAll('[data-discloses]')) {
      form.querySelector('button').setAttribute('aria-expanded', Boolean(detailsOf(form.closest('tr'))));
    }
  }

  document.addEventListener('htmx:after:swap', ({ detail: { ctx } }) => {
    markOpen();
    if (ctx.background) {
      if (ctx.sourceElement.id === 'api-key-seen') {
        filter();
      }
      return;
    }
    updateCount();
    if (/^\/api-keys(\?|$)/.test(ctx.request.action) && ctx.request.method === 'GET') {
      updateAddress();
    }
    const field = document.activeElement;
    if (field?.matches('[data-select]')) {
      field.select();
    }
    // The list already shows this version, so the next poll does not need to fetch it.
    const { version } = document.getElementById('api-key-list-header')?.dataset ?? {};
    if (version && document.getElementById('api-key-seen')) {
      document.getElementById('api-key-seen').value = version;
      delete document.getElementById('api-key-list-header').dataset.version;
    }
    // The account's first key was generated in another window, so this page has no table yet.
    if (document.querySelector('dialog[data-reveal]') && !rowsOf(list())) {
      htmx.trigger('#api-key-seen', 'refresh');
    }
  });
})();
