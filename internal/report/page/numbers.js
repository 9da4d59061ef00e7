// Numbers and elements. Numbers are written as the report in the terminal writes them; the full value is in the element's title.
"use strict";

// what the page holds: summary and detail of one run, or several runs and what they say together
const held = JSON.parse(document.getElementById("data").textContent);
const { summary, detail } = held;

const known = (v) => v !== null && v !== undefined;

// digits writes three significant digits, or all before the point where there are more.
function digits(v) {
  const size = Math.abs(v);
  if (size === 0) return "0";
  if (size >= 99.95) return v.toFixed(0);
  if (size >= 9.995) return v.toFixed(1);
  if (size >= 0.9995) return v.toFixed(2);
  return String(Number(v.toPrecision(3)));
}

// span writes milliseconds in the fitting unit.
function span(ms) {
  if (!known(ms)) return "–";
  const ns = ms * 1e6;
  if (ns === 0) return "0";
  for (const [base, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (Math.abs(ns) >= base * 0.9995) return digits(ns / base) + " " + unit;
  }
  return digits(ns) + " ns";
}

// plain writes rates and counts; from 100,000 on in thousands, millions and more.
function plain(v) {
  if (!known(v)) return "–";
  for (const [base, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (v >= base * 0.9995 && v >= 99999.5) return digits(v / base) + unit;
  }
  return digits(v);
}

const whole = (v) => (known(v) ? String(v).replace(/\B(?=(\d{3})+$)/g, " ") : "–");
const percent = (share) => (known(share) ? digits(100 * share) + " %" : "–");

// attained writes a share of good requests with four digits: with three, 98.96 % would pass for a target of 99 %.
const attained = (share) => (known(share) ? Number((100 * share).toPrecision(4)) + " %" : "–");

// element makes an element. Children are elements or text: text is never read as markup.
function element(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (known(value) && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter(known));
  return node;
}

// at follows a path of keys into the summary: "total.metrics.ttft_ms.p50"; of several runs into all that the page holds: "runs.0.summary.total".
function at(path) {
  return path.split(".").reduce((v, key) => (known(v) ? v[key] : undefined), summary || held);
}

// value shows one value of summary.json, or of the like: it carries its path and its full digits.
function value(path, format) {
  const v = at(path);
  const unit = /_ms(\.|$)/.test(path) && !/\.(n|runs|cv)$/.test(path) ? " ms" : "";
  return element("span", { class: "value", "data-path": path, "data-value": known(v) ? String(v) : "null", title: known(v) ? `${v}${unit}` : "there is none" }, format(v));
}

// section makes a part of the page with a head, and gives its body.
function section(id, title, note) {
  const body = element("section", { id, "aria-labelledby": id + "-title" }, element("h2", { id: id + "-title" }, title), note ? element("p", { class: "note" }, note) : null);
  document.getElementById("page").append(body);
  return body;
}

function table(head, rows, attributes) {
  return element("div", { class: "scroll" }, element("table", attributes,
    element("thead", {}, element("tr", {}, head.map((cell) => element("th", { scope: "col" }, cell)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map((cell, i) => element(i === 0 ? "th" : "td", i === 0 ? { scope: "row" } : {}, cell)))))));
}

// choice makes a row of buttons of which one is pressed, and calls show with it, at once too.
function choice(label, options, show) {
  const buttons = options.map(([name, key]) => {
    const button = element("button", { type: "button", "aria-pressed": "false" }, name);
    button.addEventListener("click", () => press(key));
    return [key, button];
  });
  function press(chosen) {
    for (const [key, button] of buttons) button.setAttribute("aria-pressed", String(key === chosen));
    show(chosen);
  }
  const row = element("div", { class: "choice", role: "group", "aria-label": label }, element("span", {}, label), buttons.map(([, button]) => button));
  queueMicrotask(() => press(options[0][1]));
  return row;
}
