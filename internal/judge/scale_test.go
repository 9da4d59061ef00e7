package judge_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"tare/internal/judge"
	"tare/internal/record"
)

// BenchmarkSummarizeAtScale summarizes TARE_SCALE requests (20,000 unless it is set) of 100 events each once, and reports the
// events a second and the memory that Go had from the system at the end.
func BenchmarkSummarizeAtScale(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("TARE_SCALE"))
	if err != nil {
		n = 20_000
	}
	dir := b.TempDir()
	m := twoStages()
	m.Stages[1].Planned = int64(n) - 100
	m.Stages[1].EndMs = float64(n) * 10
	if err := m.Write(dir); err != nil {
		b.Fatal(err)
	}
	log, err := record.CreateLog(dir)
	if err != nil {
		b.Fatal(err)
	}
	const each = 500
	var payload []byte
	for from := 0; from < n; from += each {
		payload = payload[:0]
		for i := from; i < from+each; i++ {
			payload = record.AppendExchange(payload, hundred(int64(i)))
		}
		if err := log.WriteBlock(payload, each); err != nil {
			b.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	b.ResetTimer()
	for range b.N {
		if _, err := judge.Summarize(dir); err != nil {
			b.Fatal(err)
		}
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	b.ReportMetric(float64(b.N)*float64(n)*100/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(mem.Sys)/(1<<20), "MiB")
}

// hundred is a request whose reply has a hundred token events.
func hundred(i int64) *record.Exchange {
	x := request(i)
	x.Events = nil
	at := x.Due + 50*time.Millisecond + time.Duration((i*7919)%20_000_000)
	for k := range int64(100) {
		x.Events = append(x.Events, record.Event{KernelAt: at, UserAt: at + 20*time.Microsecond, Kind: record.KindContent, Flags: record.FlagStamped})
		at += 10*time.Millisecond + time.Duration((i*37+k*7919)%1_000_000)
	}
	x.Usage.Output, x.End = 100, record.At(at)
	return x
}
