package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"tare/internal/judge"
	"tare/internal/judge/capacity"
	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
)

// WriteSweep puts sweep.json into its directory.
func WriteSweep(s *capacity.Sweep) error {
	if err := replace(s.Dir, capacity.SweepFile, s); err != nil {
		return fmt.Errorf("write sweep: %w", err)
	}
	return nil
}

// SweepJSON writes s as sweep.json holds it.
func SweepJSON(w io.Writer, s *capacity.Sweep) error { return Encode(w, s) }

// Sweep writes a sweep for people: the answer first, then every run.
func Sweep(w io.Writer, s *capacity.Sweep) error {
	var b bytes.Buffer
	if s.Answer != nil {
		writeAnswer(&b, s.Answer)
	} else {
		wrap(&b, "", saturation(s))
	}
	if s.Cause != "" {
		wrap(&b, "ended     ", "early: "+s.Cause)
	}
	writeRuns(&b, s)
	writeProfiles(&b, s)
	writeDiagnosis(&b, s.Curve)
	took := time.Duration(s.WallMs * 1e6).Round(100 * time.Millisecond)
	fmt.Fprintf(&b, "\nwall time %v, %d runs\n", took, len(s.Results))
	writeFilesOfSeveral(&b, s.Dir, capacity.SweepFile)
	_, err := w.Write(b.Bytes())
	return err
}

func writeAnswer(b *bytes.Buffer, a *capacity.Answer) {
	if !a.Stable.Known {
		wrap(b, "no capacity: ", a.Stable.Why)
		return
	}
	wrap(b, "capacity  ", limitText("λ_stab", &a.Stable, 1))
	word := "valid"
	if !a.Valid {
		word = "NOT VALID"
	}
	wrap(b, "          ", word+": "+a.Reason)
	if a.Cut != "" {
		wrap(b, "          ", a.Cut)
	}
	wrap(b, "          ", limitText("λ_SLO", &a.Objective, 1))
	wrap(b, "          ", limitText("X_max", &a.Plateau, 1))
	b.WriteByte('\n')
	for _, c := range a.Checks {
		wrap(b, fmt.Sprintf("%-3s %-16s %-13s ", c.ID, c.Name, c.Outcome), c.Measured)
	}
}

// limitText says what a limit is, with its interval and resolution.
func limitText(name string, l *capacity.Limit, scale float64) string {
	if !l.Known {
		return name + " not known: " + l.Why
	}
	rate := func(v float64) string { return measure.Digits(v * scale) }
	switch {
	case l.Above:
		return fmt.Sprintf("%s %s requests/s or more: no higher rate was refuted", name, rate(l.Rate))
	case l.High <= 0:
		return fmt.Sprintf("%s %s requests/s", name, rate(l.Rate))
	}
	return fmt.Sprintf("%s %s requests/s (%s to %s), known to %s %%", name, rate(l.Rate), rate(l.Low), rate(l.High), measure.Digits(100*l.Resolution))
}

// gained is by how much a closed loop must go faster than any before it, for one that is not saturated.
const gained = 0.05

// Saturated reports whether the last of some points is one at which the server is saturated: an open loop that it does not keep up with, the second
// closed loop in a row that goes no faster than 5 % more than any before, or one in which nothing completed.
func Saturated(all []capacity.Result) bool {
	last := len(all) - 1
	switch {
	case last < 0:
		return false
	case all[last].Completed == 0 || all[last].State == stats.Overloaded:
		return true
	}
	return last >= 2 && stalled(all[:last+1]) && stalled(all[:last])
}

// stalled reports whether the last closed loop went no faster than those before it.
func stalled(all []capacity.Result) bool {
	last := len(all) - 1
	if last < 1 || all[last].Load.InFlight == 0 {
		return false
	}
	now, _ := all[last].Rate.Get()
	return now <= fastest(all[:last])*(1+gained)
}

func fastest(all []capacity.Result) (most float64) {
	for i := range all {
		v, _ := all[i].Rate.Get()
		most = max(most, v)
	}
	return most
}

