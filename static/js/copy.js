// Buttons that copy: data-copy names the element whose text is copied,
// data-copy-prefix stands before it, data-copy-name says what it is. Only a copy
// that succeeded is called one; otherwise the text is selected, to be copied by
// hand.
(() => {
  'use strict';

  const shortcut = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘C' : 'Ctrl+C';

  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-copy]');
    if (button) {
      copy(button);
    }
  });

  async function copy(button) {
    const source = document.querySelector(button.dataset.copy);
    const text = (button.dataset.copyPrefix ?? '') + (source.value ?? source.textContent);
    const name = button.dataset.copyName;
    const copying = write(text);
    announce(source, copying);
    if (await copying) {
      button.dataset.copied = '';
      setTimeout(() => delete button.dataset.copied, 2000);
      tell(button, `Copied the ${name}.`);
    } else {
      select(source);
      tell(button, `The browser did not copy the ${name}. Press ${shortcut} to copy what is selected.`);
    }
  }

  // Resolves to whether it succeeded. Without the API, or where it is refused, it
  // did not.
  async function write(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false;
    }
  }

  // By hand: what counts is that the whole key was copied.
  document.addEventListener('copy', (event) => {
    const field = document.querySelector('[data-secret]');
    if (field?.value && copiesAllOf(field, event)) {
      announce(field, Promise.resolve(true));
      tell(field, 'Copied the key.');
    }
  });

  // In the field, or from before it to behind it. Not every browser copies the
  // value of a field that a selection runs across, and none tells; so it is added
  // here to what is selected.
  function copiesAllOf(field, event) {
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

  // Tells whoever is concerned that source is being copied, and of the outcome.
  function announce(source, copying) {
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

  // Behind a modal dialog nothing is announced, so a dialog has a region of its own.
  function tell(near, text) {
    const region = near.closest('.reveal')?.querySelector('[data-copy-status]') ?? document.getElementById('status');
    region.textContent = text;
  }
})();
