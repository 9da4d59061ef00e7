// The head of the page: the verdict as a sentence, what the server did, and who took the time.
"use strict";

const verdicts = {
  CERTIFIED: ["good", "✓", "These numbers are the server's."],
  VALID: ["good", "✓", "These numbers are the server's."],
  "INVALID-CLIENT": ["bad", "✗", "Do not judge the server by this run: the client was too slow for it."],
  "INVALID-WORKLOAD": ["bad", "✗", "Do not compare this run: what was sent is not what was planned."],
  "INVALID-SERVER": ["doubtful", "!", "The server failed too many requests for these latencies to stand for the load."],
  "INVALID-STATS": ["bad", "✗", "Do not quote this run: its records do not carry the numbers."],
};

const levels = {
  certified: ["good", "✓ certified"], valid: ["good", "✓ valid"], failed: ["bad", "✗ failed"],
  unobservable: ["doubtful", "? unobservable"], not_applicable: ["none", "– not applicable"],
};

// levelOf is the mark of a gate; an advisory one that failed condemns nothing.
const levelOf = (gate) => (gate.level === "failed" && gate.advisory ? ["doubtful", "! doubtful"] : levels[gate.level] || ["none", gate.level]);

function showVerdict(page) {
  const verdict = summary.verdict;
  let [tone, mark, sentence] = verdicts[verdict.class] || ["bad", "?", verdict.class];
  if (!summary.run.complete && tone === "good") [tone, mark, sentence] = ["doubtful", "!", "These numbers are the server's, of a run that did not come to its end."];
  document.title = `${verdict.class} · ${summary.run.target.model || "tare"} · tare report`;
  page.append(element("header", { class: "verdict " + tone },
    element("p", { class: "badge" }, element("span", { "aria-hidden": "true" }, mark + " "), value("verdict.class", String), summary.run.complete ? null : " · INCOMPLETE"),
    element("h1", {}, sentence),
    element("p", { class: "reason" }, value("verdict.reason", String)),
    finding(),
    worstGates(),
    element("p", { class: "target" }, targetLine(summary.run))));
}

// finding says in a sentence what was asked and what came.
function finding() {
  const { total, stages } = summary;
  if (total.outcomes.completed === 0) return null;
  const asked = known(total.planned_rate_per_s) ? ["Of ", value("total.planned_rate_per_s", plain), " requests/s asked, ", value("total.completed_rate_per_s", plain), " completed"] : [value("total.completed_rate_per_s", plain), " requests/s completed"];
  const metric = known(total.metrics.ttft_ms.p50) ? ["ttft_ms", "the first token came after "] : ["e2e_ms", "the reply was there after "];
  const latency = ["; ", metric[1], value(`total.metrics.${metric[0]}.p50`, span), " in the median, ", value(`total.metrics.${metric[0]}.p99`, span), " at p99."];
  const behind = stages.findIndex((stage) => !stage.warmup && stage.planned_rate_per_s > 0 && stage.completed_rate_per_s < 0.9 * stage.planned_rate_per_s);
  const fell = behind < 0 ? [] : [` In ${stages[behind].name} only `, value(`stages.${behind}.completed_rate_per_s`, plain), " of ", value(`stages.${behind}.planned_rate_per_s`, plain), " requests/s were completed in time."];
  return element("p", { class: "reason" }, asked, latency, fell);
}

// worstGates lists what failed, with what to do.
function worstGates() {
  const failed = summary.verdict.gates.map((gate, i) => ({ gate, i })).filter(({ gate }) => gate.level === "failed");
  failed.sort((a, b) => Number(Boolean(a.gate.advisory)) - Number(Boolean(b.gate.advisory)));
  if (failed.length === 0) return null;
  return element("ul", { class: "failed" }, failed.slice(0, 4).map(({ gate, i }) => element("li", {},
    element("strong", {}, `${levelOf(gate)[1]}: ${gate.id} ${gate.name} `), value(`verdict.gates.${i}.measured`, String), gate.stage ? `, stage ${gate.stage}` : "",
    gate.hint ? element("span", { class: "hint" }, " → " + gate.hint) : null)),
  failed.length > 4 ? element("li", {}, element("a", { href: "#gates" }, `${failed.length - 4} more, with all gates`)) : null);
}

function targetLine({ target, start, complete, cause }) {
  const parts = [target.model, target.url, target.endpoint, target.stream ? "streamed" : "not streamed", start ? start.replace("T", " ").replace(/\.\d+/, "") : null];
  if (!complete && cause) parts.push(`cut short: ${cause}`);
  return parts.filter(Boolean).join(" · ");
}

