// A sweep's answer: how much load the server carries, and what each trial says of it.
"use strict";

// limitText says how large a limit is, with its interval and resolution.
function limitText(path) {
  const limit = at(path);
  if (!limit.known) return ["not known: ", value(path + ".why", String)];
  const rate = [value(path + ".rate_per_s", digits), " requests/s"];
  if (limit.above) return [...rate, " or more: no higher rate was refuted"];
  if (!(limit.high_per_s > 0)) return rate;
  return [...rate, " (", value(path + ".low_per_s", digits), " to ", value(path + ".high_per_s", digits), "), known to ", value(path + ".resolution", percent)];
}

// sweepHead is the head of the page of a sweep: tone, badge, sentence and what stands behind it.
function sweepHead() {
  const { answer, cause } = held.sweep;
  const ended = cause ? [["Ended early: ", value("sweep.cause", String)]] : [];
  if (!answer) {
    const tone = uncounted() || measured.length === 0 || cause ? "doubtful" : "good";
    return { tone, badge: `SWEEP · ${runs.length} runs`, title: "Sweep", sentence: value("saturation", (text) => text.replace(/^./, (first) => first.toUpperCase()) + "."), reasons: uncounted() ? [uncounted(), ...ended] : ended };
  }
  if (!stable) return { tone: "bad", badge: "✗ NO CAPACITY", title: "No capacity", sentence: ["No capacity: ", value("sweep.answer.stable.why", String)], reasons: ended };
  return {
    tone: answer.valid ? "good" : "doubtful", badge: answer.valid ? "✓ CAPACITY · VALID" : "! CAPACITY · NOT VALID", title: `${digits(stable.rate_per_s)} requests/s`,
    sentence: ["The server carries ", ...limitText("sweep.answer.stable"), "."],
    reasons: [[answer.valid ? "Valid: " : "Not valid: ", value("sweep.answer.reason", String)], ...(answer.cut ? [value("sweep.answer.cut", String)] : []),
      ["With the objectives met (λ_SLO): ", ...limitText("sweep.answer.objective")], ["The most that completes in a closed loop (X_max): ", ...limitText("sweep.answer.plateau")]],
  };
}

// showChecks lists what stands behind the answer.
function showChecks() {
  const checks = held.sweep && held.sweep.answer && held.sweep.answer.checks;
  if (!checks || checks.length === 0) return;
  section("checks", "Checks of the capacity").append(table(["check", "outcome", "measured"], checks.map((check, i) => [
    `${check.id} ${check.name}`, element("span", { class: "level " + ({ passed: "good", failed: "bad" }[check.outcome] || "none") }, value(`sweep.answer.checks.${i}.outcome`, String)), value(`sweep.answer.checks.${i}.measured`, String),
  ]), { class: "text" }));
}

// trialCells are what the table of runs says of a trial: what it was for, its load, and what it says of the server.
function trialCells({ trial, k }) {
  const path = `sweep.trials.${k}`;
  const { load } = trial;
  const asked = load.concurrency > 0 ? [value(path + ".load.concurrency", whole), " in flight"] : [value(path + ".load.rate_per_s", digits), "/s", load.constant_arrivals ? " even" : "", load.then_per_s > 0 ? [", then ", value(path + ".load.then_per_s", digits)] : ""].flat();
  const left = known(trial.shortfall) ? [value(path + ".shortfall", percent), " ± ", value(path + ".shortfall_error", percent)] : "–";
  return [value(path + ".load.phase", String), asked, element("span", { class: "level " + states.get(stateOf(trial)).tone, title: trial.valid ? trial.why : trial.fault }, stateOf(trial)), left];
}
