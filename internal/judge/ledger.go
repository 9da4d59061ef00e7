package judge

import (
	"fmt"
	"iter"
	"math"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/judge/verdict"
	"tare/internal/record"
)

// Summarize reads the run directory dir and makes its Summary.
func Summarize(dir string) (*Summary, error) {
	s, _, err := read(dir, nil, nil)
	return s, err
}

// Ask is objectives that take the place of those that a run was made with. Classes keep their own.
type Ask struct {
	Objectives []string
	Target     float64 // share of good requests
}

// SummarizeFor is Summarize with other objectives.
func SummarizeFor(dir string, ask Ask) (*Summary, error) {
	s, _, err := read(dir, nil, &ask)
	return s, err
}

// Examine is Summarize, and gives what a Summary leaves out besides.
func Examine(dir string) (*Summary, *Detail, error) { return read(dir, newDetails(), nil) }

func read(dir string, details *details, ask *Ask) (*Summary, *Detail, error) {
	m, err := record.ReadManifest(dir)
	if err != nil {
		return nil, nil, err
	}
	l, err := Begin(m)
	if err != nil {
		return nil, nil, fmt.Errorf("manifest of %s: %w", dir, err)
	}
	if ask != nil {
		l.spec.SLO, l.spec.SLOTarget = ask.Objectives, ask.Target
		if l.promises, err = promisesOf(&l.spec, l.table); err != nil {
			return nil, nil, err
		}
	}
	l.details = details
	if l.health, err = record.ReadHealth(dir); err != nil {
		return nil, nil, err
	}
	looks, err := record.ReadServer(dir)
	if err != nil {
		return nil, nil, err
	}
	l.server = newServerSide(looks)
	if details != nil {
		details.looks = looks
	}
	tail, err := record.ReadLog(dir, l.Add)
	if err != nil {
		return nil, nil, fmt.Errorf("judge %s: %w", dir, err)
	}
	s := l.Finish(tail)
	s.Dir = dir
	if details == nil {
		return s, nil, nil
	}
	return s, l.detail(s), nil
}

// Ledger gathers the exchanges of one run. Of each it keeps 27 bytes, whatever the number of its events.
type Ledger struct {
	manifest   *record.Manifest
	table      []measure.Metric
	index      map[string]int // rows of the table by name
	windows    []window       // of the stages, as planned
	stages     []*account
	servers    []Server // none where there is one only
	classes    map[string]*account
	turns      [2]*turns // first and later ones; none where every session is a request
	lengths    lengths
	prompts    prompts
	spec       asked
	rows       rows
	health     []record.Health
	server     *serverSide // nil where no server was looked at
	recorded   int64
	duplicates int64
	last       time.Duration // last moment on record
	reply      measure.Reply
	details    *details  // nil where a Summary is all that is wanted
	promises   *promises // nil where the spec asks for nothing
	standing   standing
}

// Begin starts a ledger for the run that m describes. It keeps m.
func Begin(m *record.Manifest) (*Ledger, error) {
	if len(m.Stages) == 0 {
		return nil, fmt.Errorf("stages: must name at least one, got none")
	}
	l := &Ledger{manifest: m, table: measure.Table(), index: map[string]int{}, rows: rows{}, classes: map[string]*account{}}
	for i, row := range l.table {
		l.index[row.Name] = i
	}
	if len(m.Target.Servers) > 1 {
		for _, url := range m.Target.Servers {
			l.servers = append(l.servers, Server{URL: url})
		}
	}
	l.spec = askedOf(m)
	var err error
	if l.promises, err = promisesOf(&l.spec, l.table); err != nil {
		return nil, err
	}
	l.prompts = prompts{differ: map[int64]int64{}}
	if l.converses() {
		l.turns = [2]*turns{{account: newAccount(len(l.table))}, {account: newAccount(len(l.table))}}
	}
	for i, s := range m.Stages {
		w := window{moment(s.StartMs), moment(s.EndMs)}
		if w.end <= w.start && m.State.Cause == "" { // a stage that ends by count and whose end was never written
			w.end = math.MaxInt64
			if i+1 < len(m.Stages) && m.Stages[i+1].StartMs > s.StartMs {
				w.end = moment(m.Stages[i+1].StartMs)
			}
		}
		l.windows = append(l.windows, w)
		a := newAccount(len(l.table))
		a.converses = l.converses()
		a.little.From, a.little.To = int64(w.start), math.MaxInt64
		l.stages = append(l.stages, a)
	}
	return l, nil
}

