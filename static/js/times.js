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
