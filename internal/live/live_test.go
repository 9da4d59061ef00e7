package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/live"
	"tare/internal/record"
)

func manifest() *record.Manifest {
	return &record.Manifest{
		Stages: []record.Stage{{Name: "warmup", Warmup: true}, {Name: `st"ge`}}, Target: record.Target{Model: "m", Endpoint: "openai-chat"},
		Clock: record.Clock{StartWall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
}

// block holds n requests of stage 1: TTFT 40 ms, E2E 60 ms, sent 2 ms late; the first failed.
func block(from, n int) []byte {
	var b []byte
	for i := from; i < from+n; i++ {
		due := time.Duration(i) * time.Millisecond
		sent := due + 2*time.Millisecond
		x := &record.Exchange{
			Index: int64(i), Stage: 1, Due: due, FirstWrite: record.At(sent), Outcome: record.Completed, Status: 200, End: record.At(sent + 60*time.Millisecond),
			Usage: record.Usage{Known: true, Input: 10, Output: 2},
			Events: []record.Event{
				{KernelAt: sent + 40*time.Millisecond, UserAt: sent + 40*time.Millisecond, Kind: record.KindContent},
				{KernelAt: sent + 50*time.Millisecond, UserAt: sent + 50*time.Millisecond, Kind: record.KindContent},
			},
		}
		if i == 0 {
			x.Outcome, x.Cause, x.Status, x.Error, x.Events, x.Usage = record.HTTPError, record.CauseHTTPStatus, 503, "overloaded", nil, record.Usage{}
		}
		b = record.AppendExchange(b, x)
	}
	return b
}

// collector is a transport to a collector that keeps what it is sent.
type collector struct {
	mu     sync.Mutex
	bodies map[string][]string // by path
	header http.Header
	answer func(*http.Request) error
}

func (c *collector) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	if c.answer != nil {
		if err := c.answer(q); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bodies == nil {
		c.bodies = map[string][]string{}
	}
	c.bodies[q.URL.Path] = append(c.bodies[q.URL.Path], string(body))
	c.header = q.Header
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func TestPrometheusReadsTheRunSoFar(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	teller := live.New(live.Options{Listener: l})
	var telling sync.WaitGroup
	telling.Go(func() { teller.Tell(context.Background()) })
	teller.Begin(manifest())
	teller.Block(block(0, 100), 100)
	teller.Progress(300, 120, 20)
	page := fetched(t, "http://"+l.Addr().String()+"/metrics", `tare_requests_total{stage="st\"ge",outcome="completed"} 99`)
	for _, want := range []string{
		"tare_planned_requests 300\n", "tare_sent_requests_total 120\n", "tare_in_flight_requests 20\n", "tare_untold_records_total 0\n",
		`tare_requests_total{stage="st\"ge",outcome="http_error"} 1`, `tare_tokens_total{stage="st\"ge",type="output"} 198`,
		`tare_ttft_seconds_bucket{stage="st\"ge",le="0.03"} 0`, `tare_ttft_seconds_bucket{stage="st\"ge",le="0.05"} 99`, `tare_ttft_seconds_count{stage="st\"ge"} 99`,
		`tare_slip_seconds_bucket{stage="st\"ge",le="0.002"} 100`, `tare_e2e_seconds_sum{stage="st\"ge"} 5.94`, "# TYPE tare_e2e_seconds histogram\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	teller.End()
	telling.Wait()
	if _, err := http.Get("http://" + l.Addr().String() + "/metrics"); err == nil {
		t.Error("the page is served after the end of the run")
	}
}

// fetched reads a page until it has a line: blocks are read by another goroutine.
func fetched(t *testing.T, url, line string) (page string) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for limit.Err() == nil {
		reply, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if page = string(body); err != nil || strings.Contains(page, line) {
			return page
		}
	}
	return page
}

func TestACollectorIsToldOfEveryRequestAndOfSums(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		teller := live.New(live.Options{Collector: "http://collector/base/", Headers: map[string]string{"X-Key": "secret"}, Transport: c})
		var telling sync.WaitGroup
		telling.Go(func() { teller.Tell(context.Background()) })
		teller.Begin(manifest())
		teller.Block(block(0, 3000), 3000)
		time.Sleep(6 * time.Second) // virtual: one report at five
		teller.Block(block(3000, 10), 10)
		teller.End()
		telling.Wait()
		spans := 0
		for _, body := range c.bodies["/base/v1/traces"] {
			spans += strings.Count(body, `"spanId"`)
		}
		if spans != 3010 || c.header.Get("X-Key") != "secret" {
			t.Errorf("got %d spans, key %q, want 3010", spans, c.header.Get("X-Key"))
		}
		first := c.bodies["/base/v1/traces"][0]
		for _, want := range []string{
			`"name":"chat m","kind":3,"startTimeUnixNano":"1767323045002000000","endTimeUnixNano":"1767323045062000000"`, `{"key":"error.type","value":{"stringValue":"http_status"}}`,
			`"status":{"code":2,"message":"overloaded"}`, `{"timeUnixNano":"1767323045043000000","name":"first_token"}`,
			`{"key":"gen_ai.usage.output_tokens","value":{"intValue":"2"}}`, `{"key":"tare.slip_ns","value":{"intValue":"2000000"}}`,
		} {
			if !strings.Contains(first, want) {
				t.Errorf("no %s in %.1500s", want, first)
			}
		}
		last := c.bodies["/base/v1/metrics"][len(c.bodies["/base/v1/metrics"])-1]
		if !json.Valid([]byte(last)) || !strings.Contains(last, `"asInt":"3009"`) || !strings.Contains(last, `"count":"3009"`) {
			t.Errorf("the last sums are not of 3009 completed requests: %.1500s", last)
		}
		if records, lost := teller.Lost(); records+lost != 0 {
			t.Errorf("got %d records and %d spans lost", records, lost)
		}
	})
}

func TestASlowCollectorHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(q *http.Request) error {
			<-q.Context().Done()
			return context.Cause(q.Context())
		}}
		teller := live.New(live.Options{Collector: "http://collector", Transport: c})
		var telling sync.WaitGroup
		telling.Go(func() { teller.Tell(context.Background()) })
		teller.Begin(manifest())
		before := time.Now()
		for i := range 30 {
			teller.Block(block(i*1000, 1000), 1000)
			synctest.Wait() // the block is read
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("taking blocks took %v", took)
		}
		teller.End()
		telling.Wait()
		if took := time.Since(before); took != 10*time.Second {
			t.Errorf("ended after %v, want twice the patience of 5 s", took)
		}
		if records, lost := teller.Lost(); records != 0 || lost != 30_000 {
			t.Errorf("lost: got %d records, %d spans, want 0 and all 30,000", records, lost)
		}
	})
}

func TestBlocksThatNobodyReadsAreCounted(t *testing.T) {
	teller := live.New(live.Options{})
	for range 100 { // it has not begun
		teller.Block(block(0, 5), 5)
	}
	if records, _ := teller.Lost(); records != 36*5 {
		t.Errorf("got %d records lost, want those of the 36 blocks for which there was no place", records)
	}
}

func TestARunThatNeverBeginsEnds(t *testing.T) {
	teller := live.New(live.Options{Collector: "http://collector", Transport: &collector{answer: func(*http.Request) error { return errors.New("down") }}})
	teller.End()
	teller.Tell(context.Background())
	if _, lost := teller.Lost(); lost != 0 {
		t.Error(fmt.Sprint("got spans lost: ", lost))
	}
}
