// Charts: uPlot with the page's colours, which follow light, dark and print.
"use strict";

const charts = new Set(); // those on the page, to be drawn anew when size or colours change

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// lines of several stages, in this order; past the last one it begins anew with dashes
const stageColours = ["blue", "orange", "green", "purple", "sky", "yellow", "grey"];
const stageStyle = (i) => ({ colour: stageColours[i % stageColours.length], dash: i >= stageColours.length ? [6, 4] : undefined });

const seconds = (s) => (known(s) ? digits(s) + " s" : "–");

// chart draws series over x. Each series has label, colour (a name), values, and may have dash, points (no line), width, fill, format
// and hidden. x and y have label and format, and may have log; over draws more into the plot.
function chart(host, { title, note, x, y, series, height = 220, sync, over, zoom = true, legend = true }) {
  const plot = element("div", { class: "plot" });
  const figure = element("figure", {}, title ? element("figcaption", {}, title) : null, plot, note ? element("p", { class: "note" }, note) : null);
  host.append(figure);
  const axis = (of, side) => ({
    scale: side, label: of.label, labelSize: 18, labelFont: font(12), font: font(12), stroke: () => colour("muted"),
    grid: { stroke: () => colour("line"), width: 1 }, ticks: { stroke: () => colour("line"), width: 1, size: 4 },
    values: of.values || ((u, ticks) => ticks.map((v) => (known(v) ? of.format(v) : ""))), splits: of.splits,
    size: side === "y" ? 64 : 34, space: side === "y" ? 30 : 70, filter: of.filter,
  });
  const u = new uPlot({
    width: widthOf(plot), height, legend: { show: legend, live: zoom }, padding: [10, 16, 0, 0],
    cursor: { show: zoom, drag: { x: zoom, y: false }, points: { size: 6 }, sync: sync ? { key: sync, setSeries: false } : undefined },
    scales: { x: scaleOf(x), y: scaleOf(y) },
    axes: [axis(x, "x"), axis(y, "y")],
    series: [{ label: x.name || x.label, value: (u, v) => (known(v) ? x.format(v) : "–") }, ...series.map((s) => lineOf(s, y))],
    hooks: { draw: over ? [over] : [] },
  }, [x.data, ...series.map((s) => (y.log ? s.values.map((v) => (v > 0 ? v : null)) : s.values))], plot);
  u.root.setAttribute("role", "img");
  u.root.setAttribute("aria-label", `${title || ""}: ${series.map((s) => s.label).join(", ")} over ${x.label}`);
  const entry = { u, plot, height };
  charts.add(entry);
  return { u, figure, remove() { charts.delete(entry); u.destroy(); figure.remove(); } };
}

const font = (size) => `${size}px system-ui, sans-serif`;
const widthOf = (plot) => Math.max(plot.clientWidth || plot.parentElement.clientWidth, 240);

function scaleOf(of) {
  const scale = { time: false };
  if (of.log) {
    Object.assign(scale, { distr: 3, log: 10, range: (u, low, high) => (low > 0 ? uPlot.rangeLog(low, Math.max(high, low * 1.01), 10, !of.tight) : [0.1, 10]) });
  } else if (of.range) {
    scale.range = of.range;
  } else if (of.fromZero) {
    scale.range = (u, low, high) => [0, known(high) && high > 0 ? uPlot.rangeNum(0, high, 0.1, true)[1] : 1];
  }
  return scale;
}

function lineOf(s, y) {
  const format = s.format || y.format;
  return {
    label: s.label, show: !s.hidden, scale: "y", dash: s.dash, width: s.points ? 0 : s.width || 1.75, spanGaps: false,
    stroke: () => colour(s.colour), fill: s.fill ? () => colour(s.colour) + "26" : undefined,
    paths: s.points ? () => null : s.paths, points: { show: s.points ? true : s.dots, size: s.size || 5, fill: s.hollow ? () => colour("surface") : () => colour(s.colour) },
    value: (u, v) => (known(v) ? format(v) : "–"),
  };
}

// refresh fits every chart to its place and draws it in the colours of the moment.
function refresh() {
  for (const { u, plot, height } of charts) {
    if (plot.clientWidth > 0) u.setSize({ width: widthOf(plot), height });
    u.redraw(false, true);
  }
}

let resizing = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(refresh);
});
window.addEventListener("beforeprint", refresh);
window.addEventListener("afterprint", refresh);
for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", refresh);

// whiskers draws intervals: of each item x, low and high, in its colour.
function whiskers(items) {
  return (u) => {
    const c = u.ctx;
    const half = 4 * devicePixelRatio;
    c.save();
    c.beginPath();
    c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    c.clip();
    c.lineWidth = 1.25 * devicePixelRatio;
    for (const { x, low, high, colour: name, open } of items) {
      if (!known(low) || !known(high)) continue;
      const [px, top, bottom] = [u.valToPos(x, "x", true), u.valToPos(high, "y", true), u.valToPos(low, "y", true)];
      c.strokeStyle = colour(name);
      c.beginPath();
      c.moveTo(px, top);
      c.lineTo(px, bottom);
      if (!open) { c.moveTo(px - half, top); c.lineTo(px + half, top); }
      c.moveTo(px - half, bottom);
      c.lineTo(px + half, bottom);
      c.stroke();
    }
    c.restore();
  };
}
