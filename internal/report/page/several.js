// A page of several runs, from top to bottom: what they say together, a row for each, and all their stages in the charts.
"use strict";

function showHead(page) {
  const { tone, badge, title, sentence, reasons } = held.sweep ? sweepHead() : held.replications ? replicationsHead() : worstHead();
  const models = [...new Set(runs.map(({ summary: s }) => s.run.target.model))];
  document.title = `${title} · ${models.join(", ") || "tare"} · tare report`;
  const targets = [...new Set(runs.map(({ summary: s }) => targetLine({ ...s.run, start: null, complete: true })))];
  page.append(element("header", { class: "verdict " + tone }, element("p", { class: "badge" }, badge), element("h1", {}, sentence), reasons.map((text) => element("p", { class: "reason" }, text)), targets.map((text) => element("p", { class: "target" }, text))));
}

function replicationsHead() {
  const { class: name } = held.replications.verdict;
  const [tone, mark, sentence] = verdicts[name] || ["bad", "?", name];
  return { tone, badge: [mark + " ", value("replications.verdict.class", String), ` · ${runs.length} runs`], title: name, sentence, reasons: [value("replications.verdict.reason", String)] };
}

function worstHead() {
  const { name, summary: s, path } = runs[held.worst];
  const [tone, mark, sentence] = verdicts[s.verdict.class] || ["bad", "?", s.verdict.class];
  const plans = held.plans > 1 ? [value("plans", whole), " different plans: tare compare says whether they are of one load, and whether one is worse."] : "The plan is the same in all runs.";
  const all = runs.every(({ summary: other }) => other.verdict.class === s.verdict.class);
  return { tone, badge: [mark + " ", value(path + "verdict.class", String), all ? ` · all of ${runs.length} runs` : ` · the worst of ${runs.length} runs`], title: `${runs.length} runs`, sentence: all ? sentence : `${name}: ${sentence}`, reasons: [value(path + "verdict.reason", String), plans] };
}

// pathOf is the part of a run that its row is of: its total, or the stage that a trial is about.
const pathOf = (run) => (run.trial ? measuredOf(run)[0].path : run.path + "total");

function showRuns() {
  if (runs.length === 0) return;
  const asked = runs.some((run) => at(pathOf(run) + ".objectives"));
  const body = section("runs", "Runs", held.sweep ? "A row for each trial: the stage that it is about. Left standing is the share of the load by which requests due outnumber those that ended." : "A row for each run: its measured stages together. E2E counts from when a request was due, and from when it was sent.");
  const head = ["run", "class", ...(held.sweep ? ["for", "load", "state", "left standing"] : []), "asked /s", "sent /s", "completed /s", "completed", "failed", "out tokens/s", "TTFT p50", "TTFT p99", "TPOT p50", "E2E due p50", "E2E due p99", "E2E sent p50", "E2E sent p99", "slip p99", ...(asked ? ["attainment"] : [])];
  body.append(table(head, runs.map((run) => runRow(run, asked))), reasonsOf());
}

function runRow(run, asked) {
  const path = pathOf(run);
  const part = at(path);
  const metric = (m, level) => value(`${path}.metrics.${m}.${level}`, span);
  return [
    run.link ? element("a", { href: run.link.split("/").map(encodeURIComponent).join("/") }, run.name) : run.name,
    element("span", { class: "level " + (verdicts[run.summary.verdict.class] || ["bad"])[0] }, value(run.path + "verdict.class", String), run.summary.run.complete ? "" : " · INCOMPLETE"), ...(run.trial ? trialCells(run) : []),
    value(path + ".planned_rate_per_s", plain), value(path + ".achieved_rate_per_s", plain), value(path + ".completed_rate_per_s", plain), value(path + ".outcomes.completed", whole), whole(part.planned - part.outcomes.completed),
    value(path + ".output_tokens_per_s", plain), metric("ttft_ms", "p50"), metric("ttft_ms", "p99"), metric("tpot_ms", "p50"), metric("e2e_from_due_ms", "p50"), metric("e2e_from_due_ms", "p99"), metric("e2e_ms", "p50"), metric("e2e_ms", "p99"),
    metric("slip_ms", "p99"), ...(asked ? [value(path + ".objectives.attainment.value", attained)] : []),
  ];
}

// reasonsOf gives the reason of each verdict.
const reasonsOf = () => element("details", {}, element("summary", {}, "why"), element("ul", { class: "note" }, runs.map((run) => element("li", {}, element("strong", {}, run.name + " "), value(run.path + "verdict.class", String), ": ", value(run.path + "verdict.reason", String), run.trial && run.trial.why ? [`; ${stateOf(run.trial)}: `, value(`sweep.trials.${run.k}.why`, String)] : ""))));

