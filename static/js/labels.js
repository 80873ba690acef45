// The form of a new key. A warning appears if another active key has the same label. This is not an
// error, because several keys may have the same label. At the limit of keys the form cannot be
// submitted.
(() => {
  'use strict';

  document.addEventListener('input', ({ target }) => {
    if (target.matches('#label')) {
      warn(target.value.normalize().trim().toLowerCase());
    }
  });

  // The list says whether the account is at its limit.
  function limit(form) {
    const { full = '' } = document.getElementById('api-key-list').dataset;
    form.querySelectorAll('button:not([name])').forEach((button) => { button.disabled = Boolean(full); });
    say('api-key-limit', document.getElementById('api-key-form-problem') ? '' : full);
  }

  // Folds that are open stay open when the form comes back. After a generation it is as at first.
  document.addEventListener('htmx:before:swap', ({ detail: { tasks } }) => {
    const form = tasks[0]?.fragment?.querySelector('#api-key-form');
    for (const fold of document.querySelectorAll('#api-key-form details[open]')) {
      form?.querySelector(`#${fold.id}`)?.setAttribute('open', '');
    }
  });

  // A key was generated, so the form is empty again.
  document.addEventListener('htmx:after:swap', ({ detail: { ctx } }) => {
    const form = document.getElementById('api-key-form');
    if (form) {
      limit(form);
    }
    if (ctx.sourceElement.id !== 'api-key-form' || !document.querySelector('dialog[data-reveal]')) {
      return;
    }
    form.querySelectorAll('[role="alert"]').forEach((alert) => alert.remove());
    form.querySelectorAll('details').forEach((fold) => { fold.open = false; });
    const label = document.getElementById('label');
    label.removeAttribute('aria-invalid');
    label.value = '';
    warn('');
  });

  function warn(label) {
    const taken = [...document.querySelectorAll('#api-key-rows .key-label')]
      .filter((cell) => label && cell.textContent.trim().toLowerCase() === label)
      .map((cell) => cell.parentElement.querySelector('.key-masked').textContent.trim());
    const { labelTaken } = document.getElementById('label-taken').dataset;
    say('label-taken', taken.length ? `${labelTaken} ${taken.slice(0, 3).join(', ')}` : '');
  }

  function say(id, text) {
    const region = document.getElementById(id);
    if (region.textContent !== text) {
      region.textContent = text;
    }
  }

  // The name of an agent, likewise.
  document.addEventListener('input', ({ target }) => {
    const list = document.getElementById('agent-list');
    if (!list || !target.matches('[name="name"]')) {
      return;
    }
    const name = target.value.normalize().trim().toLowerCase();
    const taken = [...list.querySelectorAll('.item-name')]
      .some((item) => !item.parentElement.contains(target) && name && item.textContent.trim().toLowerCase() === name);
    const text = taken ? 'Another agent has this name.' : '';
    const region = (target.closest('li') ?? target.form).querySelector('.label-taken');
    if (region.textContent !== text) {
      region.textContent = text;
    }
  });
})();
