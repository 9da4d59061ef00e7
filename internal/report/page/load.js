// Latency against load, the stages in a table, and what everybody got against what each one got.
"use strict";

// runs are those of the page, each with the path to its summary and, of a sweep, its trial.
const runs = summary ? [{ summary, path: "", points: detail.points }] : held.runs.map((run, k) => ({ ...run, path: `runs.${k}.summary.`, k, trial: held.sweep && held.sweep.trials[k] }));
const measured = runs.flatMap(measuredOf);

// measuredOf lists the measured stages of a run: of a trial the one that it is about.
function measuredOf(run) {
  const all = run.summary.stages.map((stage, i) => ({ stage, i, run, path: `${run.path}stages.${i}` })).filter(({ stage }) => !stage.warmup).slice(0, run.trial ? 1 : undefined);
  return all.map((one, n) => ({ ...one, point: run.points[n], name: [run.name, !run.name || all.length > 1 ? one.stage.name : null].filter(Boolean).join(", ") }));
}

// counts says whether a run tells something of the server: a trial in which gates of the client failed does not, unless it was asked to.
const counts = ({ trial }) => !trial || trial.valid || held.sweep.biased;

const levelColours = [["p50", "sky"], ["p90", "blue"], ["p99", "purple"]];

function showStages() {
  const body = section("stages", "Stages");
  const rows = summary.stages.map((stage, i) => stageRow(`stages.${i}`, stage.name + (stage.warmup ? " (warm-up)" : "")));
  if (measured.length > 1) rows.push(stageRow("total", "total"));
  body.append(table(["stage", "asked /s", "sent /s", "completed /s", "planned", "completed", "out tokens/s", "TTFT p50", "TTFT p99", "TPOT p50", "E2E p50", "E2E p99", "slip p99", "lag p99"], rows));
}

function stageRow(path, name) {
  const metric = (m, level) => value(`${path}.metrics.${m}.${level}`, span);
  return [
    name, value(path + ".planned_rate_per_s", plain), value(path + ".achieved_rate_per_s", plain), value(path + ".completed_rate_per_s", plain), value(path + ".planned", whole),
    value(path + ".outcomes.completed", whole), value(path + ".output_tokens_per_s", plain), metric("ttft_ms", "p50"), metric("ttft_ms", "p99"), metric("tpot_ms", "p50"),
    metric("e2e_ms", "p50"), metric("e2e_ms", "p99"), metric("slip_ms", "p99"), metric("receive_lag_ms", "p99"),
  ];
}

function showLatencyAgainstLoad() {
  if (measured.length === 0) return;
  const body = section("load", "Latency against load", uncounted() +
    "Quantiles over all planned requests: failed ones never reach a value. Bars are 95 % intervals. Full points count from when a request was due, as a user on that schedule would; hollow ones from when it was sent. A cross is the quantile of the completed requests alone, where the records do not carry one over all with its interval: the table says why." + capacityNote());
  const place = element("div");
  const shown = { metric: "ttft", x: "rate" };
  const draw = () => {
    if (shown.chart) shown.chart.remove();
    shown.chart = latencyChart(place, shown.metric, shown.x);
  };
  const has = (m) => measured.some(({ stage }) => stage.all_planned && stage.all_planned[m + "_ms"]);
  const metrics = [["TTFT", "ttft"], ["E2E", "e2e"]].filter(([, key]) => has(key));
  if (metrics.length === 0) return void body.append(element("p", {}, "No stage has a latency."));
  shown.metric = metrics[0][1];
  body.append(element("div", { class: "choices" },
    choice("metric", metrics, (key) => { shown.metric = key; draw(); }),
    choice("against", [["requests/s sent", "rate"], ["requests in flight", "inFlight"]], (key) => { shown.x = key; draw(); })), place);
  body.append(latencyTable(metrics));
}

// uncounted says how many trials say nothing of the server.
function uncounted() {
  const n = measured.filter(({ run }) => !counts(run)).length;
  return n > 0 ? `${n} of ${measured.length} trials do not count, since gates of the client failed: they are grey. ` : "";
}

const loadOf = { rate: ({ stage }) => stage.achieved_rate_per_s, inFlight: ({ stage }) => stage.steadiness && stage.steadiness.drift.in_flight };

