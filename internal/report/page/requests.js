// Requests one by one: a line for each, from when it was due to its end.
"use strict";

const legs = [["late: due to sent", "orange"], ["sent to first token", "sky"], ["first token to end", "blue"], ["failed", "red"]];

function showRequests() {
  const r = detail.requests;
  if (r.index.length === 0) return;
  const body = section("requests", "Requests", `Each line is a request, the earliest at the top. Drag to zoom, double-click to go back. ${sampled()}`);
  body.append(element("p", { class: "key" }, legs.map(([label, name]) => element("span", {}, swatch(name), label))));
  const lines = r.index.map((index, i) => lineOfRequest(i)).sort((a, b) => a.due - b.due || a.index - b.index);
  const ends = lines.map((line) => line.end).reduce((a, b) => Math.max(a, b), 1e-3); // no spread of as many arguments
  const told = element("p", { class: "note", "aria-live": "polite" }, "\u00a0");
  const view = { drawn: [] };
  const c = chart(body, {
    x: { label: "time since the start of the run", name: "at", format: seconds, data: [0, ends] }, y: { label: "requests", format: () => "", bare: true, range: () => [0, 1] },
    series: [{ label: "requests", values: [null, null], colour: "blue" }], height: 440, legend: false, over: (u) => drawRequests(u, lines, view, told),
  });
  c.u.root.setAttribute("aria-label", "When each request was due, sent, had its first token and ended");
  c.u.over.addEventListener("mousemove", (event) => {
    const near = view.drawn[Math.floor((event.offsetY / c.u.over.clientHeight) * view.drawn.length)];
    if (near) told.textContent = describe(near);
  });
  body.append(told);
}

function swatch(name) {
  const box = element("i", { class: "swatch", "aria-hidden": "true" });
  box.style.background = `var(--${name})`;
  return box;
}

// lineOfRequest gives the moments of a request in seconds: those that did not come are null.
function lineOfRequest(i) {
  const r = detail.requests;
  const after = (from, ms) => (known(from) && known(ms) ? from + ms / 1e3 : null);
  const due = r.due_ms[i] / 1e3;
  const sent = after(due, r.slip_ms[i]);
  const [first, end] = [after(sent, r.ttft_ms[i]), after(sent, r.e2e_ms[i])];
  return { i, index: r.index[i], due, sent, first, last: end, end: Math.max(due, sent || 0, first || 0, end || 0), failed: outcomeOf(i) !== "completed" };
}

function describe({ i, due, failed }) {
  const r = detail.requests;
  const parts = [`request ${r.index[i]}`, summary.stages[r.stage[i]].name, outcomeOf(i), `due at ${seconds(due)}`];
  for (const [name, column] of [["slip", r.slip_ms], ["TTFT", r.ttft_ms], ["TPOT", r.tpot_ms], ["E2E", r.e2e_ms]]) if (known(column[i])) parts.push(`${name} ${span(column[i])}`);
  for (const [name, column] of [["prompt", r.input_tokens], ["answer", r.output_tokens]]) if (known(column[i])) parts.push(`${name} ${whole(column[i])} tokens`);
  return parts.join(" · ");
}

// drawRequests draws those in view, as many as there are lines on the screen: every so many of them where there are more.
function drawRequests(u, lines, view, told) {
  const { min: from, max: to } = u.scales.x;
  const inView = lines.filter((line) => line.due <= to && line.end >= from);
  const room = Math.max(Math.floor(u.over.clientHeight), 1);
  const colours = new Map(legs.map(([, name]) => [name, colour(name)]));
  const step = Math.max(Math.ceil(inView.length / room), 1);
  view.drawn = inView.filter((_, i) => i % step === 0);
  told.textContent = step > 1 ? `${whole(inView.length)} requests are in view, one in ${step} is drawn: zoom in to see them all.` : `${whole(inView.length)} requests are in view.`;
  const height = u.bbox.height / Math.max(view.drawn.length, 1);
  const thick = Math.min(Math.max(height * 0.8, devicePixelRatio * 0.75), 9 * devicePixelRatio);
  within(u, (c, px) => view.drawn.forEach((one, row) => {
    const y = u.bbox.top + (row + 0.5) * height - thick / 2;
    const leg = (name, from, to, least = 0) => {
      if (!known(from) || !known(to)) return;
      c.fillStyle = colours.get(name);
      c.fillRect(px(from), y, Math.max(px(to) - px(from), least), thick);
    };
    leg("orange", one.due, one.sent);
    if (one.failed) return leg("red", one.sent ?? one.due, one.end, 3 * devicePixelRatio); // one that was not sent has no length
    leg("sky", one.sent, one.first ?? one.last, devicePixelRatio); // of a long run a whole reply is less than a dot
    leg("blue", one.first, one.last);
  }));
}
