package calibrate_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"tare/internal/drive/calibrate"
)

var made = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func stored() *calibrate.Calibration {
	return &calibrate.Calibration{
		Schema: calibrate.Schema, Made: made, Expires: made.Add(time.Hour),
		Machine: calibrate.Machine{CPU: "abacus", CPUs: 2, Kernel: "6", Tare: "v1", Engine: "epoll", Loops: 1, GOMAXPROCS: 3},
		Shape:   calibrate.Shape{Stream: true, Reuse: true, BodyBytes: 900, Events: 100},
		Mixed:   calibrate.Capacity{RequestsPerS: 1000, EventsPerS: 80000}, LockStep: &calibrate.Capacity{Streams: 200},
	}
}

func TestACalibrationIsFoundForItsMachineAndShapeOnly(t *testing.T) {
	store := calibrate.Store{Dir: t.TempDir() + "/new"}
	want := stored()
	if _, err := store.Keep(want); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(m *calibrate.Machine, s *calibrate.Shape, now *time.Time)
		found  bool
	}{
		{"the same", func(*calibrate.Machine, *calibrate.Shape, *time.Time) {}, true},
		{"a shape nearby", func(_ *calibrate.Machine, s *calibrate.Shape, _ *time.Time) { s.Events, s.BodyBytes = 65, 1024 }, true},
		{"longer answers", func(_ *calibrate.Machine, s *calibrate.Shape, _ *time.Time) { s.Events = 129 }, false},
		{"larger requests", func(_ *calibrate.Machine, s *calibrate.Shape, _ *time.Time) { s.BodyBytes = 1025 }, false},
		{"TLS", func(_ *calibrate.Machine, s *calibrate.Shape, _ *time.Time) { s.TLS = true }, false},
		{"another kernel", func(m *calibrate.Machine, _ *calibrate.Shape, _ *time.Time) { m.Kernel = "7" }, false},
		{"more loops", func(m *calibrate.Machine, _ *calibrate.Shape, _ *time.Time) { m.Loops = 2 }, false},
		{"another tare", func(m *calibrate.Machine, _ *calibrate.Shape, _ *time.Time) { m.Tare = "v2" }, false},
		{"the last moment", func(_ *calibrate.Machine, _ *calibrate.Shape, now *time.Time) { *now = made.Add(time.Hour - 1) }, true},
		{"expired", func(_ *calibrate.Machine, _ *calibrate.Shape, now *time.Time) { *now = made.Add(time.Hour) }, false},
		{"not made yet", func(_ *calibrate.Machine, _ *calibrate.Shape, now *time.Time) { *now = made.Add(-1) }, false},
	} {
		m, s, now := want.Machine, want.Shape, made
		c.change(&m, &s, &now)
		got, err := store.Find(m, s, now)
		switch {
		case c.found && (err != nil || !reflect.DeepEqual(got, want)):
			t.Errorf("%s: got %+v, error %v, want what was stored", c.name, got, err)
		case !c.found && !errors.Is(err, calibrate.ErrNone):
			t.Errorf("%s: got %+v, error %v, want none", c.name, got, err)
		}
	}
}

func TestALaterCalibrationReplacesTheEarlier(t *testing.T) {
	store := calibrate.Store{Dir: t.TempDir()}
	c := stored()
	first, err := store.Keep(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Mixed.RequestsPerS = 2000
	second, err := store.Keep(c)
	if err != nil || first != second {
		t.Fatalf("got %s and %s, error %v, want one file", first, second, err)
	}
	got, err := store.Find(c.Machine, c.Shape, made)
	if err != nil || got.Mixed.RequestsPerS != 2000 {
		t.Errorf("got %+v, error %v, want the later one", got, err)
	}
	if left, _ := os.ReadDir(store.Dir); len(left) != 1 {
		t.Errorf("files: got %d, want 1", len(left))
	}
}

func TestADamagedCalibrationIsNamed(t *testing.T) {
	store := calibrate.Store{Dir: t.TempDir()}
	c := stored()
	path, err := store.Keep(c)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"{": "unexpected end", `{"schema":"tare.calibration/v9"}`: `got "tare.calibration/v9"`} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := store.Find(c.Machine, c.Shape, made)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got error %v, want one with %q and the file", text, err, want)
		}
	}
}

func TestTheBusiestShareCounts(t *testing.T) {
	c := stored()
	for _, tt := range []struct {
		demand calibrate.Demand
		want   calibrate.Use
		known  bool
	}{
		{calibrate.Demand{RequestsPerS: 500, EventsPerS: 8000}, calibrate.Use{Share: 0.5, Of: "requests"}, true},
		{calibrate.Demand{RequestsPerS: 500, EventsPerS: 60000}, calibrate.Use{Share: 0.75, Of: "events"}, true},
		{calibrate.Demand{Streams: 100}, calibrate.Use{Of: "requests"}, false},
	} {
		if got, ok := c.Use(tt.demand); got != tt.want || ok != tt.known {
			t.Errorf("%+v: got %+v, %v, want %+v, %v", tt.demand, got, ok, tt.want, tt.known)
		}
	}
	if got, ok := c.LockStepUse(calibrate.Demand{Streams: 100}); !ok || got != (calibrate.Use{Share: 0.5, Of: "streams"}) {
		t.Errorf("got %+v, %v, want half of the streams", got, ok)
	}
	c.LockStep = nil
	if got, ok := c.LockStepUse(calibrate.Demand{Streams: 100}); ok {
		t.Errorf("got %+v, want nothing without a calibration in lock-step", got)
	}
}
