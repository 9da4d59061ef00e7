// Both sides of the wire: what the server counted itself beside what the records say.
"use strict";

function showBothSides() {
  const server = summary.server;
  if (!server) return;
  const parts = [["server.run", server.run], ...(server.measured ? [["server.measured", server.measured]] : [])];
  const body = section("both", "Both sides of the wire", "What the server told of itself beside what the records say of the same span. Equal counts mean that both speak of the same requests; the difference of the means is what lies between: network, front end, client.");
  body.append(sourceList(server));
  for (const [path, part] of parts) {
    body.append(element("h3", {}, `${part.name}: ${seconds(part.from_ms / 1e3)} to ${seconds(part.to_ms / 1e3)}`));
    if (part.reason) body.append(element("p", { class: "note" }, "Nothing to compare: " + part.reason));
    else body.append(...[countsTable(path), meansTable(path), statesLine(path)].filter(known));
  }
  perToken(body, "server.run");
}

function sourceList(server) {
  const lines = server.sources.map((from, i) => [value(`server.sources.${i}.url`, String), from.dialect ? ` (${from.dialect})` : "", `, ${from.kind}: `, value(`server.sources.${i}.looks`, whole), " looks",
    from.failed > 0 ? `, ${whole(from.failed)} of them brought nothing: ${from.reason}` : "", from.restarts > 0 ? `, its counters began anew ${from.restarts} times` : ""]);
  const changes = (server.changes || []).map((change) => [element("strong", {}, "changed: "), change]);
  return element("ul", { class: "note" }, [...lines, ...changes].map((line) => element("li", {}, line)));
}

// countsTable holds the server's counts against the bounds of the records.
function countsTable(path) {
  const rows = [["requests", "requests"], ["prompt tokens", "prompt_tokens"], ["computed prompt tokens", "computed_prompt_tokens"], ["output tokens", "output_tokens"]]
    .map(([name, key]) => [name, `${path}.${key}`]).filter(([, count]) => known(at(count + ".server")) && known(at(count + ".least")));
  if (rows.length === 0) return null;
  return table(["", "the server", "the records", ""], rows.map(([name, count]) => [name, value(count + ".server", whole), bounds(count), agreement(count)]));
}

function bounds(count) {
  const { least, most } = at(count);
  if (least === most) return value(count + ".least", whole);
  return [value(count + ".least", whole), known(most) ? " to " : " or more", known(most) ? value(count + ".most", whole) : null];
}

function agreement(count) {
  const { server, least, most } = at(count);
  if (server < least || (known(most) && server > most)) return element("span", { class: "level bad" }, "✗ apart");
  return element("span", { class: "level good" }, least === most ? "✓ equal" : "✓ within the bounds");
}

function meansTable(path) {
  const rows = [["TTFT, mean", "ttft"], ["E2E, mean", "e2e"]].filter(([, key]) => known(at(`${path}.${key}.server_ms`)))
    .map(([name, key]) => [name, ...["server_ms", "client_ms", "difference_ms"].map((side) => value(`${path}.${key}.${side}`, span))]);
  const parts = [["queue, mean", "queue_ms"], ["prefill, mean", "prefill_ms"], ["decode, mean", "decode_ms"], ["between tokens, mean", "itl_ms"]].filter(([, key]) => known(at(`${path}.${key}`)))
    .map(([name, key]) => [name, value(`${path}.${key}`, span), "", ""]);
  return rows.length + parts.length > 0 ? table(["", "the server", "the records", "difference"], [...rows, ...parts]) : null;
}

function statesLine(path) {
  const parts = [];
  const add = (when, ...text) => { if (known(at(`${path}.${when}`))) parts.push(text); };
  add("in_flight.running", "in flight ", value(path + ".in_flight.running", digits), " running, ", value(path + ".in_flight.waiting", (v) => (known(v) ? digits(v) : "–")), " waiting there, ", value(path + ".in_flight.client", digits), " here");
  add("kv_usage.mean", "KV cache ", value(path + ".kv_usage.mean", percent), " in use, at most ", value(path + ".kv_usage.max", percent));
  add("prefix_hit_share", "found in the prefix cache ", value(path + ".prefix_hit_share", percent));
  add("preemptions", "preemptions ", value(path + ".preemptions", whole));
  return parts.length > 0 ? element("p", { class: "note" }, parts.flatMap((part, i) => (i > 0 ? [" · ", ...part] : part))) : null;
}

// perToken parts the time per output token: a bar of the server's parts and of what lies outside of it.
function perToken(body, path) {
  const t = at(path + ".per_output_token");
  if (!t || !known(t.outside_ms)) return;
  const legs = [["queue", "queue_ms", "yellow"], ["prefill", "prefill_ms", "sky"], ["decode", "decode_ms", "blue"], ["outside of the server", "outside_ms", "orange"]];
  const bar = element("div", { class: "stack", role: "img", "aria-label": "parts of the time per output token" }, legs.map(([, key, name]) => {
    const piece = element("div");
    piece.style.flexGrow = Math.max(t[key], 0);
    piece.style.background = `var(--${name})`;
    return piece;
  }));
  body.append(element("h3", {}, "Per output token, of the whole run: ", value(path + ".per_output_token.client_ms", span)), bar,
    element("p", { class: "key" }, legs.map(([label, key, name]) => element("span", {}, swatch(name), label + " ", value(`${path}.per_output_token.${key}`, span)))));
  if (t.derived) body.append(element("p", { class: "note" }, "Prefill and decode are differences of the server's TTFT, E2E and queue time."));
}