function latencyChart(place, metric, against) {
  const stages = measured.filter((s) => known(loadOf[against](s))).sort((a, b) => loadOf[against](a) - loadOf[against](b));
  const loads = stages.map(loadOf[against]);
  const shift = (Math.max(...loads) - Math.min(...loads) || loads[0] || 1) * 0.006; // so that intervals stand beside each other
  const xs = [];
  const columns = [...levelColours.flatMap(() => [[], []]), []]; // the last is of what does not count
  const [bars, crosses] = [[], []];
  stages.forEach(({ stage, run }, i) => levelColours.forEach(([level, own], k) => [metric + "_from_due_ms", metric + "_ms"].forEach((key, from) => {
    const estimate = stage.all_planned && stage.all_planned[key] && stage.all_planned[key][level];
    const reached = estimate && !estimate.withheld && estimate.reach === "reached";
    const [name, place] = counts(run) ? [own, 2 * k + from] : ["grey", columns.length - 1];
    xs.push(loads[i] + shift * (2 * (k - 1) + (from - 0.5)));
    columns.forEach((column, n) => column.push(n === place ? (reached ? estimate.value : null) : undefined)); // undefined is no gap
    if (reached && known(estimate.low.value)) bars.push({ x: xs[xs.length - 1], low: estimate.low.value, high: known(estimate.high.value) ? estimate.high.value : estimate.value, colour: name, open: estimate.high.reach !== "reached" });
    if (!reached && known(stage.metrics[key] && stage.metrics[key][level])) crosses.push({ x: xs[xs.length - 1], y: stage.metrics[key][level], colour: name });
  })));
  const order = xs.map((_, i) => i).sort((a, b) => xs[a] - xs[b]);
  const sorted = (column) => order.map((i) => column[i]);
  const drawn = summary ? { dots: true } : { points: true }; // a line through stages of several runs would lead nowhere
  const series = levelColours.flatMap(([level, name], k) => [
    { label: `${level} from due`, values: sorted(columns[2 * k]), colour: name, ...drawn, size: 7 },
    { label: `${level} from send`, values: sorted(columns[2 * k + 1]), colour: name, ...drawn, size: 7, hollow: true, dash: [4, 4] },
  ]);
  if (!stages.every(({ run }) => counts(run))) series.push({ label: "not counted", values: sorted(columns[columns.length - 1]), colour: "grey", ...drawn, size: 7 });
  const all = [...columns.flat(), ...bars.flatMap((bar) => [bar.low, bar.high]), ...crosses.map((cross) => cross.y)].filter((v) => v > 0);
  const log = all.length > 0 && Math.max(...all) > 8 * Math.min(...all);
  return chart(place, {
    x: { label: against === "rate" ? "requests/s sent" : "requests in flight, mean", format: plain, data: sorted(xs), range: padded(loads) },
    y: { label: metric.toUpperCase(), format: span, log, range: log ? undefined : () => [0, 1.08 * Math.max(...all, 0.001)], bounds: all }, series, height: 320, over: (u) => { if (against === "rate") capacityBand(u); whiskers(u, bars); crossed(u, crosses); },
  });
}

// padded leaves room at both sides of the values.
function padded(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max((high - low) * 0.06, Math.abs(high) * 0.05) || 1;
  return () => [Math.max(low - room, 0), high + room];
}

// latencyTable has the same as text.
function latencyTable(metrics) {
  const rows = measured.flatMap(({ stage, path, run, name: of }) => metrics.flatMap(([name, key]) => [["from due", key + "_from_due_ms"], ["from send", key + "_ms"]]
    .filter(([, m]) => stage.all_planned && stage.all_planned[m])
    .map(([from, m]) => [`${of}, ${name} ${from}${counts(run) ? "" : " (not counted)"}`, ...levelColours.map(([level]) => estimateCell(`${path}.all_planned.${m}.${level}`)), value(`${path}.all_planned.${m}.n`, whole)])));
  return element("details", {}, element("summary", {}, "as a table"), table(["", ...levelColours.map(([level]) => level + " (95 % interval)"), "requests"], rows));
}

function estimateCell(path) {
  const e = at(path);
  if (e.withheld) return element("span", { class: "weak" }, `withheld: ${e.withheld}` + (e.needed ? `, needs ${whole(e.needed)} requests` : ""));
  if (e.reach === "unattainable") return element("span", { class: "weak" }, "none: too many requests failed");
  const bound = (p) => [at(p).reach === "above" ? "> " : "", value(p + ".value", span)];
  return [e.reach === "above" ? "> " : "", value(path + ".value", span), " (", ...bound(path + ".low"), " to ", ...(e.high.reach === "unattainable" ? ["unbounded"] : bound(path + ".high")), ")"];
}

