package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/drive/calibrate"
	"tare/internal/judge/verdict"
	"tare/internal/plan"
)

// loadOf is a load of 32 events an answer.
func loadOf(t *testing.T, change func(*plan.Spec)) load {
	t.Helper()
	spec := plan.Defaults()
	spec.Target.URL, spec.Target.Model, spec.Target.APIKeyEnv = "http://127.0.0.1:1", "m", ""
	spec.Load.Duration = time.Second
	change(&spec)
	l, err := newLoad(spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// calibrated stores what this machine can do: 1,000 requests and 32,000 events a second, and 100 streams in lock-step.
func calibrated(t *testing.T, l load) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	b, err := newBench(l)
	if err != nil {
		t.Fatal(err)
	}
	store, err := calibrations()
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Keep(&calibrate.Calibration{
		Schema: calibrate.Schema, Made: time.Now().Add(-time.Minute), Expires: time.Now().Add(time.Hour), Machine: b.machine, Shape: b.shape,
		Mixed: calibrate.Capacity{RequestsPerS: 1000, EventsPerS: 32000}, LockStep: &calibrate.Capacity{Streams: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPlanIsHeldAgainstTheCalibration(t *testing.T) {
	for _, c := range []struct {
		name    string
		load    func(*plan.Spec)
		allowed bool

		share   float64 // 0 when there is none
		biased  bool
		refused bool
		said    string
		warning string
	}{
		{name: "little", load: func(s *plan.Spec) { s.Load.Rate = 400 }, share: 0.4, said: "takes 0.40 of the requests"},
		{name: "much", load: func(s *plan.Spec) { s.Load.Rate = 600 }, share: 0.6, said: "takes 0.60", warning: "takes 0.60 of the requests"},
		{name: "too much", load: func(s *plan.Spec) { s.Load.Rate = 800 }, share: 0.8, refused: true},
		{name: "too much, allowed", load: func(s *plan.Spec) { s.Load.Rate = 800 }, allowed: true, share: 0.8, biased: true, said: "takes 0.80", warning: "takes 0.80"},
		{name: "allowed without need", load: func(s *plan.Spec) { s.Load.Rate = 400 }, allowed: true, share: 0.4, said: "takes 0.40"},
		{name: "the end of a ramp", load: func(s *plan.Spec) {
			s.Load.Stages = []plan.LoadStage{{Rate: 10, RateTo: 800, Duration: time.Second}}
			s.Load.Duration = 0
		}, share: 0.8, refused: true},
		{name: "a closed loop", load: func(s *plan.Spec) { s.Load.Concurrency = 60 }, said: "closed loop", warning: "lock-step, 60 of them take 0.60"},
		{name: "other answers", load: func(s *plan.Spec) { s.Load.Rate, s.Workload.OutputTokens = 800, "400" }, said: "not known for such a load"},
	} {
		t.Run(c.name, func(t *testing.T) {
			calibrated(t, loadOf(t, func(s *plan.Spec) { s.Load.Rate = 1 }))
			l := loadOf(t, c.load)
			var said bytes.Buffer
			err := l.admit(t.Context(), admissionOptions{allowBiased: c.allowed}, &said)
			if e, ok := errors.AsType[*exit](err); c.refused != (ok && e.code == exitUsage && strings.Contains(e.text(), "--allow-biased")) {
				t.Errorf("got error %v, want refused %v, with a way out", err, c.refused)
			}
			if !strings.Contains(said.String(), c.said) {
				t.Errorf("got notice %q, want %q in it", said.String(), c.said)
			}
			if got := strings.Join(l.target.warnings, "\n"); !strings.Contains(got, c.warning) || (c.warning == "") != (got == "") {
				t.Errorf("got warnings %q, want %q", got, c.warning)
			}
			switch a := l.admission; {
			case (a != nil) != (c.share > 0):
				t.Errorf("got admission %+v, want a share of %v", a, c.share)
			case a != nil && (a.Utilisation-c.share > 1e-9 || c.share-a.Utilisation > 1e-9 || a.AllowedBiased != c.biased):
				t.Errorf("got admission %+v, want a share of %v, allowed %v", a, c.share, c.biased)
			}
		})
	}
}

func TestWithoutACalibrationNothingIsRefused(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	l := loadOf(t, func(s *plan.Spec) { s.Load.Rate = 1e5 })
	var said bytes.Buffer
	if err := l.admit(t.Context(), admissionOptions{}, &said); err != nil || l.admission != nil || !strings.Contains(said.String(), "--auto-calibrate") {
		t.Errorf("got error %v, admission %+v and %q, want a word on how to calibrate", err, l.admission, said.String())
	}
}

func TestTheVerdictRemembersAnAllowedBias(t *testing.T) {
	calibrated(t, loadOf(t, func(s *plan.Spec) { s.Load.Rate = 1 }))
	server := httptest.NewServer(&service{path: "/v1/chat/completions", reply: "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n"})
	defer server.Close()
	l := loadOf(t, func(s *plan.Spec) {
		s.Target.URL, s.Out = server.URL, filepath.Join(t.TempDir(), "out")
		s.Load.Rate, s.Load.Duration, s.Load.Requests = 800, 0, 4
	})
	if err := l.admit(t.Context(), admissionOptions{allowBiased: true}, io.Discard); err != nil {
		t.Fatal(err)
	}
	r, err := l.perform(t.Context(), nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	g := r.summary.Verdict.Gates[0]
	if r.summary.Verdict.Class != verdict.InvalidClient || g.ID != "C1" || !strings.Contains(g.Measured, "0.80 of the requests") || !strings.Contains(g.Measured, "--allow-biased") {
		t.Errorf("got %s and %+v, want INVALID-CLIENT by C1", r.summary.Verdict.Class, g)
	}
	if a := r.summary.Run.Admission; a == nil || !a.AllowedBiased {
		t.Errorf("got admission %+v in the summary, want it allowed", a)
	}
}

// A calibration of a moment: a machine that is busy with other things may hold no level, and says so.
func TestCalibrateStoresWhatARunThenFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	tare, err := exec.LookPath("tare")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tare, "calibrate", "--output-tokens", "4", "--time", "500ms", "--json").Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && strings.Contains(string(e.Stderr), "too busy") {
		t.Skip(string(e.Stderr))
	}
	if err != nil {
		t.Fatal(err)
	}
	var c calibrate.Calibration
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatalf("got %q: %v", out, err)
	}
	if c.Schema != calibrate.Schema || c.Shape.Events != 4 || c.Mixed.RequestsPerS <= 0 || c.Mixed.EventsPerS < c.Mixed.RequestsPerS || c.Expires.Sub(c.Made) != calibrateKeep {
		t.Errorf("got %+v, want a capacity for answers of 4 events that holds for a week", c)
	}
	stderr, err := exec.Command(tare, "run", "http://127.0.0.1:1", "--model", "m", "--rate", "1e6", "--requests", "10", "--output-tokens", "4").CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != exitUsage || !strings.Contains(string(stderr), "was calibrated for") {
		t.Errorf("got %v and %q, want a refusal by what was stored", err, stderr)
	}
}
