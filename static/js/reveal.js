// The one-time reveal of a new key, an invitation or recovery codes. Before a key or the codes are
// copied, Done, Escape or a click outside does not close it, and the browser asks before it leaves
// the page. Closing it or leaving the page removes the secret.
(() => {
  'use strict';

  document.addEventListener('htmx:after:swap', () => {
    const dialog = document.querySelector('dialog[data-reveal]:not([open])');
    if (dialog) {
      reveal(dialog);
    }
  });

  // Recovery codes are a page of their own.
  const page = document.querySelector('section[data-reveal]');
  if (page) {
    const leave = guard(page, () => page.querySelector('[data-done]').submit());
    document.addEventListener('keydown', ({ key }) => key === 'Escape' && leave());
  }

  // Calls close once the secret is copied or the user does without. Returns the function that tries
  // to close.
  function guard(root, close) {
    const secret = root.querySelector('[data-secret]');
    const gate = root.querySelector('[data-gate]');
    let copied = false;
    let copying = Promise.resolve();

    const warn = (event) => {
      if (!copied) {
        event.preventDefault();
      }
    };
    addEventListener('beforeunload', warn);

    const finish = () => {
      removeEventListener('beforeunload', warn);
      close();
    };
    const leave = async () => {
      // Wait up to a second for a copy in progress.
      await Promise.race([copying, new Promise((late) => setTimeout(late, 1000))]);
      if (copied) {
        finish();
        return;
      }
      gate.hidden = false;
      root.querySelector('[data-copy]').focus();
      gate.scrollIntoView({ block: 'nearest' });
    };

    secret.addEventListener('portal:copy', ({ detail }) => {
      copying = detail.then((succeeded) => {
        copied ||= succeeded;
        gate.hidden ||= succeeded;
      });
    });
    root.querySelector('[data-close]')?.addEventListener('click', finish);
    root.querySelector('[data-done]').addEventListener('submit', (event) => {
      event.preventDefault();
      leave();
    });
    return leave;
  }

  function reveal(dialog) {
    const field = dialog.querySelector('[data-secret]');
    let pressedOutside = false;
    const leave = guard(dialog, () => {
      forget(field);
      dialog.remove();
      document.dispatchEvent(new Event('keys-changed')); // the key may have been used meanwhile
      const row = document.getElementById(dialog.dataset.row);
      if (row) {
        mark(row);
      } else {
        document.querySelector('#label, #rotation-replacement, #invitation-email').focus();
        // The list is filtered.
        const { elsewhere } = document.querySelector('.list-shown')?.dataset ?? {};
        document.getElementById('status').textContent = elsewhere ?? '';
      }
    });

    field.addEventListener('click', () => {
      if (field.selectionStart === field.selectionEnd) {
        field.select();
      }
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

  // The new row takes the focus, and stands out for a moment.
  function mark(row) {
    row.tabIndex = -1;
    row.focus();
    row.dataset.new = '';
    setTimeout(() => delete row.dataset.new, 4000);
  }

  function isOutside(dialog, { target, clientX, clientY }) {
    const box = dialog.getBoundingClientRect();
    return target === dialog &&
      (clientX < box.left || clientX > box.right || clientY < box.top || clientY > box.bottom);
  }

  function forget(secret) {
    if (secret.matches('input')) {
      secret.value = '';
      secret.removeAttribute('value');
    } else {
      secret.replaceChildren();
    }
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
