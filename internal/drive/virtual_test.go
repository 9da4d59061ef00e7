package drive_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/drive"
	"tare/internal/plan"
	"tare/internal/record"
)

// metronome is a server over pipes whose first token comes ttft after the request and the others gap apart.
func metronome(ttft, gap time.Duration, tokens int) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			in := bufio.NewReader(server)
			for {
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				io.Copy(io.Discard, req.Body)
				<-time.After(ttft)
				fmt.Fprint(server, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
				for i := range tokens {
					if i > 0 {
						<-time.After(gap)
					}
					chunk(server, `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n")
				}
				chunk(server, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
				fmt.Fprint(server, "0\r\n\r\n")
			}
		}()
		return client, nil
	}
}

func chunk(w io.Writer, s string) { fmt.Fprintf(w, "%x\r\n%s\r\n", len(s), s) }

func TestOpenLoopKeepsScheduleWhateverTheServerDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Connections: 1,
			Dial: metronome(50*time.Millisecond, 10*time.Millisecond, 4)}
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 100, Requests: 30}))
		for _, x := range all {
			sent, _ := x.FirstWrite.Get()
			if want := time.Duration(x.Index) * 10 * time.Millisecond; x.Due != want || sent != want {
				t.Errorf("request %d: due %v, sent %v, want both %v", x.Index, x.Due, sent, want)
			}
			var at []time.Duration
			for _, e := range x.Events {
				if e.Kind.Token() {
					at = append(at, e.UserAt-sent)
				}
			}
			want := []time.Duration{50 * time.Millisecond, 60 * time.Millisecond, 70 * time.Millisecond, 80 * time.Millisecond}
			if fmt.Sprint(at) != fmt.Sprint(want) {
				t.Errorf("request %d: tokens at %v after sending, want %v", x.Index, at, want)
			}
		}
	})
}

func TestClosedLoopSendsWhenAReplyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: 1,
			Dial: metronome(20*time.Millisecond, 0, 1)}
		all, m := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 2, Duration: 100 * time.Millisecond}))
		if len(all) != 10 || m.Stages[0].Planned != 10 {
			t.Fatalf("%d requests recorded, %d planned; want 10: two at once, 20 ms each, for 100 ms", len(all), m.Stages[0].Planned)
		}
		for i, x := range all {
			if want := time.Duration(i/2) * 20 * time.Millisecond; x.Due != want {
				t.Errorf("request %d due at %v, want %v", i, x.Due, want)
			}
		}
	})
}

// Each reply's think time leads to a due time, at which a request is sent, whichever place has been waiting longer.
func TestClosedLoopThinksBetweenReplyAndRequest(t *testing.T) {
	for _, process := range []string{plan.ThinkConstant, plan.ThinkExponential} {
		for _, loops := range []int{1, 3} {
			synctest.Test(t, func(t *testing.T) {
				const requests, reply, places = 200, 20 * time.Millisecond, 7
				cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: loops, Dial: metronome(reply, 0, 1)}
				s := spec(plan.Load{Concurrency: places, Requests: requests, ThinkTime: 300 * time.Millisecond, Think: process})
				all, _ := carry(t, t.Context(), cfg, s)
				frozen, err := plan.New(s, nil)
				if err != nil {
					t.Fatal(err)
				}
				open := map[time.Duration]int{} // moments at which a request should fall due
				for place := range places {
					open[frozen.Begins(0)(place)]++
				}
				thinks := map[int64]time.Duration{}
				w := frozen.Walk()
				for r := (plan.Request{}); w.Next(&r); {
					thinks[r.Index] = r.Think
				}
				for _, x := range all {
					end, _ := x.End.Get()
					open[end+thinks[x.Index]]++
				}
				for _, x := range all {
					if sent, _ := x.FirstWrite.Get(); sent != x.Due {
						t.Errorf("%s, %d loops, request %d: sent at %v, want %v", process, loops, x.Index, sent, x.Due)
					}
					if open[x.Due]--; open[x.Due] < 0 {
						t.Errorf("%s, %d loops, request %d: due %v, which is no think time after a reply", process, loops, x.Index, x.Due)
					}
				}
				if len(all) != requests || all[requests-1].Due < 5*time.Second {
					t.Errorf("%s, %d loops: %d requests until %v, want %d that take 9 s or so", process, loops, len(all), all[len(all)-1].Due, requests)
				}
			})
		}
	}
}

func TestAdmissionLimitCountsRequestsThatWaitForADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		dialling, most := 0, 0
		connect := metronome(10*time.Millisecond, 0, 1)
		cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: 1, Connections: 1,
			Dial: func(ctx context.Context) (net.Conn, error) {
				mu.Lock()
				dialling++
				most = max(most, dialling)
				mu.Unlock()
				<-time.After(50 * time.Millisecond)
				mu.Lock()
				dialling--
				mu.Unlock()
				return connect(ctx)
			}}
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Stages: []plan.LoadStage{{Rate: 1000, Requests: 60, MaxInFlight: 2}}}))
		if n := outcomes(all); n["completed"] != 60 || most > 2 {
			t.Errorf("outcomes %v, %d dials at once, want 60 completed and at most 2", n, most)
		}
	})
}

func TestBytesBehindTheEndMarkerKeepNothingAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: 1, Timeout: 10 * time.Second,
			Dial: func(context.Context) (net.Conn, error) {
				client, server := net.Pipe()
				go func() {
					defer server.Close()
					if req, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
						_, _ = io.Copy(io.Discard, req.Body)
					}
					fmt.Fprint(server, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
					chunk(server, `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
					for range 100 {
						<-time.After(100 * time.Millisecond)
						chunk(server, ": ping\n\n")
					}
				}()
				return client, nil
			}}
		all, m := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 1, Requests: 2}))
		if n := outcomes(all); n["completed"] != 2 || m.State.EndMs > 2100 {
			t.Errorf("outcomes %v after %v ms, want 2 completed, each given up a second after its end marker", n, m.State.EndMs)
		}
		<-time.After(time.Minute) // the server's goroutines end
	})
}

