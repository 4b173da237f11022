// The values of a check over the builds: a small line in the table, and a chart with its axis.

// Places of the values within a box; one that is missing leaves a gap.
function historyPlaces(values, [left, top, right, bottom]) {
  const known = values.filter((value) => typeof value === "number");
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = high - low || Math.abs(high) || 1;
  // Noise is not blown up to the height of a chart: the scale spans at least a twentieth of the middle.
  const span = Math.max(room, Math.abs(high + low) / 40);
  const middle = (low + high) / 2;
  const step = (right - left) / Math.max(values.length - 1, 1);
  const place = (value) => (bottom + top) / 2 - ((value - middle) / span) * (bottom - top);
  return values.map((value, at) => typeof value === "number" ? [left + at * step, place(value)] : null);
}

function historyPath(places) {
  let pen = "M";
  let path = "";
  for (const place of places) {
    if (place) path += `${pen}${place[0].toFixed(1)} ${place[1].toFixed(1)}`;
    pen = place ? "L" : "M";
  }
  return path;
}

function spark(values) {
  const places = historyPlaces(values, [2, 3, 62, 17]);
  const last = places.findLast(Boolean);
  const svg = made("svg", { class: "chart spark", viewBox: "0 0 64 20", width: 64, height: 20, "aria-hidden": "true" });
  svg.append(made("path", { class: "series", d: historyPath(places) }));
  if (last) svg.append(made("circle", { class: "counted", cx: last[0].toFixed(1), cy: last[1].toFixed(1), r: 2.4 }));
  return svg;
}

// The chart: dots with their figures, the first build's value as a line, the chosen build marked.
function historyChart(names, values, texts, chosen) {
  const width = Math.min(860, Math.max(300, names.length * 92));
  const places = historyPlaces(values, [46, 30, width - 46, 96]);
  const told = names.map((name, at) => `${name}: ${texts[at]}`).join("; ");
  const svg = made("svg", { class: "chart", role: "img", viewBox: `0 0 ${width} 128`, width, height: 128, "aria-label": told });
  if (places[0]) svg.append(made("line", { class: "middle", x1: 0, x2: width, y1: places[0][1], y2: places[0][1] }));
  svg.append(made("path", { class: "series", d: historyPath(places) }));
  names.forEach((name, at) => {
    const x = 46 + at * ((width - 92) / Math.max(names.length - 1, 1));
    const label = name.length > 13 ? `${name.slice(0, 12)}…` : name;
    svg.append(made("text", { x, y: 122, "text-anchor": "middle", class: at === chosen ? "case" : null }, label, made("title", {}, name)));
    if (!places[at]) return;
    const [, y] = places[at];
    svg.append(made("circle", { class: "counted", cx: x, cy: y, r: at === chosen ? 5 : 3.2 }, made("title", {}, `${name}: ${texts[at]}`)));
    svg.append(made("text", { x, y: y - 9, "text-anchor": "middle", class: "value" }, valueText(values[at])));
  });
  return svg;
}
