// The contents of the documentation. The search hides the entries that lack one of its words, and
// the entry of the section in view is marked.
(() => {
  'use strict';

  const contents = document.querySelector('[data-contents]');
  const field = document.getElementById('docs-search');
  const found = document.getElementById('docs-found');
  const menu = contents.closest('details');
  const wide = matchMedia('(min-width: 64rem)'); // as in docs/layout.css
  const links = [...contents.querySelectorAll('a')];
  const texts = new Map(links.map((link) => {
    const group = link.closest('[data-group]').querySelector('h2').textContent;
    return [link, `${group} ${link.textContent} ${link.dataset.words}`.toLowerCase()];
  }));
  const shown = () => links.filter((link) => !link.closest('[hidden]'));

  field.addEventListener('input', () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const link of links) {
      link.parentElement.hidden = !words.every((word) => texts.get(link).includes(word));
    }
    for (const section of contents.querySelectorAll('[data-group]')) {
      section.hidden = !section.querySelector('li:not([hidden])');
    }
    const count = shown().length;
    found.textContent = words.length === 0 ? '' : count === 1 ? '1 result' : `${count || 'No'} results`;
  });

  field.addEventListener('keydown', (event) => {
    const [first] = shown();
    if (event.key === 'Escape') {
      field.value = '';
      field.dispatchEvent(new Event('input'));
    } else if (event.key === 'Enter' && field.value.trim()) {
      first?.click();
    } else if (event.key === 'ArrowDown') {
      event.preventDefault();
      first?.focus();
    }
  });

  contents.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = shown().indexOf(document.activeElement);
    if (step && at >= 0) {
      event.preventDefault();
      (shown()[at + step] ?? field).focus();
    }
  });

  // "/" moves the focus to the search, except from a text field.
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest('input, textarea')) {
      event.preventDefault();
      menu.open = true;
      field.focus();
    }
  });

  // On a wide screen the contents are open. On a narrow screen they close when a link is followed.
  const fit = () => { menu.open = wide.matches; };
  fit();
  wide.addEventListener('change', fit);
  contents.addEventListener('click', (event) => {
    if (event.target.closest('a')) {
      fit();
    }
  });

  const sections = new Map(links
    .map((link) => [link.pathname === location.pathname && document.getElementById(link.hash.slice(1)), link])
    .filter(([section]) => section));
  const visible = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      visible[isIntersecting ? 'add' : 'delete'](target);
    }
    const current = [...sections.keys()].filter((section) => visible.has(section)).pop();
    for (const [section, link] of sections) {
      link.toggleAttribute('aria-current', section === current);
      if (section === current) {
        link.setAttribute('aria-current', 'true');
      }
    }
  }, { rootMargin: '-20% 0px -70%' });
  for (const section of sections.keys()) {
    observer.observe(section);
  }
})();
