package record

import "time"

// Spans adds up how long something took, each time it happened. Mean, variance and skewness follow from it, and the sums of
// several add up.
type Spans struct {
	N       int64   `json:"n"`
	Sum     float64 `json:"sum_s"`
	Squares float64 `json:"sum_s2"`
	Cubes   float64 `json:"sum_s3"`
}

// Add takes in one span; a negative one counts as 0.
func (s *Spans) Add(d time.Duration) {
	seconds := max(d, 0).Seconds()
	square := seconds * seconds
	s.N++
	s.Sum += seconds
	s.Squares += square
	s.Cubes += square * seconds
}

// Merge takes in all spans of other.
func (s *Spans) Merge(other *Spans) {
	s.N += other.N
	s.Sum += other.Sum
	s.Squares += other.Squares
	s.Cubes += other.Cubes
}

// Counts adds up numbers of things, such as the sockets that one wake-up found ready.
type Counts struct {
	N       int64   `json:"n"`
	Sum     int64   `json:"sum"`
	Squares float64 `json:"sum_of_squares"`
}

// Add takes in one number.
func (c *Counts) Add(n int64) {
	c.N++
	c.Sum += n
	c.Squares += float64(n) * float64(n)
}

// Work is what one event loop had to handle, how long that took and how long it had to wait, as it happened. Engines without
// loops of their own know Reading, Lag and Merged only.
type Work struct {
	Reading Spans `json:"reading"` // each read of a reply: from when the loop took the socket up to when its events were read
	Sending Spans `json:"sending"` // each request: looking it up and writing it
	Waiting Spans `json:"waiting"` // each stamped read: from the kernel's stamp to when the loop took the socket up
	Waking  Spans `json:"waking"`  // of them, the first read after a sleep that it ended
	Lag     Spans `json:"lag"`     // each stamped read: from the kernel's stamp to when the bytes were there

	Gaps    Spans  `json:"gaps"`    // between the stamps of reads that followed each other; one that descends counts as none
	Steps   Counts `json:"steps"`   // reads that came within StepGap of each other
	Within  Spans  `json:"within"`  // of the gaps, those inside of steps
	Wakeups Counts `json:"wakeups"` // sockets that each wake-up found ready

	Replayed Spans `json:"replayed"` // waits of the same reads in a loop that took them one after another, by their stamps and services
	Merged   int64 `json:"merged"`   // events that later bytes followed in the same read
}

// StepGap is the gap up to which reads count as one step: an engine writes the tokens of a step some µs apart.
const StepGap = 20 * time.Microsecond
