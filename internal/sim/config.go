// Package sim is a simulated LLM server with a known truth: it speaks the OpenAI completions and chat completions
// protocols, follows a timing model that is known exactly, fails when told to, and publishes when it received each request
// and when it sent each chunk. It shares no code with the load generator, so that the two cannot share a mistake.
package sim

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// Limits of what a request may ask, and of what one connection may hold.
const (
	maxHead   = 64 << 10 // bytes of a request's header block
	maxBody   = 64 << 20 // bytes of a request's body
	maxTokens = 1 << 20  // output tokens of one request
)

// defaultTokens is the number of output tokens when a request names none.
const defaultTokens = 16

// What the KV memory and the batch are when nothing is said of them.
const (
	defaultKVTokens      = 1 << 20
	defaultKVBlock       = 16
	defaultMaxSeqs       = 256
	defaultMaxStepTokens = 2048
)

// Config says how the server behaves. The zero value of every field but Addr is a working choice: a server that answers
// at once, with any number of requests at the same time.
type Config struct {
	Addr  string // address to listen on, host:port; port 0 takes a free one
	Model string // model named by /v1/models, /metrics and replies to requests that name none; "sim" when empty
	Seed  uint64 // every draw follows from it and the arrival number of the request

	TTFT           Delay         // from the start of service to the first token, prefill not counted
	Gap            Delay         // between two chunks of one stream; constant in Null
	Step           time.Duration // above 0: decode in lock-step, every stream emits on the same ticks of this period; excludes Gap
	TokensPerChunk int           // output tokens in one chunk, the last may hold fewer; 0 means 1
	Prefill        time.Duration // added before the first token for each prompt token
	Slots          int           // requests in service at the same time, others wait in order of arrival; 0 means any number
	QueueLimit     int           // requests that may wait for a slot, those beyond are answered 429; 0 means any number
	PrefixCache    bool          // keep the blocks of prompts and replies, so that prompts which begin alike are computed once
	KVTokens       int           // tokens that the KV memory has room for; 0 means 1,048,576
	KVBlock        int           // tokens in one of its blocks; 0 means 16
	BucketRate     float64       // a token bucket: requests per second that service begins for in the long run, others wait; 0 means no bucket
	BucketBurst    int           // requests that may begin at once when the bucket is full; 0 means 1

	Batching      bool          // serve by continuous batching, in engine steps of Step and what follows, in place of TTFT, Gap and Slots
	MaxSeqs       int           // sequences that run at the same time; 0 means 256
	MaxStepTokens int           // tokens computed in one step; 0 means 2048
	StepPerSeq    time.Duration // longer for each sequence that decodes
	StepPerKV     time.Duration // longer for each token in the KV memory of these
	StepCrowd     time.Duration // longer for the square of the number of sequences: with it, more load is less throughput
	StepNoise     float64       // coefficient of variation of a lognormal factor on each step; 0 means none

	RoleEarly bool // send header and role chunk when service starts instead of with the first token

	Faults Faults // failures and the fraction of requests that meet them

	TruthInStream bool   // put a "sim" object with receive and send times into every chunk
	TruthFile     string // JSON Lines file, one object per request; none when empty

	TLS *tls.Config // speak TLS, with a goroutine for each connection; nil for plain text

	Null    bool // answer at once with precomputed bytes: no slots, faults, truth or metrics
	Loops   int  // event loops; above 1 only in Null; 0 means 1
	Spin    bool // loops look for work without ever sleeping, each taking a core: whoever measures a client then pays no wake-ups
	HoldCPU bool // loops keep their Go processor while they wait: for a process of its own; without effect unless GOMAXPROCS is above Loops
}

// withDefaults fills what was left out.
func (c Config) withDefaults() Config {
	if c.Model == "" {
		c.Model = "sim"
	}
	if c.TokensPerChunk == 0 {
		c.TokensPerChunk = 1
	}
	if c.Loops == 0 {
		c.Loops = 1
	}
	if c.KVBlock == 0 {
		c.KVBlock = defaultKVBlock
	}
	if c.KVTokens == 0 {
		c.KVTokens = defaultKVTokens
	}
	if c.BucketBurst == 0 {
		c.BucketBurst = 1
	}
	if c.MaxSeqs == 0 {
		c.MaxSeqs = defaultMaxSeqs
	}
	if c.MaxStepTokens == 0 {
		c.MaxStepTokens = defaultMaxStepTokens
	}
	return c
}

