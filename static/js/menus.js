// A menu is a popover, which the browser opens and closes. This sets aria-expanded, and closes a
// menu when the focus moves out of it.
(() => {
  'use strict';

  const buttonOf = (menu) => document.querySelector(`[popovertarget="${menu.id}"]`);
  const open = () => document.querySelector('[popover]:popover-open');

  document.addEventListener('toggle', ({ target, newState }) => {
    if (target.matches('[popover]')) {
      buttonOf(target)?.setAttribute('aria-expanded', newState === 'open');
    }
  }, { capture: true });
  // A poll morphs the list under an open menu.
  document.addEventListener('htmx:after:swap', () => {
    const menu = open();
    if (menu) {
      buttonOf(menu).setAttribute('aria-expanded', 'true');
    }
  });
  document.addEventListener('focusin', ({ target }) => {
    const menu = open();
    if (menu && !menu.contains(target) && target !== buttonOf(menu)) {
      menu.hidePopover();
    }
  });
})();