// showBetween shows what differs from run to run.
function showBetween() {
  const all = held.replications;
  if (!all) return;
  const body = section("between", "Between the runs", "The mean of one value of each run with its 95 % interval by Student's t, and the coefficient of variation. What differs from run to run is in these intervals, and in those of no single run.");
  const rows = [
    ...[["completed requests/s", "completed_rate_per_s"], ["output tokens/s", "output_tokens_per_s"]].map(([name, key]) => [name, "rates." + key, plain]),
    ...[["attainment", "attainment", attained], ["goodput requests/s", "request_goodput_per_s", plain], ["goodput tokens/s", "token_goodput_per_s", plain], ["smooth goodput tokens/s", "smooth_goodput_per_s", plain], ["fluidity index", "fluidity_index", plain]].map(([name, key, format]) => [name, "objectives." + key, format]),
    ...[["TTFT", "ttft_ms"], ["TTFT from due", "ttft_from_due_ms"], ["time between chunks", "icl_ms"], ["TPOT", "tpot_ms"], ["E2E from send", "e2e_ms"], ["E2E from due", "e2e_from_due_ms"]].flatMap(([name, key]) => ["mean", "p50", "p90", "p99"].map((level) => [`${name} ${level}`, `metrics.${key}.${level}`, span])),
  ].map(([name, key, format]) => [name, "replications." + key, format]).filter(([, path]) => known(at(path + ".mean")));
  body.append(rows.length > 0 ? table(["", "mean", "95 % from", "to", "CV", "runs"], rows.map(([name, path, format]) => [name, value(path + ".mean", format), value(path + ".low", format), value(path + ".high", format), value(path + ".cv", percent), value(path + ".runs", whole)])) : element("p", {}, "Too few runs have a value."));
  body.append(element("h3", {}, "Gates on the runs together"), table(["gate", "level", "measured", "rule"], all.verdict.gates.map((gate, i) => [
    `${gate.id} ${gate.name}`, element("span", { class: "level " + levelOf(gate)[0] }, levelOf(gate)[1]), value(`replications.verdict.gates.${i}.measured`, String), gate.rule,
  ]), { class: "text" }));
}

function showThroughput() {
  if (measured.length === 0) return;
  const body = section("throughput", "Throughput against load", "Each point is a stage, its bar the 95 % interval. Below the dotted line less completes than is sent." + capacityNote());
  const place = element("div");
  const shown = { of: "completed", x: "rate" };
  const draw = () => {
    if (shown.chart) shown.chart.remove();
    shown.chart = throughputChart(place, shown.of, shown.x);
  };
  body.append(element("div", { class: "choices" },
    choice("of", [["requests/s completed", "completed"], ["output tokens/s", "tokens"]], (key) => { shown.of = key; draw(); }),
    choice("against", [["requests/s sent", "rate"], ["requests in flight", "inFlight"]], (key) => { shown.x = key; draw(); })), place);
}

const throughputOf = { completed: ["completed_rate_per_s", "completed_per_s", "requests/s completed"], tokens: ["output_tokens_per_s", "output_tokens_per_s", "output tokens/s"] };

function throughputChart(place, of, against) {
  const [key, interval, label] = throughputOf[of];
  const stages = measured.filter((s) => known(loadOf[against](s)) && known(s.stage[key])).sort((a, b) => loadOf[against](a) - loadOf[against](b));
  const xs = stages.map(loadOf[against]);
  const kinds = kindsOf(stages);
  const bars = stages.filter(({ stage }) => stage.steadiness && known(stage.steadiness[interval].low)).map((s) => ({ x: loadOf[against](s), low: s.stage.steadiness[interval].low, high: s.stage.steadiness[interval].high, colour: kinds.find(({ holds }) => holds(s)).colour }));
  const most = Math.max(...stages.map(({ stage }) => stage[key]), ...bars.map(({ high }) => high), 0.001);
  return chart(place, {
    x: { label: against === "rate" ? "requests/s sent" : "requests in flight, mean", format: plain, data: xs, range: padded(xs) }, y: { label, format: plain, range: () => [0, 1.08 * most] }, height: 320,
    series: kinds.map(({ label: name, colour: hue, holds }) => ({ label: name, colour: hue, points: true, size: 8, values: stages.map((s) => (holds(s) ? s.stage[key] : null)) })),
    over: (u) => { if (against === "rate") { capacityBand(u); if (of === "completed") keepingUp(u); } whiskers(u, bars); },
  });
}

// keepingUp draws where as much completes as is sent.
function keepingUp(u) {
  within(u, (c, px, py) => {
    const { min, max } = u.scales.x;
    c.setLineDash([2 * devicePixelRatio, 4 * devicePixelRatio]);
    c.strokeStyle = colour("muted");
    line(c, [px(min), py(min)], [px(max), py(max)]);
  });
}

for (const part of [showHead, showChecks, showRuns, showThroughput, showLatencyAgainstLoad, showFrontier, showBetween]) part(document.getElementById("page"));
document.documentElement.dataset.drawn = "true";
