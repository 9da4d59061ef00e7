package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"tare/internal/plan"
	"tare/internal/record"
)

// sent is what a run sent: bodies by their hash, and the class and due time of each request.
type sent struct {
	bodies map[[sha256.Size]byte]int
	due    map[int64]string
}

func sendTo(t *testing.T, loops int) sent {
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
	spec.Client.Loops, spec.Out = loops, t.TempDir()+"/run"
	spec.Workload.Text, spec.Workload.Tokenizer, spec.Workload.InputTokens = plan.TextMarkov, plan.TokenizerEmbedded, "uniform(10,80)"
	spec.Workload.Prefix.Groups, spec.Workload.Prefix.Tokens, spec.Workload.SystemTokens = 3, 16, 8
	spec.Workload.Classes = []plan.Class{{Name: "gold", Model: "lora"}, {Name: "free", Weight: 2, OutputTokens: "lognormal(9,4)"}}
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
		s.due[x.Index] = fmt.Sprint(x.Due/time.Nanosecond, x.Class, x.PlannedIn, x.PlannedOut)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnyNumberOfLoopsSendsTheSameWorkload(t *testing.T) {
	one, three := sendTo(t, 1), sendTo(t, 3)
	if !maps.Equal(one.bodies, three.bodies) || len(one.bodies) != 120 {
		t.Errorf("bodies: got %d and %d, want the same 120", len(one.bodies), len(three.bodies))
	}
	if !maps.Equal(one.due, three.due) || len(one.due) != 120 {
		t.Errorf("planned times, classes and lengths: got %v and %v, want the same 120", one.due, three.due)
	}
}
