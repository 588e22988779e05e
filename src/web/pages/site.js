// What pages have more with scripts: times in the visitor's zone, suggestions, favourites, copy buttons, values of graphs,
// and figures that follow the servers. Every page is complete without it.
(() => {
'use strict';
// In the language of the page.
const texts = JSON.parse(document.body.dataset.texts);
// The start of paths with the language of the page.
const {prefix} = document.documentElement.dataset, {lang} = document.documentElement;
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const page = text => new DOMParser().parseFromString(text, 'text/html');
const two = number => String(number).padStart(2, '0');
const date = at => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
const hour = at => `${two(at.getHours())}:${two(at.getMinutes())}`;
const locale = lang === 'en' ? 'en-GB' : lang;
const shortDate = at => at.toLocaleDateString(locale, {day: 'numeric', month: 'short'});
// "12 min ago".
const age = at => {
  const seconds = (Date.now() - at) / 1000;
  const [unit, length] = [['day', 86400], ['hour', 3600]].find(([, length]) => seconds >= length) ?? ['minute', 60];
  return new Intl.RelativeTimeFormat(locale, {style: 'short'}).format(-Math.trunc(seconds / length), unit);
};

// Times: the same form as in UTC.
const localise = root => {
  for (const time of all('time[datetime$="Z"]', root)) {
    const at = new Date(time.dateTime), text = time.textContent;
    if (time.className === 'ago' && at <= Date.now()) {
      time.title = `${date(at)} ${hour(at)}`;
      time.textContent = age(at);
    } else if (/^\d{4}-\d\d-\d\d \d\d:\d\d$/.test(text)) time.textContent = `${date(at)} ${hour(at)}`;
    else if (/^\d+\.? \S+ \d\d:\d\d$/.test(text)) time.textContent = `${shortDate(at)} ${hour(at)}`;
    else if (/^\d\d:\d\d$/.test(text)) time.textContent = hour(at);
  }
};
localise(document);
setInterval(() => localise(document), 60000);
for (const zone of all('#zone')) zone.textContent = texts.zone;

// Copy buttons; browsers allow them with https only.
const copyButtons = root => {
  if (!navigator.clipboard) return;
  for (const source of all('[data-copy]', root)) {
    const button = make('button', {type: 'button', className: 'copy', textContent: texts.copy});
    button.onclick = async () => {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = texts.copied;
      setTimeout(() => { button.textContent = texts.copy; }, 2000);
    };
    source.after(' ', button);
  }
};
copyButtons(document);

// Favourites: paths and names, in this browser only.
const favourites = () => {
  try {
    const kept = JSON.parse(localStorage.getItem('favourites'));
    return Array.isArray(kept) ? kept.filter(one => /^\/(servers|players)\//.test(one.path)) : [];
  } catch { return []; }
};
const keep = list => { try { localStorage.setItem('favourites', JSON.stringify(list)); } catch { /* it is full, or off */ } };
for (const heading of all('h1[data-favourite]')) {
  const path = heading.dataset.favourite;
  const button = make('button', {type: 'button', className: 'star'});
  const show = () => {
    const is = favourites().some(one => one.path === path);
    button.setAttribute('aria-pressed', is);
    button.textContent = is ? texts.favourite : texts.addFavourite;
  };
  button.onclick = () => {
    const others = favourites().filter(one => one.path !== path);
    const was = others.length < favourites().length;
    keep(was ? others : [{path, name: heading.textContent.slice(0, 80)}, ...others].slice(0, 100));
    show();
  };
  show();
  heading.after(button);
}
for (const place of all('#favourites')) {
  const list = favourites();
  if (list.length === 0) continue;
  const rows = make('ul');
  for (const {path, name} of list) {
    const row = make('li', {}, make('a', {href: prefix + path, textContent: name}), ' ');
    rows.append(row);
    if (rows.children.length > 20) continue;
    fetch(`${prefix}/embed${path}`).then(answer => answer.ok ? answer.text() : '').then(text => {
      const now = page(text).querySelector('[data-now]');
      if (now) row.append(make('span', {className: 'soft', textContent: now.dataset.now}));
    }).catch(() => {});
  }
  place.append(make('h2', {textContent: texts.favourites}), rows);
}

// Suggestions while typing.
for (const input of all('#site-search')) {
  const list = make('ul', {id: 'suggestions', hidden: true});
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', texts.suggestions);
  const set = (name, value) => value === null ? input.removeAttribute(name) : input.setAttribute(name, value);
  Object.entries({role: 'combobox', 'aria-autocomplete': 'list', 'aria-controls': list.id, 'aria-expanded': false,
    autocomplete: 'off'}).forEach(([name, value]) => set(name, value));
  input.form.append(list);
  let asked = '', timer = 0, chosen = -1;
  const choose = number => {
    const options = list.children;
    options[chosen]?.removeAttribute('aria-selected');
    chosen = options.length === 0 || number < 0 ? -1 : number % options.length;
    options[chosen]?.setAttribute('aria-selected', true);
    set('aria-activedescendant', options[chosen]?.id ?? null);
  };
  const close = () => { list.hidden = true; set('aria-expanded', false); choose(-1); };
  const ask = async () => {
    const text = asked = input.value.trim();
    if (text.length < 2) return close();
    const answer = await fetch(`${prefix}/suggest?q=${encodeURIComponent(text)}`).catch(() => null);
    if (!answer?.ok || text !== asked) return;
    const found = page(await answer.text());
    localise(found);
    list.replaceChildren(...all('li', found));
    chosen = -1;
    list.hidden = list.children.length === 0;
    set('aria-expanded', !list.hidden);
    set('aria-activedescendant', null);
  };
  input.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(ask, 150); });
  input.addEventListener('keydown', event => {
    if (event.key === 'Escape') close();
    if (list.hidden) return;
    if (event.key === 'ArrowDown') choose(chosen + 1);
    else if (event.key === 'ArrowUp') choose(chosen < 1 ? list.children.length - 1 : chosen - 1);
    else if (event.key === 'Enter' && chosen >= 0) location.href = list.children[chosen].dataset.href;
    else return;
    event.preventDefault();
  });
  list.addEventListener('mousedown', event => event.preventDefault());
  list.addEventListener('click', event => {
    const option = event.target.closest('li');
    if (option) location.href = option.dataset.href;
  });
  input.addEventListener('blur', close);
}

// Values of graphs, under the pointer and by the arrow keys; and their times.
const graphValues = root => {
  for (const svg of all('svg.chart[data-values]', root)) {
    const values = svg.dataset.values.split(','), {newest, slot, left, width} = svg.dataset;
    const last = Math.max(values.length - 1, 1), shown = make('output', {className: 'value'});
    const cursor = document.createElementNS('http://www.w3.org/2000/svg', 'line');
    cursor.setAttribute('class', 'cursor');
    svg.append(cursor);
    svg.after(shown);
    const start = number => new Date(Number(newest) - (values.length - 1 - number) * Number(slot));
    // The start of a day or a week is given as if it were one of UTC.
    const isShort = Number(slot) < 86400000;
    if (isShort) {
      for (const mark of all('text[data-slot]', svg)) {
        const from = start(Number(mark.dataset.slot));
        mark.textContent = mark.textContent.includes(':') ? hour(from) : shortDate(from);
      }
      const caption = svg.parentNode.querySelector('figcaption').firstChild;
      caption.data = caption.data.replace(', UTC.', '.');
    }
    let at = values.length - 1;
    const show = number => {
      at = Math.min(Math.max(number, 0), values.length - 1);
      const x = Number(left) + at * Number(width) / last;
      for (const [name, value] of [['x1', x], ['x2', x], ['y1', 0], ['y2', svg.viewBox.baseVal.height]]) {
        cursor.setAttribute(name, value);
      }
      const from = start(at), time = isShort ? `${date(from)} ${hour(from)}` : from.toISOString().slice(0, 10);
      shown.textContent = `${time}: ${values[at] === '' ? texts.noData : Number(values[at]).toLocaleString(lang)}`;
    };
    svg.setAttribute('tabindex', 0);
    svg.addEventListener('pointermove', event => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
      show(Math.round((x - Number(left)) * last / Number(width)));
    });
    svg.addEventListener('focus', () => show(at));
    svg.addEventListener('keydown', event => {
      const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: values.length - 1}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(to);
    });
  }
};
graphValues(document);