func TestStagesLastAsLongAsTheyShould(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Dial: metronome(time.Millisecond, 0, 1)}
		_, m := carry(t, t.Context(), cfg, spec(plan.Load{Stages: []plan.LoadStage{
			{Rate: 2, Requests: 4},
			{Concurrency: 1, Requests: 5, Gap: time.Second},
			{Rate: 0.1, Duration: 3 * time.Second},
			{Concurrency: 1, Requests: 5, Duration: time.Second},        // ended by its count
			{Concurrency: 1, Requests: 5000, Duration: 2 * time.Second}, // ended by its time
			{Rate: 1, Requests: 1},
		}}))
		want := [][2]float64{{0, 2000}, {3000, 3005}, {3005, 6005}, {6005, 6010}, {6010, 8010}, {8010, 9010}}
		for i, s := range m.Stages {
			if s.StartMs != want[i][0] || s.EndMs != want[i][1] {
				t.Errorf("stage %d from %v to %v ms, want %v", i+1, s.StartMs, s.EndMs, want[i])
			}
		}
		if m.Clock.MaxStepNs != 0 {
			t.Errorf("the clock stepped by %d ns, want 0", m.Clock.MaxStepNs)
		}
	})
}

func TestDrainLimitCutsWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Timeout: time.Hour, Drain: time.Second,
			Dial: metronome(time.Minute, 0, 1)}
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 10, Requests: 5}))
		if len(all) != 5 {
			t.Errorf("%d requests recorded, want 5", len(all))
		}
		for _, x := range all {
			end, _ := x.End.Get()
			if x.Outcome != record.Cancelled || end < 1500*time.Millisecond || end > 1700*time.Millisecond {
				t.Errorf("request %d: %v at %v, want cancelled a second after the load's 0.5 s", x.Index, x.Outcome, end)
			}
		}
		<-time.After(2 * time.Minute) // the server's goroutines end with their waits
	})
}
