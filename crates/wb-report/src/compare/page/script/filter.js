// Filters and sorts the rows.

function choice(name, label, options) {
  const select = createNode("select", { name }, ...options.map(([value, text]) => createNode("option", { value }, text)));
  return createNode("label", {}, label, select);
}

function filterForm(data) {
  const distinct = (index) => [...new Set(data.places.map((place) => place[index]))].sort();
  const every = (names, all) => [["", all], ...names.map((name) => [`=${name}`, name])];
  const statuses = [["changed", "not equivalent"], ["failed", "failed"], ...data.kinds.filter((kind) => kind.is_possible).map((kind) => [kind.word, kind.word]), ["", "any status"]];
  // A filter with one choice would change nothing.
  const place = (name, index) => distinct(index).length > 1 ? choice(name, name, every(distinct(index), `all ${name}s`)) : null;
  const last = data.builds.length - 1;
  const builds = [["", `any ${data.side}`], ...data.builds.map((name, index) => [String(index), name]).slice(1)];
  return createNode("form", { class: "filters", "aria-label": "filters" },
    choice("status", "status", statuses),
    last > 1 ? choice("build", "in", builds) : null,
    place("profile", 0),
    place("test", 1),
    createNode("label", {}, "text", createNode("input", { type: "search", name: "text", autocomplete: "off", placeholder: "part of the name" })),
    choice("primary", "checks", [["1", "primary"], ["0", "not primary"], ["", "all"]]),
    createNode("output", { "aria-live": "polite" }));
}

// The checks that match the filters, in order.
function filterChecks(data, form) {
  const values = new FormData(form);
  const status = values.get("status");
  const chosen = values.get("build");
  const builds = chosen ? [Number(chosen)] : data.cells.map((_, index) => index + 1);
  const [profile, test] = ["profile", "test"].map((name) => values.get(name));
  const words = values.get("text").toLowerCase().split(/\s+/).filter(Boolean);
  const primary = values.get("primary");
  const flags = { changed: "is_change", failed: "failed" };
  const has = (kind) => kind && (status in flags ? kind[flags[status]] : kind.word === status);
  const checks = [];
  for (let check = 0; check < data.count; check += 1) {
    if (primary && data.primary[check] !== primary) continue;
    if (profile && `=${data.places[check][0]}` !== profile) continue;
    if (test && `=${data.places[check][1]}` !== test) continue;
    if (status && !builds.some((build) => has(kindOf(data, check, build)))) continue;
    if (!words.every((word) => data.texts[check].includes(word))) continue;
    checks.push(check);
  }
  return checks;
}

// Primary checks first, each part sorted by the difference in a build; checks without a difference come last.
function sortChecks(data, checks, state) {
  const part = (primary) => sortChecksPart(data, checks.filter((check) => data.primary[check] === primary), state);
  return [...part("1"), ...part("0")];
}

function sortChecksPart(data, checks, { build, order }) {
  if (!order) return checks;
  const sign = order === "ascending" ? 1 : -1;
  const keys = new Map(checks.map((check) => [check, betterOf(data, check, build)]));
  return [...checks].sort((left, right) => {
    const [a, b] = [keys.get(left), keys.get(right)];
    if (a === null || b === null) return (a === null) - (b === null) || left - right;
    return (a === b ? 0 : sign * (a - b)) || left - right;
  });
}