// The hours of the week in the visitor's zone, to whole hours.
const east = Math.round(-new Date().getTimezoneOffset() / 60);
for (const svg of all('svg[data-hour]')) {
  const left = Number(svg.dataset.left), width = Number(svg.dataset.hour), days = all('.heat', svg);
  for (const cell of all('use', svg)) {
    const hour = (cell.getAttribute('x') - left) / width, title = cell.firstChild;
    const at = (days.indexOf(cell.parentNode) * 24 + hour + east + 168) % 168;
    cell.setAttribute('x', left + at % 24 * width);
    // "13:00, 5".
    title.textContent = at % 24 + title.textContent.replace(/^\d+/, '');
    days[Math.floor(at / 24)].append(cell);
  }
  const caption = svg.parentNode.querySelector('figcaption').firstChild;
  caption.data = caption.data.replace(/,? (en )?UTC/, '');
}

// The days on which a player played, in the visitor's zone. Minutes since 1970 are given.
for (const svg of all('svg[data-played]')) {
  const spans = svg.dataset.played.split(' ').map(span => span.split('-').map(minute => new Date(minute * 60000)));
  const left = Number(svg.dataset.left), width = Number(svg.dataset.width);
  const newest = new Date(Math.max(...spans.map(([, end]) => end)));
  all('.day', svg).forEach((row, back) => {
    const midnight = days => new Date(newest.getFullYear(), newest.getMonth(), newest.getDate() - back + days);
    const from = midnight(0), to = midnight(1), y = Number(row.dataset.y) + 3;
    const within = spans.map(([start, end]) => [Math.max(start, from), Math.min(end, to)]).filter(([start, end]) => start <= end && start < to);
    const x = at => Math.round(left + (at - from) * width / (to - from));
    const bar = ([start, end]) => { const wide = Math.max(x(end) - x(start), 2); return `M${x(start)} ${y}h${wide}v10h-${wide}z`; };
    const minutes = within.reduce((sum, [start, end]) => sum + (end - start) / 60000, 0);
    const [day, total] = all('text', row);
    day.textContent = from.toLocaleDateString(locale, {weekday: 'short', day: 'numeric', month: 'short'}).replace(',', '');
    row.querySelector('path').setAttribute('d', within.map(bar).join(''));
    total.textContent = minutes > 0 ? `${Math.trunc(minutes / 60)}:${two(minutes % 60)}` : '';
  });
  const caption = svg.parentNode.querySelector('figcaption').firstChild;
  caption.data = caption.data.replace(/,? (en )?UTC/, '');
}

