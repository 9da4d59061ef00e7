// What was asked of the server and whether it was kept, and goodput under limits that the reader sets. The link of the page keeps
// these: #slo=ttft_ms:200,tpot_ms:20.
"use strict";

const tones = { met: "good", go: "good", missed: "bad", "no go": "bad" };
const result = (path) => element("span", { class: "level " + (tones[at(path)] || "doubtful") }, value(path, String));

function showObjectives() {
  if (!summary.slo) return;
  const { target, no_go: noGo, alpha } = summary.slo;
  const body = section("objectives", "Objectives", `${(summary.slo.objectives || ["those of the classes"]).join(" · ")}. A request is good when it completes and keeps every objective of each request. Go is ${attained(target)} of them, no go ${attained(noGo)}, ${attained(alpha)} of either mistake.`);
  const parts = [...measured.map(({ stage, i }) => [`stages.${i}`, stage.name]), ...(measured.length > 1 ? [["total", "total"]] : []), ...(summary.classes || []).map((c, i) => [`classes.${i}`, "class " + c.name])]
    .map(([path, name]) => [path + ".objectives", name]).filter(([path]) => at(path));
  if (parts.some(([path]) => known(at(path + ".attainment.value")))) {
    const share = (path) => value(path, attained);
    body.append(table(["", "planned", "good", "attainment", "95 %", "goodput requests/s", "goodput tokens/s", "decision"], parts.map(([path, name]) => [
      name, value(path + ".planned", whole), value(path + ".good", whole), share(path + ".attainment.value"),
      known(at(path + ".attainment.low")) ? [share(path + ".attainment.low"), " to ", share(path + ".attainment.high")] : "–", value(path + ".request_goodput_per_s", plain), value(path + ".token_goodput_per_s", plain),
      at(path + ".decision") ? [result(path + ".decision"), at(path + ".reason") ? element("div", { class: "hint" }, at(path + ".reason")) : null] : "–",
    ])));
  }
  const together = parts.flatMap(([path, name]) => (at(path + ".together") || []).map((one, k) => [`${path}.together.${k}`, name]));
  if (together.length > 0) {
    const format = (path) => (at(path + ".objective").startsWith("error_rate") ? attained : span);
    body.append(table(["", "objective", "measured", "limit", "result"], together.map(([path, name]) => [
      name, value(path + ".objective", String), known(at(path + ".value")) ? [at(path + ".reach") === "above" ? "> " : "", value(path + ".value", format(path))] : "–", value(path + ".limit", format(path)),
      [result(path + ".result"), at(path + ".reason") ? element("div", { class: "hint" }, at(path + ".reason")) : null],
    ])));
  }
}

const limits = [["TTFT", "ttft_ms"], ["TPOT", "tpot_ms"], ["E2E", "e2e_ms"]];

function showGoodput() {
  const shapes = detail.shapes[0].metrics;
  const there = limits.filter(([, key]) => shapes[key] && rows.some((i) => known(detail.requests[key][i])));
  if (there.length === 0) return;
  const body = section("goodput", "Goodput",
    "Requests that complete within every limit that you set, of all planned ones: those that failed or were never sent count against it. Goodput is those of them that ended in the stage's window. The limits begin as the objectives of the run, if it had some. " + sampled());
  const asked = new Map(detail.limits.map((limit) => [limit.metric, limit.most]));
  if (location.hash.startsWith("#slo=")) asked.clear();
  for (const pair of (location.hash.match(/slo=([^&]*)/) || ["", ""])[1].split(",")) asked.set(...pair.split(":"));
  const set = new Map();
  const results = element("div");
  const apply = () => {
    results.replaceChildren(...goodputOf(set));
    const parts = [...set].filter(([, limit]) => known(limit)).map(([key, limit]) => `${key}:${limit}`);
    if (parts.length > 0 || location.hash.startsWith("#slo=")) history.replaceState(null, "", parts.length > 0 ? "#slo=" + parts.join(",") : location.pathname);
  };
  body.append(element("div", { class: "sliders" }, there.map(([name, key]) => slider(name, key, shapes[key], Number(asked.get(key)) || null, (limit) => { set.set(key, limit); apply(); }))), results);
  apply();
}

