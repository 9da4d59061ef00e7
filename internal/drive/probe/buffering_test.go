package probe

import (
	"testing"
	"time"
)

func TestBufferingIsDecidedByReadsAndTimes(t *testing.T) {
	const ms = time.Millisecond
	at := func(reads []int, times ...time.Duration) *Exchange {
		x := &Exchange{read: true}
		for i, r := range reads {
			x.arrivals = append(x.arrivals, arrival{at: times[i], read: r})
		}
		return x
	}
	one := func(d time.Duration) *Exchange { return &Exchange{read: true, End: Milliseconds(d)} }
	for _, c := range []struct {
		name     string
		streamed *Exchange
		whole    *Exchange
		want     string
	}{
		{"one event a read", at([]int{1, 2, 3, 4}, 50*ms, 60*ms, 70*ms, 80*ms), one(50 * ms), AsMade},
		{"one event a read, fast", at([]int{1, 2, 3, 4}, 5*ms, 5*ms, 6*ms, 6*ms), one(5 * ms), AsMade},
		{"some events merged by chance", at([]int{1, 1, 2, 3}, 5*ms, 5*ms, 6*ms, 7*ms), one(5 * ms), AsMade},
		{"all at the end", at([]int{1, 1, 1, 1}, 130*ms, 130*ms, 130*ms, 130*ms), one(50 * ms), Whole},
		{"all at once, as soon as one token", at([]int{1, 1, 1, 1}, 51*ms, 51*ms, 51*ms, 51*ms), one(50 * ms), Unclear},
		{"all at once, a little later than a slow token", at([]int{1, 1, 1, 1}, 460*ms, 460*ms, 460*ms, 460*ms), one(400 * ms), Unclear},
		{"all at once, nothing to compare", at([]int{1, 1, 1, 1}, 130*ms, 130*ms, 130*ms, 130*ms), nil, Unclear},
		{"in bursts", at([]int{1, 1, 1, 1, 2, 2, 2, 2}, 50*ms, 50*ms, 50*ms, 50*ms, 90*ms, 90*ms, 90*ms, 90*ms), one(10 * ms), Bursts},
		{"in bursts without time between", at([]int{1, 1, 1, 1, 2, 2, 2, 2}, 5*ms, 5*ms, 5*ms, 5*ms, 6*ms, 6*ms, 6*ms, 6*ms), one(5 * ms), Unclear},
		{"too few", at([]int{1, 1, 1}, 130*ms, 130*ms, 130*ms), one(50 * ms), Unclear},
	} {
		if got := buffering(c.streamed, c.whole); got.Verdict != c.want || got.How == "" {
			t.Errorf("%s: got %s (%s), want %s", c.name, got.Verdict, got.How, c.want)
		}
	}
}
