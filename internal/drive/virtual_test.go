package drive_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
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
		go tick(server, ttft, gap, tokens)
		return client, nil
	}
}

// tick serves one connection of a metronome.
func tick(server net.Conn, ttft, gap time.Duration, tokens int) {
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

// A server that keeps its connections costs as many as are needed while the first ones rest.
func TestConnectionsThatServersKeepAreSoonTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Loops: 1, Connections: 1,
			Dial: metronome(time.Millisecond, 0, 1)}
		all, m := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 1, Requests: 100}))
		fresh := 0
		for _, x := range all {
			if !x.Reused {
				fresh++
			}
		}
		if l := m.Loops[0]; fresh != 3 || l.DialsInRun != 2 || l.ClosedEarly != 0 {
			t.Errorf("%d requests on new connections, %d dialled in the run, %d closed early; want 3, 2 and 0: replies of 1ms, rests of 2ms", fresh, l.DialsInRun, l.ClosedEarly)
		}
	})
}

// A deadline that has passed and is put off must not harm what TLS holds.
func TestTimeOutsOfPhasesLeaveTLSWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		identity := newAuthority(t).issue(t)
		cfg := virtual(drive.Config{TokenTimeout: 100 * time.Millisecond})
		cfg.Servers[0].TLS = &tls.Config{InsecureSkipVerify: true}
		cfg.Dial = func(context.Context) (net.Conn, error) {
			client, server := net.Pipe()
			go tick(tls.Server(server, &tls.Config{Certificates: []tls.Certificate{identity}}), 0, 60*time.Millisecond, 10)
			return client, nil
		}
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 2, Requests: 4}))
		for _, x := range all {
			sent, _ := x.FirstWrite.Get()
			if end, _ := x.End.Get(); x.Outcome != record.Completed || end-sent != 540*time.Millisecond {
				t.Errorf("request %d: %v after %v (%s), want completed after 540ms: ten tokens 60ms apart", x.Index, x.Outcome, end-sent, x.Error)
			}
		}
	})
}

// dawdling is a connection whose writes return later than what is written arrives.
type dawdling struct{ net.Conn }

func (d dawdling) Write(b []byte) (int, error) {
	n, err := d.Conn.Write(b)
	<-time.After(time.Millisecond)
	return n, err
}

func TestRepliesThatOvertakeTheEndOfAWriteCostNoConnection(t *testing.T) {
	connect := metronome(0, 0, 1)
	cfg := drive.Config{Engine: drive.EngineGoroutine, Servers: at("pipe"), Loops: 1, Connections: 1,
		Dial: func(ctx context.Context) (net.Conn, error) {
			c, err := connect(ctx)
			return dawdling{c}, err
		}}
	all, m := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 20, Requests: 10}))
	if n := outcomes(all); n["completed"] != 10 || m.Loops[0].DialsInRun != 0 {
		t.Errorf("outcomes %v, %d connections made in the run; want 10 completed on the first", n, m.Loops[0].DialsInRun)
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

// step is something a scripted server does: it waits, then writes.
type step struct {
	wait time.Duration
	text string
}

// scripted answers each request of each connection, counted from 0 over all of them, with steps, and closes where they are nil.
func scripted(answers func(request int) []step) func(context.Context) (net.Conn, error) {
	var mu sync.Mutex
	n := -1
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
				_, _ = io.Copy(io.Discard, req.Body)
				mu.Lock()
				n++
				steps := answers(n)
				mu.Unlock()
				if steps == nil {
					return
				}
				for _, s := range steps {
					<-time.After(s.wait)
					if _, err := io.WriteString(server, s.text); err != nil {
						return
					}
				}
			}
		}()
		return client, nil
	}
}

