package drive

import (
	"fmt"
	"time"
)

// keeping is what a shard has learnt of how one server keeps connections. Some servers close a connection behind a reply
// that has just announced the contrary, and lose what is written on it by then. So connections rest at first, behind each
// reply, until enough of them have outlived that. Once one has not, all rest much longer: such a server may take a while.
type keeping struct {
	kept   int           // connections that outlived a rest, and more than one request
	cool   time.Duration // how long a connection rests, once one was closed too early; 0 until then
	closed int64         // connections that the server closed soon after a reply
}

const (
	enoughKept = 32                    // before connections need not rest
	trialCool  = 2 * time.Millisecond  // until then
	leastCool  = 50 * time.Millisecond // once a connection was closed by this age
	mostCool   = 400 * time.Millisecond
)

// rest is how long a connection must have been idle behind a reply before it carries another request.
func (k *keeping) rest() time.Duration {
	if k.cool == 0 && k.kept < enoughKept {
		return trialCool
	}
	return k.cool
}

// outlived takes note of a connection that the server had not closed when its rest was over, behind so many replies. One is
// too few to tell by: there are servers that keep each connection for two.
func (k *keeping) outlived(replies int) {
	if replies > 1 {
		k.kept++
	}
}

// left takes note of a kept connection that the server closed so long after its last reply. What is closed later was idle
// for too long.
func (k *keeping) left(after time.Duration) {
	if after <= leastCool {
		k.closed++
		k.cool = max(k.cool, leastCool)
	}
}

// lost takes note of a request that was lost because its server closed the kept connection just then.
func (k *keeping) lost() { k.cool = min(max(2*k.cool, leastCool), mostCool) }

// early says how many kept connections servers have closed too early, or is empty.
func early(closed int64) string {
	if closed == 0 {
		return ""
	}
	return fmt.Sprintf("servers closed %d connections within %v of a reply that had not said so: connections rested as long before they were used again", closed, leastCool)
}
