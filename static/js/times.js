// Updates relative times with the same words as templates/moment.go. They are relative to the clock
// of the server.
(() => {
  'use strict';

  const every = 15000; // ms
  const minute = 60000;
  const hour = 60 * minute;
  const day = 24 * hour;
  const units = [[365 * day, 'year'], [30 * day, 'month'], [day, 'day'], [hour, 'hour'], [minute, 'minute']];

  const served = Date.parse(document.querySelector('meta[name=now]')?.content ?? '');
  const ahead = Number.isNaN(served) ? 0 : Date.now() - served;

  function ago(elapsed) {
    const [unit, name] = units.find(([length]) => elapsed >= length) ?? [];
    if (!unit) {
      return 'just now';
    }
    const n = Math.floor(elapsed / unit);
    return n === 1 ? `1 ${name} ago` : `${n} ${name}s ago`;
  }

  // A time in the user's time zone. The title keeps UTC.
  const local = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' });

  function localize() {
    for (const time of document.querySelectorAll('time[data-local]')) {
      time.textContent = local.format(new Date(time.dateTime));
      time.removeAttribute('data-local');
    }
    for (const time of document.querySelectorAll('time[data-ago]:not([data-titled])')) {
      time.title = `${local.format(new Date(time.dateTime))} (${time.title})`;
      time.dataset.titled = '';
    }
  }
  localize();
  document.addEventListener('htmx:after:swap', localize);

  function update() {
    if (document.visibilityState !== 'visible') {
      return;
    }
    const now = Date.now() - ahead;
    for (const time of document.querySelectorAll('time[data-ago]')) {
      const words = ago(now - Date.parse(time.dateTime));
      if (time.textContent !== words) {
        time.textContent = words;
      }
    }
  }

  setInterval(update, every);
  document.addEventListener('visibilitychange', update);
})();