func moment(ms float64) time.Duration { return time.Duration(math.Round(ms * 1e6)) }

// Add takes one exchange, in any order, and keeps nothing of it. A second exchange of the same index is counted, not measured.
func (l *Ledger) Add(x *record.Exchange) error {
	if x.Index < 0 {
		return fmt.Errorf("request %d: index must not be below 0", x.Index)
	}
	if x.Stage < 0 || x.Stage >= len(l.stages) {
		return fmt.Errorf("request %d: stage must be below %d, got %d", x.Index, len(l.stages), x.Stage)
	}
	if new(Outcomes).Of(x.Outcome) == nil {
		return fmt.Errorf("request %d: outcome %d is none", x.Index, x.Outcome)
	}
	place, i, fresh := l.rows.claim(x.Index)
	if !fresh {
		l.duplicates++
		return nil
	}
	l.recorded++
	r := &l.reply
	r.Read(x)
	place.put(i, r, l.windows[x.Stage])
	l.stages[x.Stage].add(r, l.table, l.windows[x.Stage])
	l.prompts.add(x)
	l.stages[x.Stage].course.add(r, l.windows[x.Stage].start)
	if l.promises != nil {
		l.promises.judge(r, &l.standing)
		l.standing.counts = place.as[i] != unoffered
		place.stand(i, r, l.promises, &l.standing)
		if l.standing.counts {
			l.stages[x.Stage].goods.add(&l.standing)
		}
	}
	if !l.manifest.Stages[x.Stage].Warmup {
		l.lengths.add(x, l.block())
		l.addClass(r)
		l.addTurn(r)
	}
	l.clockIn(r)
	if l.server != nil {
		l.server.marks.add(r)
	}
	if l.details != nil {
		l.details.add(r, place.as[i])
	}
	if k := int64(len(l.servers)); k > 0 && !l.manifest.Stages[x.Stage].Warmup {
		*l.servers[record.ServerOf(x.Session, int(k), l.converses())].Outcomes.Of(x.Outcome)++
	}
	return nil
}

// clockIn counts what happened in each window, whichever stage the request belongs to.
func (l *Ledger) clockIn(r *measure.Reply) {
	if r.WasSent {
		l.last = max(l.last, r.Sent)
		if a := l.during(r.Sent, r.Stage); a != nil {
			a.writes++
			count(&a.course.writes, r.Sent-a.begins(), 1)
		}
	}
	if r.Ended {
		l.last = max(l.last, r.Finish)
		if a := l.during(r.Finish, r.Stage); a != nil {
			if r.Outcome == record.Completed {
				a.completions++
				count(&a.course.completions, r.Finish-a.begins(), 1)
			}
			if r.WasSent {
				count(&a.course.ends, r.Finish-a.begins(), 1)
			}
		}
	}
	if l.promises != nil {
		l.clockGoods(r)
	}
	if r.WasSent && r.Ended {
		a := l.stages[r.Stage]
		a.little.Stay(int64(r.Sent), int64(r.Finish))
		a.lastEnd = max(a.lastEnd, int64(r.Finish))
		for i, w := range l.windows {
			l.stages[i].inFlight += max(min(r.Finish, w.end)-max(r.Sent, w.start), 0)
		}
	}
	r.EachToken(func(at time.Duration, n int64) {
		if a := l.during(at, r.Stage); a != nil {
			a.outTokens += n
			a.outputKnown = true
			count(&a.course.tokens, at-a.begins(), n)
		}
	})
	l.clockInput(r)
}

