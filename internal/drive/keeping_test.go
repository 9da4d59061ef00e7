package drive

import (
	"testing"
	"time"
)

func TestConnectionsRestUntilTheServerHasKeptEnough(t *testing.T) {
	const ms = time.Millisecond
	type event struct {
		what  string
		after time.Duration
		times int
		want  time.Duration // rest behind it
	}
	for name, events := range map[string][]event{
		"a server that keeps them":          {{"kept once", 0, 100, 2 * ms}, {"kept", 0, 31, 2 * ms}, {"kept", 0, 1, 0}, {"kept", 0, 1000, 0}},
		"one that closes at once":           {{"left", 0, 1, 50 * ms}, {"kept", 0, 1000, 50 * ms}},
		"one that closes a little later":    {{"kept", 0, 5, 2 * ms}, {"left", 49 * ms, 1, 50 * ms}},
		"one that closes later on":          {{"kept", 0, 100, 0}, {"left", 2 * ms, 3, 50 * ms}},
		"one that closes what is idle":      {{"left", 51 * ms, 5, 2 * ms}, {"kept", 0, 32, 0}, {"left", 3 * time.Second, 5, 0}},
		"one that has lost a request":       {{"lost", 0, 1, 50 * ms}, {"lost", 0, 1, 100 * ms}, {"lost", 0, 10, 400 * ms}, {"left", 0, 1, 400 * ms}},
		"one that is trusted and loses one": {{"kept", 0, 32, 0}, {"lost", 0, 1, 50 * ms}, {"kept", 0, 100, 50 * ms}},
	} {
		var k keeping
		if k.rest() != 2*ms {
			t.Errorf("%s: rests %v at first, want 2ms", name, k.rest())
		}
		for i, e := range events {
			for range e.times {
				switch e.what {
				case "kept":
					k.outlived(2)
				case "kept once":
					k.outlived(1)
				case "left":
					k.left(e.after)
				case "lost":
					k.lost()
				}
			}
			if k.rest() != e.want {
				t.Errorf("%s, step %d: rests %v, want %v", name, i, k.rest(), e.want)
			}
		}
	}
}
