package probe

import (
	"fmt"
	"time"
)

const (
	fewEvents = 4                    // below that a stream tells nothing of its spacing
	felt      = 5 * time.Millisecond // less than that cannot be told from the network's own delays
)

// buffering says whether the events of a stream were held back. Two things are looked at: how many reads of the socket the token
// events came in, and when the first came, compared with the whole reply of a single token: an unhindered stream shows its first
// token by then.
func buffering(s, whole *Exchange) Buffering {
	n, g := len(s.arrivals), groups(s.arrivals)
	if n < fewEvents {
		return Buffering{Unclear, fmt.Sprintf("%d token events are too few to tell", n)}
	}
	first, last := s.arrivals[0].at, s.arrivals[n-1].at
	came := fmt.Sprintf("%d token events in %d reads within %s", n, g, milliseconds(last-first))
	switch {
	case g == 1:
		return heldBack(s, whole, first)
	case 2*g >= n:
		return Buffering{AsMade, came}
	case last-first >= felt*time.Duration(g-1):
		return Buffering{Bursts, fmt.Sprintf("%s, %s between the reads in the mean: several events at a time", came, milliseconds((last-first)/time.Duration(g-1)))}
	}
	return Buffering{Unclear, came + ": too fast to tell"}
}

// heldBack judges a stream whose token events all came at once.
func heldBack(s, whole *Exchange, first time.Duration) Buffering {
	at := fmt.Sprintf("all %d token events came in one read, %s after the request", len(s.arrivals), milliseconds(first))
	if whole == nil || !whole.read {
		return Buffering{Unclear, at + ", with no shorter reply to compare"}
	}
	one := time.Duration(whole.End)
	compared := fmt.Sprintf("%s; a whole reply of one token took %s", at, milliseconds(one))
	if first-one > max(felt, one/4) {
		return Buffering{Whole, compared}
	}
	return Buffering{Unclear, compared + ": too fast to tell"}
}

// groups counts the reads that brought token events.
func groups(all []arrival) int {
	n := 0
	for i, a := range all {
		if i == 0 || a.read != all[i-1].read {
			n++
		}
	}
	return n
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
