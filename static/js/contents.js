// The contents of the documentation are open beside the text and closed above it. They also lead to
// a section that has moved.
(() => {
  'use strict';

  const wide = matchMedia('(min-width: 64rem)'); // as in docs/layout.css
  const menu = document.querySelector('.docs-menu');
  const fit = () => { menu.open = wide.matches; };
  fit();
  wide.addEventListener('change', fit);

  // The contents begin with the current page.
  const current = menu.querySelector('[data-current]');
  menu.scrollTop = current.offsetTop - menu.querySelector('.docs-contents').firstElementChild.offsetTop;

  // Links from elsewhere may name a section that is on another page now.
  if (location.hash.length > 1 && !document.getElementById(location.hash.slice(1))) {
    const moved = [...document.querySelectorAll('.docs-contents a')].find(({ hash }) => hash === location.hash);
    if (moved) {
      location.replace(moved.href);
    }
  }
})();
