package calibrate_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"tare/internal/drive/calibrate"
)

// machine holds every level up to its limit; each trial takes a second of its own clock.
type machine struct {
	limit     float64
	disturbed int // trials that fail whatever the level
	now       time.Time
	tried     []float64
}

func (m *machine) clock() time.Time { return m.now }

func (m *machine) try(_ context.Context, level float64) (calibrate.Trial, error) {
	m.now = m.now.Add(time.Second)
	m.tried = append(m.tried, level)
	if m.disturbed > 0 {
		m.disturbed--
		return calibrate.Trial{Why: "disturbed"}, nil
	}
	if level > m.limit {
		return calibrate.Trial{Why: "slip"}, nil
	}
	return calibrate.Trial{Held: true, RequestsPerS: level}, nil
}

func (m *machine) search() calibrate.Search {
	return calibrate.Search{First: 100, Least: 4, Most: 1e5, Tries: 3, Accuracy: 0.1, Time: time.Minute, Clock: m.clock}
}

func TestTheSearchFindsTheLimit(t *testing.T) {
	for _, limit := range []float64{5, 99, 100, 101, 150, 1600, 12345} {
		m := &machine{limit: limit}
		f, err := m.search().Run(t.Context(), m.try)
		if err != nil {
			t.Fatal(err)
		}
		if f.Best.Level > limit || f.Broke.Level <= limit || f.Broke.Level > f.Best.Level*1.1 {
			t.Errorf("limit %v: got held %v and broken %v, want the limit between them and 10 %% at most", limit, f.Best.Level, f.Broke.Level)
		}
		if f.Best.RequestsPerS != f.Best.Level || f.Broke.Why != "slip" || f.Trials != len(m.tried) || math.Abs(f.Accuracy-(f.Broke.Level/f.Best.Level-1)) > 1e-12 {
			t.Errorf("limit %v: got %+v after %d trials, want the trials themselves, counted", limit, f, len(m.tried))
		}
	}
}

func TestOneDisturbanceIsTriedAgain(t *testing.T) {
	m := &machine{limit: 1000, disturbed: 2}
	f, err := m.search().Run(t.Context(), m.try)
	if err != nil || f.Best.Level < 900 {
		t.Errorf("got %v, error %v, want some 1000 although the first two trials were disturbed", f.Best.Level, err)
	}
}

func TestTheSearchEndsInTime(t *testing.T) {
	m := &machine{limit: 1000}
	s := m.search()
	s.Time = 2 * time.Second
	f, err := s.Run(t.Context(), m.try)
	if err != nil || f.Trials != 2 || f.Best.Level != 200 || f.Broke.Level != 0 || f.Accuracy != 0 {
		t.Errorf("got %+v, error %v, want the second of two levels held and none broken", f, err)
	}
}

func TestTheSearchEndsAtItsMost(t *testing.T) {
	m := &machine{limit: math.Inf(1)}
	s := m.search()
	s.Most = 1000
	f, err := s.Run(t.Context(), m.try)
	if err != nil || f.Best.Level != 1000 || f.Trials != 5 {
		t.Errorf("got %+v, error %v, want 100, 200, 400, 800 and 1000 tried", f, err)
	}
}

func TestAMachineThatHoldsNothingIsAnError(t *testing.T) {
	m := &machine{limit: 1}
	_, err := m.search().Run(t.Context(), m.try)
	if !errors.Is(err, calibrate.ErrBusy) || !strings.Contains(err.Error(), "at 4 already slip") {
		t.Errorf("got error %v, want one that names the lowest level and why", err)
	}
	broken := errors.New("broken")
	_, err = m.search().Run(t.Context(), func(context.Context, float64) (calibrate.Trial, error) { return calibrate.Trial{}, broken })
	if !errors.Is(err, broken) {
		t.Errorf("got error %v, want the trial's own", err)
	}
}
