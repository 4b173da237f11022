// Decodes the table's data: columns in JSON, deflated, in base64; data.rs defines them.

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

// Expands lists of one element to one per check, and adds the profile and test of each check and its text for the
// filter.
function prepare(data) {
  data.count = data.ids.length;
  const whole = (list) => list.length === 1 ? new Array(data.count).fill(list[0]) : list;
  const all = (object, names) => names.forEach((name) => { object[name] = whole(object[name]); });
  all(data, ["direction_sign", "better", "tolerance", "suffix", "least", "most", "model_indices"]);
  data.values = data.values.map(whole);
  data.places = data.ids.map((id) => id.split("/", 2));
  data.texts = data.ids.map((id) => `${id} ${readable(id)}`.toLowerCase());
  for (const column of data.cells) {
    all(column, ["score", "is_weighted", "ratio", "low", "high", "confidence", "p", "aspect", "median", "samples", "runs", "paired", "required_samples"]);
    column.parts = new Map(column.parts);
    column.failures = new Map(column.failures);
    column.disturbed = new Map(column.disturbed);
    column.differences = new Map(column.differences);
  }
  return data;
}

// The verdict's style of a check in a build; build 0, the first, has none.
function kindOf(data, check, build) {
  return data.kinds[data.cells[build - 1].verdicts.charCodeAt(check) - 48];
}

// Whether the score decides a check in any build, so that its tolerance applies.
function isScored(data, check) {
  return data.cells.some((column) => column.methods[check] === "t" && column.verdicts[check] !== "-");
}

// The aspect that the deciding difference is of, if the values beside it are others: they are means.
function namedAspect(column, check) {
  return column.methods[check] === "s" && column.aspect[check] !== "mean" ? column.aspect[check] : null;
}

const hasHistory = (data) => data.is_history && data.builds.length > 2;

const numeric = (datum) => datum === "∞" ? Infinity : datum === "−∞" ? -Infinity : datum;

// The deciding difference in percent: the ratio if statistics decide, otherwise the score.
function differenceOf(data, check, build) {
  const column = data.cells[build - 1];
  return column.methods[check] === "s" && column.ratio[check] !== null ? column.ratio[check] : column.score[check];
}

// The text of the deciding difference, with its unit.
function differenceText(data, check, build) {
  const column = data.cells[build - 1];
  const difference = differenceOf(data, check, build);
  return isDeviation(data, check) && column.methods[check] === "t" ? pointsText(difference, column.is_weighted[check]) : percentText(difference);
}

const isDeviation = (data, check) => /[.#]stddev$/.test(data.ids[check]);

// The deciding difference with positive values for improvements; null if neither direction is better.
function betterOf(data, check, build) {
  const difference = numeric(differenceOf(data, check, build));
  const sense = data.direction_sign[check];
  return difference === null || sense === 0 ? null : difference * sense;
}