// Parts of the page follow the servers: the page is read again when something has changed.
for (const main of all('main[data-live]')) {
  let source = null, isDue = false, isReading = false;
  const read = async () => {
    // What has changed is newer than what the browser has kept.
    const answer = await fetch(location.href, {cache: 'no-cache'}).catch(() => null);
    if (answer?.ok) {
      const now = page(await answer.text());
      for (const part of all('[data-part]')) {
        const next = now.getElementById(part.id);
        if (!next || part.contains(document.activeElement)) continue;
        [localise, copyButtons].forEach(change => change(next));
        if (next.innerHTML !== part.innerHTML) part.replaceChildren(...next.childNodes);
      }
    }
  };
  // The server uses an answer again for a second, so a page that is read at once may be the one before the change.
  const readSoon = async () => {
    isDue = true;
    if (isReading) return;
    isReading = true;
    while (isDue) {
      await new Promise(done => setTimeout(done, 1500));
      isDue = false;
      await read().catch(() => null);
    }
    isReading = false;
  };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(main.dataset.live);
    let isFirst = true;
    const changed = () => { if (!isFirst) readSoon(); isFirst = false; };
    ['overview', 'server'].forEach(name => source.addEventListener(name, changed));
    source.onerror = () => {
      // The server has too many streams, or is away: it connects again by itself only after an interruption.
      if (source?.readyState !== EventSource.CLOSED) return;
      source = null;
      setTimeout(() => { read(); open(); }, 60000);
    };
  };
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) { source?.close(); source = null; } else { read(); open(); }
  });
  open();
}
})();
