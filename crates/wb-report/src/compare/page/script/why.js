// Why a cell is what it is: values, difference and interval, what a score is made of, parameters, history.

function facts(pairs) {
  const list = made("dl", { class: "facts" });
  for (const [name, text] of pairs) list.append(made("div", {}, made("dt", {}, name), made("dd", {}, text)));
  return list;
}

function statisticsOf(data, check, column) {
  if (column.ratio[check] === null) return [];
  const pairs = [["ratio of medians", percentText(column.ratio[check])]];
  if (column.low[check] !== null) {
    const confidence = Number((column.confidence[check] * 100).toPrecision(3));
    pairs.push([`interval at ${confidence} %`, `${percentText(column.low[check])} to ${percentText(column.high[check])}`]);
  }
  if (column.p[check] !== null) pairs.push(["p", column.p[check] < 0.001 ? "< 0.001" : String(Number(column.p[check].toPrecision(2)))]);
  return pairs;
}

function scoreOf(data, check, column) {
  const score = column.score[check];
  if (score === null) return [];
  const models = modelsOf(data, check);
  const range = rangeText(data, check);
  const suffix = data.suffixes[data.suffix[check]];
  return [["score", `${percentText(score)} of ±${data.tolerance[check]} %`],
    ...range === null ? [] : [["tolerated", `${range} ${suffix}`.trim()]],
    ["judged by", models.length ? models.join(", ") : `the value of ${data.builds[0]}`]];
}

function ranked(column, check) {
  const [before, after] = [column.baseline_counts[check], column.candidate_counts[check]];
  return before && after ? [["ranked", `${before} and ${after} ${oneOf[column.unit[check]]}`]] : [];
}

function needed(column, check) {
  if (!column.required_samples[check]) return null;
  const [unit, each, fewest] = column.required_samples[check];
  const text = each === null
    ? `No number of ${oneOf[unit]} would let statistics decide.`
    : fewest
      ? `Fewer than ${each} ${oneOf[unit]} a side tell nothing.`
      : `About ${each} ${oneOf[unit]} a side would let statistics decide.`;
  return made("p", {}, text);
}

function partsOf(column, check) {
  const parts = column.parts.get(check);
  if (!parts) return null;
  const head = made("tr", {}, ...["part of the score", "difference", "weight"].map((text) => made("th", { scope: "col" }, text)));
  const rows = parts.map(([name, difference, weight]) => made("tr", {}, made("th", { scope: "row" }, name),
    made("td", {}, percentText(difference)), made("td", {}, String(weight))));
  return made("table", { class: "figures" }, made("thead", {}, head), made("tbody", {}, ...rows));
}

function parametersOf(data, column, check) {
  if (!column.differences.has(check)) return null;
  const line = (sign, name, value) => value === null ? [] : [`${sign} ${name} = ${value}`];
  const lines = data.differences[column.differences.get(check)]
    .flatMap(({ name, src, dst }) => [...line("-", name, src), ...line("+", name, dst)]);
  const code = made("code", { class: "diff" }, lines.join("\n"));
  const around = made("div", { class: "command" }, made("p", {}, "parameters that differ"), code);
  copies(around, code);
  return around;
}

function why(data, check, build) {
  const column = data.cells[build - 1];
  const kind = kindOf(data, check, build);
  const method = column.methods[check] === "s" ? "statistics" : "tolerances";
  const pairs = [
    [data.builds[0], measured(data, check, 0)],
    [data.builds[build], measured(data, check, build)],
    ...scoreOf(data, check, column),
    ...statisticsOf(data, check, column),
    ...ranked(column, check),
  ];
  const texts = data.builds.map((_, at) => measured(data, check, at));
  const values = data.values.map((column) => column[check]);
  const heading = made("h4", {}, `${data.builds[build]}: `,
    made("span", { class: kind.class }, made("span", { "aria-hidden": "true" }, kind.symbol), ` ${kind.word}`),
    made("span", { class: "aside" }, ` ${method} decide${data.primary[check] === "1" ? "" : "; not primary, so it decides nothing"}`));
  return made("div", { class: "inner" }, heading, facts(pairs), needed(column, check), partsOf(column, check),
    parametersOf(data, column, check), historyChart(data.names, values, texts, build));
}
