// Formats figures, like figures.rs.

const withMinus = (text) => text.replace("-", "−");

function percentText(datum) {
  if (datum === null) return "–";
  if (typeof datum === "string") return `${datum === "∞" ? "+" : ""}${datum} %`;
  return `${datum <= -0.005 ? "−" : "+"}${Math.abs(datum).toFixed(2)} %`;
}

// A difference of standard deviations in percentage points, which is positive if there is less; beside both deviations
// only words can say which.
function pointsText(datum, isWeighted) {
  if (datum === null) return "–";
  const figure = percentText(datum).slice(0, -2);
  if (isWeighted || figure === "+0.00") return `${figure} points`;
  return `${figure.slice(1)} points ${figure.startsWith("−") ? "more" : "less"}`;
}

// `±` half of an interval, or both ends if its halves differ by a fifth or more or if the half would say something else
// about zero.
function intervalText(estimate, [low, high]) {
  const [below, above] = [estimate - low, high - estimate];
  const symmetric = below === above || Math.abs(below - above) < 0.2 * Math.max(below, above);
  const end = (value) => percentText(value).slice(0, -2);
  const half = Number(((high - low) / 2).toPrecision(2));
  const contradictsZero = (estimate - half > 0) !== (low > 0) || (estimate + half < 0) !== (high < 0);
  return symmetric && !contradictsZero ? `±${half}` : `[${end(low)}, ${end(high)}]`;
}

function valueText(datum) {
  if (datum === null) return "–";
  if (typeof datum === "string") return datum;
  const size = Math.abs(datum);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return withMinus(datum.toExponential(3).replace("e+", "e"));
  return withMinus(String(Number(datum.toPrecision(size < 1000 ? 4 : Math.max(4, Math.ceil(Math.log10(size)))))));
}

// A value with all digits and its unit.
function fullValueText(data, check, build) {
  const datum = data.values[build][check];
  const suffix = data.suffixes[data.suffix[check]];
  return datum === null ? "missing" : typeof datum === "string" ? datum : `${withMinus(String(datum))} ${suffix}`.trim();
}

// The tolerated values; null if there are none.
function rangeText(data, check) {
  return data.least[check] === null ? null : `${valueText(data.least[check])} to ${valueText(data.most[check])}`;
}

const modelsOf = (data, check) => data.model_indices[check].map((index) => data.models[index]);

// Unescapes an identifier for people; run-perf's have no escapes, and control characters stay escaped.
function readable(id) {
  if (/^[^:]*:\.\//.test(id)) return id;
  return id.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      const text = decodeURIComponent(escapes);
      return /\p{Cc}/u.test(text) ? escapes : text;
    } catch {
      return escapes;
    }
  });
}

const unitNames = { s: "samples", r: "runs" };

// Creates an element with attributes and children; strings become text nodes.
function createNode(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "circle", "text", "rect", "title", "g"].includes(name);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
