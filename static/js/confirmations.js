// Escape cancels the confirmation that contains the focus, or the first one if nothing is focused.
// In an input method it cancels only what is being composed; Safari says so by the code 229.
(() => {
  'use strict';

  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || event.keyCode === 229 || document.querySelector('dialog[open], :popover-open')) {
      return;
    }
    const focused = document.activeElement ?? document.body;
    const confirmation = focused.matches('body, main')
      ? document.querySelector('[data-confirmation]')
      : focused.closest('[data-confirmation]');
    confirmation?.querySelector('[data-cancel]').click();
  });
})();
