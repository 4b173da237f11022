// The table of checks: one page of rows at a time.

const ROWS = 200;
const PRINTED = 3000;

function nameCell(data, check) {
  const id = data.ids[check];
  const parts = id.match(/^([^/]*\/[^/]*\/[^:]*:(?:\.\/)?)(.*)(\/[^/]*\/)([^/]*)([.#][a-z]+)$/s);
  const shown = readable(id);
  // A name in another writing must not turn around what follows it.
  const apart = (text) => made("bdi", {}, text);
  const quiet = (text) => made("span", {}, text);
  const suffix = data.suffixes[data.suffix[check]];
  const name = parts
    ? [quiet(parts[1]), made("wbr"), apart(parts[1].endsWith("./") ? parts[2] : readable(parts[2])), made("wbr"), quiet(parts[3]), apart(parts[4]), quiet(parts[5])]
    : [shown];
  return made("th", { scope: "row", role: "rowheader", class: "id", title: shown === id ? null : id }, ...name, suffix ? quiet(` in ${suffix}`) : null);
}

function cell(data, check, build) {
  const kind = kindOf(data, check, build);
  if (!kind) return made("td", { role: "gridcell", tabindex: -1, "data-build": build }, "–");
  const column = data.cells[build - 1];
  const difference = differenceOf(data, check, build);
  const td = made("td", { role: "gridcell", tabindex: -1, class: kind.class, "data-build": build, "aria-expanded": "false" },
    made("abbr", { title: kind.word }, kind.symbol));
  if (difference !== null) {
    const text = percentText(difference);
    td.append(` ${text.slice(0, -2)}`);
    if (column.methods[check] === "s" && column.low[check] !== null) {
      const half = (numeric(column.high[check]) - numeric(column.low[check])) / 2;
      if (Number.isFinite(half)) td.append(" ", made("i", {}, `±${Number(half.toPrecision(2))}`));
    }
  }
  if (column.differences.has(check)) td.append(" ", made("abbr", { title: "parameters differ" }, "Δ"));
  const value = valueText(data.values[build][check]);
  td.append(made("small", {}, value));
  td.setAttribute("aria-label", `${kind.word}, ${percentText(difference)}, ${value}`);
  return td;
}

// The value in the first build, and where scores judge, the values that are tolerated and the models.
function firstCell(data, check) {
  const cell = made("td", { role: "gridcell", class: "first" }, valueText(data.values[0][check]));
  if (!isScored(data, check)) return cell;
  const range = rangeText(data, check);
  if (range !== null) cell.append(made("small", {}, range));
  for (const model of modelsOf(data, check)) cell.append(made("small", { class: "model" }, model));
  return cell;
}

function row(data, check) {
  const later = data.cells.map((_, at) => cell(data, check, at + 1));
  const history = data.builds.length > 2
    ? [made("td", { role: "gridcell", class: "history" }, spark(data.values.map((column) => column[check])))] : [];
  return made("tr", { role: "row", "data-check": check }, nameCell(data, check), ...history,
    firstCell(data, check), ...later);
}

// The table's state and the functions that draw it into `place`; `everything` lifts all filters.
function table(data, place, everything) {
  const state = { checks: [], order: { build: data.builds.length - 1, order: null }, page: 0 };
  const body = made("tbody", { role: "rowgroup" });
  const heads = data.names.map((name, build) => build === 0 ? name
    : made("button", { type: "button", "data-sort": build }, name, made("small", {}, "%")));
  const history = data.builds.length > 2 ? ["history"] : [];
  const titles = ["", ...history.map(() => ""), ...data.builds];
  const head = made("tr", { role: "row" }, ...["check", ...history, ...heads].map((content, at) =>
    made("th", { scope: "col", role: "columnheader", title: titles[at] || null }, content)));
  const grid = made("table", { class: "checks", role: "grid", "aria-label": "checks" },
    made("thead", { role: "rowgroup" }, head), body);
  const box = made("div", { class: "live" }, grid);
  const pages = made("nav", { class: "pages", "aria-label": "pages of checks" });
  place.append(box, pages);

  const nothing = () => {
    const button = made("button", { type: "button" }, "show all checks");
    button.addEventListener("click", everything);
    const said = made("td", { role: "gridcell", colspan: 99, class: "nothing" }, "No check passes these filters. ", button);
    return made("tr", { role: "row" }, said);
  };
  const apartRow = () => made("tr", { role: "row", class: "apart" },
    made("th", { scope: "rowgroup", role: "rowheader", colspan: head.children.length }, "not primary: these decide nothing"));
  const draw = (from = state.page * ROWS, count = ROWS) => {
    const shown = sorted(data, state.checks, state.order).slice(from, from + count);
    const rows = shown.map((check) => row(data, check));
    const apart = shown.findIndex((check) => data.primary[check] !== "1");
    if (apart >= 0) rows.splice(apart, 0, apartRow());
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
    const all = Math.ceil(state.checks.length / ROWS);
    const step = (text, by, possible) => {
      const button = made("button", { type: "button", disabled: !possible }, text);
      button.addEventListener("click", () => turn(by));
      return button;
    };
    const from = state.page * ROWS;
    const told = `${from + 1} to ${Math.min(from + ROWS, state.checks.length)} of ${state.checks.length}`;
    pages.replaceChildren(...all > 1 ? [step("‹ before", -1, state.page > 0), told, step("after ›", 1, state.page + 1 < all)] : []);
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