func (l *Ledger) clockInput(r *measure.Reply) {
	begun, ok := r.Begun()
	if !ok || !r.Usage.Known {
		return
	}
	if a := l.during(begun, r.Stage); a != nil {
		a.inTokens += int64(r.Usage.Input)
		a.inputKnown = true
	}
}

// clockGoods counts what good requests did in each window, and what any request's tokens were worth. Classes count the measured windows.
func (l *Ledger) clockGoods(r *measure.Reply) {
	s := &l.standing
	for stage := range l.goodsAt(r.Finish, r) {
		if r.Ended && s.good {
			stage.ended++
		}
		if r.Ended && s.hasBenefit {
			stage.benefit, stage.useful = stage.benefit+s.benefit, true
		}
	}
	if s.good {
		r.EachToken(func(at time.Duration, n int64) {
			for g := range l.goodsAt(at, r) {
				g.tokens, g.counted = g.tokens+n, true
			}
		})
	}
}

// goodsAt are the counts of the stage in whose window a moment lies, and of the request's class if that is measured.
func (l *Ledger) goodsAt(at time.Duration, r *measure.Reply) iter.Seq[*goods] {
	return func(yield func(*goods) bool) {
		i := l.stageAt(at, r.Stage)
		if i < 0 || !yield(&l.stages[i].goods) {
			return
		}
		if r.Class != "" && !l.manifest.Stages[i].Warmup {
			yield(&l.class(r.Class).goods)
		}
	}
}

// during returns the account of the stage in whose window a moment lies, nil between stages. The guess is tried first.
func (l *Ledger) during(at time.Duration, guess int) *account {
	if i := l.stageAt(at, guess); i >= 0 {
		return l.stages[i]
	}
	return nil
}

// stageAt is during's stage, -1 between stages.
func (l *Ledger) stageAt(at time.Duration, guess int) int {
	if l.windows[guess].holds(at) {
		return guess
	}
	for i, w := range l.windows {
		if w.holds(at) {
			return i
		}
	}
	return -1
}

// measured selects the requests of measured stages.
func (l *Ledger) measured(p *page, i int) bool { return !l.manifest.Stages[p.stage[i]].Warmup }

// Finish makes the Summary of what was added; tail says what the log had lost.
func (l *Ledger) Finish(tail record.Tail) *Summary {
	m := l.manifest
	s := &Summary{Schema: SummarySchema, Stages: []Part{}, spec: leavesOf(m.Spec)}
	e := &verdict.Evidence{Client: m.Client, Admission: m.Admission, Clock: m.Clock, Loops: m.Loops, State: m.State, CPUs: m.Env.CPUs, Recorded: l.recorded, Duplicates: l.duplicates,
		Health: l.health, PlanIDs: m.Plan, Generator: m.Generator, FixedLength: l.spec.Workload.IgnoreEOS, Workload: l.workloadEvidence()}
	total := newAccount(len(l.table))
	var all sum
	for i, stage := range m.Stages {
		a := l.stages[i]
		planned, known := l.planned(stage, a)
		recorded := a.outcomes.Sum()
		e.OpenEnded = e.OpenEnded || !known
		a.missing = max(planned-recorded, 0)
		e.Planned += planned
		e.Excess += max(recorded-planned, 0)
		w := l.spans(i, max(planned, recorded), known)
		part := a.figures(l.table, stage.Kind, max(planned, recorded), w)
		part.Name, part.Warmup, part.Arrivals.Asked = stage.Name, stage.Warmup, stage.Arrivals
		part.StartMs, part.EndMs = stage.StartMs, stage.StartMs+float64(w.lasted)/1e6
		if !stage.Warmup {
			part.AllPlanned = l.estimates(i)
			part.Steadiness = l.steadiness(i, w.lasted)
			part.Objectives = l.objectives(&a.goods, ofStage(i), "", w)
		}
		s.Stages = append(s.Stages, part)
		if !stage.Warmup {
			total.merge(a)
			all.add(part, w)
			found := a.evidence(stage, e.Interrupted(), l.index)
			addQuality(&found, &part)
			e.Stages = append(e.Stages, found)
		}
	}
	s.Total = total.figures(l.table, all.kind, all.requests, all.spans)
	s.Total.Arrivals = Arrivals{} // its stages do not begin at the same moment
	s.Total.Name, s.Total.StartMs, s.Total.EndMs = "total", all.startMs, all.endMs
	s.Servers = l.servers
	s.SLO, s.Total.Objectives = l.slo(), l.objectives(&total.goods, l.measured, "", all.spans)
	s.Workload, s.Classes, s.Turns = l.workload(), l.classed(all.spans), l.byTurn()
	s.Run = l.run(e)
	e.Queues = queues(s.Run.Loops)
	s.Server = l.server.figures(l)
	e.Server = serverEvidence(s.Server, m.Client)
	s.Verdict = verdict.Judge(e)
	s.Warnings = l.warnings(s, e, total, tail)
	return s
}

