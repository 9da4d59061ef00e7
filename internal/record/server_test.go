package record_test

import (
	"testing"

	"tare/internal/record"
)

func TestServersTakeSessionsInTurnOrEvenly(t *testing.T) {
	for i := range int64(12) {
		if got := record.ServerOf(i, 3, false); got != int(i%3) {
			t.Errorf("request %d goes to server %d, want %d", i, got, i%3)
		}
	}
	var n [4]int
	for i := range int64(4000) {
		n[record.ServerOf(i*4, 4, true)]++ // sessions of four turns
	}
	for i, got := range n {
		if got < 900 || got > 1100 {
			t.Errorf("server %d has %d of 4000 sessions, want about a quarter", i, got)
		}
	}
}
