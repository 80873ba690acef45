// The contents of the documentation are open beside the text and closed above it.
(() => {
  'use strict';

  const wide = matchMedia('(min-width: 64rem)'); // as in docs/layout.css
  const fit = () => { document.querySelector('.docs-menu').open = wide.matches; };
  fit();
  wide.addEventListener('change', fit);
})();
