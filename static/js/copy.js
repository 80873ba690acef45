// Copy buttons. data-copy selects the element to copy. data-copy-prefix and data-copy-suffix are
// put around its text. data-copy-name describes it in the status. data-copy-like selects another
// element that has the prefix and the suffix. If the browser refuses, the text is selected instead,
// so that the user can copy it by hand.
(() => {
  'use strict';

  const shortcut = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘C' : 'Ctrl+C';

  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-copy]');
    if (button) {
      copy(button);
    }
  });

  // Download buttons. data-download selects the element whose text is saved.
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-download]');
    if (!button) {
      return;
    }
    const source = document.querySelector(button.dataset.download);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([textOf(source)], { type: 'text/plain' }));
    link.download = button.dataset.downloadName;
    link.click(); // Safari and Firefox read the address later, so it lives as long as the page
    dispatchCopy(source, Promise.resolve(true));
    showStatus(button, `Saved as ${link.download}.`);
  });

  // The items of a list stand on lines of their own.
  function textOf(source) {
    const items = [...source.querySelectorAll('li')].map((item) => `${item.textContent.trim()}\n`);
    return source.value ?? (items.join('') || source.textContent);
  }

  async function copy(button) {
    const source = document.querySelector(button.dataset.copy);
    const around = button.dataset.copyLike ? document.querySelector(button.dataset.copyLike) : button;
    const { copyPrefix = '', copySuffix = '' } = around.dataset;
    const text = copyPrefix + textOf(source) + copySuffix;
    const name = button.dataset.copyName;
    const copying = write(text, button);
    dispatchCopy(source, copying);
    if (await copying) {
      button.dataset.copied = '';
      setTimeout(() => delete button.dataset.copied, 2000);
      showStatus(button, `Copied the ${name}.`);
    } else {
      select(source);
      showStatus(button, `Couldn’t copy the ${name}. Press ${shortcut} to copy the selection.`);
    }
  }

  // Resolves to whether the browser copied the text. Over plain http it has no clipboard of its own,
  // so a field inside the same dialog is copied.
  async function write(text, button) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const field = document.createElement('textarea');
      field.value = text;
      field.className = 'spoken';
      button.after(field);
      field.select();
      const copied = document.execCommand('copy');
      field.remove();
      button.focus({ preventScroll: true });
      return copied;
    }
  }

  // The user copies by hand. Only the whole secret counts.
  document.addEventListener('copy', (event) => {
    const field = document.querySelector('[data-secret]');
    if (field && copiesAllOf(field, event)) {
      dispatchCopy(field, Promise.resolve(true));
      showStatus(field, `Copied the ${field.dataset.secret || 'key'}.`);
    }
  });

  // The selection is inside the field or spans it. Some browsers leave the value of a spanned field
  // out of the copy, so this adds it.
  function copiesAllOf(field, event) {
    if (!field.matches('input')) {
      return getSelection().containsNode(field);
    }
    if (!field.value) {
      return false;
    }
    if (event.target === field) {
      return field.selectionStart === 0 && field.selectionEnd === field.value.length;
    }
    const selection = getSelection();
    if (!selection.containsNode(field)) {
      return false;
    }
    event.clipboardData.setData('text/plain', `${selection}\n${field.value}`);
    event.preventDefault();
    return true;
  }

  // The reveal dialog listens: copying resolves to whether the copy succeeded.
  function dispatchCopy(source, copying) {
    source.dispatchEvent(new CustomEvent('portal:copy', { bubbles: true, detail: copying }));
  }

  function select(source) {
    source.closest('details')?.setAttribute('open', '');
    if (source.select) {
      source.focus();
      source.select();
    } else {
      getSelection().selectAllChildren(source);
    }
  }

  // Live regions behind a modal dialog are not announced, so a dialog has its own.
  function showStatus(near, text) {
    const region = near.closest('.reveal')?.querySelector('[data-copy-status]') ?? document.getElementById('status');
    region.textContent = text;
  }
})();
