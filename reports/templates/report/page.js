'use strict';
// Search, filters, deep links and printing. Without scripts, the page shows all results.

const form = document.getElementById('tools');
const search = document.getElementById('search');
const areas = [...document.querySelectorAll('.area')].map((element) => ({
  element,
  name: element.dataset.area,
  results: [...element.querySelectorAll('.result')],
}));
const all = areas.flatMap((area) => area.results);
const boxes = [...form.querySelectorAll('input[name=verdict]')];
const texts = new Map();

// The text of a result is read when the first search needs it, because that takes time.
function textOf(result) {
  if (!texts.has(result)) texts.set(result, `${result.id} ${result.textContent}`.toLowerCase());
  return texts.get(result);
}

function apply() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdicts = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  const [area, profile] = [form.area.value, form.profile.value];
  let shown = 0;
  for (const { element, name, results } of areas) {
    let some = false;
    for (const result of results) {
      const { verdict, profile: own } = result.dataset;
      const matches = verdicts.has(verdict) && (!area || name === area) && (!profile || own === profile)
        && words.every((word) => textOf(result).includes(word));
      result.hidden = !matches;
      some ||= matches;
      shown += matches;
    }
    element.hidden = !some;
  }
  document.getElementById('nothing').hidden = shown > 0;
  document.getElementById('shown').value = `${shown} of ${all.length} shown`;
}

// Passed and skipped results are hidden at first, if others need attention.
function attention() {
  const needed = boxes.some((box) => !box.disabled && !['pass', 'skip'].includes(box.value));
  for (const box of boxes) box.checked = !needed || !['pass', 'skip'].includes(box.value);
}

// Opens the result that the address names, such as #create/name@configmaps.v1.
function follow() {
  const result = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!result?.classList.contains('result')) return;
  if (result.hidden) form.reset();
  apply();
  result.open = true;
  result.scrollIntoView({ block: 'start', behavior: 'instant' });
  result.querySelector('summary').focus({ preventScroll: true });
}

async function copy(button) {
  const text = button.closest('.block').querySelector('pre').textContent;
  await navigator.clipboard.writeText(text);
  button.textContent = 'Copied';
}

form.addEventListener('input', apply);
form.addEventListener('submit', (event) => event.preventDefault());
form.addEventListener('reset', () => setTimeout(apply));
addEventListener('hashchange', follow);
addEventListener('click', ({ target }) => {
  if (target.matches('.copy')) copy(target);
  // The address does not change if the user follows the same link twice.
  if (target.matches('a') && target.getAttribute('href') === location.hash) follow();
});
addEventListener('keydown', (event) => {
  if (event.key === '/' && !event.target.matches('input, select')) {
    event.preventDefault();
    search.focus();
  } else if (event.key === 'Escape' && event.target === search) {
    search.value = '';
    apply();
  }
});
addEventListener('beforeprint', () => {
  for (const cause of document.querySelectorAll('.cause')) cause.open = true;
});

attention();
apply();
// The browser handles the fragment itself before this event, and moves the focus.
addEventListener('load', () => requestAnimationFrame(follow));
