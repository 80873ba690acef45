// A menu is a popover, which the browser opens and closes. This sets aria-expanded, and closes a
// menu when the focus moves out of it. The arrow keys move in a menu.
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
  document.addEventListener('keydown', (event) => {
    const menu = open();
    const items = menu ? [...menu.querySelectorAll('a, button')] : [];
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at < 0 ? -1 : at - 1, Home: 0, End: -1 }[event.key];
    if (menu && to !== undefined && (at >= 0 || document.activeElement === buttonOf(menu))) {
      event.preventDefault();
      items.at(to % items.length).focus();
    }
  });
  // "/" leads to the filter of a list.
  document.addEventListener('keydown', (event) => {
    const field = document.querySelector('[role="search"] [type="search"]');
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || !field ||
        event.target.closest('input:not([type="radio"], [type="checkbox"]), select, textarea, dialog')) {
      return;
    }
    event.preventDefault();
    field.closest('details')?.setAttribute('open', '');
    field.focus();
  });
  document.addEventListener('focusin', ({ target }) => {
    const menu = open();
    if (menu && !menu.contains(target) && target !== buttonOf(menu)) {
      menu.hidePopover();
    }
  });
})();
