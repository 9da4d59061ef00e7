package judge

import (
	"cmp"
	"slices"
	"time"

	"tare/internal/judge/measure"
)

// turns is what became of the first turns of sessions, or of the later ones.
type turns struct {
	account *account
	lengths lengths
}

// converses says that sessions have turns.
func (l *Ledger) converses() bool {
	return l.manifest.Workload != nil && l.manifest.Workload.MeanTurns > 0
}

// addTurn takes a request of a session. Turns have no window: they count whole stages.
func (l *Ledger) addTurn(r *measure.Reply) {
	if !l.converses() {
		return
	}
	t := l.turns[min(r.Turn, 1)]
	*t.account.outcomes.Of(r.Outcome)++
	t.account.measure(r, l.table)
	t.lengths.add(r.Exchange, l.block())
}

// byTurn are the first and the later turns.
func (l *Ledger) byTurn() (all []Turns) {
	if !l.converses() {
		return nil
	}
	for i, name := range [...]string{"first", "later"} {
		a := l.turns[i].account
		p := a.figures(l.table, "", a.outcomes.Sum(), spans{})
		t := Turns{Turns: name, Outcomes: a.outcomes, Cached: ratio(l.turns[i].lengths.cached, l.turns[i].lengths.told), Metrics: Metrics{}}
		for _, metric := range classMetrics() {
			t.Metrics[metric] = p.Metrics[metric]
		}
		all = append(all, t)
	}
	return all
}

// start is the first request of a session: when it was due, and when it was sent if it was, since the start of the window.
type start struct {
	index     int64
	due, sent time.Duration
	wasSent   bool
}

// seat counts the starts of sessions as neighbours, whose indexes leave room for their turns.
func (a *account) seat() {
	slices.SortFunc(a.starts, func(x, y start) int { return cmp.Compare(x.index, y.index) })
	for i, s := range a.starts {
		a.arrivals.planned.Add(int64(i), s.due)
		if s.wasSent {
			a.arrivals.sent.Add(int64(i), s.sent)
		}
	}
	a.starts = nil
}
