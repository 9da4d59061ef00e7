package schedule

import (
	"container/heap"
	"math"
	"math/bits"
	"strconv"

	"tare/internal/plan/draw"
)

// Client is one of several that send independently of each other, each with arrivals of its own: Constant, Poisson, Gamma or
// Weibull.
type Client struct {
	Share   float64 // of the stage's rate, in proportion to the others'
	Process Process
	Shape   float64 // of Gamma and Weibull
}

// MaxClients is the largest number of clients in a stage.
const MaxClients = 10_000

// merged puts the arrivals of clients together. Each begins as if it had been sending forever: the time to its first request
// is what is left of a gap, so that neither do all begin at once, nor is the rate off at the start, nor is a client left out
// that sends less than once in the window.
type merged struct {
	lines []line // a heap by the next arrival
	last  int    // the client of the last one
}

// line is one client's arrivals.
type line struct {
	client int
	gaps   gaps
	source *draw.Source
	scale  uint64 // mean gap in units of the stage's, in units of 2⁻³²
	next   uint64 // in units of 2⁻³² of the stage's mean gap
	rest   uint64 // of next, in units of 2⁻⁸⁰
}

func newMerged(seed uint64, first int64, clients []Client) *merged {
	whole := 0.0
	for _, c := range clients {
		whole += c.Share
	}
	m := &merged{lines: make([]line, len(clients)), last: 0}
	for i, c := range clients {
		l := line{
			client: i, gaps: gapsOf(c.Process, c.Shape), source: draw.New(seed, "client "+strconv.Itoa(i)),
			scale: uint64(min(math.Floor(float64(whole/c.Share*(1<<unit))+0.5), 1<<63)),
		}
		l.source.Seek(uint64(first))
		l.advance(l.gaps.residual(l.source))
		m.lines[i] = l
	}
	heap.Init(m)
	return m
}

// advance adds a gap in units of 1/draw.One of the client's mean. One that leads beyond all numbers leads to the largest.
func (l *line) advance(gap uint64) {
	high, low := bits.Mul64(gap, l.scale) // in units of 2⁻⁸⁰
	if high >= 1<<48 {
		l.next = math.MaxUint64
		return
	}
	rest, carry := bits.Add64(l.rest, low&(1<<48-1), 0)
	l.rest = rest & (1<<48 - 1)
	next, over := bits.Add64(l.next, high<<excess|low>>48, rest>>48|carry)
	if l.next = next; over != 0 {
		l.next = math.MaxUint64
	}
}

func (m *merged) next(int64) (sum uint64, ok bool) {
	l := &m.lines[0]
	if l.next == math.MaxUint64 {
		return 0, false
	}
	sum, m.last = l.next, l.client
	l.advance(l.gaps.draw(l.source))
	heap.Fix(m, 0)
	return sum, true
}

// Len, Less, Swap, Push and Pop are heap.Interface. Arrivals of the same moment come in the order of the clients.
func (m *merged) Len() int { return len(m.lines) }

func (m *merged) Less(i, j int) bool {
	a, b := &m.lines[i], &m.lines[j]
	if a.next != b.next {
		return a.next < b.next
	}
	return a.client < b.client
}

func (m *merged) Swap(i, j int) { m.lines[i], m.lines[j] = m.lines[j], m.lines[i] }

func (m *merged) Push(any) { panic("schedule: clients do not come later") }

func (m *merged) Pop() any { panic("schedule: clients do not leave") }
