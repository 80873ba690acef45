// Passkeys. A form with data-passkey="create" or "get" fetches the options, lets the browser create
// or use a passkey, and sends the answer in its field "credential".
(() => {
  'use strict';

  const calls = {
    create: async (options) => navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }),
    get: async (options) => navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }),
  };

  document.addEventListener('submit', (event) => {
    const form = event.target;
    if (form.dataset.passkey) {
      event.preventDefault();
      answer(form);
    }
  });

  // While the page loaded, the form was hidden, so the browser did not focus its button.
  document.querySelector('[data-passkey] [autofocus]')?.focus();

  async function answer(form) {
    const button = form.querySelector('button');
    button.disabled = true;
    show(form, '');
    try {
      if (!globalThis.PublicKeyCredential?.parseCreationOptionsFromJSON) {
        show(form, 'This browser does not support passkeys.');
        return;
      }
      const response = await fetch(form.dataset.options, { method: 'POST' });
      if (response.ok && !response.redirected) {
        const { publicKey } = await response.json();
        const credential = await calls[form.dataset.passkey](publicKey);
        form.elements.credential.value = JSON.stringify(credential.toJSON());
      }
      // Without an answer, the server asks for the password or shows what is wrong.
      form.submit();
    } catch (error) {
      show(form, error.name === 'InvalidStateError' ? 'This device already has a passkey for you.' : 'No passkey was used. Try again.');
    } finally {
      button.disabled = false;
    }
  }

  function show(form, text) {
    form.querySelector('[role="alert"]').textContent = text;
  }
})();
