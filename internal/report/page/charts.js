// Charts: uPlot with the page's colours, which follow light, dark and print.
"use strict";

const charts = new Set(); // those on the page, to be drawn anew when size or colours change

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// lines of several stages, in this order; past the last one it begins anew with dashes
const stageColours = ["blue", "orange", "green", "purple", "sky", "yellow", "grey"];
const stageStyle = (i) => ({ colour: stageColours[i % stageColours.length], dash: i >= stageColours.length ? [6, 4] : undefined });

const seconds = (s) => (known(s) ? Number(s.toFixed(3)) + " s" : "–");

// chart draws series over x. Each series has label, colour (a name), values, and may have dash, points (no line), dots (on the line),
// hollow, size, width, fill and paths. x and y have label and format, x has its data too; both may have log, tight, range, fromZero,
// bounds and bare. over draws more into the plot. Charts of one sync have their pointer and their zoom in common.
function chart(host, { title, note, x, y, series, height = 220, sync, over, legend = true }) {
  const plot = element("div", { class: "plot" });
  const figure = element("figure", {}, title ? element("figcaption", {}, title) : null, plot, note ? element("p", { class: "note" }, note) : null);
  host.append(figure);
  const axis = (of, side) => ({
    scale: side, label: of.label, labelSize: 18, labelFont: font(12), font: font(12), stroke: () => colour("muted"),
    grid: { show: !of.bare, stroke: () => colour("line"), width: 1 }, ticks: { show: !of.bare, stroke: () => colour("line"), width: 1, size: 4 },
    values: (u, ticks) => ticks.map((v) => (known(v) ? short(of.format(v)) : "")), splits: of.log ? decades : undefined,
    size: side === "y" ? 64 : 34, space: side === "y" ? 30 : 70,
  });
  const u = new uPlot({
    width: widthOf(plot), height, legend: { show: legend }, padding: [10, 16, 0, 0],
    cursor: { drag: { x: true, y: false }, points: { size: 6 }, sync: sync ? { key: sync, setSeries: false } : undefined },
    scales: { x: scaleOf(x), y: scaleOf(y) },
    axes: [axis(x, "x"), axis(y, "y")],
    series: [{ label: x.name || x.label, value: (u, v) => (known(v) ? x.format(v) : "") }, ...series.map((s) => lineOf(s, y))],
    hooks: { draw: over ? [over] : [] },
  }, [x.data, ...series.map((s) => (y.log ? s.values.map((v) => (v > 0 || v === undefined ? v : null)) : s.values))], plot);
  u.root.setAttribute("role", "img");
  u.root.setAttribute("aria-label", `${title || ""}: ${series.map((s) => s.label).join(", ")} over ${x.label}`);
  const entry = { u, plot, height };
  charts.add(entry);
  return { u, figure, remove() { charts.delete(entry); u.destroy(); figure.remove(); } };
}

// short leaves zeros away that a tick does not need: 2.00 s is 2 s.
const short = (text) => text.replace(/^(-?\d+)\.0+(?=\D|$)/, "$1").replace(/^(-?\d+\.\d*?[1-9])0+(?=\D|$)/, "$1");

// decades are the ticks of a logarithmic axis: powers of ten, and 2 and 5 times them where there are few.
function decades(u, axis, low, high) {
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const steps = to - from > 2 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = from; power <= to; power++) for (const step of steps) ticks.push(step * 10 ** power);
  return ticks.filter((v) => v >= low * 0.999 && v <= high * 1.001);
}

const font = (size) => `${size}px system-ui, sans-serif`;
const widthOf = (plot) => Math.max(plot.clientWidth || plot.parentElement.clientWidth, 240);

function scaleOf(of) {
  const scale = { time: false };
  if (of.log) {
    const more = (of.bounds || []).filter((v) => v > 0);
    Object.assign(scale, { distr: 3, log: 10, range: (u, low, high) => logRange([low, high, ...more], of.tight) });
  } else if (of.range) {
    scale.range = of.range;
  } else if (of.fromZero) {
    scale.range = (u, low, high) => [0, known(high) && high > 0 ? uPlot.rangeNum(0, high, 0.1, true)[1] : 1];
  }
  return scale;
}

// logRange goes to the next 1, 2 or 5 of a power of ten, or where it is to be tight no further than the values.
function logRange(values, tight) {
  const there = values.filter((v) => v > 0);
  if (there.length === 0) return [0.1, 10];
  const [low, high] = [Math.min(...there), Math.max(...there)];
  if (tight && high > low) return [low, high];
  const powers = (v) => [1, 2, 5, 10].map((step) => step * 10 ** Math.floor(Math.log10(v)));
  return [powers(low * 0.95).findLast((v) => v <= low * 0.95), powers(high * 1.05).find((v) => v >= high * 1.05)];
}

function lineOf(s, y) {
  return {
    label: s.label, scale: "y", dash: s.dash, width: s.points ? 0 : s.width || 1.75, spanGaps: false,
    stroke: () => colour(s.colour), fill: s.fill ? () => colour(s.colour) + "26" : undefined,
    paths: s.points ? () => null : s.paths,
    points: { show: true, filter: s.points || s.dots ? undefined : lonely, size: s.size || 4, fill: s.hollow ? () => colour("surface") : () => colour(s.colour) },
    value: (u, v) => (known(v) ? y.format(v) : ""),
  };
}

// lonely lists the values that no line reaches, since there is none before and behind.
function lonely(u, series) {
  const values = u.data[series];
  if (values.includes(undefined)) return []; // places of other series, over which the line goes on
  return values.map((_, i) => i).filter((i) => known(values[i]) && !known(values[i - 1]) && !known(values[i + 1]));
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

// within lets draw draw inside of the plot, in its pixels.
function within(u, draw) {
  const c = u.ctx;
  c.save();
  c.beginPath();
  c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  c.clip();
  c.lineWidth = 1.25 * devicePixelRatio;
  draw(c, (x) => u.valToPos(x, "x", true), (y) => u.valToPos(y, "y", true));
  c.restore();
}

// line strokes from point to point.
function line(c, ...points) {
  c.beginPath();
  points.forEach(([x, y], i) => (i === 0 ? c.moveTo(x, y) : c.lineTo(x, y)));
  c.stroke();
}

// whiskers draws intervals: of each item x, low and high, in its colour; an open one has no upper end.
function whiskers(u, items) {
  within(u, (c, px, py) => {
    const half = 4 * devicePixelRatio;
    for (const { x, low, high, colour: name, open } of items) {
      const [at, top, bottom] = [px(x), py(high), py(low)];
      c.strokeStyle = colour(name);
      line(c, [at, top], [at, bottom]);
      line(c, [at - half, bottom], [at + half, bottom]);
      if (!open) line(c, [at - half, top], [at + half, top]);
    }
  });
}

// crossed draws a cross at each item's x and y.
function crossed(u, items) {
  within(u, (c, px, py) => {
    const half = 4 * devicePixelRatio;
    for (const { x, y, colour: name } of items) {
      c.strokeStyle = colour(name);
      line(c, [px(x) - half, py(y) - half], [px(x) + half, py(y) + half]);
      line(c, [px(x) - half, py(y) + half], [px(x) + half, py(y) - half]);
    }
  });
}
