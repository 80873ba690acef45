// Feedback for every HTMX request. A failed request shows an alert and changes nothing else. If the
// focused element disappears, another one takes the focus.
//
// Elements with data-background poll. They send requests only while the page is visible and in use,
// and they never show an alert, steal the focus or overwrite newer content.
(() => {
  'use strict';

  const failure = document.getElementById('failure');
  const status = document.getElementById('status');

  // A page that nobody uses stops polling, except for the end of its session.
  const attention = 30 * 60000; // ms
  let usedAt = Date.now();
  for (const type of ['pointerdown', 'keydown', 'visibilitychange']) {
    document.addEventListener(type, () => { usedAt = Date.now(); }, { capture: true, passive: true });
  }

  let swaps = 0; // by the user's own requests; a poll that began before one is stale

  document.addEventListener('htmx:config:request', ({ detail: { ctx } }) => {
    ctx.background = ctx.sourceElement.matches('[data-background]');
    ctx.focused = document.activeElement;
  });

  document.addEventListener('htmx:before:request', (event) => {
    const { ctx } = event.detail;
    ctx.swaps = swaps;
    if (!ctx.background) {
      failure.replaceChildren();
      status.replaceChildren();
    } else if (document.hidden || Date.now() - usedAt > attention && !ctx.sourceElement.matches('#session-state')) {
      event.preventDefault();
    }
  });

  // The browser ends the requests of a page that is left, and HTMX would log each as an error. A
  // form's request is left alone: if the page comes back, it says that the outcome is not certain.
  const reading = new Set();
  let left = false;
  document.addEventListener('htmx:before:request', (event) => {
    const { ctx } = event.detail;
    if (ctx.request.method === 'GET' || ctx.background) { // a preview may be a POST
      reading.add(ctx);
      if (left) {
        event.preventDefault(); // it waited for the one before it
      }
    }
  });
  document.addEventListener('htmx:finally:request', ({ detail: { ctx } }) => { reading.delete(ctx); });
  window.addEventListener('pagehide', () => {
    left = true;
    reading.forEach((ctx) => ctx.request.abort());
  });
  window.addEventListener('pageshow', () => { left = false; });

  // The portal sends fragments. A whole page comes from a proxy that wants the user to sign in.
  const isForeign = ({ text = '' }) => /^\s*<(!doctype|html)/i.test(text);

  document.addEventListener('htmx:after:request', (event) => {
    const { ctx } = event.detail;
    if (isForeign(ctx)) {
      event.preventDefault();
      return;
    }
    if (!ctx.background) {
      // Sign-out leads to /login without a query.
      if (ctx.hx.redirect?.startsWith('/login?') && hasInput()) {
        event.preventDefault();
        htmx.trigger('#session-state', 'ended');
      }
      return;
    }
    if (ctx.hx.redirect) {
      leave(ctx);
    }
    if (ctx.hx.redirect || ctx.response.status !== 200 || ctx.swaps !== swaps) {
      event.preventDefault();
    }
  });

  // A poll was redirected: to the sign-in page, or because the rotation is over. Leaving the page
  // must not lose a key that is shown once, nor input.
  function leave({ hx: { redirect }, sourceElement }) {
    if (!redirect.startsWith('/login')) {
      if (!document.querySelector('dialog[open]')) {
        location.assign(redirect);
      }
      return;
    }
    const busy = hasInput() || document.querySelector('[data-confirmation]');
    if (!busy || sourceElement.matches('[data-unknown]')) {
      location.reload();
    } else {
      htmx.trigger('#session-state', 'ended');
    }
  }

  // A dialog has a key that is shown once. A refused form has its input as the default values.
  function hasInput() {
    return document.querySelector('dialog[open], [name="selected"]:checked, form :is([role="alert"], [role="status"]):not(:empty)') ||
      [...document.querySelectorAll('form:not([method="get"]) :is(input, textarea, select)')].some(isChanged);
  }

  function isChanged(field) {
    if (field.matches('select')) {
      const chosen = [...field.options].findLastIndex((option) => option.defaultSelected);
      return field.selectedIndex !== Math.max(chosen, 0);
    }
    return field.matches('[type="radio"], [type="checkbox"]')
      ? field.checked !== field.defaultChecked
      : field.value !== field.defaultValue;
  }

  // HTMX focuses an [autofocus] element after each swap. A poll must not focus one from an earlier
  // swap.
  document.addEventListener('htmx:before:swap', ({ detail: { ctx } }) => {
    if (!ctx.background) {
      swaps += 1;
    } else {
      ctx.focused = document.activeElement;
      document.querySelectorAll('[autofocus]').forEach((element) => element.removeAttribute('autofocus'));
    }
  });

  document.addEventListener('htmx:after:swap', ({ detail: { ctx } }) => {
    if (ctx.background && ctx.focused.isConnected) {
      ctx.focused.focus({ preventScroll: true });
    } else if (ctx.background) {
      restoreFocus();
    }
  });

  // The address bar shows a filter, for a reload and for going back.
  document.addEventListener('htmx:after:swap', ({ detail: { ctx } }) => {
    if (ctx.hx?.replaceurl) {
      history.replaceState(history.state, '', ctx.hx?.replaceurl);
    }
  });

  // There was no response, or only a part of it.
  document.addEventListener('htmx:error', ({ detail: { ctx } }) => {
    if (ctx && !ctx.background && ctx.text === undefined) {
      const { unreachable, uncertain } = failure.dataset;
      failure.textContent = ctx.request.method === 'GET' ? unreachable : uncertain;
    }
  });

  document.addEventListener('htmx:finally:request', ({ detail: { ctx } }) => {
    if (ctx.background) {
      return;
    }
    // The portal explains its own failures, or asks for the password. A proxy in front of it cannot.
    const explained = failure.hasChildNodes() || ctx.text?.includes('<hx-partial');
    if ((isForeign(ctx) || ctx.response?.status >= 400 && ctx.swap === 'none') && !explained) {
      failure.textContent = failure.dataset.unanswered;
    }
    // HTMX enables the elements of hx-disable after this event.
    setTimeout(() => restoreFocus(ctx.focused));
  });

  function restoreFocus(element) {
    if (document.activeElement && document.activeElement !== document.body) {
      return;
    }
    const usable = element?.isConnected && element !== document.body;
    (usable ? element : document.getElementById('main')).focus({ preventScroll: true });
  }

  document.addEventListener('click', ({ target }) => {
    if (target.closest('[data-dismiss]')) {
      status.replaceChildren(); // hides the button
      document.getElementById('main').focus({ preventScroll: true });
    }
  });

  // A notice disappears after ten seconds.
  let fading;
  new MutationObserver(() => {
    clearTimeout(fading);
    fading = setTimeout(() => status.replaceChildren(), 10000);
  }).observe(status, { childList: true });
})();