// saturation is the first line of a plain sweep: between which points the server saturates.
func saturation(s *capacity.Sweep) string {
	var carried, refused *capacity.Result
	for i := range s.Results {
		r := &s.Results[i]
		if r.Load.InFlight > 0 {
			return plateau(s.Results)
		}
		switch {
		case !r.Valid && !s.Biased:
		case r.State == stats.Stable && (carried == nil || r.Load.Rate > carried.Load.Rate):
			carried = r
		case r.State == stats.Overloaded && (refused == nil || r.Load.Rate < refused.Load.Rate):
			refused = r
		}
	}
	switch {
	case carried == nil && refused == nil:
		return "saturation: not known: no run tells whether the server keeps up"
	case carried == nil:
		return fmt.Sprintf("saturation: below %s requests/s, the least rate at which the server does not keep up", measure.Digits(refused.Load.Rate))
	case refused == nil:
		return fmt.Sprintf("saturation: above %s requests/s: the server keeps up with every rate that was tried", measure.Digits(carried.Load.Rate))
	case refused.Load.Rate < carried.Load.Rate:
		return fmt.Sprintf("saturation: not clear: the server keeps up with %s requests/s and not with %s", measure.Digits(carried.Load.Rate), measure.Digits(refused.Load.Rate))
	}
	return fmt.Sprintf("saturation: between %s requests/s, which the server keeps up with, and %s, which it does not (to within %d %%)",
		measure.Digits(carried.Load.Rate), measure.Digits(refused.Load.Rate), int(100*judge.StableWithin))
}

// plateau is the first line of a sweep of closed loops.
func plateau(all []capacity.Result) string {
	best := 0
	for i := range all {
		if v, _ := all[i].Rate.Get(); v > fastest(all[:best+1]) {
			best = i
		}
	}
	r := &all[best]
	text := fmt.Sprintf("most: %s requests/s complete with %d in flight", plain(r.Rate), r.Load.InFlight)
	if low, ok := r.Low.Get(); ok {
		high, _ := r.High.Get()
		text += fmt.Sprintf(" (%s to %s)", measure.Digits(low), measure.Digits(high))
	}
	if Saturated(all) {
		return text + "; more in flight gains nothing"
	}
	return text + "; more may gain more"
}

// writeRuns writes a line for each run: what was offered and how the server stood to it.
func writeRuns(b *bytes.Buffer, s *capacity.Sweep) {
	fmt.Fprintf(b, "\n%3s  %-9s %16s %9s %8s  %-10s %16s %8s %9s  %s\n", "run", "for", "load", "window", "requests", "state", "left standing", "ok/s", "tokens/s", "client")
	for i := range s.Results {
		b.WriteString(SweepLine(i+1, &s.Results[i]) + "\n")
	}
}

// SweepLine is the line of run n.
func SweepLine(n int, r *capacity.Result) string {
	client := "ok"
	if !r.Valid {
		gate, _, _ := strings.Cut(r.Fault, ":")
		client = "failed " + printable(gate)
	}
	window := r.Load.Dwell.Round(100 * time.Millisecond).String()
	if r.Load.Requests > 0 {
		window = "-"
	}
	return fmt.Sprintf("%3d  %-9s %16s %9s %8d  %-10s %16s %8s %9s  %s", n, r.Load.Phase, loadText(&r.Load), window, r.Planned, stateText(r), leftText(r), plain(r.Rate), plain(r.Output), client)
}

func loadText(l *capacity.Load) string {
	switch {
	case l.InFlight > 0:
		return fmt.Sprintf("%d in flight", l.InFlight)
	case l.Then > 0:
		return fmt.Sprintf("%s/s, then %s", measure.Digits(l.Rate), measure.Digits(l.Then))
	case l.Even:
		return measure.Digits(l.Rate) + "/s even"
	}
	return measure.Digits(l.Rate) + "/s"
}

func stateText(r *capacity.Result) string {
	if r.State == "" {
		return "-"
	}
	return string(r.State)
}

