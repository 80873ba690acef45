// Escape is Cancel, in the confirmation that has the focus, or in the first one
// where nothing that can be used has it.
(() => {
  'use strict';

  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.defaultPrevented || document.querySelector('dialog[open]')) {
      return;
    }
    const focused = document.activeElement ?? document.body;
    const confirmation = focused.matches('body, main')
      ? document.querySelector('[data-confirmation]')
      : focused.closest('[data-confirmation]');
    confirmation?.querySelector('[data-cancel]').click();
  });
})();
