package drive_test

import (
	"sync/atomic"
	"testing"

	"tare/internal/drive"
	"tare/internal/plan"
	"tare/internal/record"
)

func TestSendersKeepAccountOfTheirWork(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		all, m := carry(t, t.Context(), drive.Config{Servers: at(serve(t, chat)), Engine: engine}, spec(plan.Load{Concurrency: 4, Requests: 40}))
		var work record.Work
		var reads, merged, stays, gauge int64
		for _, l := range m.Loops {
			work.Reading.Merge(&l.Work.Reading)
			work.Lag.Merge(&l.Work.Lag)
			work.Waiting.Merge(&l.Work.Waiting)
			work.Sending.Merge(&l.Work.Sending)
			work.Merged += l.Work.Merged
			gauge += l.InFlightNs[0]
		}
		for _, x := range all {
			reads += int64(x.Reads)
			first, _ := x.FirstWrite.Get()
			end, _ := x.End.Get()
			stays += int64(end - first)
			for _, e := range x.Events {
				if e.Flags&record.FlagMerged != 0 {
					merged++
				}
			}
		}
		if work.Reading.N != reads || work.Reading.Sum <= 0 {
			t.Errorf("got %d reads in %v s, want %d in more than 0", work.Reading.N, work.Reading.Sum, reads)
		}
		if work.Merged != merged {
			t.Errorf("merged events: got %d, want %d", work.Merged, merged)
		}
		if gauge != stays || gauge <= 0 {
			t.Errorf("request-ns in flight: got %d by the gauge, %d by the records", gauge, stays)
		}
		if m.Client.KernelStamps && work.Lag.N != reads {
			t.Errorf("lags: got %d, want one for each of %d reads", work.Lag.N, reads)
		}
		if engine == drive.EngineEpoll && (work.Waiting.N != reads || work.Waiting.Sum >= work.Lag.Sum || work.Sending.N != 40) {
			t.Errorf("got %d waits of %v s in all, %d sends, want %d, less than the lags' %v s, 40", work.Waiting.N, work.Waiting.Sum, work.Sending.N, reads, work.Lag.Sum)
		}
	})
}

func TestTheGaugeAgreesWithTheRecordsOverHTTP2(t *testing.T) {
	overHTTP2(t, 8, chat, func(t *testing.T, cfg drive.Config, _ *atomic.Int64) {
		all, m := carry(t, t.Context(), cfg, spec(plan.Load{Concurrency: 4, Requests: 40}))
		var stays, gauge int64
		for _, l := range m.Loops {
			gauge += l.InFlightNs[0]
		}
		for _, x := range all {
			first, _ := x.FirstWrite.Get()
			end, _ := x.End.Get()
			stays += int64(end - first)
		}
		if gauge != stays || gauge <= 0 {
			t.Errorf("request-ns in flight: got %d by the gauge, %d by the records", gauge, stays)
		}
	})
}
