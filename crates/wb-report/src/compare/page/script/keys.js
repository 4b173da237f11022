// Opens the explanation of a cell by pointer or keyboard, and navigates the table by arrow keys.

function toggle(data, cell) {
  const row = cell.closest("tr");
  const open = cell.getAttribute("aria-expanded") === "true";
  for (const other of row.querySelectorAll("[aria-expanded=true]")) other.setAttribute("aria-expanded", "false");
  if (row.nextElementSibling?.classList.contains("why")) row.nextElementSibling.remove();
  if (open || !cell.hasAttribute("aria-expanded")) return;
  cell.setAttribute("aria-expanded", "true");
  const explanation = why(data, Number(row.dataset.check), Number(cell.dataset.build));
  row.after(createNode("tr", { role: "row", class: "why" }, createNode("td", { role: "gridcell", colspan: row.children.length }, explanation)));
}

function enableExplanations(data, body) {
  const move = (from, to) => {
    if (!to) return;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  const neighbour = (row, step) => {
    let next = row[step];
    while (next && !next.dataset.check) next = next[step];
    return next;
  };
  body.addEventListener("click", (event) => {
    const cell = event.target.closest("td[data-build]");
    if (!cell) return;
    move(body.querySelector("td[tabindex='0']") ?? cell, cell);
    toggle(data, cell);
  });
  body.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td[data-build]");
    if (!cell || event.target !== cell || event.ctrlKey || event.altKey || event.metaKey) return;
    const row = cell.closest("tr");
    const beside = (row) => row?.querySelector(`td[data-build="${cell.dataset.build}"]`);
    const all = row.querySelectorAll("td[data-build]");
    const moves = {
      ArrowRight: () => move(cell, cell.nextElementSibling),
      ArrowLeft: () => cell.previousElementSibling?.dataset.build && move(cell, cell.previousElementSibling),
      ArrowDown: () => move(cell, beside(neighbour(row, "nextElementSibling"))),
      ArrowUp: () => move(cell, beside(neighbour(row, "previousElementSibling"))),
      Home: () => move(cell, all[0]),
      End: () => move(cell, all[all.length - 1]),
      Enter: () => toggle(data, cell),
      " ": () => toggle(data, cell),
      Escape: () => cell.getAttribute("aria-expanded") === "true" && toggle(data, cell),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });
}
