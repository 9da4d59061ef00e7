package plan

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// GeneratorGolden is what SelfTest returns on every machine. Whoever changes what a seed means changes it in the same commit.
const GeneratorGolden = "e16db38cde8b1f389c02bb69f44c09fd4ff5fda3a2af57d5af47fe1d85540e25"

// SelfTest makes some small plans of all kinds and returns the SHA-256 over the times, lengths and texts of their requests, in lower-case hex. Another hash than
// GeneratorGolden means that this build or machine makes other plans of the same seeds than others do. It takes some milliseconds.
func SelfTest(ctx context.Context) (string, error) {
	sum := sha256.New()
	for i, change := range trials() {
		s := Defaults()
		s.Target.URL, s.Target.Model = "http://localhost", "m"
		s.Load.Seed, s.Load.Rate, s.Load.Requests = uint64(i), 10, 16
		change(&s)
		p, err := New(s, canonicalBody{})
		if err != nil {
			return "", fmt.Errorf("self-test of the generator: plan %d: %w", i, err)
		}
		ids, err := p.EachKnown(ctx, func(r *Request) error { // not the plan id, into which every key of a spec goes
			fmt.Fprintln(sum, r.Index, r.Turn, int64(r.Due), int64(r.Think), int64(r.Pause), r.InputTokens, r.OutputTokens, r.SharedTokens)
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("self-test of the generator: plan %d: %w", i, err)
		}
		fmt.Fprintln(sum, ids.ContentID, ids.Requests)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// trials are the specs of the self-test: every process of arrivals, rates over time, lengths, texts and what they share.
func trials() []func(*Spec) {
	stage := func(change func(*LoadStage)) func(*Spec) {
		return func(s *Spec) {
			l := LoadStage{Rate: 20, Duration: 2 * time.Second}
			change(&l)
			s.Load.Rate, s.Load.Requests, s.Load.Stages = 0, 0, []LoadStage{l}
		}
	}
	arrival := func(name string, shape float64) func(*Spec) {
		return func(s *Spec) { s.Load.Arrival, s.Load.Burstiness = name, shape }
	}
	return []func(*Spec){
		arrival(ArrivalConstant, 1), arrival(ArrivalPoisson, 1), arrival(ArrivalGamma, 0.5), arrival(ArrivalWeibull, 0.7),
		func(s *Spec) { s.Load.Arrival, s.Load.States = ArrivalMMPP, "1:1s 5:200ms" },
		func(s *Spec) { s.Load.Arrival, s.Load.Clients = ArrivalClients, "3:poisson 1:gamma:0.5*2" },
		stage(func(l *LoadStage) { l.RateTo = 60 }),
		stage(func(l *LoadStage) { l.Amplitude, l.Period = 0.5, time.Second }),
		stage(func(l *LoadStage) { l.SpikeRate, l.SpikeAt, l.SpikeWidth = 200, time.Second, 100*time.Millisecond }),
		func(s *Spec) {
			s.Load.Rate, s.Load.Concurrency, s.Load.ThinkTime = 0, 4, time.Second
			s.Workload.InputTokens, s.Workload.OutputTokens = "uniform(1,200)", "zipf(1.1,500)"
		},
		func(s *Spec) {
			w := &s.Workload
			w.InputTokens, w.OutputTokens = "normal(60,20)", "lognormal(80,40)"
			w.SystemTokens, w.Prefix.Groups, w.Prefix.Tokens, w.Prefix.Zipf = 8, 5, 16, 1.2
		},
		func(s *Spec) {
			s.Workload.Cache = CacheSalted
			s.Workload.Classes = []Class{{Name: "a", Weight: 3}, {Name: "b", Weight: 1, Model: "n", InputTokens: "uniform(5,9)"}}
		},
		func(s *Spec) {
			s.Workload.Conversation.Turns, s.Workload.Conversation.History = "uniform(1,5)", HistoryRecorded
			s.Workload.Conversation.ThinkTime = time.Second
		},
		func(s *Spec) { s.Workload.Text, s.Workload.Tokenizer = TextIDs, TokenizerEmbedded },
	}
}

// canonicalBody writes what the self-test hashes of a request.
type canonicalBody struct{}

// AppendBody appends every attribute that a body may be made of.
func (canonicalBody) AppendBody(dst []byte, r *Request) []byte {
	dst = fmt.Appendf(dst, "%d %d %d %q %q %q %q", r.Index, r.InputTokens, r.OutputTokens, r.Class, r.Model, r.CacheSalt, r.Prompt)
	for _, id := range r.PromptIDs {
		dst = binary.BigEndian.AppendUint32(dst, id)
	}
	for _, m := range r.Messages {
		dst = fmt.Appendf(dst, " %q %q", m.Role, m.Text)
	}
	return dst
}
