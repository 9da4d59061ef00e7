package judge_test

import (
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/record"
)

// BenchmarkAdd adds replies of 19 events, of which 16 hold a token, as a decoder hands them over.
func BenchmarkAdd(b *testing.B) {
	l, err := judge.Begin(twoStages())
	if err != nil {
		b.Fatal(err)
	}
	all := requests(nil)
	for _, x := range all {
		stream(x)
	}
	index := int64(0)
	for b.Loop() {
		x := all[index%int64(len(all))]
		x.Index = index
		index++
		if err := l.Add(x); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*19/b.Elapsed().Seconds(), "events/s")
}

// stream gives x a role, 16 tokens 10 to 11 ms apart, usage and end marker, the last three in one read.
func stream(x *record.Exchange) {
	at, _ := x.FirstWrite.Get()
	at += 50 * time.Millisecond
	x.Events, x.Usage.Output = nil, 16
	event := func(k record.Kind, f record.Flags) {
		x.Events = append(x.Events, record.Event{KernelAt: at, UserAt: at + 20*time.Microsecond, Kind: k, Flags: f | record.FlagStamped})
	}
	event(record.KindRole, record.FlagMerged)
	for i := range 16 {
		flags := record.Flags(0)
		if i == 15 {
			flags = record.FlagMerged
		}
		event(record.KindContent, flags)
		if i < 15 {
			at += 10*time.Millisecond + time.Duration((x.Index*37+int64(i)*7919)%1_000_000)
		}
	}
	event(record.KindUsage, record.FlagMerged)
	event(record.KindTerminator, 0)
	x.End = record.At(at)
}

// BenchmarkSummarize reads and judges a log of 20,000 such replies.
func BenchmarkSummarize(b *testing.B) {
	dir := b.TempDir()
	if err := twoStages().Write(dir); err != nil {
		b.Fatal(err)
	}
	log, err := record.CreateLog(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	const blocks, each = 20, 1000
	for block := range int64(blocks) {
		var payload []byte
		for i := range int64(each) {
			x := request(i)
			x.Index = block*each + i
			stream(x)
			payload = record.AppendExchange(payload, x)
		}
		if err := log.WriteBlock(payload, each); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := judge.Summarize(dir); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*blocks*each*19/b.Elapsed().Seconds(), "events/s")
}
