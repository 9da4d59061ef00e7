package clock

import (
	"testing"
	"time"
)

func TestLeadFollowsLateWakeUps(t *testing.T) {
	var l Lead
	for range 200 {
		l.Woke(32 * time.Microsecond)
	}
	if got := l.Early(); got < 31*time.Microsecond || got > 32*time.Microsecond {
		t.Errorf("lead %v after wake-ups 32 µs late, want nearly that", got)
	}
	l.Woke(time.Second) // a stall says nothing about wake-ups
	if got := l.Early(); got > 37*time.Microsecond {
		t.Errorf("lead %v after one stall of a second, want at most 37 µs", got)
	}
	for range 500 {
		l.Woke(-time.Microsecond)
	}
	if got := l.Early(); got > time.Microsecond {
		t.Errorf("lead %v after many wake-ups in time, want none", got)
	}
	l.Least = 50 * time.Microsecond
	if got := l.Early(); got != l.Least {
		t.Errorf("lead %v, want the least %v", got, l.Least)
	}
}