func chunked(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

const streamHead = sseHead + "Transfer-Encoding: chunked\r\n\r\n"

func virtual(c drive.Config) drive.Config {
	c.Engine, c.Timers, c.Servers, c.Loops, c.Connections = drive.EngineGoroutine, true, at("pipe"), 1, 1
	if c.Timeout == 0 {
		c.Timeout = time.Hour
	}
	return c
}

func TestTimeOutsStrikeAtTheirMoment(t *testing.T) {
	s := time.Second
	ping := step{s, chunked(": ping\n\n")}
	token := func(wait time.Duration) step { return step{wait, chunked(sseToken)} }
	pings := make([]step, 20)
	for i := range pings {
		pings[i] = ping
	}
	cases := []struct {
		name  string
		cfg   drive.Config
		steps []step
		want  record.Cause
		at    time.Duration
	}{
		{"headers", drive.Config{HeaderTimeout: 3 * s, FirstTokenTimeout: 5 * s}, []step{{10 * s, streamHead}}, record.CauseTimeoutHeaders, 3 * s},
		{"half a header", drive.Config{HeaderTimeout: 3 * s}, []step{{s, "HTTP/1.1 200 OK\r\n"}, {10 * s, ""}}, record.CauseTimeoutHeaders, 3 * s},
		{"first token", drive.Config{HeaderTimeout: 3 * s, FirstTokenTimeout: 5 * s}, []step{{s, streamHead}, {s, chunked(sseRole)}, {20 * s, ""}}, record.CauseTimeoutFirstToken, 5 * s},
		{"comments feed nothing before", drive.Config{FirstTokenTimeout: 5 * s}, append([]step{{s / 2, streamHead}}, pings...), record.CauseTimeoutFirstToken, 5 * s},
		{"comments feed nothing between", drive.Config{FirstTokenTimeout: 5 * s, TokenTimeout: 2 * s}, append([]step{{s / 2, streamHead}, token(s), token(s)}, pings...), record.CauseTimeoutBetweenTokens, s/2 + 4*s},
		{"a token sets the watch", drive.Config{TokenTimeout: 2 * s}, []step{{10 * s, streamHead}, token(20 * s), token(s), token(20 * s)}, record.CauseTimeoutBetweenTokens, 33 * s},
		{"each token puts it off", drive.Config{TokenTimeout: 2 * s}, []step{{0, streamHead}, token(s), token(s), token(s), token(s), token(s), token(3 * s)}, record.CauseTimeoutBetweenTokens, 7 * s},
		{"total", drive.Config{Timeout: 4 * s, TokenTimeout: 2 * s}, []step{{0, streamHead}, token(s), token(s), token(s), token(s), token(s)}, record.CauseTimeoutTotal, 4 * s},
		{"the phase goes before the total", drive.Config{Timeout: 4 * s, HeaderTimeout: 4 * s}, []step{{10 * s, ""}}, record.CauseTimeoutHeaders, 4 * s},
		{"an end marker ends the watch", drive.Config{TokenTimeout: 2 * s}, []step{{0, streamHead}, token(s), {s, chunked(sseFinish + "data: [DONE]\n\n")}, {s / 2, "0\r\n\r\n"}}, record.CauseNone, 2 * s},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := virtual(c.cfg)
				cfg.Dial = scripted(func(int) []step { return c.steps })
				all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 1, Requests: 1}))
				sent, _ := all[0].FirstWrite.Get()
				end, _ := all[0].End.Get()
				if all[0].Cause != c.want || end-sent != c.at {
					t.Errorf("got %q %v after the first write (%s), want %q after %v", all[0].Cause, end-sent, all[0].Error, c.want, c.at)
				}
				<-time.After(time.Hour) // the server's goroutines end
			})
		})
	}
}

// answer is a whole reply of one token.
func answer() []step {
	return []step{{time.Millisecond, streamHead + chunked(sseToken) + chunked(sseFinish+"data: [DONE]\n\n") + "0\r\n\r\n"}}
}

func refusal(head string) []step {
	return []step{{time.Millisecond, "HTTP/1.1 " + head + "\r\nContent-Length: 0\r\n\r\n"}}
}

func TestRetriesWaitAsAskedAndCountFromTheFirstAttempt(t *testing.T) {
	ms := time.Millisecond
	busy := "503 Busy"
	after := busy + "\r\nRetry-After: 2"
	cases := []struct {
		name     string
		retries  int
		answers  [][]step
		want     record.Cause
		attempts int
		at       time.Duration // end since the first write
		after    time.Duration // Retry-After on record
	}{
		{"none unless asked for", 0, [][]step{refusal(after)}, record.CauseRateLimited, 1, ms, 2 * time.Second},
		{"Retry-After", 1, [][]step{refusal(after), answer()}, record.CauseNone, 2, 2*time.Second + 2*ms, 2 * time.Second},
		{"back-off", 3, [][]step{refusal(busy), refusal("429 Slow"), answer()}, record.CauseNone, 3, 303 * ms, 0},
		{"a later refusal counts for itself", 2, [][]step{refusal(after), refusal(busy), answer()}, record.CauseNone, 3, 2*time.Second + 203*ms, 0},
		{"and one that says what nobody can read", 2, [][]step{refusal(after), refusal(busy + "\r\nRetry-After: soon"), answer()}, record.CauseNone, 3, 2*time.Second + 203*ms, 0},
		{"the last failure is the one on record", 2, [][]step{refusal(busy), refusal(busy), refusal(busy)}, record.CauseRateLimited, 3, 303 * ms, 0},
		{"another status is final", 3, [][]step{refusal("500 No")}, record.CauseHTTPStatus, 1, ms, 0},
		{"closed without a reply", 1, [][]step{nil, answer()}, record.CauseNone, 2, 101 * ms, 0},
		{"a token is final", 3, [][]step{{{ms, sseHead + "\r\n" + sseToken}, {ms, "data: {\"error\":\"boom\"}\n\n"}, {time.Hour, ""}}}, record.CauseTimeoutTotal, 1, time.Minute, 0},
		{"not beyond the request's time", 3, [][]step{refusal(busy + "\r\nRetry-After: 60")}, record.CauseRateLimited, 1, ms, time.Minute},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				served := 0
				cfg := virtual(drive.Config{Retries: c.retries, Timeout: time.Minute})
				cfg.Dial = scripted(func(n int) []step {
					served++
					return c.answers[min(n, len(c.answers)-1)]
				})
				all, m := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 1, Requests: 1}))
				x := &all[0]
				sent, _ := x.FirstWrite.Get()
				end, _ := x.End.Get()
				if x.Cause != c.want || x.Attempts != c.attempts || end-sent != c.at || x.RetryAfter != c.after || served != c.attempts {
					t.Errorf("got %q after %d attempts, %d served, in %v, Retry-After %v (%s)\nwant %q after %d in %v, Retry-After %v",
						x.Cause, x.Attempts, served, end-sent, x.RetryAfter, x.Error, c.want, c.attempts, c.at, c.after)
				}
				if sent != 0 || m.Loops[0].Sent != 1 {
					t.Errorf("first write at %v, %d requests sent; want 0 and 1", sent, m.Loops[0].Sent)
				}
				<-time.After(2 * time.Hour) // the server's goroutines end
			})
		})
	}
}

