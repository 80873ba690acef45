// The one-time reveal of a new key or invitation. Before a key is copied, Escape or a click outside
// does not close it, and the browser asks before it leaves the page. Closing it or leaving the page
// removes the secret.
(() => {
  'use strict';

  document.addEventListener('htmx:after:swap', () => {
    const dialog = document.querySelector('dialog[data-reveal]:not([open])');
    if (dialog) {
      reveal(dialog);
    }
  });

  function reveal(dialog) {
    const field = dialog.querySelector('[data-secret]');
    const gate = dialog.querySelector('[data-gate]');
    let copied = !gate; // an invitation can be replaced, so it needs no warning
    let copying = Promise.resolve();
    let pressedOutside = false;

    const warn = (event) => {
      if (!copied) {
        event.preventDefault();
      }
    };
    addEventListener('beforeunload', warn);

    const close = () => {
      removeEventListener('beforeunload', warn);
      forget(field);
      dialog.remove();
      document.querySelector('#label, #rotation-replacement, #invitation-email').focus();
    };
    const leave = async () => {
      // Wait up to a second for a copy in progress.
      await Promise.race([copying, new Promise((late) => setTimeout(late, 1000))]);
      if (copied) {
        close();
        return;
      }
      gate.hidden = false;
      dialog.querySelector('[data-copy="#key"]').focus();
      gate.scrollIntoView({ block: 'nearest' });
    };

    field.addEventListener('click', () => {
      if (field.selectionStart === field.selectionEnd) {
        field.select();
      }
    });
    field.addEventListener('portal:copy', ({ detail }) => {
      copying = detail.then((succeeded) => {
        copied ||= succeeded;
        if (gate) {
          gate.hidden ||= succeeded;
        }
      });
    });
    dialog.querySelector('[data-close]')?.addEventListener('click', close);
    dialog.querySelector('[data-done]').addEventListener('submit', (event) => {
      event.preventDefault();
      leave();
    });

    // Escape and other ways to close a dialog. Browsers close it at the second attempt anyway, so
    // it is opened again.
    dialog.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.preventDefault();
        leave();
      }
    });
    dialog.addEventListener('cancel', (event) => {
      event.preventDefault();
      leave();
    });
    dialog.addEventListener('close', () => {
      dialog.showModal();
      leave();
    });

    // Ignore a selection that ends outside, and the second of two clicks on "Generate key".
    dialog.addEventListener('pointerdown', (event) => {
      pressedOutside = isOutside(dialog, event);
    });
    dialog.addEventListener('click', (event) => {
      if (pressedOutside && event.detail < 2 && isOutside(dialog, event)) {
        leave();
      }
    });

    dialog.showModal();
  }

  function isOutside(dialog, { target, clientX, clientY }) {
    const box = dialog.getBoundingClientRect();
    return target === dialog &&
      (clientX < box.left || clientX > box.right || clientY < box.top || clientY > box.bottom);
  }

  function forget(field) {
    field.value = '';
    field.removeAttribute('value');
  }

  // The browser may keep the page in its back/forward cache.
  addEventListener('pagehide', () => {
    for (const field of document.querySelectorAll('[data-secret]')) {
      forget(field);
    }
    document.querySelector('dialog[data-reveal]')?.remove();
  });
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted && document.querySelector('[data-secret]')) {
      location.replace(document.querySelector('[data-done]').action);
    }
  });
})();
