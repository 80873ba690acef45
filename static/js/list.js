// The list of keys: filtering while the user types, and merging polled changes. The search of the
// activity takes pasted keys like the filter.
(() => {
  'use strict';

  const list = () => document.getElementById('api-key-list');
  const rowsOf = (root) => root?.querySelector('#api-key-rows');
  const keyRows = (rows) => [...rows.children].filter(({ id }) => id); // not those of extensions

  // Polling: #api-key-seen fetches the list, and HTMX morphs it into the page.
  document.addEventListener('htmx:before:swap', (event) => {
    const { ctx, tasks } = event.detail;
    if (ctx.sourceElement.id !== 'api-key-seen') {
      return;
    }
    const { fragment } = tasks[0];
    const [rows, newRows] = [rowsOf(list()), rowsOf(fragment)];
    gone = null;
    const focused = rows && document.activeElement?.closest('#api-key-rows > tr');
    if (focused && !isOpen(focused) && !fragment.querySelector(`#${focused.id}`)) {
      gone = ['.key-label', '.key-masked'].map((cell) => focused.querySelector(cell).textContent.trim());
    }
    if (rows && newRows) {
      arrange(rows, newRows, fragment);
    } else if (rows && isOpen(rows)) {
      event.preventDefault();
    }
  });

  // A row that had the focus is gone, so the next one gets it, without scrolling. If another tab
  // revoked the key, a status says so.
  let gone = null; // its label and its masked key
  let after = []; // the rows that may get the focus
  document.addEventListener('htmx:before:swap', ({ detail: { ctx } }) => {
    const row = (ctx.background ? document.activeElement : ctx.sourceElement)?.closest('#api-key-rows > tr');
    const rows = row ? [...row.parentElement.children].filter(({ hidden }) => !hidden) : [];
    const place = rows.indexOf(row);
    after = row ? [row, ...rows.slice(place + 1), ...rows.slice(0, place).reverse()] : [];
  });
  document.addEventListener('htmx:after:swap', ({ detail: { ctx } }) => {
    const [row, ...others] = after;
    if (row && !document.getElementById(row.id)) {
      const next = others.map(({ id }) => document.getElementById(id)).find(Boolean);
      (next?.querySelector('[id^="revoke-"]') ?? document.getElementById('api-key-list-heading')).focus({ preventScroll: true });
      after = [];
    }
    if (gone && ctx.background) {
      document.getElementById('status').textContent = `API key “${gone[0]}” (${gone[1]}) was revoked elsewhere, or has expired.`;
      gone = null;
    }
  });

  // Selecting. Without this, the form selects all keys of a new page.
  const boxes = () => [...(rowsOf(list())?.querySelectorAll('tr:not([hidden]) [name="selected"]') ?? [])];
  document.addEventListener('change', ({ target }) => target.name === 'selected' && tally());
  document.addEventListener('click', (event) => {
    if (event.target.matches('#selected-keys [name="all"]')) {
      event.preventDefault();
      boxes().forEach((box) => { box.checked = true; });
      tally();
    }
  });
  function tally() {
    const said = document.querySelector('[data-selected]');
    const chosen = list()?.querySelectorAll('[name="selected"]:checked').length;
    if (said) {
      said.textContent = chosen ? `${chosen} selected` : '';
      document.querySelector('#selected-keys [name="all"]').textContent = `Select all ${boxes().length}`;
    }
  }
  tally();

  // Sorts the new rows like the rows of the page, so that nothing moves under a pointer. Rows with
  // an open confirmation or menu stay. A new row follows the same row as in the new list.
  function arrange(rows, newRows, fragment) {
    const places = new Map(keyRows(rows).map((row, place) => [row.id, place]));
    let last = -1;
    const arranged = keyRows(newRows).map((row) => {
      last = places.get(row.id) ?? last;
      return { row, place: last };
    });
    for (const row of keyRows(rows)) {
      const found = arranged.find(({ row: { id } }) => id === row.id);
      if (found) {
        select(found.row, row.querySelector('[name="selected"]').checked);
      }
      if (!found && isOpen(row)) {
        arranged.push({ row: row.cloneNode(true), place: places.get(row.id) });
        fragment.querySelector('#api-key-seen').value = document.getElementById('api-key-seen').value;
      } else if (found && row.matches('[data-confirmation]')) {
        const copy = row.cloneNode(true);
        for (const cell of ['.key-label', '.key-used']) {
          copy.querySelector(cell).replaceWith(found.row.querySelector(cell));
        }
        found.row = copy;
      }
    }
    arranged.sort((a, b) => a.place - b.place);
    newRows.replaceChildren(...arranged.map(({ row }) => row));
  }

  // A morph takes the attribute over.
  function select(row, selected) {
    const box = row.querySelector('[name="selected"]');
    box.checked = selected;
    box.toggleAttribute('checked', selected);
  }

  function isOpen(element) {
    return element.matches('[data-confirmation]') || Boolean(element.querySelector('[data-confirmation], :popover-open'));
  }

  function isInUse(element) {
    return isOpen(element) || element.contains(document.activeElement);
  }

  // Filtering, also by a key's id. A key that is pasted is reduced to its last four characters at
  // once.
  const wholeKey = /nas_[0-9a-z]{36}/i;
  let pasted = false;

  document.addEventListener('input', ({ target }) => {
    if (target.matches('#key-filter, #activity-search')) {
      pasted = wholeKey.test(target.value);
      if (pasted) {
        target.value = target.value.match(wholeKey)[0].slice(-4);
      }
      filter();
    }
  });

  // Accents may be typed as characters of their own, and pasted text has invisible ones.
  const plain = (text) => text.normalize('NFC').replace(/\p{Cf}/gu, '').replace(/\s+/g, ' ').trim().toLowerCase();

  function filter() {
    const field = document.getElementById('key-filter');
    const rows = field && rowsOf(list());
    if (!rows) {
      return;
    }
    const text = plain(field.value);
    for (const row of keyRows(rows)) {
      const matches = ['.key-label', '.key-masked'].some((cell) => plain(row.querySelector(cell).textContent).includes(text));
      row.hidden = !matches && row.id !== `api-key-${text}` && !isInUse(row);
    }
    const all = keyRows(rows);
    const shown = all.filter((row) => !row.hidden).length;
    const count = list().querySelector('[data-filter-count]');
    const words = text ? `${shown} of ${all.length} shown` : '';
    if (count.textContent !== words) {
      count.textContent = words;
    }
    list().querySelector('[data-pasted]').hidden = !pasted;
    list().querySelector('[data-no-match]').hidden = shown > 0;
    tally();
  }

  document.addEventListener('htmx:after:swap', ({ detail: { ctx } }) => {
    if (ctx.request.method === 'POST') {
      pasted = false; // the key was probably revoked
    }
    if (document.querySelector('dialog[data-reveal]') && document.getElementById('key-filter')) {
      document.getElementById('key-filter').value = ''; // the new key must be seen
    }
    filter();
    tally();
    if (ctx.background) {
      return;
    }
    // The address bar shows the order, for a reload and for going back.
    if (ctx.sourceElement.matches('[data-sort]')) {
      history.replaceState(history.state, '', ctx.request.action);
    }
    const field = document.activeElement;
    if (field?.matches('[data-select]')) {
      field.select();
    }
  });
})();
