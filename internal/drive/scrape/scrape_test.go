package scrape

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/drive/clock"
	"tare/internal/record"
)

// pipes is a server without a network, for virtual time.
type pipes struct {
	waiting chan net.Conn
	closed  chan struct{}
}

func serve(t *testing.T, h http.Handler) *pipes {
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	s := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() { s.Serve(p); close(ended) }()
	t.Cleanup(func() { s.Close(); <-ended })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.waiting:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.waiting <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// course is the edges of a run's stages.
type course struct {
	edges   []time.Duration
	changed chan struct{}
}

func (c *course) After(at time.Duration) (time.Duration, bool) {
	for _, e := range c.edges {
		if e > at {
			return e, true
		}
	}
	return 0, false
}
func (c *course) Changed() <-chan struct{} { return c.changed }

func source(p *pipes) Source {
	return Source{Kind: record.SourceServer, URL: "http://server/metrics", Shown: "http://server/metrics", Dial: p.dial}
}

// watch follows sources through a run that lasts so long, with an edge at 1.25 s.
func watch(t *testing.T, lasts time.Duration, cut <-chan struct{}, sources ...Source) []record.ServerSample {
	t.Helper()
	var out bytes.Buffer
	c := clock.New()
	w := Begin(t.Context(), Config{Sources: sources, Every: time.Second, Timeout: 500 * time.Millisecond, Out: &out}, c)
	c.StartIn(20 * time.Millisecond)
	ended := make(chan struct{})
	time.AfterFunc(lasts+20*time.Millisecond, func() { close(ended) })
	if err := w.Follow(&course{edges: []time.Duration{1250 * time.Millisecond}}, ended, cut); err != nil {
		t.Fatal(err)
	}
	var all []record.ServerSample
	for line := range strings.Lines(out.String()) {
		var s record.ServerSample
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// moments says when samples were taken, at which edges, and why one brought nothing.
func moments(all []record.ServerSample) (text string) {
	for _, s := range all {
		text += fmt.Sprintf("%g%s", s.AtMs, s.Edge)
		if s.Values == nil {
			text += "(" + s.Reason + ")"
		}
		text += " "
	}
	return strings.TrimSpace(text)
}

// idle is the page of a server with nothing in service.
const idle = "vllm:num_requests_running 0\nvllm:generation_tokens_total 7\n"

func TestSamplesComeEverySecondAndAtEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(idle)) }))
		all := watch(t, 2500*time.Millisecond, nil, source(p))
		if got, want := moments(all), "-20before 1000 1250stage 2000 2600after"; got != want {
			t.Errorf("got samples at %s, want at %s", got, want)
		}
		for _, s := range all {
			if s.Values == nil || s.Values.Values[record.OutputTokens] != 7 || s.TookMs != 0 {
				t.Errorf("at %g ms: got %+v, want 7 tokens at once", s.AtMs, s)
			}
		}
	})
}

func TestAFailedSampleSaysWhyAndIsNoNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch asked.Add(1) {
			case 2:
				<-r.Context().Done() // hangs
			case 3:
				http.Error(w, "busy", http.StatusServiceUnavailable)
			case 4:
				w.Write(bytes.Repeat([]byte("vllm:x 1\n"), maxPage/8))
			default:
				w.Write([]byte(idle))
			}
		}))
		all := watch(t, 2500*time.Millisecond, nil, source(p))
		want := "-20before 1000(no answer within 500ms) 1500stage(status 503) 2000(more than 16 MiB) 2600after"
		if got := moments(all); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// The load is what ends a run: a source that hangs throughout costs the time limit once at its end, and no more than the wait for rest.
func TestAServerThatHangsHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		cut := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(cut) })
		began := time.Now()
		all := watch(t, 2500*time.Millisecond, cut, source(p))
		if took := time.Since(began); took > 2500*time.Millisecond+time.Second+20*time.Millisecond {
			t.Errorf("took %v, want an end with the load", took)
		}
		for _, s := range all {
			if s.Values != nil || s.Reason == "" {
				t.Errorf("got %+v, want no values and a reason", s)
			}
		}
	})
}

func TestAPageThatNeverToldIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, http.NotFoundHandler())
		all := watch(t, 1500*time.Millisecond, nil, source(p))
		want := "-20before(status 404) 1000(status 404) 1250stage(status 404) 1500after(status 404)"
		if got := moments(all); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestAServerThatHasNotCountedYetIsAskedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			if asked.Add(1) > 1 {
				w.Write([]byte(idle))
			}
		}))
		s := source(p)
		s.Maybe = true
		all := watch(t, 1500*time.Millisecond, nil, s)
		if got, want := moments(all), "-20before 1000 1250stage 1600after"; got != want || len(all[0].Values.Values) != 0 || all[1].Values.Dialect != "vllm" {
			t.Errorf("got %s, want %s, the first without a number", got, want)
		}
	})
}

func TestAWebPageIsNoPageOfMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Write([]byte("<!DOCTYPE html><title>Sign in</title>"))
		}))
		s := source(p)
		s.Maybe = true
		if got, want := moments(watch(t, 1500*time.Millisecond, nil, s)), "-20before(no metrics, but text/html) 1500after(no metrics, but text/html)"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestTheLastSampleIsOfAServerAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running := 0
			if time.Since(began) < 3*time.Second {
				running = 1
			}
			fmt.Fprintf(w, "vllm:num_requests_running %d\nvllm:generation_tokens_total 7\n", running)
		}))
		all := watch(t, 1500*time.Millisecond, nil, source(p))
		last := all[len(all)-1]
		if last.Edge != record.EdgeAfter || last.AtMs < 2980 || last.AtMs > 3200 || last.Values.Values[record.Running] != 0 {
			t.Errorf("got a last sample %+v, want one as soon as nothing runs, at 3 s", last)
		}
	})
}

func TestAServerWithoutMetricsIsAskedOnceAndWhatItIsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pages, models atomic.Int64
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/v1/models":
				fmt.Fprintf(w, `{"data":[{"id":"model-%d"}]}`, models.Add(1))
			default:
				pages.Add(1)
				http.NotFound(w, r)
			}
		}))
		s := source(p)
		s.Maybe, s.Server = true, &Server{Base: "http://server", Dial: p.dial}
		all := watch(t, 2500*time.Millisecond, nil, s)
		if got, want := moments(all), "-20before(status 404) 2500after(status 404)"; got != want || pages.Load() != 1 {
			t.Errorf("got %s and %d looks, want %s and one look", got, pages.Load(), want)
		}
		for i, s := range all {
			if want := fmt.Sprintf("model-%d", i+1); s.Identity == nil || len(s.Identity.Models) != 1 || s.Identity.Models[0] != want {
				t.Errorf("identity %d: got %+v, want %s", i, s.Identity, want)
			}
		}
	})
}

func TestIdentityIsWhatServersSayOfThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer key" {
				http.Error(w, "", http.StatusUnauthorized)
				return
			}
			if want := map[bool]string{true: accepted, false: "application/json"}[r.URL.Path == "/pre/metrics"]; r.Header.Get("Accept") != want {
				t.Errorf("%s: asked for %s, want %s", r.URL.Path, r.Header.Get("Accept"), want)
			}
			switch r.URL.Path {
			case "/pre/metrics":
				w.Write([]byte("sglang:num_running_reqs 0\n"))
			case "/pre/get_server_info":
				w.Write([]byte(`{"version":"0.5","tp_size":2,"model_path":"m","last_gen_throughput":3.5}`))
			case "/pre/v1/models":
				w.Write([]byte(`{"data":[{"id":"b"},{"id":"a"}]}`))
			}
		}))
		s := source(p)
		s.URL, s.Header = "http://server/pre/metrics", []string{"Authorization: Bearer key", "Accept: text/event-stream"}
		s.Server = &Server{Base: "http://server/pre", Header: s.Header, Dial: p.dial}
		id := watch(t, time.Second, nil, s)[0].Identity
		got, _ := json.Marshal(id)
		want := `{"models":["a","b"],"version":"0.5","settings":{"model_path":"m","tp_size":"2"}}`
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestTheRoundTripIsThatOfAConnection(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(idle)) }))
	defer s.Close()
	l := newLooker(&Source{Kind: record.SourceServer, URL: s.URL + "/metrics", Server: &Server{Base: s.URL}}, 10*time.Second)
	defer l.close()
	id := l.identify(t.Context())
	if id == nil || id.RoundTrip == nil || id.RoundTrip.N != 1 || id.RoundTrip.MinMs <= 0 {
		t.Errorf("got %+v, want the time of one connection", id)
	}
}

