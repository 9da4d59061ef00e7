package sim

// purpose keeps the draws of one request for different ends apart.
type purpose uint64

const (
	forTTFT purpose = iota + 1
	forGap
	forFault
	forStrike
	forID
	forWord
	forStep
)

// draws are the random numbers of one request. Each follows from the seed, the request's arrival number, the purpose and
// a count alone, in whatever order they are asked for.
type draws uint64

func drawsOf(seed, arrival uint64) draws { return draws(mix(mix(seed) + arrival)) }

func (d draws) bits(p purpose, k uint64) uint64 { return mix(uint64(d) ^ mix(uint64(p)<<56+k)) }

// unit is uniform between 0 and 1, both excluded.
func (d draws) unit(p purpose, k uint64) float64 {
	return (float64(d.bits(p, k)>>11) + 0.5) / (1 << 53)
}

// word is which of the vocabulary the output token with a number is.
func (d draws) word(i int) int { return int(d.bits(forWord, uint64(i)) % uint64(len(vocabulary))) }

// mix is one step of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