// steadiness looks at stage i together with the warm-up that came right before it with the same load.
func (l *Ledger) steadiness(i int, lasted time.Duration) *Steadiness {
	a := l.stages[i]
	var warm *account
	var warmed time.Duration
	if i > 0 && sameLoad(&l.manifest.Stages[i-1], &l.manifest.Stages[i]) && l.windows[i-1].end == l.windows[i].start {
		warm, warmed = l.stages[i-1], l.windows[i-1].length()
	}
	stage := &l.manifest.Stages[i]
	oneRate := stage.RateToPerS <= 0 || math.Abs(stage.RateToPerS-stage.RatePerS) < 1e-9*stage.RatePerS
	s := a.steadiness(lasted, stage.Kind == "open", oneRate, l.server.waiting(l.windows[i].start, lasted), warm, warmed)
	gauge, known := int64(0), l.manifest.State.Complete && len(l.manifest.Loops) > 0
	for _, loop := range l.manifest.Loops {
		known = known && len(loop.InFlightNs) > i
		if known {
			gauge += loop.InFlightNs[i]
		}
	}
	s.Little = a.balance(gauge, known)
	return &s
}

func sameLoad(warmup, stage *record.Stage) bool {
	return warmup.Warmup && warmup.Kind == stage.Kind && warmup.RatePerS == stage.RatePerS && warmup.Concurrency == stage.Concurrency
}

// planned is how many requests the stage should have on record. Random arrivals by time are counted as they are made, and a
// closed stage that ends by time plans none of its own: until the run's end is written, what is recorded is all that is known.
func (l *Ledger) planned(s record.Stage, a *account) (n int64, known bool) {
	if s.Planned == 0 && !l.manifest.State.Complete {
		return a.outcomes.Sum(), false
	}
	return s.Planned, true
}

// spans measures the window of stage i. The manifest of a run that ended gives it whole, to the moment of the stop if it was
// stopped; that of a killed run gives the one planned, which was cut no earlier than the last record.
func (l *Ledger) spans(i int, planned int64, known bool) spans {
	w, state := l.windows[i], l.manifest.State
	ran := w
	if !state.Complete || w.end == math.MaxInt64 {
		ran.end = min(w.end, max(l.last, moment(state.EndMs)))
	}
	s := spans{asked: w.length(), due: planned, lasted: ran.length()}
	if w.end == math.MaxInt64 || !known {
		s.asked = ran.length()
	}
	if state.Cause != "" {
		s.due -= l.stages[i].beyond
	}
	return s
}

// sum adds up the measured stages.
type sum struct {
	spans
	requests       int64
	startMs, endMs float64
	kind           string
}

