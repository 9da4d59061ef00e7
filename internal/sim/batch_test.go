package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestALiveBatchIsItsModel sends load to a batch over sockets and holds its truth to the Model's answer to the same arrivals: every
// chunk was sent at its due time, or later by no more than the truth says of its reply.
func TestALiveBatchIsItsModel(t *testing.T) {
	cfg := Config{Batching: true, Seed: 3, Step: 2 * ms, StepNoise: 0.2, StepPerSeq: 50 * time.Microsecond, Prefill: 10 * time.Microsecond, MaxSeqs: 6, MaxStepTokens: 64, KVTokens: 480}
	for transport, carry := range transports() {
		s := start(t, cfg, carry)
		client := s.client()
		var all sync.WaitGroup
		for worker := range 12 {
			all.Go(func() {
				for i := range 5 {
					body := fmt.Sprintf(`{"prompt":%q,"stream":true,"max_tokens":%d}`, numbered(10+worker*9), 2+(worker*5+i)%20)
					if r := s.post(t.Context(), client, text, fmt.Sprint(worker, "-", i), body); r.err != nil || !r.done {
						t.Errorf("%s: reply %d-%d: done %v, %v", transport, worker, i, r.done, r.err)
					}
				}
			})
		}
		all.Wait()
		var facts []fact
		for _, f := range s.facts() {
			facts = append(facts, f)
		}
		slices.SortFunc(facts, func(a, b fact) int { return cmp.Compare(a.N, b.N) })
		holdToModel(t, transport, cfg, facts)
	}
}

// holdToModel compares what a live server did with what its Model makes of the arrivals.
func holdToModel(t *testing.T, name string, cfg Config, facts []fact) {
	t.Helper()
	var arrivals []Arrival
	preempted := 0
	for _, f := range facts {
		arrivals = append(arrivals, Arrival{At: time.Duration(cmp.Or(f.ArrivedNs, f.RecvNs)), Prompt: f.PromptTokens, Output: f.Tokens})
		preempted += f.Preemptions
	}
	if len(facts) != 60 || preempted == 0 {
		t.Errorf("%s: %d requests and %d preemptions, want 60 and some", name, len(facts), preempted)
	}
	for i, want := range model(t, cfg).Run(arrivals) {
		f := facts[i]
		if got := time.Duration(f.RecvNs + *f.QueuedNs); got != want.Start || f.Preemptions != want.Preemptions || len(f.SendNs) != len(want.Tokens) {
			t.Errorf("%s: request %d: started at %v, %d preemptions, %d chunks; want %v, %d, %d", name, i, got, f.Preemptions, len(f.SendNs), want.Start, want.Preemptions, len(want.Tokens))
			continue
		}
		for j, at := range f.SendNs {
			if due := int64(want.Tokens[j]); at < due || at > due+f.MaxLateNs {
				t.Errorf("%s: request %d: chunk %d was sent %d ns behind its due time, want 0 to %d", name, i, j, at-due, f.MaxLateNs)
			}
		}
	}
}