// Validate reports every fault of c, or nil.
func (c Config) Validate() error {
	var faults []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		refuse(true, "addr: must be host:port, got %q\nhint: 127.0.0.1:8000, or port 0 for a free one", c.Addr)
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"tokens-per-chunk", c.TokensPerChunk}, {"slots", c.Slots}, {"queue-limit", c.QueueLimit}, {"loops", c.Loops},
		{"kv-tokens", c.KVTokens}, {"kv-block", c.KVBlock}, {"bucket-burst", c.BucketBurst}, {"max-seqs", c.MaxSeqs}, {"max-step-tokens", c.MaxStepTokens}} {
		refuse(f.n < 0, "%s: must not be negative, got %d", f.name, f.n)
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{
		{"step", c.Step}, {"prefill", c.Prefill}, {"step-per-seq", c.StepPerSeq}, {"step-per-kv-token", c.StepPerKV}, {"step-crowd", c.StepCrowd},
	} {
		refuse(f.d < 0, "%s: must not be negative, got %v", f.name, f.d)
	}
	refuse(c.BucketRate < 0 || c.BucketRate > 1e6, "bucket-rate: must be from 0 to 1000000 requests/s, got %v", c.BucketRate)
	refuse(!(c.StepNoise >= 0 && c.StepNoise <= 10), "step-noise: must be a coefficient of variation from 0 to 10, got %v", c.StepNoise)
	refuse(c.Step > 0 && !c.Gap.zero(), "gap: excluded by step, got gap %v and step %v\nhint: in lock-step the period is the gap", c.Gap, c.Step)
	faults = append(faults, c.validateTiming()...)
	faults = append(faults, c.Faults.validate()...)
	faults = append(faults, c.validateNull()...)
	return errors.Join(faults...)
}

// validateTiming reports the settings that do not go together in one model of time.
func (c Config) validateTiming() (faults []error) {
	for _, f := range []struct {
		name  string
		set   bool
		with  bool
		needs string
	}{
		{"kv-tokens", c.KVTokens > 0, c.PrefixCache || c.Batching, "prefix-cache or batching"},
		{"kv-block", c.KVBlock > 0, c.PrefixCache || c.Batching, "prefix-cache or batching"},
		{"queue-limit", c.QueueLimit > 0, c.Slots > 0 || c.Batching || c.BucketRate > 0, "slots, bucket-rate or batching"},
		{"bucket-burst", c.BucketBurst > 0, c.BucketRate > 0, "bucket-rate"},
		{"max-seqs", c.MaxSeqs > 0, c.Batching, "batching"},
		{"max-step-tokens", c.MaxStepTokens > 0, c.Batching, "batching"},
		{"step-per-seq", c.StepPerSeq > 0, c.Batching, "batching"},
		{"step-per-kv-token", c.StepPerKV > 0, c.Batching, "batching"},
		{"step-crowd", c.StepCrowd > 0, c.Batching, "batching"},
		{"step-noise", c.StepNoise > 0, c.Batching, "batching"},
	} {
		if f.set && !f.with {
			faults = append(faults, fmt.Errorf("%s: needs %s", f.name, f.needs))
		}
	}
	if c.Batching {
		faults = append(faults, c.validateBatching()...)
	}
	if kv := c.withDefaults(); kv.KVTokens < kv.KVBlock {
		faults = append(faults, fmt.Errorf("kv-tokens: must have room for a block of %d tokens, got %d", kv.KVBlock, kv.KVTokens))
	}
	return faults
}

// validateBatching reports what continuous batching decides otherwise.
func (c Config) validateBatching() (faults []error) {
	for _, f := range []struct {
		name string
		set  bool
		hint string
	}{
		{"ttft", !c.TTFT.zero(), "it follows from the steps: step, prefill"},
		{"gap", !c.Gap.zero(), "it follows from the steps: step, step-per-seq, step-per-kv-token"},
		{"slots", c.Slots > 0, "the seats of a batch are max-seqs"},
		{"bucket-rate", c.BucketRate > 0, "queue-limit refuses what is too much"},
		{"tokens-per-chunk", c.TokensPerChunk > 1, "a step makes one token of each sequence"},
	} {
		if f.set {
			faults = append(faults, fmt.Errorf("%s: not possible with batching\nhint: %s", f.name, f.hint))
		}
	}
	if c.Step+c.Prefill+c.StepPerSeq+c.StepPerKV+c.StepCrowd <= 0 {
		faults = append(faults, fmt.Errorf("batching: its steps take no time\nhint: --step 10ms, and what it takes longer: prefill, step-per-seq, step-per-kv-token"))
	}
	return faults
}

// validateNull reports the settings that Null cannot follow, and those that only Null can.
func (c Config) validateNull() (faults []error) {
	if !c.Null {
		if c.Loops > 1 {
			faults = append(faults, fmt.Errorf("loops: more than one only with null, got %d\nhint: one queue and one order of arrival need one loop", c.Loops))
		}
		return faults
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"step", c.Step != 0}, {"prefill", c.Prefill != 0}, {"slots", c.Slots != 0}, {"fault", len(c.Faults) > 0},
		{"prefix-cache", c.PrefixCache}, {"batching", c.Batching}, {"bucket-rate", c.BucketRate != 0},
		{"role-early", c.RoleEarly}, {"truth-in-stream", c.TruthInStream}, {"truth", c.TruthFile != ""},
		{"ttft", !c.TTFT.constant()}, {"gap", !c.Gap.constant()}, {"tokens-per-chunk", c.TokensPerChunk > 1},
	} {
		if f.set {
			faults = append(faults, fmt.Errorf("%s: not possible with null\nhint: null knows only constant ttft and gap", f.name))
		}
	}
	return faults
}
