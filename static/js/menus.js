// A menu closes when the user presses Escape, clicks elsewhere or moves the focus out of it.
(() => {
  'use strict';

  const open = () => document.querySelector('[data-menu][open]');

  document.addEventListener('keydown', (event) => {
    const menu = open();
    if (event.key === 'Escape' && menu) {
      event.preventDefault();
      menu.open = false;
      menu.querySelector('summary').focus();
    }
  });
  for (const type of ['pointerdown', 'focusin']) {
    document.addEventListener(type, ({ target }) => {
      const menu = open();
      if (menu && !menu.contains(target)) {
        menu.open = false;
      }
    });
  }
})();
