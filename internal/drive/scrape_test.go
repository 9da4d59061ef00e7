package drive_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/drive"
	"tare/internal/drive/scrape"
	"tare/internal/plan"
	"tare/internal/record"
)

func TestMetricsThatHangDelayNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		mute := func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		cfg := drive.Config{Engine: drive.EngineGoroutine, Timers: true, Servers: at("pipe"), Connections: 1,
			Dial: metronome(50*time.Millisecond, 10*time.Millisecond, 4),
			Scrape: &scrape.Config{Every: time.Second, Timeout: 2 * time.Second, Out: &out,
				Sources: []scrape.Source{{Kind: record.SourceServer, URL: "http://mute/metrics", Shown: "http://mute/metrics", Dial: mute}}}}
		all, m := carry(t, t.Context(), cfg, spec(plan.Load{Rate: 10, Requests: 30}))
		for _, x := range all {
			if sent, _ := x.FirstWrite.Get(); sent != x.Due {
				t.Errorf("request %d: due %v, sent %v, want the same", x.Index, x.Due, sent)
			}
		}
		if end := m.State.EndMs; end < 2980 || end > 3000 { // the last is sent at 2.9 s and takes 80 ms; senders look up every few ms
			t.Errorf("got an end at %v ms, want that of the last reply, 2980, and not of the looks behind it", end)
		}
		if n := strings.Count(out.String(), `"reason":"no answer within 2s","values":null`); n != strings.Count(out.String(), "\n") || n < 3 {
			t.Errorf("got samples %s, want some, all with a reason in place of values", out.String())
		}
	})
}
