package judge

import "tare/internal/judge/stats"

// Stability says whether the server kept up with an open stage (docs/capacity.md). Its shares are of the offered load.
type Stability struct {
	State      stats.State `json:"state"` // stable, overloaded or unclear, at StableWithin
	Why        string      `json:"why,omitempty"`
	Shortfall  Number      `json:"shortfall"`       // growth of the backlog
	Error      Number      `json:"error"`           // its standard error
	Resolution Number      `json:"resolution"`      // the least overload that the stage could tell from none
	Completed  Number      `json:"completed_share"` // ended in the window over due in it, less what failed
	Failed     Number      `json:"failed_share"`
	Wait       Number      `json:"wait_growth"`  // of the wait for the first token, seconds a second
	Queue      Number      `json:"queue_growth"` // of what the server itself says is waiting; null where it was not asked

	found stats.Stability
}

// StableWithin is the share of a load that may be left standing in a stage that is called stable, where nothing else is asked for.
const StableWithin = 0.05

func newStability(s stats.Stability) *Stability {
	known := func(g stats.Excess) Number {
		if !g.Known {
			return Number{}
		}
		return Some(g.Value)
	}
	state, why := s.State(StableWithin)
	return &Stability{
		State: state, Why: why, Shortfall: Some(s.Backlog.Value), Error: Some(s.Backlog.Error), Resolution: Some(s.Resolution()),
		Completed: Some(s.Completed), Failed: Some(s.Failed), Wait: known(s.Wait), Queue: known(s.Waiting), found: s,
	}
}

// Within holds the stage against another tolerance.
func (s *Stability) Within(tolerance float64) (state stats.State, why string) {
	return s.found.State(tolerance)
}
