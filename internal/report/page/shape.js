// How values are spread, and how the time to the first token goes with the length of the prompt.
"use strict";

const metricNames = [
  ["TTFT", "ttft_ms"], ["TTFT from due", "ttft_from_due_ms"], ["time between chunks", "icl_ms"], ["TPOT", "tpot_ms"], ["E2E", "e2e_ms"], ["E2E from due", "e2e_from_due_ms"],
  ["NTPOT", "ntpot_ms"], ["slip", "slip_ms"], ["receive lag", "receive_lag_ms"], ["input tokens", "input_tokens"], ["output tokens", "output_tokens"],
];

function showShapes() {
  const total = detail.shapes[0].metrics;
  const metrics = metricNames.filter(([, key]) => total[key] && total[key].edges.length > 0);
  if (metrics.length === 0) return;
  const body = section("shapes", "Distributions", "Of the measured stages. A curve goes through the quantiles at every half percent, and finer at the end, of all values.");
  const [left, right] = [element("div"), element("div")];
  const shown = { metric: metrics[0][1], above: false, charts: [] };
  const draw = () => {
    shown.charts.forEach((c) => c.remove());
    shown.charts = [distribution(left, shown.metric, shown.above), histogram(right, shown.metric)];
  };
  body.append(element("div", { class: "choices" },
    choice("of", metrics, (key) => { shown.metric = key; draw(); }),
    choice("curve", [["share at or below", false], ["share above, logarithmic", true]], (above) => { shown.above = above; draw(); })),
  element("div", { class: "grid" }, left, right));
}

// stretched says whether values are better seen by their ratios: as the histogram's edges are.
const stretched = (shape) => shape.edges[0] > 0 && shape.edges[shape.edges.length - 1] > 10 * shape.edges[0];

const formatOf = (metric) => (metric.endsWith("_ms") ? span : plain);

function distribution(place, metric, above) {
  const parts = detail.shapes.filter((part) => part.metrics[metric]);
  const shown = parts.length > 2 ? parts.slice(1) : parts.slice(0, 1);
  const tables = shown.map(({ metrics: { [metric]: shape } }) => {
    const points = new Map(); // the greatest share of each value: uPlot wants each x once
    shape.value.forEach((v, i) => points.set(v, shape.share[i]));
    const xs = [...points.keys()];
    return [xs, xs.map((x) => (above ? 1 - points.get(x) || null : points.get(x)))];
  });
  const [data, ...columns] = uPlot.join(tables);
  const shape = shown[0].metrics[metric];
  return chart(place, {
    title: above ? "Share of values above" : "Share of values at or below", x: { label: nameOf(metric), format: formatOf(metric), data, log: stretched(shape) && data[0] > 0, tight: true },
    y: { label: "share", format: percent, log: above, range: above ? undefined : () => [0, 1] }, height: 280,
    series: shown.map((part, i) => ({ label: part.name, values: columns[i], ...stageStyle(i) })),
  });
}

const nameOf = (metric) => metricNames.find(([, key]) => key === metric)[0];

function histogram(place, metric) {
  const shape = detail.shapes[0].metrics[metric];
  return chart(place, {
    title: `Histogram of all ${whole(shape.n)} values`, x: { label: nameOf(metric), format: formatOf(metric), data: shape.edges, log: stretched(shape), tight: true },
    y: { label: "values", format: plain, fromZero: true }, height: 280,
    series: [{ label: "values from here to the next step", values: [...shape.counts, shape.counts[shape.counts.length - 1]], colour: "blue", fill: true, paths: uPlot.paths.stepped({ align: 1 }) }],
  });
}

// rows lists the places of the requests in the sample that belong to measured stages.
const rows = detail.requests.index.map((_, i) => i).filter((i) => !summary.stages[detail.requests.stage[i]].warmup);
const outcomeOf = (i) => detail.requests.outcomes[detail.requests.outcome[i]];

// sampled says how many of the requests are meant.
function sampled() {
  const { of, sampled: drawn, index } = detail.requests;
  return drawn ? `Of ${whole(of)} requests, ${whole(index.length)} drawn at random.` : `All ${whole(of)} requests on record.`;
}

function showPrompts() {
  const r = detail.requests;
  const there = rows.filter((i) => outcomeOf(i) === "completed" && known(r.ttft_ms[i]) && known(r.input_tokens[i])).sort((a, b) => r.input_tokens[a] - r.input_tokens[b]);
  if (there.length === 0 || r.input_tokens[there[0]] === r.input_tokens[there[there.length - 1]]) return;
  const body = section("prompts", "TTFT against prompt length", `Each point is a completed request; tokens as the server counted them. ${sampled()}`);
  const stages = [...new Set(there.map((i) => r.stage[i]))].sort((a, b) => a - b);
  const groups = stages.length <= stageColours.length ? stages.map((s) => [summary.stages[s].name, (i) => r.stage[i] === s]) : [["requests", () => true]];
  chart(body, {
    x: { label: "prompt tokens", format: plain, data: there.map((i) => r.input_tokens[i]) }, y: { label: "TTFT from send", format: span, fromZero: true }, height: 320,
    series: groups.map(([label, holds], k) => ({ label, colour: stageColours[k], points: true, size: there.length > 2000 ? 3 : 4, values: there.map((i) => (holds(i) ? r.ttft_ms[i] : null)) })),
  });
}
