package measure_test

import (
	"testing"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/record"
)

// tokensAt is a completed reply of one-token events.
func tokensAt(moments ...float64) *record.Exchange {
	var events []record.Event
	for _, at := range moments {
		events = append(events, event(at, record.KindContent))
	}
	return streamed(len(events), events...)
}

func TestDeadlinesAreThoseOfEtalon(t *testing.T) {
	pace := measure.Pace{First: 100 * time.Millisecond, Each: 10 * time.Millisecond}
	for _, tt := range []struct {
		name        string
		x           *record.Exchange
		met, missed int64
	}{
		{"all in time", tokensAt(100, 110, 120), 3, 0},
		{"slack of an early first token carries over", tokensAt(50, 60, 115, 120), 4, 0},
		{"late first token: 1 + ⌊25/10⌋ missed", tokensAt(125, 135), 1, 3},
		{"first token just late", tokensAt(101, 111), 1, 1},
		{"stall of 35 with 10 left over: ⌊25/10⌋ missed, then anew", tokensAt(90, 100, 135, 145), 3, 2},
		{"slack is lost by a miss", tokensAt(50, 200, 210, 221), 2, 11},
		{"several tokens at once leave slack for the next", streamed(4, exactly(3, event(100, record.KindContent)), exactly(1, event(130, record.KindContent))), 4, 0},
	} {
		var r measure.Reply
		r.Read(tt.x)
		if met, missed, ok := pace.Deadlines(&r); !ok || met != tt.met || missed != tt.missed {
			t.Errorf("%s: got %d met, %d missed, %v, want %d, %d", tt.name, met, missed, ok, tt.met, tt.missed)
		}
	}
}

func TestBenefitIsTokensLessIdleTime(t *testing.T) {
	pace := measure.Pace{First: 100 * time.Millisecond, Each: 10 * time.Millisecond}
	late := tokensAt(130, 140, 150)
	early := tokensAt(20, 25, 120)
	for _, tt := range []struct {
		name string
		x    *record.Exchange
		want float64
	}{
		{"all in time", tokensAt(100, 110, 120), 3},
		{"the last one was read for before it was due", early, 3},
		{"15 ms idle are one and a half tokens", tokensAt(90, 95, 135), 1.5},
		{"30 ms idle are all three", late, 0},
		{"the latest counts, not the last", tokensAt(100, 150, 151, 152, 153, 154), 2},
		{"never below nothing", tokensAt(900), 0},
	} {
		var r measure.Reply
		r.Read(tt.x)
		if got, ok := pace.Benefit(&r); !ok || !near(got, tt.want) {
			t.Errorf("%s: got %g, %v, want %g", tt.name, got, ok, tt.want)
		}
	}
}

func TestPaceMayCountFromDue(t *testing.T) {
	x := tokensAt(100, 110)
	x.Due = ms(-15)
	var r measure.Reply
	r.Read(x)
	pace := measure.Pace{First: 100 * time.Millisecond, Each: 10 * time.Millisecond, FromDue: true}
	if met, missed, _ := pace.Deadlines(&r); met != 1 || missed != 2 {
		t.Errorf("deadlines: got %d met, %d missed, want 1, 2", met, missed)
	}
	if got, _ := pace.Benefit(&r); !near(got, 0.5) {
		t.Errorf("benefit: got %g, want 0.5", got)
	}
}

func TestPaceNeedsTokenCounts(t *testing.T) {
	x := tokensAt(100, 110)
	x.Usage = record.Usage{}
	var r measure.Reply
	r.Read(x)
	pace := measure.Pace{First: 1, Each: 1}
	if _, _, ok := pace.Deadlines(&r); ok {
		t.Error("deadlines of a reply whose tokens nobody counted: got some, want none")
	}
	if _, ok := pace.Benefit(&r); ok {
		t.Error("benefit of a reply whose tokens nobody counted: got one, want none")
	}
}
