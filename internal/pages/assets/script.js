// What pages do besides, where there is JavaScript. Everything can be done without it.
'use strict';

// Keys: "/" searches, "j" and "k" go through a list, "o" opens, "?" says so.
(() => {
  const items = () => [...document.querySelectorAll('.list > li, tbody tr')].filter((i) => i.querySelector('a'));
  let at = -1;
  const go = (step) => {
    const list = items();
    if (!list.length) return;
    list[at]?.removeAttribute('aria-current');
    at = Math.max(0, Math.min(list.length - 1, at + step));
    list[at].setAttribute('aria-current', 'true');
    list[at].querySelector('a').focus({ preventScroll: true });
    list[at].scrollIntoView({ block: 'nearest' });
  };
  const help = () => {
    let box = document.getElementById('keys');
    if (!box) {
      box = document.createElement('dialog');
      box.id = 'keys';
      box.textContent = 'Keys: / search, j next, k previous, o open, ? this list. Esc closes it.';
      document.body.append(box);
    }
    box.showModal();
  };
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, textarea, select, dialog')) return;
    switch (e.key) {
      case '/': {
        const field = document.getElementById('search');
        if (!field) return;
        field.focus();
        break;
      }
      case 'j': go(1); break;
      case 'k': go(-1); break;
      case 'o': items()[at]?.querySelector('a').click(); break;
      case '?': help(); break;
      default: return;
    }
    e.preventDefault();
  });
})();

// What was typed and not sent is kept in this tab.
document.querySelectorAll('textarea[data-draft]').forEach((field) => {
  const key = 'draft:' + field.dataset.draft;
  if (!field.value) field.value = sessionStorage.getItem(key) || '';
  field.addEventListener('input', () => sessionStorage.setItem(key, field.value));
  field.form.addEventListener('submit', () => sessionStorage.removeItem(key));
});

// What cannot be undone is asked about once more.
document.querySelectorAll('form[data-confirm]').forEach((form) => {
  form.addEventListener('submit', (e) => { if (!confirm(form.dataset.confirm)) e.preventDefault(); });
});
