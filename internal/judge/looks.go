package judge

import "tare/internal/record"

// Looks are what one source told of itself over time, beside the load.
type Looks struct {
	Source string    `json:"source"`
	Kind   string    `json:"kind"`  // server, exporter or prometheus
	AtMs   []float64 `json:"at_ms"` // middles of the looks, since the start of the run

	Gauges map[record.Quantity][]Number `json:"gauges"`     // what was told of the moment; null where a look brought nothing
	Rates  map[record.Quantity][]Number `json:"per_second"` // what counters grew by since the look before; null also where they began anew
	Failed int                          `json:"failed"`     // looks that brought nothing
}

// drawnGauges and drawnRates are what is kept of what sources tell.
func drawnGauges() []record.Quantity {
	return []record.Quantity{record.Running, record.Waiting, record.KVUsage, record.GPUUsage, record.GPUMemory, record.GPUPower, record.GPUHeat}
}

func drawnRates() []record.Quantity {
	return []record.Quantity{record.Requests, record.PromptTokens, record.OutputTokens, record.Preemptions}
}

// looksOf parts the samples by source, in the order in which these first appear.
func looksOf(samples []record.ServerSample) []Looks {
	all, place, last := []Looks{}, map[string]int{}, map[string]*record.ServerSample{}
	for i := range samples {
		s := &samples[i]
		at, known := place[s.Source]
		if !known {
			at = len(all)
			place[s.Source] = at
			all = append(all, Looks{Source: s.Source, Kind: s.Kind, Gauges: map[record.Quantity][]Number{}, Rates: map[record.Quantity][]Number{}})
		}
		all[at].add(s, last[s.Source])
		last[s.Source] = s
	}
	for i := range all {
		all[i].trim()
	}
	return all
}

// add takes a look, and the one before it at the same source; nil for the first.
func (l *Looks) add(s, before *record.ServerSample) {
	middle := func(s *record.ServerSample) float64 { return s.AtMs + s.TookMs/2 }
	l.AtMs = append(l.AtMs, middle(s))
	if s.Values == nil {
		l.Failed++
	}
	for _, q := range drawnGauges() {
		v, ok := told(s, q)
		l.Gauges[q] = append(l.Gauges[q], numberOf(v, ok))
	}
	for _, q := range drawnRates() {
		v, ok := told(s, q)
		was, had := told(before, q)
		rate := Number{}
		if ok && had && v >= was {
			rate = over(v-was, (middle(s)-middle(before))/1e3)
		}
		l.Rates[q] = append(l.Rates[q], rate)
	}
}

// told is a value of a look; ok is false where it is not told.
func told(s *record.ServerSample, q record.Quantity) (v float64, ok bool) {
	if s == nil || s.Values == nil {
		return 0, false
	}
	v, ok = s.Values.Values[q]
	return v, ok
}

// trim leaves out what no look told.
func (l *Looks) trim() {
	for _, columns := range []map[record.Quantity][]Number{l.Gauges, l.Rates} {
		for q, column := range columns {
			empty := true
			for _, n := range column {
				empty = empty && !n.defined
			}
			if empty {
				delete(columns, q)
			}
		}
	}
}
