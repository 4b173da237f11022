// The table's data: columns of JSON, deflated, in base 64; see data.rs for what they are.

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

// A list of one stands for as many as there are checks. Beside the columns: the profile and test of each check, and
// its text for the filter.
function prepared(data) {
  data.count = data.ids.length;
  const whole = (list) => list.length === 1 ? new Array(data.count).fill(list[0]) : list;
  const all = (object, names) => names.forEach((name) => { object[name] = whole(object[name]); });
  all(data, ["sense", "tolerance", "suffix", "least", "most", "known_by"]);
  data.values = data.values.map(whole);
  data.places = data.ids.map((id) => id.split("/", 2));
  data.texts = data.ids.map((id) => `${id} ${readable(id)}`.toLowerCase());
  for (const column of data.cells) {
    all(column, ["score", "ratio", "low", "high", "confidence", "p", "before", "after", "needs"]);
    column.parts = new Map(column.parts);
    column.differences = new Map(column.differences);
  }
  return data;
}

// The kind of a check in a build; build 0 is the first, which has none.
function kindOf(data, check, build) {
  return data.kinds[data.cells[build - 1].verdicts.charCodeAt(check) - 48];
}

// Whether the score judges a check in any build, so that its tolerance counts.
function isScored(data, check) {
  return data.cells.some((column) => column.methods[check] === "t" && column.verdicts[check] !== "-");
}

const numeric = (datum) => datum === "∞" ? Infinity : datum === "−∞" ? -Infinity : datum;

// What decides, in percent: the ratio where statistics do, otherwise the score.
function differenceOf(data, check, build) {
  const column = data.cells[build - 1];
  return column.methods[check] === "s" && column.ratio[check] !== null ? column.ratio[check] : column.score[check];
}

// The same with the sign that positive is better; null where neither way is.
function betterOf(data, check, build) {
  const difference = numeric(differenceOf(data, check, build));
  const sense = data.direction_sign[check];
  return difference === null || sense === 0 ? null : difference * sense;
}
