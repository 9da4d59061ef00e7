// Goodput under limits that the reader sets. The link of the page keeps them: #slo=ttft_ms:200,tpot_ms:20.
"use strict";

const limits = [["TTFT", "ttft_ms"], ["TPOT", "tpot_ms"], ["E2E", "e2e_ms"]];

function showGoodput() {
  const shapes = detail.shapes[0].metrics;
  const there = limits.filter(([, key]) => shapes[key] && rows.some((i) => known(detail.requests[key][i])));
  if (there.length === 0) return;
  const body = section("goodput", "Goodput",
    "Requests that complete within every limit that you set, of all planned ones: those that failed or were never sent count against it. A reply of one token has no TPOT to miss. " + sampled());
  const asked = new Map((location.hash.match(/slo=([^&]*)/) || ["", ""])[1].split(",").map((pair) => pair.split(":")));
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

// meets says whether request i completed within every limit.
function meets(i, set) {
  if (outcomeOf(i) !== "completed") return false;
  for (const [key, limit] of set) {
    const v = detail.requests[key][i];
    if (known(limit) && (known(v) ? v > limit : key !== "tpot_ms")) return false;
  }
  return true;
}

// goodputOf makes the results: of all measured stages, and of each.
function goodputOf(set) {
  const parts = measured.map(({ stage, i }) => ({ name: stage.name, part: stage, mine: rows.filter((row) => detail.requests.stage[row] === i) }));
  const all = good({ name: "total", part: summary.total, mine: rows }, set);
  const list = (parts.length > 1 ? parts.map((p) => good(p, set)) : []).concat(all);
  const tiles = element("div", { class: "tiles", id: "goodput-total", "data-good": all.met, "data-of": all.rows },
    tile("within the limits", percent(all.share), [`of ${whole(summary.total.planned)} planned`, detail.requests.sampled && all.rows > 0 ? ` · ± ${percent(all.error)} by the draw` : ""]),
    tile("goodput", plain(all.rate), "requests/s"), tile("token goodput", plain(all.tokens), "output tokens/s of such requests"));
  return [tiles, table(["stage", "within the limits", "requests/s", "output tokens/s", "completed /s"], list.map((p) => [p.name, percent(p.share), plain(p.rate), plain(p.tokens), plain(p.part.completed_rate_per_s)]))];
}

// good counts those of a part that meet the limits. What is on record stands for what was drawn from it.
function good({ name, part, mine }, set) {
  const met = mine.filter((i) => meets(i, set));
  const recorded = part.planned - part.unrecorded;
  const scale = mine.length > 0 ? recorded / mine.length : 0;
  const perSecond = (n) => (part.window_ms > 0 ? (n * scale) / (part.window_ms / 1e3) : null);
  const share = part.planned > 0 ? (met.length * scale) / part.planned : null;
  const tokens = met.every((i) => known(detail.requests.output_tokens[i])) ? met.reduce((sum, i) => sum + detail.requests.output_tokens[i], 0) : null;
  return {
    name, part, met: met.length, rows: mine.length, share, rate: perSecond(met.length), tokens: known(tokens) ? perSecond(tokens) : null,
    error: 1.96 * Math.sqrt(((met.length / mine.length) * (1 - met.length / mine.length)) / mine.length),
  };
}