func TestPrometheusSamplesAreOfTheMomentItLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		const interval = 2 * time.Second // between its looks, the first 400 ms after the start of the test
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.ParseForm()
			if r.URL.Path != "/prom/api/v1/query" || !strings.HasSuffix(r.Form.Get("query"), `,job="vllm"}[300s]`) || !strings.Contains(r.Form.Get("query"), "vllm[:_]num_requests_running") {
				http.Error(w, `{"status":"error","error":"wrong question"}`, http.StatusBadRequest)
				return
			}
			looked := began.Add(-1600 * time.Millisecond).Add(time.Since(began.Add(-1600*time.Millisecond)) / interval * interval)
			old := looked.Add(-3 * time.Minute)
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[
				{"metric":{"__name__":"vllm:time_to_first_token_seconds","instance":"a"},"histograms":[[%.3[1]f,{"count":"1"}]]},
				{"metric":{"__name__":"vllm:num_requests_running","instance":"a"},"values":[[1,"9"],[%.3[1]f,"0"]]},
				{"metric":{"__name__":"vllm:num_requests_running","instance":"b"},"values":[[%.3[1]f,"0"]]},
				{"metric":{"__name__":"vllm:generation_tokens_total","instance":"a"},"values":[[%.3[1]f,"7"]]},
				{"metric":{"__name__":"vllm:generation_tokens_total","instance":"gone"},"values":[[%.3[2]f,"100"]]}]}}`,
				float64(looked.UnixMilli())/1000, float64(old.UnixMilli())/1000)
		}))
		s := source(p)
		s.Kind, s.URL, s.Query = record.SourcePrometheus, "http://server/prom", Selector(`job="vllm"`)
		all := watch(t, 2500*time.Millisecond, nil, s)
		if got, want := moments(all), "-1620before 380 4380after"; got != want {
			t.Errorf("got %s, want %s: each look of Prometheus' once, the last behind the load", got, want)
		}
		if v := all[1].Values.Values; v[record.Running] != 0 || v[record.OutputTokens] != 7 {
			t.Errorf("got %v, want what it saw last, without what was gone", v)
		}
	})
}

func TestPrometheusFaultsAreReasons(t *testing.T) {
	for body, want := range map[string]string{
		`{"status":"error","error":"parse error: unexpected ="}`: "parse error",
		`<html>`: "no answer of Prometheus' API",
		`{"status":"success","data":{"resultType":"vector","result":[]}}`:                                                                       "vector",
		`{"status":"success","data":{"resultType":"matrix","result":[]}}`:                                                                       "no series matches",
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"vllm:num_requests_running"},"values":[["x",1]]}]}}`: "not readable as samples",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(body)) }))
			s := source(p)
			s.Kind = record.SourcePrometheus
			l := newLooker(&s, time.Second)
			defer l.close()
			if seen := l.look(t.Context(), false); seen.values != nil || !strings.Contains(seen.reason, want) {
				t.Errorf("%s: got %q, want %q", body, seen.reason, want)
			}
		})
	}
}

func TestReasonsHoldNoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Source{Kind: record.SourceServer, URL: "http://server/metrics?key=hunter2", Header: []string{"Authorization: Bearer hunter2"},
			Dial: func(context.Context) (net.Conn, error) { return nil, errors.New("refused for Bearer hunter2") }}
		l := newLooker(&s, time.Second)
		if seen := l.look(t.Context(), false); seen.reason != "refused for ***" {
			t.Errorf("got %q, want the reason without what is secret", seen.reason)
		}
	})
}

// A Prometheus server in Google's cloud wants a token, which the metadata service gives for a while.
func TestGooglesTokenIsAskedForAnewBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := 0
		metadata := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/token" || r.Header.Get("Metadata-Flavor") != "Google" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			given++
			fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":300,"token_type":"Bearer"}`, given)
		}))
		server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"status":"error","error":"not for %s"}`, r.Header.Get("Authorization"))
			if want := fmt.Sprintf("Bearer token-%d", given); r.Header.Get("Authorization") != want {
				t.Errorf("got %q, want %q", r.Header.Get("Authorization"), want)
			}
		}))
		s := source(server)
		s.Kind, s.Google = record.SourcePrometheus, &GoogleToken{Host: "metadata.google.internal", client: newClient(nil, metadata.dial)}
		l := newLooker(&s, time.Second)
		defer l.close()
		for i, want := range []int{1, 1, 2} { // 0, 239 and 240 s in: the token is good for 300, less a minute
			if seen := l.look(t.Context(), false); given != want || !strings.HasSuffix(seen.reason, "not for Bearer ***") {
				t.Errorf("look %d: got %d tokens, and %q; want %d, and a reason without the token", i, given, seen.reason, want)
			}
			time.Sleep([]time.Duration{239 * time.Second, time.Second, 0}[i])
		}
	})
}

func TestWithoutATokenOfGooglesTheReasonIsSaid(t *testing.T) {
	for status, body := range map[int]string{http.StatusNotFound: "{}", http.StatusOK: "<html>"} {
		synctest.Test(t, func(t *testing.T) {
			metadata := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				w.Write([]byte(body))
			}))
			s := source(serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked without a token") })))
			s.Google = &GoogleToken{Host: "metadata.google.internal", client: newClient(nil, metadata.dial)}
			l := newLooker(&s, time.Second)
			defer l.close()
			want := map[int]string{http.StatusNotFound: "status 404", http.StatusOK: "no token in its answer"}[status]
			if seen := l.look(t.Context(), false); seen.values != nil || seen.reason != "access token from the metadata service: "+want {
				t.Errorf("got %q, want %q", seen.reason, want)
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestAFullDiskIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(idle)) }))
		w := Begin(t.Context(), Config{Sources: []Source{source(p)}, Every: time.Second, Timeout: time.Second, Out: full{}}, clock.New())
		ended := make(chan struct{})
		close(ended)
		if err := w.Follow(&course{}, ended, nil); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("got %v, want disk full", err)
		}
	})
}
