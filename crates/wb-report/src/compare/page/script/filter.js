// The filters, and the order of the rows.

function choice(name, label, options) {
  const select = made("select", { name }, ...options.map(([value, text]) => made("option", { value }, text)));
  return made("label", {}, label, select);
}

function filterForm(data) {
  const distinct = (at) => [...new Set(data.places.map((place) => place[at]))].sort();
  const every = (names, all) => [["", all], ...names.map((name) => [`=${name}`, name])];
  const statuses = [["changed", "worse or better"], ["failed", "failed"], ...data.kinds.map((kind) => [kind.word, kind.word]), ["", "any status"]];
  const last = data.builds.length - 1;
  const builds = [["", "any build"], ...data.builds.map((name, at) => [String(at), name]).slice(1)];
  return made("form", { class: "filters", "aria-label": "filters" },
    choice("status", "status", statuses),
    last > 1 ? choice("build", "in", builds) : null,
    choice("profile", "profile", every(distinct(0), "all profiles")),
    choice("test", "test", every(distinct(1), "all tests")),
    made("label", {}, "text", made("input", { type: "search", name: "text", autocomplete: "off", placeholder: "part of the name" })),
    choice("primary", "checks", [["1", "primary"], ["0", "not primary"], ["", "all"]]),
    made("output", { "aria-live": "polite" }));
}

// The checks that a form lets through, in their order.
function filtered(data, form) {
  const said = new FormData(form);
  const status = said.get("status");
  const chosen = said.get("build");
  const builds = chosen ? [Number(chosen)] : data.cells.map((_, at) => at + 1);
  const [profile, test] = ["profile", "test"].map((name) => said.get(name));
  const words = said.get("text").toLowerCase().split(/\s+/).filter(Boolean);
  const primary = said.get("primary");
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

// Primary checks first, each part by how much a build is worse or better; checks that cannot be told come last.
function sorted(data, checks, state) {
  const part = (primary) => sortedPart(data, checks.filter((check) => data.primary[check] === primary), state);
  return [...part("1"), ...part("0")];
}

function sortedPart(data, checks, { build, order }) {
  if (!order) return checks;
  const sign = order === "ascending" ? 1 : -1;
  const keys = new Map(checks.map((check) => [check, betterOf(data, check, build)]));
  return [...checks].sort((one, other) => {
    const [a, b] = [keys.get(one), keys.get(other)];
    if (a === null || b === null) return (a === null) - (b === null) || one - other;
    return (a === b ? 0 : sign * (a - b)) || one - other;
  });
}
