// Escape cancels the confirmation that contains the focus, or the first one if nothing is focused.
(() => {
  'use strict';

  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.defaultPrevented || document.querySelector('dialog[open], :popover-open')) {
      return;
    }
    const focused = document.activeElement ?? document.body;
    const confirmation = focused.matches('body, main')
      ? document.querySelector('[data-confirmation]')
      : focused.closest('[data-confirmation]');
    confirmation?.querySelector('[data-cancel]').click();
  });
})();
