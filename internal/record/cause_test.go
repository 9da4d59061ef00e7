package record

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestEveryCauseHasANameAndOneOutcome(t *testing.T) {
	seen := map[string]bool{}
	covered := map[Outcome]bool{Completed: true}
	for _, c := range Causes() {
		name := c.String()
		if name == "" || name == "unknown" || seen[name] {
			t.Errorf("cause %d: name %q is none or taken", c, name)
		}
		seen[name], covered[c.Outcome()] = true, true
		if c.Outcome() == 0 || c.Outcome() == Completed {
			t.Errorf("cause %s: outcome %v, want one of a failure", c, c.Outcome())
		}
	}
	for _, o := range Outcomes {
		if !covered[o] {
			t.Errorf("outcome %v has no cause", o)
		}
	}
	if unknown := Cause(len(causes)); unknown.Outcome() != 0 || unknown.String() != "unknown" {
		t.Errorf("a cause of a later version: got %v, %q, want no outcome and unknown", unknown.Outcome(), unknown)
	}
}

// The numbers are in files and never change their meaning.
func TestNumbersOfCausesAreThoseOfTheDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/rundir.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, c := range Causes() {
		want = append(want, fmt.Sprintf("%d %s", c, c))
	}
	if line := "Causes: 0 none, " + strings.Join(want, ", ") + "."; !strings.Contains(strings.Join(strings.Fields(string(doc)), " "), line) {
		t.Errorf("docs/rundir.md has no line\n%s", line)
	}
}

func TestRecordsOlderThanCausesStillRead(t *testing.T) {
	for _, c := range []struct {
		x    Exchange
		want int
	}{
		{Exchange{Outcome: HTTPError, FirstWrite: At(time.Second)}, 1},
		{Exchange{Outcome: NotSent}, 0},
	} {
		c.x.Attempts = 7 // spelled out, and then cut off again
		b := AppendExchange(nil, &c.x)
		b = b[:len(b)-3]
		binary.LittleEndian.PutUint32(b, uint32(len(b)-lengthSize))
		flags := binary.LittleEndian.Uint16(b[lengthSize:])
		binary.LittleEndian.PutUint16(b[lengthSize:], flags&^hasEnding)
		got := Exchange{Cause: CauseStale, RetryAfter: 1}
		if _, err := DecodeExchange(b, &got); err != nil || got.Attempts != c.want || got.Cause != CauseNone || got.RetryAfter != 0 {
			t.Errorf("%v: got %d attempts, cause %v, Retry-After %v, error %v; want %d, none, 0", c.x.Outcome, got.Attempts, got.Cause, got.RetryAfter, err, c.want)
		}
	}
}

func TestEveryCauseIsExplained(t *testing.T) {
	doc, err := os.ReadFile("../../docs/outcomes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Causes() {
		if row := fmt.Sprintf("\n| `%s` | `%s` | ", c.Outcome(), c); strings.Count(string(doc), row) != 1 {
			t.Errorf("docs/outcomes.md: %d rows begin with %q, want 1", strings.Count(string(doc), row), row)
		}
	}
}
