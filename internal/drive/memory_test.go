package drive

import "testing"

func TestTheCollectorWorksBeforeMemoryIsShort(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		what            string
		all, plan, want int64
	}{
		{"a small machine", 2 * gib, 0, gib},
		{"a machine of some size", 16 * gib, 0, 2 * gib},
		{"a large machine", 512 * gib, 0, 64 * gib},
		{"a plan that fills memory", 64 * gib, 10 * gib, 21 * gib},
		{"a plan that is too large", 16 * gib, 10 * gib, 8 * gib},
	} {
		if got := quietLimit(c.all, c.plan); got != c.want {
			t.Errorf("%s: the limit is %d MiB, want %d MiB", c.what, got>>20, c.want>>20)
		}
	}
}
