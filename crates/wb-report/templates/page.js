"use strict";
// What the page does beyond being read: filter the overview, open what a link points into, copy commands,
// and show everything on paper.

const form = document.querySelector("form.tools");
const filter = document.getElementById("filter");
const shown = document.getElementById("shown");
const rows = [...document.querySelectorAll("tr[data-cell]")];

function narrow() {
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
  filter.addEventListener("input", narrow);
}

function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.querySelector("summary").focus({ preventScroll: true });
  }
}
addEventListener("hashchange", reveal);
reveal();

for (const command of document.querySelectorAll(".command")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    const code = command.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "selected";
    }
    setTimeout(() => { button.textContent = "copy"; }, 2000);
  });
  command.append(button);
}

let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.cell:not([open])")];
  for (const one of opened) one.open = true;
});
addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
