package record

// ServerOf is which of several servers the requests of a session go to, by its number: in turn where every session is one request.
// Where sessions have turns, their numbers have gaps, which may be as wide as there are servers: then they are spread by a hash.
func ServerOf(session int64, servers int, turns bool) int {
	if turns {
		return int(mixed(uint64(session)) % uint64(servers))
	}
	return int(session % int64(servers))
}

// mixed is the finalizer of SplitMix64: every bit of its result depends on every bit of x.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
