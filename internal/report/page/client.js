// The client as a queue: how long reads waited, as measured and as models expect.
"use strict";

const mostLoops = 4;

function showClient() {
  const loops = (summary.run.loops || []).map((loop, i) => ({ loop, i })).filter(({ loop }) => known(loop.wait_ms) && loop.models.length > 0);
  if (loops.length === 0) return;
  const busiest = [...loops].sort((a, b) => b.loop.utilisation - a.loop.utilisation).slice(0, mostLoops);
  const body = section("client", "The client's own queue",
    "How long a read waited from the kernel's stamp to its turn, in the mean, beside what queue models expect of the loop's load. This wait is in no latency: those count by the kernel's stamps. It is what a client without them would have added."
    + (loops.length > busiest.length ? ` The ${busiest.length} busiest of ${loops.length} loops.` : ""));
  for (const { loop, i } of busiest) {
    const path = `run.loops.${i}`;
    const bars = [["measured", `${path}.wait_ms`, "client"], ...loop.models.map((model, k) => [model.model + (model.model === loop.fits ? " (nearest)" : ""), `${path}.models.${k}.wait_ms`, model.model === loop.fits ? "server" : "other"])];
    body.append(element("h3", {}, `Loop ${i}: in use ρ `, value(`${path}.utilisation`, digits), ", read ", value(`${path}.read_ms`, span), ", send ", value(`${path}.send_ms`, span), ", reads/s ", value(`${path}.reads_per_s`, plain)), barRows(bars),
      element("p", { class: "note" }, loop.fits ? (loop.close ? `${loop.fits} comes nearest, within a factor of two.` : `${loop.fits} comes nearest, but not within a factor of two.`) : "No model expects a finite wait."));
  }
}

// barRows draws values of the summary as bars of one logarithmic scale.
function barRows(bars) {
  const values = bars.map(([, path]) => at(path)).filter((v) => v > 0);
  const [low, high] = [Math.min(...values) / 3, Math.max(...values)];
  return element("div", { class: "bars" }, bars.map(([label, path, kind]) => {
    const v = at(path);
    const bar = element("div", { class: "bar " + kind });
    bar.style.width = (v > 0 ? Math.max((100 * Math.log(v / low)) / Math.log(high / low), 0.5) : 0) + "%";
    return element("div", { class: "row" }, element("span", { class: "label" }, label), element("div", { class: "track" }, bar), known(v) ? value(path, span) : element("span", { class: "value", "data-path": path, "data-value": "null" }, "no bound"));
  }));
}
