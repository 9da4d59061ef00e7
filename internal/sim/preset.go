package sim

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// preset is a server by a name.
type preset struct {
	name  string
	about string // what it is like, and what limits it
	cfg   Config
}

// presets are servers whose capacity is known, and servers that resemble machines. The latter are arithmetic from what is published of
// hardware and models: bytes of weights and KV memory over memory bandwidth, operations of a prompt's token over some half of
// the peak. They are nobody's measurement.
func presets() []preset {
	return []preset{
		{"slots", "8 slots, constant service", Config{Slots: 8, TTFT: Constant(130 * time.Millisecond), Gap: Constant(10 * time.Millisecond)}},
		{"slots-exponential", "8 slots, exponential service of 400 ms", Config{Slots: 8, TTFT: Delay{exponential, 4e8, 0}}},
		{"slots-lognormal", "8 slots, lognormal service of 400 ms, CV 1.5", Config{Slots: 8, TTFT: Delay{lognormal, 4e8, 1.5}}},
		{"many-slots", "1,000 fast slots", Config{Slots: 1000, TTFT: Constant(50 * time.Millisecond), Gap: Constant(time.Millisecond)}},
		{"bucket", "a token bucket: 20 requests/s, bursts of 10", Config{
			BucketRate: 20, BucketBurst: 10, TTFT: Constant(20 * time.Millisecond), Gap: Constant(5 * time.Millisecond),
		}},
		{"flat", "a batch that gives out 1,000 tokens/s, however many share them", Config{
			Batching: true, StepPerSeq: time.Millisecond, Prefill: 20 * time.Microsecond, MaxSeqs: 128, KVTokens: 1 << 18,
		}},
		{"degrading", "a batch whose throughput falls once more than 13 run", Config{
			Batching: true, Step: 8 * time.Millisecond, StepCrowd: 50 * time.Microsecond, MaxSeqs: 64, MaxStepTokens: 8192, KVTokens: 1 << 18,
		}},
		{"llama-8b-h100", "resembles Llama 3.1 8B in 16 bits on one H100", Config{
			Batching: true, PrefixCache: true, MaxSeqs: 256, MaxStepTokens: 8192, KVTokens: 400_000,
			Step: 6 * time.Millisecond, StepPerSeq: 20 * time.Microsecond, StepPerKV: 39, Prefill: 32 * time.Microsecond,
		}},
		{"llama-70b-4xh100", "resembles Llama 3.1 70B in 16 bits on four H100", Config{
			Batching: true, PrefixCache: true, MaxSeqs: 256, MaxStepTokens: 8192, KVTokens: 400_000,
			Step: 16 * time.Millisecond, StepPerSeq: 40 * time.Microsecond, StepPerKV: 24, Prefill: 75 * time.Microsecond,
		}},
		{"llama-8b-l4", "resembles Llama 3.1 8B in 16 bits on one L4, whose KV memory is small", Config{
			Batching: true, PrefixCache: true, MaxSeqs: 256, MaxStepTokens: 2048, KVTokens: 40_000,
			Step: 66 * time.Millisecond, StepPerSeq: 50 * time.Microsecond, StepPerKV: 437, Prefill: 260 * time.Microsecond,
		}},
	}
}

// PresetNames lists the presets, each with what it is like.
func PresetNames() (names, abouts []string) {
	for _, p := range presets() {
		names, abouts = append(names, p.name), append(abouts, p.about)
	}
	return names, abouts
}

// Fill takes from the preset with a name what c leaves out: everything that is zero.
func (c Config) Fill(name string) (Config, error) {
	for _, p := range presets() {
		if p.name == name {
			return c.fill(p.cfg), nil
		}
	}
	names, _ := PresetNames()
	return c, fmt.Errorf("preset: there is none called %q\nhint: %s", name, strings.Join(names, ", "))
}

func (c Config) fill(p Config) Config {
	c.Slots, c.QueueLimit = cmp.Or(c.Slots, p.Slots), cmp.Or(c.QueueLimit, p.QueueLimit)
	c.BucketRate, c.BucketBurst = cmp.Or(c.BucketRate, p.BucketRate), cmp.Or(c.BucketBurst, p.BucketBurst)
	if c.TTFT.zero() {
		c.TTFT = p.TTFT
	}
	if c.Gap.zero() {
		c.Gap = p.Gap
	}
	c.PrefixCache, c.Batching = c.PrefixCache || p.PrefixCache, c.Batching || p.Batching
	c.KVTokens, c.KVBlock = cmp.Or(c.KVTokens, p.KVTokens), cmp.Or(c.KVBlock, p.KVBlock)
	c.MaxSeqs, c.MaxStepTokens = cmp.Or(c.MaxSeqs, p.MaxSeqs), cmp.Or(c.MaxStepTokens, p.MaxStepTokens)
	c.Step, c.Prefill = cmp.Or(c.Step, p.Step), cmp.Or(c.Prefill, p.Prefill)
	c.StepPerSeq, c.StepPerKV = cmp.Or(c.StepPerSeq, p.StepPerSeq), cmp.Or(c.StepPerKV, p.StepPerKV)
	c.StepCrowd, c.StepNoise = cmp.Or(c.StepCrowd, p.StepCrowd), cmp.Or(c.StepNoise, p.StepNoise)
	return c
}
