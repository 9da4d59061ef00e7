package judge

import (
	"tare/internal/judge/bias"
	"tare/internal/record"
)

// Loop is one event loop as a queue: what it had to handle, how long its reads waited, and what models expect of that.
type Loop struct {
	Utilisation Number `json:"utilisation"` // ρ: share of its time spent on reads and sends
	ReadRate    Number `json:"reads_per_s"`
	ReadMs      Number `json:"read_ms"`      // mean service time of a read
	ReadCV2     Number `json:"read_cv2"`     // c_s² of reads
	SendMs      Number `json:"send_ms"`      // mean service time of a request
	GapCV2      Number `json:"gap_cv2"`      // c_a²: of the gaps between stamps
	StepReads   Number `json:"step_reads"`   // mean number of reads within 20 µs of each other
	WokenReads  Number `json:"woken_reads"`  // mean number of sockets that a wake-up found ready
	EventReads  Number `json:"event_reads"`  // reads per event
	MergedShare Number `json:"merged_share"` // events that later bytes followed in the same read, of all
	WaitMs      Number `json:"wait_ms"`      // mean, from the kernel's stamp to when the loop took the socket up
	LagMs       Number `json:"lag_ms"`       // mean, to when the bytes were there

	Models []Prediction `json:"models"`
	Fits   string       `json:"fits,omitempty"` // the model that comes nearest
	Close  bool         `json:"close"`          // within a factor of two
}

// Prediction is the mean wait that a model expects; null where it is without bound.
type Prediction struct {
	Model  string `json:"model"`
	WaitMs Number `json:"wait_ms"`
	Ratio  Number `json:"ratio"` // over the measured one
}

func loopsOf(all []record.Loop) (loops []Loop) {
	for i := range all {
		if all[i].Work.Reading.N > 0 {
			loops = append(loops, loopOf(&all[i]))
		}
	}
	return loops
}

func loopOf(l *record.Loop) Loop {
	w := &l.Work
	out := Loop{
		ReadMs: meanMs(&w.Reading), SendMs: meanMs(&w.Sending), WaitMs: meanMs(&w.Waiting), LagMs: meanMs(&w.Lag),
		ReadRate: over(float64(w.Reading.N), float64(l.WallNs)/1e9), ReadCV2: variation(&w.Reading), GapCV2: variation(&w.Gaps),
		StepReads: over(float64(w.Steps.Sum), float64(w.Steps.N)), WokenReads: over(float64(w.Wakeups.Sum), float64(w.Wakeups.N)),
		EventReads: over(float64(l.Reads), float64(l.Events)), MergedShare: over(float64(w.Merged), float64(l.Events)),
	}
	if w.Waiting.N == 0 { // its readers work side by side: no queue of one server
		return out
	}
	out.Utilisation = over(w.Reading.Sum+w.Sending.Sum, float64(l.WallNs)/1e9)
	load, ok := loadOf(l)
	if !ok {
		return out
	}
	out.predict(load, w)
	return out
}

// predict holds every model, and the replay that the loop kept, against the measured wait.
func (l *Loop) predict(load bias.Load, w *record.Work) {
	measured := w.Waiting.Sum / float64(w.Waiting.N)
	replayed, replay := meanOf(&w.Replayed)
	all := bias.Predict(load, measured, replayed, replay && measured > 0)
	for _, p := range all {
		out := Prediction{Model: p.Model}
		if p.Bounded {
			out.WaitMs, out.Ratio = Some(p.Mean*1e3), Some(p.Ratio)
		}
		l.Models = append(l.Models, out)
	}
	if best, ok := bias.Best(all); ok {
		l.Fits, l.Close = best.Model, best.Close()
	}
}

// loadOf is what the loop had to serve: reads and sends, one queue of both.
func loadOf(l *record.Loop) (load bias.Load, ok bool) {
	w := &l.Work
	served := w.Reading
	served.Merge(&w.Sending)
	service, ok := bias.ServiceOf(served.N, served.Sum, served.Squares, served.Cubes)
	if !ok || w.Gaps.Sum <= 0 || l.WallNs <= 0 {
		return bias.Load{}, false
	}
	ca2, _ := variation(&w.Gaps).Get()
	load = bias.Load{Rate: float64(served.N) / (float64(l.WallNs) / 1e9), Loops: 1, Service: service, Variation: ca2}
	if n := float64(w.Steps.N); n > 0 {
		load.Step = bias.Step{Mean: float64(w.Steps.Sum) / n, Pairs: (w.Steps.Squares - float64(w.Steps.Sum)) / n}
	}
	if n := float64(w.Within.N); n > 0 {
		load.Spacing = w.Within.Sum / n
	}
	if n := float64(w.Waking.N); n > 0 {
		load.Setup = bias.Moments{Mean: w.Waking.Sum / n, Second: w.Waking.Squares / n}
	}
	return load, true
}

// meanOf is the mean span in seconds.
func meanOf(s *record.Spans) (seconds float64, ok bool) {
	return over(s.Sum, float64(s.N)).Get()
}

func meanMs(s *record.Spans) Number { return over(s.Sum*1e3, float64(s.N)) }

func over(a, b float64) Number {
	if b <= 0 {
		return Number{}
	}
	return Some(a / b)
}

// variation is the squared coefficient of variation.
func variation(s *record.Spans) Number {
	if s.N < 2 || s.Sum <= 0 {
		return Number{}
	}
	mean := s.Sum / float64(s.N)
	return Some(max(s.Squares/float64(s.N)/(mean*mean)-1, 0))
}
