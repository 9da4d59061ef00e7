// The run over time, on one axis, and its requests one by one.
"use strict";

const timeAxis = () => {
  const s = detail.series;
  return { label: "time since the start of the run", name: "at", format: seconds, data: s.due_per_s.map((_, i) => ((i + 0.5) * s.width_ms) / 1e3), range: wholeTime };
};

// wholeTime is the whole run where nothing is zoomed, so that all charts have one axis.
function wholeTime(u, low, high) {
  const times = u.data[0];
  const end = (detail.series.due_per_s.length * detail.series.width_ms) / 1e3;
  return low === times[0] && high === times[times.length - 1] ? [0, end] : [low, high];
}

// stageBands draws where stages begin, warm-up shaded.
function stageBands(u) {
  within(u, (c, px) => {
    const [top, bottom] = [u.bbox.top, u.bbox.top + u.bbox.height];
    c.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const stage of summary.stages) {
      const [from, to] = [px(stage.start_ms / 1e3), px(stage.end_ms / 1e3)];
      c.fillStyle = colour("muted") + "1c";
      if (stage.warmup) c.fillRect(from, top, to - from, bottom - top);
      c.strokeStyle = colour("line");
      line(c, [from, top], [from, bottom]);
      line(c, [to, top], [to, bottom]);
    }
  });
}

function showTime() {
  const s = detail.series;
  const width = s.width_ms === 1000 ? "one second" : seconds(s.width_ms / 1e3);
  const body = section("time", "Over time", `One value for each span of ${width}. Warm-up is shaded; dashes mark where stages begin and end. Drag to zoom, double-click to go back.`);
  const grid = element("div", { class: "grid" });
  body.append(grid);
  const draw = (title, y, series) => {
    const there = series.filter((line) => line.values.some(known));
    if (there.length > 0) chart(grid, { title, x: timeAxis(), y, series: there, sync: "time", height: 180, over: stageBands });
  };
  const perSecond = (label) => ({ label, format: plain, fromZero: true });
  draw("Load", perSecond("requests/s"), [
    { label: "due", values: s.due_per_s, colour: "grey", dash: [5, 4] }, { label: "sent", values: s.sent_per_s, colour: "blue" },
    { label: "completed", values: s.completed_per_s, colour: "green" }, { label: "failed", values: s.failed_per_s, colour: "red" },
  ]);
  draw("In flight", perSecond("requests"), [{ label: "in flight, mean", values: s.in_flight, colour: "blue", fill: true }]);
  draw("Output tokens", perSecond("tokens/s"), [{ label: "output", values: s.output_tokens_per_s, colour: "blue", fill: true }]);
  draw("Input tokens", perSecond("tokens/s"), [{ label: "input", values: s.input_tokens_per_s, colour: "blue", fill: true }]);
  draw("Slip: how late the client sent", { label: "slip", format: span, log: true }, [
    { label: "median", values: s.slip_p50_ms, colour: "yellow" }, { label: "p99", values: s.slip_p99_ms, colour: "orange" }, { label: "longest", values: s.slip_max_ms, colour: "red", dash: [5, 4] },
  ]);
  draw("Receive lag: how late the client read", { label: "lag", format: span, log: true }, [
    { label: "mean", values: s.receive_lag_mean_ms, colour: "orange" }, { label: "longest", values: s.receive_lag_max_ms, colour: "red", dash: [5, 4] },
  ]);
  draw("E2E", { label: "from send", format: span, log: true }, [{ label: "median", values: s.e2e_p50_ms, colour: "sky" }, { label: "p99", values: s.e2e_p99_ms, colour: "blue" }]);
  drawMachine(grid);
  detail.server.forEach((looks) => drawServer(grid, looks));
}

// drawServer shows what the server, or something beside it, told of itself.
function drawServer(grid, looks) {
  if (looks.at_ms.length < 2) return;
  const { gauges: g, per_second: rates } = looks;
  const x = { ...timeAxis(), data: looks.at_ms.map((ms) => ms / 1e3) };
  const note = looks.failed > 0 ? `${whole(looks.failed)} of ${whole(looks.at_ms.length)} looks brought nothing.` : null;
  const draw = (what, y, series) => {
    const there = series.filter((line) => line.values);
    if (there.length > 0) chart(grid, { title: `${what}, by ${looks.kind === "server" ? "the server" : "the " + looks.kind} ${looks.source}`, note, x, y, series: there, sync: "time", height: 180, over: stageBands });
  };
  draw("Requests", { label: "requests", format: plain, fromZero: true }, [{ label: "waiting", values: g.waiting, colour: "orange" }, { label: "running", values: g.running, colour: "blue" }]);
  draw("Share in use", { label: "share", format: percent, range: () => [0, 1] }, [{ label: "KV cache", values: g.kv_usage, colour: "blue", fill: true }, { label: "GPU", values: g.gpu_utilization, colour: "purple" }]);
  draw("Tokens", { label: "tokens/s", format: plain, fromZero: true }, [{ label: "output", values: rates.output_tokens, colour: "blue" }, { label: "prompt", values: rates.prompt_tokens, colour: "green" }]);
  draw("Preemptions", { label: "requests/s", format: plain, fromZero: true }, [{ label: "preempted", values: rates.preemptions && rates.preemptions.some((v) => v > 0) ? rates.preemptions : null, colour: "red" }]);
  draw("Power", { label: "W", format: plain, fromZero: true }, [{ label: "all GPUs", values: g.gpu_power_w, colour: "purple" }]);
}

function drawMachine(grid) {
  const m = detail.machine;
  if (!m.at_ms || m.at_ms.length < 2) return;
  const x = { ...timeAxis(), data: m.at_ms.map((ms) => ms / 1e3) };
  const series = [
    { label: "busiest core, by anybody", values: m.busiest_core, colour: "grey" }, { label: "cores that the client used", values: m.client_cores, colour: "orange" },
    { label: "cores that it waited for", values: m.waiting_cores, colour: "red", dash: [5, 4] },
  ].filter((line) => line.values.some(known));
  if (m.wakeup_p99_ms.some(known)) {
    chart(grid, { title: "Wake-ups of the client: how late a timer was heard", x, y: { label: "late", format: span, log: true }, sync: "time", height: 180, over: stageBands,
      series: [{ label: "p99", values: m.wakeup_p99_ms, colour: "orange" }, { label: "longest", values: m.wakeup_max_ms, colour: "red", dash: [5, 4] }] });
  }
  if (series.length > 0) chart(grid, { title: "The client's machine", x, y: { label: "cores", format: plain, fromZero: true }, series, sync: "time", height: 180, over: stageBands });
}
