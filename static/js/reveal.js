// The one showing of a new key. A key that has not been copied is not lost by a
// stray Escape or click; a key that has been shown is gone from the page once it
// is closed or left.
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
    let copied = false;
    let copying = Promise.resolve();
    let pressedOutside = false;

    const close = () => {
      forget(field);
      htmx.trigger(dialog.querySelector('#first-use'), 'htmx:abort');
      dialog.remove();
      document.querySelector('#label, #rotation-replacement').focus();
    };
    const leave = async () => {
      // A copy that is under way decides, if it does so soon.
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
        gate.hidden ||= succeeded;
      });
    });
    dialog.querySelector('[data-close]').addEventListener('click', close);
    dialog.querySelector('[data-done]').addEventListener('submit', (event) => {
      event.preventDefault();
      leave();
    });

    // Escape, and whatever else a device closes dialogs with. A browser that is
    // asked often enough closes it all the same: then it is opened again.
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

    // A selection that ends outside is no click outside, nor is the second click
    // of a double click on "Generate key".
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

  // A page that is left may be kept, as it is, for going back to.
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
