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

  // Times in the user's time zone, written as the server writes them. The titles keep UTC.
  const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
  const dateOf = (at) => `${at.getDate()} ${months[at.getMonth()]} ${at.getFullYear()}`;
  const clockOf = (at) => [at.getHours(), at.getMinutes()].map((n) => String(n).padStart(2, '0')).join(':');
  const local = (at) => `${dateOf(at)}, ${clockOf(at)}`;

  function localize() {
    for (const time of document.querySelectorAll('time[data-local]')) {
      time.textContent = local(new Date(time.dateTime));
      time.removeAttribute('data-local');
    }
    for (const time of document.querySelectorAll('time[data-ago]:not([data-titled])')) {
      time.dataset.titled = local(new Date(time.dateTime));
      time.title = `${time.dataset.titled} (${time.title})`;
    }
    divideIntoDays();
    for (const time of document.querySelectorAll('time[data-clock]')) {
      time.textContent = clockOf(new Date(time.dateTime));
      time.removeAttribute('data-clock');
    }
  }

  // The server divides a list into days of UTC. The days of the user may begin elsewhere.
  function divideIntoDays() {
    const times = [...document.querySelectorAll('[data-by-day] time[data-clock]')];
    if (times.every(({ dateTime }) => !new Date(dateTime).getTimezoneOffset())) {
      return;
    }
    const days = document.querySelectorAll('[data-by-day] section');
    let day = null;
    for (const time of times) {
      const date = dateOf(new Date(time.dateTime));
      if (day?.querySelector('h2 span').textContent !== date) {
        day = days[0].cloneNode(true);
        day.querySelector('h2 span').textContent = date;
        day.querySelector('ol').replaceChildren();
        days[0].before(day);
      }
      day.querySelector('ol').append(time.closest('li'));
    }
    days.forEach((old) => old.remove());
  }

  // The days of a form are those of the user: the server gets their offsets from UTC. A day may
  // begin after midnight, when summer time begins.
  document.addEventListener('change', ({ target }) => {
    if (target.type === 'date') {
      target.toggleAttribute('data-filled', target.value !== '');
    }
    const offset = document.querySelector(`[data-offset-of="${target.id}"]`);
    if (offset && target.value) {
      const [year, month, date] = target.value.split('-').map(Number);
      const day = [year, month - 1, date + Number(offset.dataset.days ?? 0)];
      offset.value = (Date.UTC(...day) - new Date(...day)) / minute;
    }
  }, { capture: true });

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
