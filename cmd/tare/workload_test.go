package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"tare/internal/drive"
	"tare/internal/plan"
	"tare/internal/record"
	"tare/internal/sim"
)

// sent is what a run sent: bodies by their hash, and the class and due time of each request.
type sent struct {
	bodies map[[sha256.Size]byte]int
	due    map[int64]string
}

func sendTo(t *testing.T, engine string, loops int, change func(*plan.Spec)) sent {
	t.Helper()
	var lock sync.Mutex
	s := sent{map[[sha256.Size]byte]int{}, map[int64]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		lock.Lock()
		s.bodies[sha256.Sum256(body)]++
		lock.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	spec := plan.Defaults()
	spec.Target.URL, spec.Target.Model, spec.Target.APIKeyEnv = server.URL, "m", ""
	spec.Load.Rate, spec.Load.Requests, spec.Load.Seed = 400, 120, 11
	spec.ServerMetrics.URLs = plan.MetricsOff
	spec.Client.Engine, spec.Client.Loops, spec.Out = engine, loops, t.TempDir()+"/run"
	spec.Workload.Text, spec.Workload.Tokenizer, spec.Workload.InputTokens = plan.TextMarkov, plan.TokenizerEmbedded, "uniform(10,80)"
	spec.Workload.Prefix.Groups, spec.Workload.Prefix.Tokens, spec.Workload.SystemTokens = 3, 16, 8
	spec.Workload.Classes = []plan.Class{{Name: "gold", Model: "lora"}, {Name: "free", Weight: 2, OutputTokens: "lognormal(9,4)"}}
	change(&spec)
	l, err := newLoad(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer l.plan.Close()
	r, err := l.perform(t.Context(), nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.ReadLog(r.dir, func(x *record.Exchange) error {
		due := x.Due / time.Nanosecond
		if x.Turn > 0 {
			due = 0 // it follows from a reply
		}
		s.due[x.Index] = fmt.Sprint(due, x.Session, x.Turn, x.Class, x.PlannedIn, x.PlannedOut)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// Neither the number of shards nor the engine changes a byte of what is sent, or a planned time: not of lone requests, not of sessions with
// recorded histories.
func TestAnyNumberOfLoopsSendsTheSameWorkload(t *testing.T) {
	engines := []string{plan.EngineGoroutine}
	if drive.HasEpoll() {
		engines = append(engines, plan.EngineEpoll)
	}
	for name, load := range map[string]struct {
		change   func(*plan.Spec)
		requests int
	}{
		"requests": {func(*plan.Spec) {}, 120},
		"sessions": {func(s *plan.Spec) {
			s.Load.Requests = 40
			s.Workload.Conversation.Turns, s.Workload.Conversation.History = "3", plan.HistoryRecorded
		}, 120},
	} {
		one := sendTo(t, plan.EngineAuto, 1, load.change)
		if len(one.bodies) != load.requests || len(one.due) != load.requests {
			t.Errorf("%s: got %d different bodies and %d records, want %d", name, len(one.bodies), len(one.due), load.requests)
		}
		for _, engine := range engines {
			other := sendTo(t, engine, 3, load.change)
			if !maps.Equal(one.bodies, other.bodies) {
				t.Errorf("%s, engine %s, 3 loops: %d bodies, not the same %d", name, engine, len(other.bodies), len(one.bodies))
			}
			if !maps.Equal(one.due, other.due) {
				t.Errorf("%s, engine %s, 3 loops: planned times, classes and lengths: got %v, want %v", name, engine, other.due, one.due)
			}
		}
	}
}

// The simulator counts by rules of its own, in code of its own.
func TestTheServerCountsEveryPromptAsPlanned(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	addr, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- sim.Serve(ctx, sim.Config{Addr: "127.0.0.1:0"}, func(a string) { addr <- a })
	}()
	defer func() { stop(); <-ended }()
	dir := t.TempDir() + "/run"
	code := execute(t.Context(), []string{
		"run", "http://" + <-addr, "--model", "sim", "--concurrency", "8", "--requests", "200", "--input-tokens", "uniform(1,400)", "--system-tokens", "7",
		"--prefix-groups", "3", "--prefix-tokens", "32", "--out", dir, "--quiet",
	}, io.Discard, t.Output())
	if code != exitDone {
		t.Fatalf("exit code %d, want %d", code, exitDone)
	}
	counted, lengths := 0, map[int]bool{}
	if _, err := record.ReadLog(dir, func(x *record.Exchange) error {
		if !x.Usage.Known || x.Usage.Input != x.PlannedIn {
			t.Errorf("request %d: the server counts %+v, planned are %d", x.Index, x.Usage, x.PlannedIn)
		}
		counted++
		lengths[x.PlannedIn] = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if counted != 200 || len(lengths) < 100 {
		t.Errorf("got %d requests of %d lengths, want 200 of many", counted, len(lengths))
	}
}