// showNumbers is the row of numbers that matter.
function showNumbers(page) {
  const total = summary.total;
  const tiles = [
    tile("completed", value("total.outcomes.completed", whole), ["of ", value("total.planned", whole), " planned · ", percent(total.planned ? total.outcomes.completed / total.planned : null)]),
    tile("requests/s", value("total.completed_rate_per_s", plain), known(total.planned_rate_per_s) ? ["completed · asked ", value("total.planned_rate_per_s", plain)] : ["completed"]),
    tile("output tokens/s", value("total.output_tokens_per_s", plain), ["input ", value("total.input_tokens_per_s", plain)]),
    latencyTile("TTFT", "ttft_ms"),
    latencyTile("TPOT", "tpot_ms"),
    latencyTile("E2E", "e2e_ms"),
    latencyTile("client slip", "slip_ms", "client"),
    latencyTile("receive lag", "receive_lag_ms", "client"),
  ];
  page.append(element("div", { class: "tiles" }, tiles.filter(Boolean)));
}

function tile(name, number, more, kind) {
  return element("div", { class: "tile " + (kind || "") }, element("div", { class: "name" }, name), element("div", { class: "number" }, number), element("div", { class: "more" }, more));
}

// latencyTile shows a metric's median, and its p99 beside it.
function latencyTile(name, metric, kind) {
  const figures = summary.total.metrics[metric];
  if (!figures || !known(figures.p50)) return null;
  return tile(name + ", median", value(`total.metrics.${metric}.p50`, span), ["p99 ", value(`total.metrics.${metric}.p99`, span)], kind || "server");
}

// showBlame sets the client's share next to the server's: bars on one scale.
function showBlame() {
  const metrics = summary.total.metrics;
  const server = ["TTFT, from send", "ttft_ms"];
  const rows = [
    [metrics.ttft_ms && known(metrics.ttft_ms.p50) ? server : ["E2E, from send", "e2e_ms"], "server"],
    [["slip: sent late", "slip_ms"], "client"],
    [["receive lag: read late", "receive_lag_ms"], "client"],
  ].filter(([[, metric]]) => metrics[metric] && known(metrics[metric].p99));
  if (rows.length < 2) return;
  const body = section("blame", "Server or client?", "The server's latency next to what the client itself was late by, on one scale. Where orange comes near blue, the client is part of the result.");
  body.append(barRows(rows.flatMap(([[label, metric], kind]) => ["p50", "p99"].map((level) => [`${label}, ${level}`, `total.metrics.${metric}.${level}`, `${kind} ${level}`]))),
    element("p", { class: "note" }, "Logarithmic scale: a bar that is a little shorter is much less."));
  overTimeBlame(body);
}

// overTimeBlame shows the same over time.
function overTimeBlame(body) {
  const s = detail.series;
  const lines = [
    { label: "server: TTFT p99", values: s.ttft_p99_ms, colour: "blue" },
    { label: "server: TTFT median", values: s.ttft_p50_ms, colour: "sky" },
    { label: "client: slip, longest", values: s.slip_max_ms, colour: "orange" },
    { label: "client: receive lag, longest", values: s.receive_lag_max_ms, colour: "red", dash: [5, 4] },
  ];
  if (!lines[0].values.some(known)) {
    lines[0] = { label: "server: E2E p99", values: s.e2e_p99_ms, colour: "blue" };
    lines[1] = { label: "server: E2E median", values: s.e2e_p50_ms, colour: "sky" };
  }
  chart(body, {
    title: "Server and client over time", x: timeAxis(), y: { label: "latency (log scale)", format: span, log: true }, height: 240, sync: "time",
    series: lines.filter((line) => line.values.some((v) => v > 0)), over: stageBands,
  });
}

function showGates() {
  const body = section("gates", "Gates of the verdict", "Each rule against the worst measured stage.");
  const order = ["failed", "unobservable", "valid", "certified", "not_applicable"];
  const gates = summary.verdict.gates.map((gate, i) => ({ gate, i }));
  gates.sort((a, b) => order.indexOf(a.gate.level) - order.indexOf(b.gate.level) || a.i - b.i);
  body.append(element("details", { open: summary.verdict.gates.some((gate) => gate.level === "failed" && !gate.advisory) },
    element("summary", {}, countGates()),
    table(["gate", "level", "measured", "rule"], gates.map(({ gate, i }) => [
      `${gate.id} ${gate.name}`, element("span", { class: "level " + levelOf(gate)[0] }, levelOf(gate)[1]),
      [value(`verdict.gates.${i}.measured`, String), gate.stage ? `, stage ${gate.stage}` : "", gate.hint && gate.level !== "certified" ? element("div", { class: "hint" }, "→ " + gate.hint) : null], gate.rule,
    ]), { class: "text" })));
}

function countGates() {
  const counts = {};
  for (const gate of summary.verdict.gates) counts[levelOf(gate)[1]] = (counts[levelOf(gate)[1]] || 0) + 1;
  return Object.entries(counts).map(([level, n]) => `${n} ${level.replace(/^\S+ /, "")}`).join(" · ");
}
