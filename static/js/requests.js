// Around every request of HTMX: what failed is told and changes nothing else,
// and the focus is never lost with the element that had it.
(() => {
  'use strict';

  const failure = document.getElementById('failure');
  const status = document.getElementById('status');
  const focusBefore = new WeakMap(); // by request

  document.addEventListener('htmx:config:request', ({ detail: { ctx } }) => {
    focusBefore.set(ctx, document.activeElement);
  });

  document.addEventListener('htmx:before:request', () => {
    failure.replaceChildren();
    status.replaceChildren();
  });

  // No answer, or half of one.
  document.addEventListener('htmx:error', ({ detail: { ctx } }) => {
    if (ctx && ctx.text === undefined) {
      const { unreachable, uncertain } = failure.dataset;
      failure.textContent = ctx.request.method === 'GET' ? unreachable : uncertain;
    }
  });

  document.addEventListener('htmx:finally:request', ({ detail: { ctx } }) => {
    // The portal explains its own failures; a proxy before it cannot.
    if (ctx.response?.status >= 400 && ctx.swap === 'none' && !failure.hasChildNodes()) {
      failure.textContent = failure.dataset.unanswered;
    }
    // HTMX enables what it has disabled after this event.
    setTimeout(() => restoreFocus(focusBefore.get(ctx)));
  });

  function restoreFocus(element) {
    if (document.activeElement && document.activeElement !== document.body) {
      return;
    }
    const target = element?.isConnected && element !== document.body ? element : document.getElementById('main');
    target.focus({ preventScroll: true });
  }

  // What was done is said long enough to be read, and then makes room.
  let fading;
  new MutationObserver(() => {
    clearTimeout(fading);
    fading = setTimeout(() => status.replaceChildren(), 10000);
  }).observe(status, { childList: true });
})();
