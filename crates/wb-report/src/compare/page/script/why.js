// Explains a cell: values, difference and interval, parts of a score, parameters, history.

function facts(pairs) {
  const list = createNode("dl", { class: "facts" });
  for (const [name, text] of pairs) list.append(createNode("div", {}, createNode("dt", {}, name), createNode("dd", {}, text)));
  return list;
}

function statisticsOf(data, check, column) {
  if (column.ratio[check] === null) return [];
  const pairs = [[column.aspect[check], percentText(column.ratio[check])]];
  if (column.low[check] !== null) {
    const confidence = Number((column.confidence[check] * 100).toPrecision(3));
    pairs.push([`interval at ${confidence} %`, `${percentText(column.low[check])} to ${percentText(column.high[check])}`]);
  }
  if (column.median[check] !== null) pairs.push(["ratio of medians", percentText(column.median[check])]);
  if (column.p[check] !== null) pairs.push(["p", column.p[check] < 0.0001 ? "< 0.0001" : String(Number(column.p[check].toPrecision(2)))]);
  return pairs;
}

function scoreOf(data, check, column) {
  const score = column.score[check];
  if (score === null) return [];
  const models = modelsOf(data, check);
  const range = rangeText(data, check);
  const suffix = data.suffixes[data.suffix[check]];
  const tolerance = `of ±${data.tolerance[check]}`;
  const text = isDeviation(data, check)
    ? `${pointsText(score, column.is_weighted[check])} ${tolerance} points`
    : `${percentText(score)} ${tolerance} %`;
  return [["score", text],
    ...range === null ? [] : [["tolerated", `${range} ${suffix}`.trim()]],
    ["compared with", models.length ? models.join(", ") : `the value of ${data.builds[0]}`]];
}

function counts(column, check) {
  const [[before, after], [runsBefore, runsAfter]] = [column.samples[check], column.runs[check]];
  if (!before || !after) return [];
  if (column.paired[check]) return [["samples", `${before} pairs, one of each round`]];
  const runs = runsBefore > 1 || runsAfter > 1 ? ` of ${runsBefore} and ${runsAfter} runs` : "";
  return [["samples", `${before} and ${after}${runs}`]];
}

function disturbances(column, check) {
  if (!column.disturbed.has(check)) return [];
  const [before, after] = column.disturbed.get(check).map((count) => count ?? "not recorded");
  return [["disturbed samples", `${before} and ${after}`]];
}

function requiredSamples(column, check) {
  if (!column.required_samples[check]) return null;
  const [unit, each, fewest] = column.required_samples[check];
  const text = each === null
    ? `No practical number of ${unitNames[unit]} would confirm it.`
    : fewest
      ? `Fewer than ${each} ${unitNames[unit]} a side cannot be conclusive.`
      : `${each} ${unitNames[unit]} a side would confirm it, if it and the noise between runs stay as they are.`;
  return createNode("p", {}, text);
}

function partsOf(data, column, check) {
  const parts = column.parts.get(check);
  if (!parts) return null;
  const head = createNode("tr", {}, ...["part of the score", "difference", "weight"].map((text) => createNode("th", { scope: "col" }, text)));
  const rows = parts.map(([name, difference, weight]) => createNode("tr", {}, createNode("th", { scope: "row" }, name),
    createNode("td", {}, isDeviation(data, check) ? pointsText(difference, true) : percentText(difference)), createNode("td", {}, String(weight))));
  return createNode("table", { class: "figures" }, createNode("thead", {}, head), createNode("tbody", {}, ...rows));
}

function parametersOf(data, column, check) {
  if (!column.differences.has(check)) return null;
  const line = (sign, name, value) => value === null ? [] : [`${sign} ${name} = ${value}`];
  const lines = data.differences[column.differences.get(check)]
    .flatMap(({ name, before, after }) => [...line("-", name, before), ...line("+", name, after)]);
  const code = createNode("code", { class: "diff" }, lines.join("\n"));
  const box = createNode("div", { class: "command" }, createNode("p", {}, "differing parameters"), code);
  addCopyButton(box, code);
  return box;
}

function why(data, check, build) {
  const column = data.cells[build - 1];
  const kind = kindOf(data, check, build);
  const method = column.methods[check] === "s" ? "statistics" : "tolerances";
  const pairs = [
    [data.builds[0], fullValueText(data, check, 0)],
    [data.builds[build], fullValueText(data, check, build)],
    ...scoreOf(data, check, column),
    ...statisticsOf(data, check, column),
    ...counts(column, check),
    ...disturbances(column, check),
  ];
  const texts = data.builds.map((_, index) => fullValueText(data, check, index));
  const values = data.values.map((column) => column[check]);
  const heading = createNode("h4", {}, `${data.builds[build]}: `,
    createNode("span", { class: kind.class }, createNode("span", { "aria-hidden": "true" }, kind.symbol), ` ${kind.word}`),
    createNode("span", { class: "aside" }, ` ${method} decide${data.primary[check] === "1" ? "" : "; not primary, so not decisive"}`));
  return createNode("div", { class: "inner" }, heading, facts(pairs), requiredSamples(column, check), partsOf(data, column, check),
    parametersOf(data, column, check), data.is_history ? historyChart(data.names, values, texts, build) : null);
}
