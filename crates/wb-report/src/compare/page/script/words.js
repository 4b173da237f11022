// How figures are written, as figures.rs does.

const withMinus = (text) => text.replace("-", "−");

function percentText(datum) {
  if (datum === null) return "–";
  if (typeof datum === "string") return `${datum === "∞" ? "+" : ""}${datum} %`;
  return `${datum < 0 ? "−" : "+"}${Math.abs(datum).toFixed(2)} %`;
}

function valueText(datum) {
  if (datum === null) return "–";
  if (typeof datum === "string") return datum;
  const size = Math.abs(datum);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return withMinus(datum.toExponential(3).replace("e+", "e"));
  return withMinus(String(Number(datum.toPrecision(size < 1000 ? 4 : Math.max(4, Math.ceil(Math.log10(size)))))));
}

// A value in full, with its unit.
function measured(data, check, build) {
  const datum = data.values[build][check];
  const suffix = data.suffixes[data.suffix[check]];
  return datum === null ? "missing" : typeof datum === "string" ? datum : `${withMinus(String(datum))} ${suffix}`.trim();
}

// The values that are tolerated; null where there are none.
function rangeText(data, check) {
  return data.least[check] === null ? null : `${valueText(data.least[check])} to ${valueText(data.most[check])}`;
}

const modelsOf = (data, check) => data.model_indices[check].map((at) => data.models[at]);

// An identifier as people read it; run-perf's have no escapes, and control characters stay escaped.
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

const oneOf = { s: "samples", r: "runs" };

// An element with attributes, in which texts stay text.
function made(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "circle", "text", "rect", "title", "g"].includes(name);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
