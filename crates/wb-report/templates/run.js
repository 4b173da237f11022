// Filters the overview of a run.

const form = document.querySelector("form.tools");
const filter = document.getElementById("filter");
const shown = document.getElementById("shown");
const rows = [...document.querySelectorAll("tr[data-cell]")];

function applyFilter() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const group = row.closest("tbody").querySelector("tr.group").textContent;
    const text = `${group} ${row.textContent}`.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    const next = row.nextElementSibling;
    if (next && next.classList.contains("why")) next.hidden = row.hidden;
    if (!row.hidden) count += 1;
  }
  for (const body of document.querySelectorAll("table.overview tbody")) {
    body.hidden = !body.querySelector("tr[data-cell]:not([hidden])");
  }
  shown.textContent = words.length ? `${count} of ${rows.length}` : "";
}

if (form && rows.length > 5) {
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  filter.addEventListener("input", applyFilter);
}