// slider lets a limit be set: by ratios over the values that there were, and any number by hand. Its right end is no limit.
function slider(name, key, shape, asked, changed) {
  const [low, high] = [Math.max(shape.value[0], 0.001) * 0.9, shape.value[shape.value.length - 1] * 1.1];
  const steps = 400;
  const limitAt = (step) => (step >= steps ? null : round(low * (high / low) ** (step / steps)));
  const stepAt = (limit) => (known(limit) ? Math.min(Math.max(Math.round((steps * Math.log(limit / low)) / Math.log(high / low)), 0), steps - 1) : steps);
  const range = element("input", { type: "range", min: 0, max: steps, id: "limit-" + key });
  const number = element("input", { type: "number", min: 0, step: "any", placeholder: "no limit", "aria-label": name + " limit in ms" });
  const show = (limit) => { number.value = known(limit) ? limit : ""; changed(limit); };
  range.addEventListener("input", () => show(limitAt(Number(range.value))));
  number.addEventListener("change", () => { const limit = Number(number.value) > 0 ? Number(number.value) : null; range.value = stepAt(limit); show(limit); });
  range.value = stepAt(asked);
  number.value = known(asked) ? asked : "";
  changedLater(() => changed(asked));
  return element("div", { class: "slider" }, element("label", { for: "limit-" + key }, `${name} at most`), range, element("span", {}, number, " ms"));
}

const changedLater = queueMicrotask;
const round = (v) => Number(v.toPrecision(3));

// meets says whether request i completed within every limit. One whose tokens came all at once has no time between them to be too long.
function meets(i, set) {
  const r = detail.requests;
  if (outcomeOf(i) !== "completed") return false;
  for (const [key, limit] of set) {
    if (!known(limit)) continue;
    if (known(r[key][i]) ? r[key][i] > limit : !(key === "tpot_ms" && r.token_events[i] === 1)) return false;
  }
  return true;
}

// offered leaves out what was planned for after a stop of the run.
const offered = (i) => !(outcomeOf(i) === "not_sent" && detail.requests.due_ms[i] >= summary.stages[detail.requests.stage[i]].end_ms);

// endOf is when request i ended, in ms since the start of the run.
function endOf(i) {
  const r = detail.requests;
  return known(r.slip_ms[i]) && known(r.e2e_ms[i]) ? r.due_ms[i] + r.slip_ms[i] + r.e2e_ms[i] : null;
}

// goodputOf makes the results: of each measured stage, and of all.
function goodputOf(set) {
  const all = detail.requests.index.map((_, i) => i).filter((i) => meets(i, set)); // of the warm-up too: what ends in a window counts there
  const stages = measured.map(({ stage, i: at }) => {
    const mine = rows.filter((i) => detail.requests.stage[i] === at && offered(i));
    const ended = all.filter((i) => known(endOf(i)) && endOf(i) >= stage.start_ms && endOf(i) < stage.end_ms).length;
    return { name: stage.name, of: mine.length, met: mine.filter((i) => meets(i, set)).length, ended, part: stage };
  });
  const sum = (key) => stages.reduce((n, stage) => n + stage[key], 0);
  const total = { name: "total", of: sum("of"), met: sum("met"), ended: sum("ended"), part: summary.total };
  const scale = detail.requests.sampled ? detail.requests.of / detail.requests.index.length : 1;
  const share = ({ met, of }) => (of > 0 ? met / of : null);
  const rate = ({ ended, part }) => (part.window_ms > 0 ? (ended * scale) / (part.window_ms / 1e3) : null);
  const about = detail.requests.sampled ? "≈ " : "";
  const error = 1.96 * Math.sqrt((share(total) * (1 - share(total))) / total.of);
  const tiles = element("div", { class: "tiles", id: "goodput-total", "data-good": total.met, "data-of": total.of, "data-ended": total.ended },
    tile("within the limits", attained(share(total)), [`${whole(total.met)} of ${whole(total.of)}`, detail.requests.sampled ? ` drawn · ± ${percent(error)}` : " planned"]),
    tile("goodput", about + plain(rate(total)), "requests/s"), tile("completed", plain(total.part.completed_rate_per_s), "requests/s"));
  if (stages.length < 2) return [tiles];
  return [tiles, goodputBars(stages, rate), table(["stage", "within the limits", "goodput /s", "completed /s", "asked /s"], [...stages, total].map((p) => [p.name, about + attained(share(p)), about + plain(rate(p)), plain(p.part.completed_rate_per_s), plain(p.part.planned_rate_per_s)]))];
}

// goodputBars shows of each stage how much of what was asked completed within the limits.
function goodputBars(stages, rate) {
  const most = Math.max(...stages.map((s) => Math.max(s.part.planned_rate_per_s || 0, s.part.achieved_rate_per_s || 0, rate(s) || 0)));
  const width = (v) => (known(v) && most > 0 ? (100 * v) / most : 0) + "%";
  return element("div", { class: "bars", "aria-hidden": "true" }, stages.map((s) => {
    const [asked, good] = [element("div", { class: "bar asked" }), element("div", { class: "bar server" })];
    asked.style.width = width(s.part.planned_rate_per_s ?? s.part.achieved_rate_per_s);
    good.style.width = width(rate(s));
    return element("div", { class: "row" }, element("span", { class: "label" }, s.name), element("div", { class: "track" }, asked, good), element("span", { class: "value" }, plain(rate(s)) + " /s"));
  }));
}
