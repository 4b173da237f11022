// Draws a check's values over the builds: a sparkline in the table, and a chart with an axis.

// Returns the positions of the values within a box; null for a missing value.
function historyPoints(values, [left, top, right, bottom]) {
  const present = values.filter((value) => typeof value === "number");
  const [low, high] = [Math.min(...present), Math.max(...present)];
  const range = high - low || Math.abs(high) || 1;
  // The scale spans at least a twentieth of the middle, so that noise does not fill the height of the chart.
  const span = Math.max(range, Math.abs(high + low) / 40);
  const middle = (low + high) / 2;
  const step = (right - left) / Math.max(values.length - 1, 1);
  const position = (value) => (bottom + top) / 2 - ((value - middle) / span) * (bottom - top);
  return values.map((value, index) => typeof value === "number" ? [left + index * step, position(value)] : null);
}

function historyPath(points) {
  let pen = "M";
  let path = "";
  for (const point of points) {
    if (point) path += `${pen}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    pen = point ? "L" : "M";
  }
  return path;
}

function spark(values) {
  const points = historyPoints(values, [2, 3, 62, 17]);
  const last = points.findLast(Boolean);
  const svg = createNode("svg", { class: "chart spark", viewBox: "0 0 64 20", width: 64, height: 20, "aria-hidden": "true" });
  svg.append(createNode("path", { class: "series", d: historyPath(points) }));
  if (last) svg.append(createNode("circle", { class: "counted", cx: last[0].toFixed(1), cy: last[1].toFixed(1), r: 2.4 }));
  return svg;
}

// The chart: dots with their values, the first build's value as a line, the selected build marked.
function historyChart(names, values, texts, chosen) {
  const width = Math.min(860, Math.max(300, names.length * 92));
  const points = historyPoints(values, [46, 30, width - 46, 96]);
  const description = names.map((name, index) => `${name}: ${texts[index]}`).join("; ");
  const svg = createNode("svg", { class: "chart", role: "img", viewBox: `0 0 ${width} 128`, width, height: 128, "aria-label": description });
  if (points[0]) svg.append(createNode("line", { class: "middle", x1: 0, x2: width, y1: points[0][1], y2: points[0][1] }));
  svg.append(createNode("path", { class: "series", d: historyPath(points) }));
  names.forEach((name, index) => {
    const x = 46 + index * ((width - 92) / Math.max(names.length - 1, 1));
    const label = name.length > 13 ? `${name.slice(0, 12)}…` : name;
    svg.append(createNode("text", { x, y: 122, "text-anchor": "middle", class: index === chosen ? "case" : null }, label, createNode("title", {}, name)));
    if (!points[index]) return;
    const [, y] = points[index];
    svg.append(createNode("circle", { class: "counted", cx: x, cy: y, r: index === chosen ? 5 : 3.2 }, createNode("title", {}, `${name}: ${texts[index]}`)));
    svg.append(createNode("text", { x, y: y - 9, "text-anchor": "middle", class: "value" }, valueText(values[index])));
  });
  return svg;
}
