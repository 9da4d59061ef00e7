package plan

// Origin says which session of a plan a request is of: all that its later turns follow from.
type Origin struct {
	Stage   int
	Session int64 // the index of its first request
	Number  int64 // of the session in the plan, from 0; by it a recording's sessions are used in turn
}

// Origin returns which session r is of.
func (r *Request) Origin() Origin { return Origin{r.Stage, r.Session, r.Number} }

// Graph says which turns of a session wait for which. It does not change, and may be that of a longer session than the one at hand:
// turns beyond its end are to be passed over.
type Graph struct {
	after  [][]int32 // of each turn, those that must have ended before it; nil for a chain
	then   [][]int32
	starts []int32
}

// After returns the turns that a turn waits for, in ascending order; none for the first, and for one that counts from the
// session's start.
func (g *Graph) After(turn int) []int32 {
	switch {
	case g.after != nil:
		return g.after[turn]
	case turn == 0:
		return nil
	}
	return numbers[turn-1 : turn]
}

// Then returns the turns that wait for a turn.
func (g *Graph) Then(turn int) []int32 {
	if g.after != nil {
		return g.then[turn]
	}
	return numbers[turn+1 : turn+2]
}

// Starts returns the turns behind the first that wait for none: they count from the session's start, which is when its first one
// falls due.
func (g *Graph) Starts() []int32 { return g.starts }

// chain is a session in which each turn waits for the one before it.
var chain = &Graph{}

// numbers are the turns of the longest chain.
var numbers = func() (n [maxTurns + 2]int32) {
	for i := range n {
		n[i] = int32(i)
	}
	return n
}()

// newGraph returns the graph in which each turn waits for those that are given, all of them before it.
func newGraph(after [][]int32) *Graph {
	g := &Graph{after: after, then: make([][]int32, len(after))}
	for turn, before := range after {
		for _, b := range before {
			g.then[b] = append(g.then[b], int32(turn))
		}
		if turn > 0 && len(before) == 0 {
			g.starts = append(g.starts, int32(turn))
		}
	}
	return g
}
