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