func leftText(r *capacity.Result) string {
	left, ok := r.Shortfall.Get()
	if !ok {
		return "-"
	}
	err, _ := r.Error.Get()
	if failed, _ := r.Failed.Get(); failed > stats.MostFailed {
		return fmt.Sprintf("%.3g %% failed", 100*failed)
	}
	return fmt.Sprintf("%.1f ± %.1f %%", 100*left, 100*err)
}

// writeProfiles writes the latencies of each load that stands for itself: not those of a search for a bound, which last only as long as that takes.
func writeProfiles(b *bytes.Buffer, s *capacity.Sweep) {
	type cell struct{ name, level string }
	cells := []cell{
		{measure.TTFT, "p50"}, {measure.TTFT, "p99"}, {measure.TTFTFromDue, "p99"}, {measure.TPOT, "p50"}, {measure.ITL, "p50"}, {measure.ITL, "p99"},
		{measure.NTPOT, "p50"}, {measure.E2E, "p50"}, {measure.E2E, "p99"}, {measure.E2EFromDue, "p99"},
	}
	good, priced := false, s.Price > 0
	for i := range s.Results {
		_, ok := s.Results[i].Goodput.Get()
		good = good || ok
	}
	fmt.Fprintf(b, "\n%3s  %16s  %-24s  %-7s  %-16s  %-7s  %-24s", "", "", "TTFT", "TPOT", "ITL", "NTPOT", "E2E")
	fmt.Fprintf(b, "\n%3s  %16s  %7s %7s %8s  %7s  %7s %8s  %7s  %7s %7s %8s", "run", "load", "p50", "p99", "due p99", "p50", "p50", "p99", "p50", "p50", "p99", "due p99")
	if good {
		fmt.Fprintf(b, "  %7s %7s", "good", "good/s")
	}
	if priced {
		fmt.Fprintf(b, "  %9s %9s", "$/M out", "$/M all")
	}
	b.WriteByte('\n')
	for i := range s.Results {
		r := &s.Results[i]
		if r.Load.Phase == capacity.Bracket || r.Load.Phase == capacity.Refine || !r.Valid && !s.Biased {
			continue
		}
		v := make([]any, len(cells))
		for i, c := range cells {
			p := r.Metrics[c.name]
			n := p.P50
			if c.level == "p99" {
				n = p.P99
			}
			v[i] = spanOf(n)
		}
		fmt.Fprintf(b, "%3d  %16s  ", i+1, loadText(&r.Load))
		fmt.Fprintf(b, "%7s %7s %8s  %7s  %7s %8s  %7s  %7s %7s %8s", v...)
		if good {
			fmt.Fprintf(b, "  %7s %7s", shareText(r.Good), plain(r.Goodput))
		}
		if priced {
			out, all := r.Cost(s.Price)
			fmt.Fprintf(b, "  %9s %9s", plain(out), plain(all))
		}
		b.WriteByte('\n')
	}
}

// writeDiagnosis says what the shape of the throughput curve suggests, and that it decides nothing.
func writeDiagnosis(b *bytes.Buffer, d *capacity.Diagnosis) {
	if d == nil {
		return
	}
	of := func(e capacity.Estimate) string {
		return fmt.Sprintf("%s (%s to %s)", plain(e.Value), plain(e.Low), plain(e.High))
	}
	text := fmt.Sprintf("universal scalability law: γ %s/s, σ %s, κ %s, misfit %s;", of(d.Gamma), of(d.Sigma), of(d.Kappa), shareText(d.Miss))
	if _, ok := d.Peak.Value.Get(); ok {
		text += fmt.Sprintf(" most %s/s at %s in flight;", of(d.Most), of(d.Peak))
	} else {
		text += " no peak within reach of what was measured;"
	}
	b.WriteByte('\n')
	wrap(b, "diagnosis ", text+fmt.Sprintf(" Kneedle: knee at %s in flight. %d runs; a shape, and no capacity", of(d.Knee), d.Runs))
}