// showFrontier shows what everybody got together against what each one got.
function showFrontier() {
  const speed = ({ point }) => point.interactivity_tokens_per_s;
  const all = ({ point }) => point.output_tokens_per_s;
  const points = measured.filter((p) => known(speed(p)) && known(all(p))).sort((a, b) => speed(a) - speed(b));
  if (points.length === 0) return;
  const body = section("frontier", "Throughput against interactivity", uncounted() +
    "Each point is a stage: output tokens/s of all users together, against the tokens that one user sees in a second (1 / TPOT, median). Up and to the right is better."
    + (summary ? "" : " The line joins the points than which no other has more of both."));
  const xs = points.map(speed);
  const front = points.map((p, i) => (counts(p.run) && points.slice(i + 1).every((q) => !counts(q.run) || all(q) < all(p)) ? all(p) : undefined));
  chart(body, {
    x: { label: "tokens/s for one user", format: plain, data: xs, range: padded(xs) }, y: { label: "tokens/s for all", format: plain, fromZero: true },
    series: summary ? [{ label: "stages", values: points.map(all), colour: "blue", dots: true, size: 8 }]
      : [...(front.some(known) ? [{ label: "frontier", values: front, colour: "grey", dash: [6, 4] }] : []), ...kindsOf(points).map(({ label, colour, holds }) => ({ label, colour, points: true, size: 8, values: points.map((p) => (holds(p) ? all(p) : null)) }))],
    height: summary ? 260 : 320,
    over: (u) => { if (points.length <= mostNamed) points.forEach((p, i) => mark(u, speed(p), all(p), p.name, i % 2 === 1)); },
  });
}

const mostNamed = 12; // points with their names beside them

// kindsOf parts stages for the colours of a chart: by what a trial says of the server, by run where there are few, or not at all.
function kindsOf(stages) {
  if (held.sweep) return [...states.entries()].map(([label, { colour }]) => ({ label, colour, holds: ({ run }) => stateOf(run.trial) === label })).filter(({ holds }) => stages.some(holds));
  if (runs.length > stageColours.length) return [{ label: "stages of all runs", colour: "blue", holds: () => true }];
  return runs.map((run, k) => ({ label: run.name, colour: stageColours[k], holds: (stage) => stage.run === run }));
}

// mark writes a name beside a point, on the side that has room.
function mark(u, x, y, text, below) {
  const c = u.ctx;
  const px = u.valToPos(x, "x", true);
  const right = px > u.bbox.left + u.bbox.width * 0.7;
  c.save();
  c.font = font(12 * devicePixelRatio);
  c.fillStyle = colour("ink");
  c.textAlign = right ? "right" : "left";
  c.textBaseline = below ? "top" : "bottom";
  c.fillText(text.length > 32 ? text.slice(0, 31) + "…" : text, px + (right ? -8 : 8) * devicePixelRatio, u.valToPos(y, "y", true) + (below ? 4 : -4) * devicePixelRatio);
  c.restore();
}

// states are what trials say of the server.
const states = new Map([
  ["stable", { colour: "green", tone: "good" }], ["overloaded", { colour: "red", tone: "bad" }], ["cannot tell", { colour: "yellow", tone: "doubtful" }],
  ["closed loop", { colour: "blue", tone: "none" }], ["not judged", { colour: "purple", tone: "none" }], ["not counted", { colour: "grey", tone: "none" }],
]);

function stateOf(trial) {
  if (!counts({ trial })) return "not counted";
  if (trial.load.concurrency > 0) return "closed loop";
  return { stable: "stable", overloaded: "overloaded", unclear: "cannot tell" }[trial.state] || "not judged";
}

// stable is the capacity, of a sweep that found one.
const stable = held.sweep && held.sweep.answer && held.sweep.answer.stable.known ? held.sweep.answer.stable : null;

const capacityNote = () => (stable ? " The green line is the capacity, shaded its interval." : "");

// capacityBand draws the capacity into a chart over requests/s.
function capacityBand(u) {
  if (!stable) return;
  within(u, (c, px) => {
    const [top, bottom] = [u.bbox.top, u.bbox.top + u.bbox.height];
    c.fillStyle = colour("green") + "26";
    if (stable.high_per_s > 0) c.fillRect(px(stable.low_per_s), top, px(stable.high_per_s) - px(stable.low_per_s), bottom - top);
    c.strokeStyle = colour("green");
    line(c, [px(stable.rate_per_s), top], [px(stable.rate_per_s), bottom]);
  });
}