func TestLostRacesAreSentAgainAtOnceOnANewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := virtual(drive.Config{Retries: 1})
		cfg.Dial = scripted(func(n int) []step {
			if n == 1 {
				return nil // the second request finds its connection closed
			}
			return answer()
		})
		all, m := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 100, Requests: 3}))
		second := &all[1]
		sent, _ := second.FirstWrite.Get()
		end, _ := second.End.Get()
		if second.Cause != record.CauseNone || second.Attempts != 2 || second.Reused || end-sent != time.Millisecond {
			t.Errorf("got %q after %d attempts in %v, reused %v; want it completed by 2 in 1ms on a new connection", second.Cause, second.Attempts, end-sent, second.Reused)
		}
		if got := m.Loops[0].DialsInRun; got != 2 {
			t.Errorf("connections made in the run: got %d, want 2: that of the attempt, and one for the third request while that rests", got)
		}
	})
}

func TestFailedDialsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		connect := scripted(func(int) []step { return answer() })
		cfg := virtual(drive.Config{Retries: 2})
		cfg.Dial = func(ctx context.Context) (net.Conn, error) {
			dials++
			switch dials {
			case 1:
				return dialOnce(nil)(ctx) // hangs up
			case 2, 3:
				return nil, syscall.ECONNREFUSED
			}
			return connect(ctx)
		}
		load := plan.Load{Rate: 10, Requests: 1}
		all, _ := carry(t, t.Context(), cfg, spec(load))
		x := &all[0]
		sent, _ := x.FirstWrite.Get()
		if x.Cause != record.CauseNone || x.Attempts != 3 || sent != 300*time.Millisecond || x.Due != 0 {
			t.Errorf("got %q after %d attempts, due %v, sent %v (%s); want it completed by 3, due 0, sent 300ms", x.Cause, x.Attempts, x.Due, sent, x.Error)
		}
	})
}

func TestWaitingRetriesEndWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := virtual(drive.Config{Retries: 1, Drain: 3 * time.Second})
		cfg.Dial = scripted(func(int) []step { return refusal("503 Busy\r\nRetry-After: 600") })
		all, m := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 10, Requests: 5}))
		if n := outcomes(all); n["http_error"] != 5 || m.State.EndMs < 3400 || m.State.EndMs > 3600 {
			t.Errorf("outcomes %v after %v ms, want 5 http_error, ended by the drain limit", n, m.State.EndMs)
		}
		for _, x := range all {
			if end, _ := x.End.Get(); x.Attempts != 1 || end > time.Second {
				t.Errorf("request %d: %d attempts, end at %v; want its first, and the end of that", x.Index, x.Attempts, end)
			}
		}
	})
}

func TestLostRacesAreNotRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := virtual(drive.Config{Retries: 1})
		cfg.Connections = 2
		cfg.Dial = func(ctx context.Context) (net.Conn, error) { // each connection takes one request
			n := 0
			return scripted(func(int) []step {
				if n++; n > 1 {
					return nil
				}
				return answer()
			})(ctx)
		}
		all, _ := carry(t, t.Context(), cfg, spec(plan.Load{Stages: []plan.LoadStage{
			{Concurrency: 2, Requests: 2}, {Rate: 1, Requests: 1, Gap: time.Second},
		}}))
		if last := all[2]; last.Cause != record.CauseNone || last.Attempts != 2 {
			t.Errorf("got %q after %d attempts (%s), want it completed by the second: not on the other kept connection", last.Cause, last.Attempts, last.Error)
		}
	})
}
