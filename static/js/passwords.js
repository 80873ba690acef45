// Buttons that show a password. A form submits hidden passwords, because browsers may remember the
// value of a visible field.
(() => {
  'use strict';

  const show = (button, shown) => {
    document.getElementById(button.dataset.shows).type = shown ? 'text' : 'password';
    button.setAttribute('aria-pressed', shown);
  };

  document.addEventListener('click', ({ target }) => {
    const button = target.closest('[data-shows]');
    if (button) {
      show(button, button.getAttribute('aria-pressed') !== 'true');
    }
  });
  document.addEventListener('submit', ({ target }) => {
    target.querySelectorAll('[data-shows]').forEach((button) => show(button, false));
  }, { capture: true });
})();
