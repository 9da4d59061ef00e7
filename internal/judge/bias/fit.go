package bias

import (
	"cmp"
	"math"
	"slices"
)

// Prediction is the mean wait one model expects, next to the one measured.
type Prediction struct {
	Model   string
	Mean    float64 // s; 0 when unbounded
	Ratio   float64 // Mean over the measured mean; 0 when there is none
	Bounded bool    // Mean exists
}

// Close reports whether prediction and measurement are within a factor of two of each other.
func (p Prediction) Close() bool { return p.Bounded && p.Ratio >= 0.5 && p.Ratio <= 2 }

// Replay is the name of the prediction that is a replay of the recorded stamps, and no formula: W' = max(0, W + S − A) (Lindley 1952).
const Replay = "lindley"

// Predict holds every model against the mean wait that was measured, and so the mean wait of a replay of the stamps, if there was
// one; all in seconds. The predictions come in the order of Models, the replay last.
func Predict(l Load, measured, replayed float64, replay bool) []Prediction {
	var all []Prediction
	for _, m := range Models() {
		mean, ok := m.Mean(l)
		all = append(all, against(m.Name, mean, ok, measured))
	}
	if replay {
		all = append(all, against(Replay, replayed, true, measured))
	}
	return all
}

func against(name string, mean float64, ok bool, measured float64) Prediction {
	p := Prediction{Model: name, Mean: mean, Bounded: ok}
	if ok && measured > 0 {
		p.Ratio = mean / measured
	}
	return p
}

// Best returns the prediction whose ratio is nearest to 1, as likely too high as too low; the earlier one of equals. ok is false when
// none has a ratio: nothing was measured, or every model is unbounded or expects no wait.
func Best(all []Prediction) (best Prediction, ok bool) {
	rated := slices.DeleteFunc(slices.Clone(all), func(p Prediction) bool { return p.Ratio <= 0 })
	if len(rated) == 0 {
		return Prediction{}, false
	}
	return slices.MinFunc(rated, func(a, b Prediction) int {
		return cmp.Compare(math.Abs(math.Log(a.Ratio)), math.Abs(math.Log(b.Ratio)))
	}), true
}