func TestABatchTellsWhatItDoes(t *testing.T) {
	b := newBench(t, Config{Batching: true, Step: 10 * ms, Prefill: ms, KVTokens: 64, PrefixCache: true})
	first, second := &conn{}, &conn{}
	b.ask(first, 0, fmt.Sprintf(`{"prompt":%q,"stream":true,"max_tokens":30}`, numbered(17)))
	b.ask(second, 0, fmt.Sprintf(`{"prompt":%q,"stream":true,"max_tokens":20}`, "x "+numbered(15)))
	b.until(26 * ms)
	expectMetrics(t, b, "num_requests_running 1", "num_requests_waiting 1", "kv_cache_usage_perc 0.5", "num_preemptions_total 0")
	b.until(70 * ms)
	expectMetrics(t, b, "num_requests_running 2", "kv_cache_usage_perc 1")
	b.until(time.Hour)
	expectMetrics(t, b, "num_requests_running 0", "kv_cache_usage_perc 0", "num_preemptions_total 1", "prompt_tokens_total 33", "generation_tokens_total 50",
		"prefix_cache_queries_total 33", "prefix_cache_hits_total 0", "request_queue_time_seconds_sum 0.027", "request_prefill_time_seconds_count 2",
		"request_decode_time_seconds_count 2", "request_inference_time_seconds_count 2", "time_to_first_token_seconds_sum 0.08", "inter_token_latency_seconds_count 48")
	for _, want := range []string{
		"vllm:cache_config_info{block_size=\"16\",enable_prefix_caching=\"True\",engine=\"0\",num_gpu_blocks=\"4\"} 1\n", "\nprocess_start_time_seconds 0.00\n",
	} {
		if text := string(b.k.metrics.append(nil, b.k.timing.load())); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if got := b.k.ended[0].end; got != b.k.ended[0].due {
		t.Errorf("the last chunk was sent at %d, want its due time %d", got, b.k.ended[0].due)
	}
}

func expectMetrics(t *testing.T, b *bench, samples ...string) {
	t.Helper()
	text := string(b.k.metrics.append(nil, b.k.timing.load()))
	for _, sample := range samples {
		name, value, _ := strings.Cut(sample, " ")
		if want := "\nvllm:" + name + `{engine="0",model_name="sim"} ` + value + "\n"; !strings.Contains(text, want) {
			i := strings.Index(text, "\nvllm:"+name)
			t.Errorf("at %v: got %q, want %q", time.Duration(b.w.at), text[max(i, 0):min(len(text), max(i, 0)+90)], want)
		}
	}
}

func TestClientsThatLeaveABatchGiveBackWhatTheyHold(t *testing.T) {
	b := newBench(t, Config{Batching: true, Step: 10 * ms, MaxSeqs: 2})
	conns := make([]conn, 4)
	for i := range conns {
		b.ask(&conns[i], 0, `{"prompt":"a","stream":true,"max_tokens":5}`)
	}
	b.until(15 * ms)
	b.k.closed(&conns[0]) // in the middle of a step
	b.k.closed(&conns[2]) // while it waits
	b.until(time.Second)
	b.expectTimes("gone after a token", &conns[0], 10*ms)
	b.expectTimes("undisturbed, from the second step on", &conns[1], 20*ms, 30*ms, 40*ms, 50*ms, 60*ms)
	b.expectTimes("gone before its service", &conns[2])
	b.expectTimes("gets the seat at the next step", &conns[3], 30*ms, 40*ms, 50*ms, 60*ms, 70*ms)
	if now := b.k.timing.load(); now.running+now.waiting > 0 || now.kv > 0 {
		t.Errorf("at the end: %+v, want nothing", now)
	}
}

func TestFaultsStrikeInABatchToo(t *testing.T) {
	b := newBench(t, Config{Batching: true, Step: 10 * ms, MaxSeqs: 1})
	for i, c := range []struct{ marker, outcome string }{
		{"empty", "empty"}, {"truncate", "truncated"}, {"status=503", "http_error"}, {"slow-headers=50ms", "completed"}, {"stream-error", "stream_error"},
	} {
		b.ask(&conn{}, time.Duration(i)*time.Second, `{"prompt":"[[sim:`+c.marker+`]]","stream":true,"max_tokens":3}`)
		b.until(time.Duration(i+1) * time.Second)
		if got := b.k.ended[i].outcome; got != c.outcome {
			t.Errorf("%s: got %s, want %s", c.marker, got, c.outcome)
		}
	}
	slow := b.k.ended[3]
	if got := time.Duration(slow.start - slow.recv); got != 50*ms {
		t.Errorf("slow headers: service began %v after arrival, want 50ms", got)
	}
	stalled, next := &conn{}, &conn{}
	b.ask(stalled, 6*time.Second, `{"prompt":"[[sim:stall]]","stream":true,"max_tokens":3}`)
	b.ask(next, 6*time.Second, `{"prompt":"a","stream":true,"max_tokens":1}`)
	b.until(7 * time.Second)
	if len(b.times(next)) != 1 {
		t.Error("a stalled reply keeps its seat in the batch")
	}
	b.k.closed(stalled)
	if got := b.k.ended[len(b.k.ended)-1].outcome; got != "stalled" {
		t.Errorf("a stalled reply whose client goes: got %s, want stalled", got)
	}
}

func TestPresetsHaveTheCapacityThatTheySay(t *testing.T) {
	want := map[string]float64{ // requests of 128 and 32 tokens a second
		"slots": 8 / 0.44, "slots-exponential": 20, "slots-lognormal": 20, "many-slots": 1000 / 0.081, "bucket": 20, "flat": 1 / 0.03356,
		"degrading": 1 / (32 * (0.008/64 + 0.00005*64)),
	}
	names, abouts := PresetNames()
	for i, name := range names {
		cfg, err := Config{}.Fill(name)
		if err != nil {
			t.Fatal(err)
		}
		m := model(t, cfg)
		if strings.HasPrefix(abouts[i], "resembles") {
			if got, ok := m.LongRun(alike(128, 32), 2000); !ok || got < 5 || got > 1000 {
				t.Errorf("%s: got %v requests/s, %v", name, got, ok)
			}
			continue
		}
		if got, ok := m.Capacity(128, 32); !ok || math.Abs(got/want[name]-1) > 1e-9 {
			t.Errorf("%s: got %v requests/s, want %v", name, got, want[name])
		}
	}
	cfg, _ := Config{}.Fill("degrading")
	if most, running, ok := model(t, cfg).Peak(128, 32); !ok || running != 13 || most < 24 || most > 25 {
		t.Errorf("degrading: peak of %v requests/s with %d running, want 24 to 25 with 13", most, running)
	}
	given, err := Config{Slots: 3, TTFT: Constant(ms)}.Fill("slots")
	if err != nil || given.Slots != 3 || given.TTFT != Constant(ms) || given.Gap != Constant(10*ms) {
		t.Errorf("what is given goes before the preset: got %+v, %v", given, err)
	}
	if _, err := (Config{}).Fill("none"); err == nil {
		t.Error("a preset that there is not: got no error")
	}
}

func TestMistakesInTimingAreAllReported(t *testing.T) {
	err := Config{
		Addr: "127.0.0.1:0", Batching: true, TTFT: Constant(ms), Gap: Constant(ms), Slots: 2, BucketRate: -1, BucketBurst: 2, TokensPerChunk: 3, StepPerSeq: -1, StepNoise: 20, KVBlock: 16, KVTokens: 5,
	}.Validate()
	for _, want := range []string{"ttft: not possible with batching", "gap: not", "slots: not", "tokens-per-chunk: not", "bucket-rate: must be", "bucket-burst: needs",
		"step-per-seq: must not", "step-noise: must be", "kv-tokens: must have room", "its steps take no time"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	err = Config{Addr: "127.0.0.1:0", MaxSeqs: 1, MaxStepTokens: 1, StepPerSeq: 1, StepPerKV: 1, StepCrowd: 1, StepNoise: 1, QueueLimit: 1}.Validate()
	for _, want := range []string{"max-seqs", "max-step-tokens", "step-per-seq", "step-per-kv-token", "step-crowd", "step-noise", "queue-limit"} {
		if err == nil || !strings.Contains(err.Error(), want+": needs ") {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
