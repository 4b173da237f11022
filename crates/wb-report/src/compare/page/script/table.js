// The table of checks, one page of rows at a time.

const ROWS = 200;
const PRINTED = 3000;

function nameCell(data, check) {
  const id = data.ids[check];
  const parts = id.match(/^([^/]*\/[^/]*\/[^:]*:(?:\.\/)?)(.*)(\/[^/]*\/)([^/]*)([.#][a-z]+)$/s);
  const shown = readable(id);
  // A right-to-left name must not reverse the text that follows it.
  const isolated = (text) => createNode("bdi", {}, text);
  const quiet = (text) => createNode("span", {}, text);
  const suffix = data.suffixes[data.suffix[check]];
  const name = parts
    ? [quiet(parts[1]), createNode("wbr"), isolated(parts[1].endsWith("./") ? parts[2] : readable(parts[2])), createNode("wbr"), quiet(parts[3]), isolated(parts[4]), quiet(parts[5])]
    : [shown];
  return createNode("th", { scope: "row", role: "rowheader", class: "id", title: shown === id ? null : id }, ...name,
    suffix ? quiet(` in ${suffix}`) : null,
    data.better[check] ? createNode("span", { class: "better" }, ` ${data.better[check]}`) : null);
}

function cell(data, check, build) {
  const kind = kindOf(data, check, build);
  if (!kind) return createNode("td", { role: "gridcell", tabindex: -1, "data-build": build }, "–");
  const column = data.cells[build - 1];
  const difference = differenceOf(data, check, build);
  const td = createNode("td", { role: "gridcell", tabindex: -1, class: kind.class, "data-build": build, "aria-expanded": "false" },
    createNode("abbr", { title: kind.word }, kind.symbol));
  const failures = column.failures.get(check);
  if (failures) td.append(` ${failures}`);
  else if (difference !== null) {
    const text = differenceText(data, check, build);
    const aspect = namedAspect(column, check);
    if (aspect) td.append(" ", createNode("i", {}, aspect));
    td.append(` ${text.replace(/ %$/, "")}`);
    if (column.methods[check] === "s" && column.low[check] !== null) {
      const ends = [numeric(column.low[check]), numeric(column.high[check])];
      if (ends.every(Number.isFinite)) td.append(" ", createNode("i", {}, intervalText(numeric(difference), ends)));
    }
  }
  if (column.differences.has(check)) td.append(" ", createNode("abbr", { title: "parameters differ" }, "Δ"));
  const value = valueText(data.values[build][check]);
  td.append(createNode("small", {}, value));
  const of = namedAspect(column, check);
  td.setAttribute("aria-label", `${kind.word}, ${failures ?? `${of ? `${of} ` : ""}${differenceText(data, check, build)}`}, ${value}`);
  return td;
}

// The value in the first build and, if scores decide, the tolerated values and the models.
function firstCell(data, check) {
  const cell = createNode("td", { role: "gridcell", class: "first" }, valueText(data.values[0][check]));
  if (!isScored(data, check)) return cell;
  const range = rangeText(data, check);
  if (range !== null) cell.append(createNode("small", {}, range));
  for (const model of modelsOf(data, check)) cell.append(createNode("small", { class: "model" }, model));
  return cell;
}

function row(data, check) {
  const later = data.cells.map((_, index) => cell(data, check, index + 1));
  const history = hasHistory(data)
    ? [createNode("td", { role: "gridcell", class: "history" }, spark(data.values.map((column) => column[check])))] : [];
  return createNode("tr", { role: "row", "data-check": check }, nameCell(data, check), ...history,
    firstCell(data, check), ...later);
}

// Creates the table in `container`; `showAll` removes all filters. Returns the function that shows checks, and the
// body.
function table(data, container, showAll) {
  const state = { checks: [], order: { build: data.builds.length - 1, order: null }, page: 0 };
  const body = createNode("tbody", { role: "rowgroup" });
  const heads = data.names.map((name, build) => build === 0 ? name
    : createNode("button", { type: "button", "data-sort": build }, name, createNode("small", {}, "%")));
  const history = hasHistory(data) ? ["history"] : [];
  const titles = ["", ...history.map(() => ""), ...data.builds];
  const head = createNode("tr", { role: "row" }, ...["check", ...history, ...heads].map((content, index) =>
    createNode("th", { scope: "col", role: "columnheader", title: titles[index] || null }, content)));
  const grid = createNode("table", { class: "checks", role: "grid", "aria-label": "checks" },
    createNode("thead", { role: "rowgroup" }, head), body);
  const box = createNode("div", { class: "live" }, grid);
  const pages = createNode("nav", { class: "pages", "aria-label": "pages of checks" });
  container.append(box, pages);

  const nothing = () => {
    const button = createNode("button", { type: "button" }, "show all checks");
    button.addEventListener("click", showAll);
    const message = createNode("td", { role: "gridcell", colspan: 99, class: "nothing" }, "No check matches these filters. ", button);
    return createNode("tr", { role: "row" }, message);
  };
  const separatorRow = () => createNode("tr", { role: "row", class: "apart" },
    createNode("th", { scope: "rowgroup", role: "rowheader", colspan: head.children.length }, "not primary: not decisive"));
  const draw = (from = state.page * ROWS, count = ROWS) => {
    const shown = sortChecks(data, state.checks, state.order).slice(from, from + count);
    const rows = shown.map((check) => row(data, check));
    const separator = shown.findIndex((check) => data.primary[check] !== "1");
    if (separator >= 0) rows.splice(separator, 0, separatorRow());
    body.replaceChildren(...rows);
    const first = body.querySelector("td[data-build]");
    if (first) first.tabIndex = 0;
    if (shown.length === 0) body.append(nothing());
  };
  const turn = (by) => {
    state.page += by;
    draw();
    paged();
    box.scrollTop = 0;
  };
  const paged = () => {
    const total = Math.ceil(state.checks.length / ROWS);
    const step = (text, by, possible) => {
      const button = createNode("button", { type: "button", disabled: !possible }, text);
      button.addEventListener("click", () => turn(by));
      return button;
    };
    const from = state.page * ROWS;
    const range = `${from + 1} to ${Math.min(from + ROWS, state.checks.length)} of ${state.checks.length}`;
    pages.replaceChildren(...total > 1 ? [step("‹ previous", -1, state.page > 0), range, step("next ›", 1, state.page + 1 < total)] : []);
  };
  const show = (checks) => {
    Object.assign(state, { checks, page: 0 });
    draw();
    paged();
  };
  head.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-sort]");
    if (!button) return;
    const build = Number(button.dataset.sort);
    const next = { null: "ascending", ascending: "descending", descending: null };
    state.order = { build, order: next[state.order.build === build ? state.order.order : null] };
    for (const cell of head.children) cell.removeAttribute("aria-sort");
    if (state.order.order) button.parentElement.setAttribute("aria-sort", state.order.order);
    show(state.checks);
  });
  addEventListener("beforeprint", () => draw(0, PRINTED));
  addEventListener("afterprint", () => draw());
  return { show, body };
}
