// What pages do besides, where there is JavaScript. Everything can be done without it.
'use strict';

// Keys: "/" searches, "j" and "k" go through a list, "o" opens, "?" says so. Who speaks to
// their computer, or presses a key by mistake, can switch them off in this browser.
(() => {
  const items = () => [...document.querySelectorAll('.list > li, tbody tr')].filter((i) => i.querySelector('a'));
  const off = () => localStorage.getItem('keys') === 'off';
  const go = (step) => {
    const list = items();
    if (!list.length) return;
    const was = list.findIndex((i) => i.hasAttribute('aria-current')), at = Math.max(0, Math.min(list.length - 1, was + step));
    list[was]?.removeAttribute('aria-current');
    list[at].setAttribute('aria-current', 'true');
    list[at].querySelector('a').focus({ preventScroll: true });
    list[at].scrollIntoView({ block: 'nearest' });
  };
  const help = () => {
    let box = document.getElementById('keys');
    if (!box) {
      box = document.createElement('dialog');
      box.id = 'keys';
      box.setAttribute('aria-label', 'Keys');
      box.innerHTML = '<p>Keys: / search, j next, k previous, o open, ? this list. Esc closes it.</p>'
        + '<p><label><input type="checkbox"> Use these keys in this browser</label></p><button type="button">Close</button>';
      const use = box.querySelector('input');
      use.checked = !off();
      use.onchange = () => { if (use.checked) localStorage.removeItem('keys'); else localStorage.setItem('keys', 'off'); };
      box.querySelector('button').onclick = () => box.close();
      document.body.append(box);
    }
    box.showModal();
  };
  const open = document.createElement('button');
  open.textContent = 'Keys';
  open.onclick = help;
  document.querySelector('footer').append(' ', open);
  document.addEventListener('keydown', (e) => {
    if (off() || e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, textarea, select, dialog')) return;
    switch (e.key) {
      case '/': {
        const field = document.getElementById('search');
        if (!field) return;
        field.focus();
        break;
      }
      case 'j': go(1); break;
      case 'k': go(-1); break;
      case 'o': document.querySelector('main [aria-current=true] a')?.click(); break;
      case '?': help(); break;
      default: return;
    }
    e.preventDefault();
  });
})();

// On a phone the navigation is one line, which shows where one is.
document.querySelector('header nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });

// What was typed and not sent is kept in this tab.
document.querySelectorAll('textarea[data-draft]').forEach((field) => {
  if (!field.value) field.value = sessionStorage.getItem('draft:' + field.dataset.draft) || '';
});
document.addEventListener('input', ({ target }) => {
  if (target.dataset.draft) sessionStorage.setItem('draft:' + target.dataset.draft, target.value);
});
// It is of whoever wrote it: nobody who signs in behind them sees it.
document.querySelector('form[action="/sign-out"]')?.addEventListener('submit', () => sessionStorage.clear());

// Who presses twice means it once: the second request would end the first, and find nothing
// left to do.
document.addEventListener('submit', (e) => {
  if (e.defaultPrevented) return;
  if (e.timeStamp - e.target.sentAt < 5000) e.preventDefault();
  else e.target.sentAt = e.timeStamp;
});

// Times go on while a page is open, and are exact in the zone of whoever reads them.
(() => {
  const count = (n, unit) => Math.floor(n) + ' ' + unit + (Math.floor(n) === 1 ? '' : 's') + ' ago';
  const ago = (s) => {
    if (s < 60) return 'just now';
    if (s < 3600) return count(s / 60, 'minute');
    if (s < 86400) return count(s / 3600, 'hour');
    return s < 60 * 86400 ? count(s / 86400, 'day') : count(s / 86400 / 30, 'month');
  };
  const two = (n) => String(n).padStart(2, '0');
  const clock = (s) => (s >= 3600 ? Math.floor(s / 3600) + ':' + two(Math.floor(s / 60) % 60) : Math.floor(s / 60)) + ':' + two(s % 60);
  const show = (e, text) => { if (e.textContent !== text) e.textContent = text; };
  const since = (at) => Math.max(0, Math.floor((Date.now() - Date.parse(at)) / 1000));
  setInterval(() => {
    document.querySelectorAll('time[data-ago]').forEach((e) => {
      show(e, ago(since(e.dateTime)));
      if (e.title.endsWith(' UTC')) e.title = new Date(e.dateTime).toLocaleString([], { dateStyle: 'medium', timeStyle: 'long' });
    });
    document.querySelectorAll('[data-since]').forEach((e) => show(e, clock(since(e.dataset.since))));
  }, 1000);
})();

// Whoever goes from button to button hears what each is about.
const speak = (page) => page.querySelectorAll('.list > li, .card, tbody tr').forEach((of) => {
  const what = of.querySelector('.what, h2, th, td')?.textContent.trim();
  if (what) of.querySelectorAll('button, summary, .button, .card > p > a').forEach((b) => b.setAttribute('aria-label', b.textContent + ': ' + what));
});
speak(document);

// What changes on the server is put into the page: what was typed, what has the focus, what
// is open and where it is scrolled to stay as they are.
const live = (() => {
  const typed = (e) => e.matches('textarea, input:not([type=hidden], [type=checkbox], [type=radio])') && e.value !== e.defaultValue;
  const busy = (e) => e.nodeType === 1 && (e.hasAttribute('data-keep') || [e, ...e.querySelectorAll('textarea, input')].some(typed));
  const mine = { open: 'DETAILS', 'aria-current': 'LI' }; // what this page sets itself

  const decidedOn = (card) => card.querySelector('[name=sha256]')?.value;

  const attributes = (old, now) => {
    for (const { name, value } of now.attributes) if (!(mine[name] === old.nodeName) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes]) if (!(mine[name] === old.nodeName) && !now.hasAttribute(name)) old.removeAttribute(name);
  };

  const morph = (old, now) => {
    if (old.isEqualNode(now)) return;
    if (old.nodeType !== 1) { old.data = now.data; return; }
    // A form that somebody fills in stays whole, with what it decides on.
    if (old.hasAttribute('data-keep') || old.nodeName === 'FORM' && busy(old)) return;
    // What has just changed under the pointer is not what somebody meant to press.
    if (old.matches('.card') && decidedOn(old) !== decidedOn(now)) {
      const buttons = [...now.querySelectorAll('button')];
      buttons.forEach((b) => { b.disabled = true; });
      setTimeout(() => old.querySelectorAll('button').forEach((b) => { b.disabled = false; }), 1000);
    }
    attributes(old, now);
    children(old, now);
  };

  // kind tells forms and what opens from others of their name.
  const kind = (e) => (e.nodeName === 'FORM' ? e.getAttribute('action') : e.nodeName === 'DETAILS' && e.firstElementChild?.textContent) || '';
  const alike = (a, b) => !a.id && a.nodeName === b.nodeName && kind(a) === kind(b);

  const children = (old, now) => {
    const wanted = [...now.childNodes];
    const ids = new Set(wanted.map((n) => n.id).filter(Boolean));
    let at = old.firstChild;
    for (const n of wanted) {
      const known = n.id ? [...old.children].find((c) => c.id === n.id) : null;
      while (at && at !== known && (n.id ? known : at.id) && !ids.has(at.id)) {
        const gone = at;
        at = at.nextSibling;
        if (!busy(gone)) gone.remove();
      }
      if (!n.id && kind(n) && at && !alike(at, n)) { // what it was may stand behind what is gone
        let later = at.nextSibling;
        while (later && !alike(later, n)) later = later.nextSibling;
        while (later && at !== later) {
          const gone = at;
          at = at.nextSibling;
          if (!busy(gone)) gone.remove();
        }
      }
      const match = n.id ? known : at && alike(at, n) ? at : null;
      if (!match || match.nodeName !== n.nodeName) {
        old.insertBefore(document.importNode(n, true), at);
      } else {
        if (match === at) at = at.nextSibling;
        else (old.moveBefore ?? old.insertBefore).call(old, match, at); // the first keeps the focus
        morph(match, n);
      }
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      if (!busy(gone)) gone.remove();
    }
  };

  const main = document.querySelector('main[data-live]');
  if (!main || !window.EventSource) return { refresh: () => {} };
  let at = main.dataset.at, source = null, asking = false, again = false, wait = 1000, timer = 0, later = 0;

  const line = document.createElement('p');
  line.className = 'offline';
  line.setAttribute('role', 'status');
  document.body.append(line);
  const say = (text) => { if (line.textContent !== text) line.textContent = text; };

  // refresh asks for this page again.
  const refresh = async () => {
    if (asking) { again = true; return; }
    asking = true;
    try {
      const answer = await fetch(location.href, { headers: { 'Bot-Part': 'main' }, signal: AbortSignal.timeout(30000) });
      if (answer.redirected || answer.status === 401 || answer.status === 403) {
        close();
        if (busy(main)) say((answer.status === 403 ? 'You no longer have access.' : 'You are signed out.') + ' Copy what you wrote before you leave this page.');
        else location.reload();
        return;
      }
      if (!answer.ok && answer.status !== 404) throw answer;
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const low = innerHeight + scrollY > document.body.scrollHeight - 80; // at the end, where it stays
      document.title = page.title;
      speak(page);
      morph(main, page.querySelector('main'));
      if (low && main.querySelector('[data-follow]')) scrollTo(0, document.body.scrollHeight);
    } catch { // the stream does not tell of the same change again
      clearTimeout(later);
      later = setTimeout(refresh, 5000);
    } finally {
      asking = false;
      if (again) { again = false; refresh(); }
    }
  };

  const close = () => { clearTimeout(timer); source?.close(); source = null; };
  const open = () => {
    close();
    source = new EventSource(main.dataset.live + '&after=' + encodeURIComponent(at));
    const changed = (e) => { at = e.lastEventId; refresh(); };
    source.addEventListener('changed', changed);
    source.addEventListener('reload', changed);
    source.onopen = () => { wait = 1000; say(''); };
    source.onerror = () => {
      say('Reconnecting…');
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      wait = Math.min(2 * wait, 30000);
      timer = setTimeout(() => { refresh(); open(); }, wait);
    };
  };
  // A page that nobody looks at needs no connection, of which browsers have few.
  document.addEventListener('visibilitychange', () => { if (document.hidden) close(); else open(); });
  addEventListener('pagehide', close);
  addEventListener('pageshow', (e) => { if (e.persisted) open(); });
  if (!document.hidden) open();
  return { refresh };
})();

// Files are dropped or pasted into a form that takes some.
document.querySelectorAll('form[enctype]').forEach((form) => {
  const field = form.querySelector('input[type=file]');
  // What is too much is said before it is on its way.
  const judge = () => {
    const { most, each, all } = field.dataset, files = [...field.files], mb = (n) => Math.floor(n / 1048576) + ' MB';
    field.setCustomValidity(files.length > +most ? 'Send at most ' + most + ' files with a message.'
      : files.some((f) => f.size > +each) ? 'A file is larger than ' + mb(each) + ', which is the limit.'
        : files.reduce((n, f) => n + f.size, 0) > +all ? 'The files are too large together: send at most ' + mb(all) + ' at once.' : '');
    field.reportValidity();
  };
  const add = (e, data) => {
    if (!data?.files.length) return;
    e.preventDefault();
    const all = new DataTransfer();
    [...field.files, ...data.files].forEach((f) => all.items.add(f));
    field.files = all.files;
    judge();
  };
  field.addEventListener('change', judge);
  // What is copied from a spreadsheet comes as text and as a picture: the text is meant.
  document.addEventListener('paste', (e) => { if (!['text/plain', 'text/html'].every((kind) => e.clipboardData?.types.includes(kind))) add(e, e.clipboardData); });
  // A file may fall beside the form, too: the browser would show it in place of the page.
  document.addEventListener('drop', (e) => add(e, e.dataTransfer));
  document.addEventListener('dragover', (e) => { if (e.dataTransfer?.types.includes('Files')) e.preventDefault(); });
});

// What is said is sent without leaving the page before it is there: what was written, and
// the files that were chosen, stay until it is.
document.querySelectorAll('textarea[data-draft]').forEach((text) => {
  const form = text.form, files = form.enctype === 'multipart/form-data';
  text.addEventListener('keydown', (e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) form.requestSubmit(); });
  const note = document.createElement('p');
  note.setAttribute('role', 'status');
  const keep = (draft) => sessionStorage.setItem('draft:' + text.dataset.draft, draft);
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    const button = form.querySelector('button'), said = text.value;
    if (button.ariaDisabled) return;
    button.ariaDisabled = 'true'; // one that is disabled loses the focus
    [note, document.getElementById('said')].forEach((old) => old?.remove());
    try {
      const body = new FormData(form);
      const answer = await fetch(form.action, files ? { method: 'POST', body } : { method: 'POST', body: new URLSearchParams(body), redirect: 'manual' });
      if (answer.type === 'opaqueredirect') { keep(text.value = ''); location.assign(location.pathname); return; }
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const token = page.querySelector('main form [name=token]'); // another one since somebody signed in again
      const mine = form.querySelector('[name=token]');
      if (!answer.ok && token && token.value !== mine.value) { mine.value = token.value; throw 'You have signed in again since this page was opened. Press Send again.'; }
      if (!answer.ok) throw page.querySelector('main p')?.textContent || 'The server answers ' + answer.status + '.';
      if (!files) { keep(''); document.querySelector('main').replaceWith(page.querySelector('main')); return; } // a long answer
      const more = text.value.startsWith(said) ? text.value.slice(said.length).trimStart() : text.value; // typed meanwhile
      form.reset();
      text.value = more;
      keep(more);
      // The same words are said again only with another one.
      form.querySelector('[name=nonce]').value = page.querySelector('#say [name=nonce]').value;
      if (form.getAttribute('action') === '/chat') { location.assign(answer.url + '#say'); return; } // it began a conversation
      // What is said next need not wait for what is shown.
      Promise.resolve(live.refresh()).then(() => scrollTo(0, document.body.scrollHeight));
    } catch (why) {
      keep(text.value);
      note.textContent = typeof why === 'string' ? 'Not sent. ' + why : 'Not sent: there is no connection. What you wrote is kept; send it again.';
      form.append(note);
    } finally { button.ariaDisabled = null; }
  });
});
