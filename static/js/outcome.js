// A revocation without a response may have happened or not. The row says so, and polls until the
// portal knows: see "api-key-confirmation".
(() => {
  'use strict';

  document.addEventListener('htmx:finally:request', ({ detail: { ctx } }) => {
    const outcome = ctx.sourceElement.closest('tr')?.querySelector('[data-unknown]');
    const answered = ctx.text !== undefined && ctx.response.status < 500;
    if (outcome && !answered && (ctx.background || ctx.request.method === 'POST')) {
      outcome.textContent = outcome.dataset.unknown;
      htmx.trigger(outcome, 'unanswered');
    }
  });

  // The key was revoked, and its row is gone.
  document.addEventListener('htmx:after:swap', ({ detail: { ctx } }) => {
    if (ctx.sourceElement.matches('[data-unknown]') && !ctx.sourceElement.isConnected) {
      document.getElementById('failure').replaceChildren();
    }
  });
})();
