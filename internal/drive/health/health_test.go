package health

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/drive/clock"
	"tare/internal/record"
)

func TestWatchSamplesEverySecondAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		var out bytes.Buffer
		done := make(chan struct{})
		time.AfterFunc(2500*time.Millisecond, func() { close(done) })
		if err := Watch(c, &out, nil, done); err != nil {
			t.Fatal(err)
		}
		var ends, spans []float64
		for line := range strings.Lines(out.String()) {
			var h record.Health
			if err := json.Unmarshal([]byte(line), &h); err != nil {
				t.Fatal(err)
			}
			ends, spans = append(ends, h.AtMs), append(spans, h.SpanMs)
		}
		if len(ends) != 3 || ends[0] != 1000 || ends[1] != 2000 || ends[2] != 2500 || spans[2] != 500 {
			t.Errorf("got samples at %v ms of %v ms, want at 1000, 2000, 2500, the last of 500", ends, spans)
		}
	})
}

type full struct{ writes int }

func (f *full) Write([]byte) (int, error) { f.writes++; return 0, errors.New("disk full") }

func TestWatchStopsAtTheFirstErrorOfItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(full)
		err := Watch(clock.New(), f, nil, make(chan struct{}))
		if err == nil || !strings.Contains(err.Error(), "disk full") || f.writes != 1 {
			t.Errorf("got error %v after %d writes, want disk full after 1", err, f.writes)
		}
	})
}

func TestDelaysAreThoseSinceTheLastReading(t *testing.T) {
	edges := []float64{0, 0.001, 0.002, 0.004, math.Inf(1)}
	d := between([]uint64{5, 0, 0, 0}, []uint64{204, 1, 0, 1}, edges)
	if want := (record.Delays{N: 201, P99Ms: 1, MaxMs: 4}); d != want {
		t.Errorf("got %+v, want %+v", d, want)
	}
	if d := between([]uint64{5, 0, 0, 0}, []uint64{5, 0, 0, 0}, edges); d != (record.Delays{}) {
		t.Errorf("without a delay: got %+v, want none", d)
	}
}
