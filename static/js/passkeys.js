// Passkeys. A form with data-passkey="create" or "get" fetches the options, lets the browser create
// or use a passkey, and sends the answer in its field "credential".
(() => {
  'use strict';

  // The options and the answer are converted here, because older browsers have no JSON methods, and
  // the answers of some extensions have none that work.
  const calls = { create, get };

  // Browsers refuse the passkeys of another host.
  const problems = {
    InvalidStateError: () => 'This device already has a passkey for you.',
    SecurityError: ({ rp, rpId }) => `Passkeys work only at ${rp?.id ?? rpId}. Open the portal there.`,
  };

  async function create(options, signal) {
    return navigator.credentials.create({
      signal,
      publicKey: {
        ...options,
        challenge: decode(options.challenge),
        user: { ...options.user, id: decode(options.user.id) },
        excludeCredentials: options.excludeCredentials?.map(decodeID),
      },
    });
  }

  async function get(options, signal) {
    return navigator.credentials.get({
      signal,
      publicKey: { ...options, challenge: decode(options.challenge), allowCredentials: options.allowCredentials?.map(decodeID) },
    });
  }

  function decodeID(credential) {
    return { ...credential, id: decode(credential.id) };
  }

  // Returns the bytes of a text in base64url.
  function decode(text) {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0));
  }

  // Returns bytes as a text in base64url, which an extension may have done already.
  function encode(bytes) {
    if (!bytes || typeof bytes === 'string') {
      return bytes || undefined;
    }
    const view = ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
    return btoa(Array.from(view, (byte) => String.fromCharCode(byte)).join(''))
      .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  }

  function toJSON({ rawId, response }) {
    const id = encode(rawId);
    const { clientDataJSON, attestationObject, authenticatorData, signature, userHandle } = response;
    // Undefined fields are left out.
    return JSON.stringify({
      id, rawId: id, type: 'public-key',
      response: {
        clientDataJSON: encode(clientDataJSON), transports: transportsOf(response),
        attestationObject: encode(attestationObject), authenticatorData: encode(authenticatorData),
        signature: encode(signature), userHandle: encode(userHandle),
      },
    });
  }

  // The transports are optional.
  function transportsOf(response) {
    try {
      return response.getTransports?.();
    } catch {
      return undefined;
    }
  }

  document.addEventListener('submit', (event) => {
    const form = event.target;
    if (form.dataset.passkey) {
      event.preventDefault();
      answer(form);
    }
  });

  // While the page loaded, the form was hidden, so the browser did not focus its button.
  document.querySelector('[data-passkey] [autofocus]')?.focus();

  // Some extensions never answer after the user has closed their prompt, so the next attempt
  // replaces the one before it.
  let attempt = new AbortController();

  async function answer(form) {
    attempt.abort();
    attempt = new AbortController();
    const { signal } = attempt;
    show(form, '');
    let options = {};
    try {
      if (!globalThis.PublicKeyCredential || !navigator.credentials) {
        show(form, 'This browser does not support passkeys.');
        return;
      }
      const response = await fetch(form.dataset.options, { method: 'POST' }).catch(() => null);
      if (!response) {
        show(form, 'Can’t reach the portal. Check your connection and try again.');
        return;
      }
      if (response.ok && !response.redirected) {
        options = (await response.json()).publicKey;
        const credential = await calls[form.dataset.passkey](options, signal);
        form.elements.credential.value = toJSON(credential);
      }
      // Without an answer, the server asks for the password or shows what is wrong.
      if (!signal.aborted) {
        form.submit();
      }
    } catch (error) {
      if (!signal.aborted) {
        show(form, problems[error.name]?.(options) ?? 'No passkey was used. Try again.');
      }
    }
  }

  function show(form, text) {
    form.querySelector('[role="alert"]').textContent = text;
  }
})();