func (t *sum) add(p Part, w spans) {
	if t.kind == "" {
		t.kind, t.startMs = p.Kind, p.StartMs
	} else if t.kind != p.Kind {
		t.kind = "mixed"
	}
	t.requests += p.Planned
	t.asked += w.asked
	t.due += w.due
	t.lasted += w.lasted
	t.endMs = max(t.endMs, p.EndMs)
}

func (l *Ledger) run(e *verdict.Evidence) Run {
	m := l.manifest
	r := Run{
		Target: m.Target, Tool: m.Tool, Plan: m.Plan, Client: m.Client, Admission: m.Admission, Env: m.Env, Cause: m.State.Cause, GCCycles: m.State.GCCycles,
		Loops:    loopsOf(m.Loops),
		Complete: m.State.Complete && m.State.Cause == "" && e.Recorded == e.Planned,
		EndMs:    Some(float64(l.last) / 1e6),
	}
	if !m.Clock.StartWall.IsZero() {
		r.Start = m.Clock.StartWall.Format(time.RFC3339Nano)
	}
	if m.State.EndMs > 0 {
		r.EndMs, r.CPUMs = Some(m.State.EndMs), Some(m.State.CPUMs)
	}
	if len(m.Loops) > 0 {
		dials := int64(0)
		for _, loop := range m.Loops {
			dials += loop.DialsInRun
		}
		r.Dials = Some(float64(dials))
	}
	return r
}

// warnings are the manifest's, and what the reader of the figures must know besides.
func (l *Ledger) warnings(s *Summary, e *verdict.Evidence, total *account, tail record.Tail) []string {
	all := append([]string{}, l.manifest.Warnings...)
	warn := func(when bool, format string, args ...any) {
		if when {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	state := l.manifest.State
	warn(state.Cause != "", "the run was cut short: %s", state.Cause)
	warn(state.Cause == "" && !state.Complete, "the run did not come to its end: the figures are those of the records that were written")
	warn(e.Recorded < e.Planned, "%d of %d planned requests have no record", e.Planned-e.Recorded, e.Planned)
	warn(e.Excess > 0, "%d records are more than the manifest planned", e.Excess)
	warn(e.Duplicates > 0, "%d records repeat an index and were left out", e.Duplicates)
	warn(tail.LostBlocks > 0 || tail.LostExchanges > 0, "%d damaged blocks of the log were skipped, with at least %d records", tail.LostBlocks, tail.LostExchanges)
	warn(tail.Torn, "the log ends in the middle of a block")
	completed := total.outcomes.Completed
	warn(total.bundled.tokens > total.bundled.events+total.bundled.events/20, "token events hold %s tokens on average and the server does not tell how many each: tpot_ms counts one for the first event, and is too low where it held more",
		measure.Digits(float64(total.bundled.tokens)/float64(max(total.bundled.events, 1))))
	warn(total.uncounted > 0, "the server gave no token counts for %d of %d completed replies: token rates are lower bounds", total.uncounted, completed)
	if gaps := s.Total.Metrics[measure.ICL]; gaps.Bounds.Bounded > 0 {
		count := gaps.N + gaps.Bounds.Bounded
		share := float64(gaps.Bounds.Bounded) / float64(count)
		warn(share > 0.05, "%.0f %% of the gaps between token events are known by bounds only, since several events came in one read: icl_ms and itl_ms are those of the others", 100*share)
	}
	wait, _ := s.Total.Metrics[measure.Connect].P99.Get()
	ttft, _ := s.Total.Metrics[measure.TTFT].P99.Get()
	warn(wait > max(1, 0.05*ttft), "requests waited up to %s for a connection to be dialled: client.connections opens more before the start", measure.Milliseconds.Format(highest(s.Total.Metrics[measure.Connect])))
	return all
}

func highest(f Figures) float64 {
	ms, _ := f.Max.Get()
	return ms * measure.Milliseconds.Scale()
}
