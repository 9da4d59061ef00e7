package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"tare/internal/record"
)

// ServerSide is what the servers counted themselves, next to what the records say.
type ServerSide struct {
	Sources   []Source         `json:"sources"`
	Changes   []string         `json:"changes,omitempty"`  // of what the servers say they are, from before to after
	Known     bool             `json:"identified"`         // they said it, before and after
	Trip      Number           `json:"round_trip_ms"`      // shortest time of a connection to them
	Run       BothSides        `json:"run"`                // from before the first request to rest behind the last, warm-up included
	Total     *BothSides       `json:"measured,omitempty"` // from the start of the first measured stage on; left out where that is the run
	Stages    []BothSides      `json:"stages,omitempty"`   // of several
	Beside    map[string]Gauge `json:"beside,omitempty"`   // of exporters, by our name
	Throttled Number           `json:"gpu_throttled_us"`   // time for which GPUs were held down by power or heat
}

// Source is one that was looked at.
type Source struct {
	URL     string `json:"url"`
	Kind    string `json:"kind"`
	Dialect string `json:"dialect,omitempty"`
	Looks   int    `json:"looks"`
	Failed  int    `json:"failed"`           // looks that brought nothing
	Reason  string `json:"reason,omitempty"` // of the last of them
	Resets  int    `json:"restarts"`         // its counters began anew

	lost bool // its last look brought nothing
}

// waiting is how many requests each server that tells said were waiting, at the looks in a window.
func (s *serverSide) waiting(start, lasted time.Duration) (all [][]float64) {
	if s == nil {
		return nil
	}
	for _, from := range s.sources {
		var values []float64
		for _, look := range from.all {
			at := moment(look.AtMs)
			if v, told := look.Values.Values[record.Waiting]; told && at >= start && at < start+lasted {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			all = append(all, values)
		}
	}
	return all
}

// figures makes the section of the Summary.
func (s *serverSide) figures(l *Ledger) *ServerSide {
	if s == nil {
		return nil
	}
	s.marks.total()
	f := &ServerSide{}
	for _, from := range s.sources {
		f.Sources = append(f.Sources, from.Source)
	}
	f.identify(s.sources)
	f.Run = s.sideBySide(stretch{name: "run"})
	starts := l.measuredStarts()
	if len(starts) > 0 && l.manifest.Stages[0].Warmup {
		total := s.sideBySide(stretch{name: "measured", from: &starts[0].at})
		f.Total = &total
	}
	for i := range starts {
		if len(starts) == 1 {
			break
		}
		w := stretch{name: starts[i].name, from: &starts[i].at}
		if i == 0 && !l.manifest.Stages[0].Warmup {
			w.from = nil
		}
		if i+1 < len(starts) {
			w.to = &starts[i+1].at
		}
		f.Stages = append(f.Stages, s.sideBySide(w))
	}
	f.Beside, f.Throttled = s.beside(), s.throttled()
	return f
}

// begins is a stage and its start.
type begins struct {
	name string
	at   time.Duration
}

func (l *Ledger) measuredStarts() (all []begins) {
	for i, stage := range l.manifest.Stages {
		if !stage.Warmup {
			all = append(all, begins{stage.Name, l.windows[i].start})
		}
	}
	return all
}

// identify compares what the servers said of themselves before and after.
func (f *ServerSide) identify(sources []*sourceLooks) {
	trip := math.Inf(1)
	asked, told := 0, 0
	for _, from := range sources {
		for _, id := range from.ids {
			if id.RoundTrip != nil {
				trip = min(trip, id.RoundTrip.MinMs)
			}
		}
		if from.Kind == record.SourceExporter {
			continue
		}
		asked++
		if len(from.ids) < 2 {
			continue
		}
		before, after := from.ids[0], from.ids[len(from.ids)-1]
		if says(before) || says(after) {
			told++
		}
		f.Changes = append(f.Changes, changes(before, after)...)
	}
	f.Known, f.Trip = asked > 0 && told == asked, Some(trip)
}

func says(id *record.Identity) bool {
	return len(id.Models) > 0 || id.Version != "" || len(id.Settings) > 0
}

func changes(a, b *record.Identity) (all []string) {
	if !slices.Equal(a.Models, b.Models) {
		all = append(all, fmt.Sprintf("models %v, then %v", a.Models, b.Models))
	}
	if a.Version != b.Version {
		all = append(all, fmt.Sprintf("version %q, then %q", a.Version, b.Version))
	}
	names := maps.Clone(a.Settings)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, b.Settings)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a.Settings[name] != b.Settings[name] {
			all = append(all, fmt.Sprintf("%s %q, then %q", name, a.Settings[name], b.Settings[name]))
		}
	}
	return all
}
