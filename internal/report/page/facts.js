// What became of the requests, what was run, and where it came from.
"use strict";

function showFacts() {
  const body = section("facts", "The run");
  const causes = summary.total.causes || [];
  const rows = [["completed", value("total.outcomes.completed", whole), ""], ...causes.map((cause, i) => [
    cause.outcome + (cause.cause && cause.cause !== cause.outcome ? ", " + cause.cause : "") + (cause.status ? ` (${cause.status})` : ""), value(`total.causes.${i}.requests`, whole), cause.example || "",
  ])];
  if (summary.total.unrecorded > 0) rows.push(["unrecorded", value("total.unrecorded", whole), "no record: the run was killed"]);
  body.append(element("h3", {}, "Outcomes"), table(["outcome", "requests", "example"], rows, { class: "text" }));
  groups(body);
  if (summary.warnings.length > 0) body.append(element("h3", {}, "Warnings"), element("ul", {}, summary.warnings.map((warning, i) => element("li", {}, value(`warnings.${i}`, String)))));
  const { client, environment, plan, tool } = summary.run;
  const facts = [
    ["client", `${client.engine} engine, ${client.loops} loops, ${client.kernel_stamps ? "kernel receive stamps" : "no kernel receive stamps"}` + (client.burden_ns ? `, slowed on purpose by ${span(client.burden_ns / 1e6)} an event` : "")],
    ["machine", [environment.cpu, `${environment.cpus} CPUs`, environment.os, environment.arch, environment.kernel].filter(Boolean).join(" · ")],
    ["plan", plan.plan_id || "not known"], ["content", plan.content_id || "not known"],
    ["tare", [tool.version, tool.revision, tool.go_version].filter(Boolean).join(" · ")],
  ];
  body.append(element("h3", {}, "Provenance"), element("dl", {}, facts.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])));
}

// groups shows what became of parts of the requests: by server, class and turn, where there are several; and their lengths.
function groups(body) {
  const counts = (outcomes) => Object.entries(outcomes).filter(([, n]) => n > 0).map(([name, n]) => `${name} ${whole(n)}`).join(" · ") || "none";
  const latencies = (path) => ["ttft_ms", "e2e_ms"].flatMap((metric) => ["p50", "p99"].map((level) => value(`${path}.metrics.${metric}.${level}`, span)));
  const head = ["outcomes", "TTFT p50", "TTFT p99", "E2E p50", "E2E p99"];
  if (summary.servers) body.append(element("h3", {}, "Servers"), table(["server", "outcomes"], summary.servers.map((server) => [server.url, counts(server.outcomes)]), { class: "text" }));
  if (summary.classes) body.append(element("h3", {}, "Classes"), table(["class", ...head], summary.classes.map((one, i) => [one.name, counts(one.outcomes), ...latencies(`classes.${i}`)])));
  if (summary.turns) body.append(element("h3", {}, "Turns of sessions"), table(["turns", ...head, "found in the cache"], summary.turns.map((one, i) => [one.turns, counts(one.outcomes), ...latencies(`turns.${i}`), value(`turns.${i}.cached_share`, percent)])));
  const lengths = [["input tokens", "input"], ["output tokens", "output"]].filter(([, key]) => known(at(`workload.asked_${key}_tokens`)) || known(at(`workload.planned_${key}_tokens`)));
  if (lengths.length > 0) {
    body.append(element("h3", {}, "Mean lengths"), table(["", "asked", "planned", "counted by the server"], lengths.map(([name, key]) => [
      name, value(`workload.asked_${key}_tokens`, plain), value(`workload.planned_${key}_tokens`, plain), value(key === "input" ? "workload.counted_input_tokens" : "total.metrics.output_tokens.mean", plain),
    ])));
  }
}
