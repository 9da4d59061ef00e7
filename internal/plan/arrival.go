package plan

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/internal/plan/schedule"
)

// inherit returns a stage with the load's keys where it has none of its own.
func (l *Load) inherit(s LoadStage) LoadStage {
	take := func(own *string, from string) {
		if *own == "" {
			*own = from
		}
	}
	take(&s.Arrival, l.Arrival)
	take(&s.States, l.States)
	take(&s.Clients, l.Clients)
	take(&s.Think, l.Think)
	if s.Burstiness == 0 {
		s.Burstiness = l.Burstiness
	}
	if s.ThinkTime == 0 {
		s.ThinkTime = l.ThinkTime
	}
	return s
}

// open is the schedule of an open stage that has inherited.
func (s *LoadStage) open() schedule.Open {
	o := schedule.Open{
		Process: process(s.Arrival), Rate: s.Rate, RateTo: s.RateTo, Window: s.Duration, Limit: s.Requests,
		Wave:  schedule.Wave{Amplitude: s.Amplitude, Period: s.Period, Phase: s.Phase},
		Spike: schedule.Spike{Peak: s.SpikeRate, Start: s.SpikeAt, Width: s.SpikeWidth},
	}
	if o.RateTo == 0 {
		o.RateTo = o.Rate
	}
	switch o.Process {
	case schedule.Gamma, schedule.Weibull:
		o.Shape = s.Burstiness
	case schedule.MMPP:
		o.States, _ = parseStates(s.States)
	case schedule.Clients:
		o.Clients, _ = parseClients(s.Clients)
	}
	return o
}

// think is the think time of a closed stage that has inherited.
func (s *LoadStage) think() schedule.Think {
	return schedule.Think{Mean: s.ThinkTime, Exponential: s.ThinkTime > 0 && s.Think != ThinkConstant}
}

func process(arrival string) schedule.Process {
	switch arrival {
	case ArrivalPoisson:
		return schedule.Poisson
	case ArrivalGamma:
		return schedule.Gamma
	case ArrivalWeibull:
		return schedule.Weibull
	case ArrivalMMPP:
		return schedule.MMPP
	case ArrivalClients:
		return schedule.Clients
	}
	return schedule.Constant
}

// shaped says that the gaps of a process have a shape.
func shaped(arrival string) bool { return arrival == ArrivalGamma || arrival == ArrivalWeibull }

// leastShape is the smallest shape of a process.
func leastShape(arrival string) float64 {
	if arrival == ArrivalWeibull {
		return 0.2
	}
	return 0.05
}

const (
	maxStates   = 64
	statesHint  = "write WEIGHT:SOJOURN for each state, like 10:2s 1:8s"
	clientsHint = "write SHARE:ARRIVAL[:SHAPE][*N] for each client, like 50:gamma:0.2 1:poisson*30"
)

// parseStates reads "10:2s 1:8s"; reason says why it could not.
func parseStates(text string) (states []schedule.State, reason string) {
	some := false
	for _, word := range strings.Fields(text) {
		weight, sojourn, _ := strings.Cut(word, ":")
		w, errWeight := parseNumber(weight)
		d, errSojourn := time.ParseDuration(sojourn)
		switch {
		case errWeight != nil || errSojourn != nil:
			return nil, fmt.Sprintf("has a state that cannot be read: %q", shortened(word))
		case !(w >= 0 && w <= 1e6):
			return nil, fmt.Sprintf("must have weights within 0 and 1000000, got %q", shortened(word))
		case d <= 0 || d.Seconds() > month:
			return nil, fmt.Sprintf("must have sojourns above 0s and of %s at most, got %q", spell(month), shortened(word))
		}
		some = some || w > 0
		states = append(states, schedule.State{Weight: w, Sojourn: d})
	}
	switch {
	case len(states) < 2 || len(states) > maxStates:
		return nil, fmt.Sprintf("must have 2 to %d states, got %d", maxStates, len(states))
	case !some:
		return nil, "must have a state whose weight is above 0"
	}
	return states, ""
}

// parseClients reads "50:gamma:0.2 1:poisson*30"; reason says why it could not.
func parseClients(text string) (clients []schedule.Client, reason string) {
	for _, word := range strings.Fields(text) {
		one, times, many := strings.Cut(word, "*")
		n := int64(1)
		if many {
			var err error
			if n, err = strconv.ParseInt(times, 10, 64); err != nil || n < 1 {
				return nil, fmt.Sprintf("must have a whole number of 1 or more behind *, got %q", shortened(word))
			}
		}
		c, reason := parseClient(one)
		if reason != "" {
			return nil, reason
		}
		if n > schedule.MaxClients-int64(len(clients)) {
			return nil, fmt.Sprintf("must have %d clients at most", schedule.MaxClients)
		}
		clients = append(clients, slices.Repeat([]schedule.Client{c}, int(n))...)
	}
	if len(clients) == 0 {
		return nil, "must have a client"
	}
	return clients, ""
}

func parseClient(word string) (c schedule.Client, reason string) {
	parts := strings.Split(word, ":")
	share, err := parseNumber(parts[0])
	switch {
	case err != nil || len(parts) < 2 || len(parts) > 3:
		return c, fmt.Sprintf("has a client that cannot be read: %q", shortened(word))
	case !(share >= 1e-6 && share <= 1e6):
		return c, fmt.Sprintf("must have shares within 0.000001 and 1000000, got %q", shortened(word))
	}
	arrival, shape := parts[1], 0.0
	switch {
	case arrival != ArrivalConstant && arrival != ArrivalPoisson && !shaped(arrival):
		return c, fmt.Sprintf("must have clients of constant, poisson, gamma or weibull arrivals, got %q", shortened(word))
	case shaped(arrival) != (len(parts) == 3):
		return c, fmt.Sprintf("must have a shape for gamma and weibull, and none for others, got %q", shortened(word))
	}
	if shaped(arrival) {
		if shape, err = parseNumber(parts[2]); err != nil || !(shape >= leastShape(arrival) && shape <= 100) {
			return c, fmt.Sprintf("must have %s shapes within %v and 100, got %q", arrival, leastShape(arrival), shortened(word))
		}
	}
	return schedule.Client{Share: share, Process: process(arrival), Shape: shape}, ""
}

// arrivalFaults checks the keys of arrivals of all stages, and that the load's own serve one of them.
func (l *Load) arrivalFaults(present presence) (faults Faults) {
	if l.replayed() {
		return nil
	}
	var used struct{ burstiness, states, clients, think bool }
	for i, s := range l.measured() {
		path := "load"
		if len(l.Stages) > 0 {
			path = stagePath(i)
		}
		e := l.inherit(s)
		closed := present(path+".concurrency", &s.Concurrency)
		used.think = used.think || closed
		used.burstiness = used.burstiness || !closed && shaped(e.Arrival) && s.Burstiness == 0
		used.states = used.states || !closed && e.Arrival == ArrivalMMPP && s.States == ""
		used.clients = used.clients || !closed && e.Arrival == ArrivalClients && s.Clients == ""
		c := stageCheck{path: path, own: path != "load", stage: &s, whole: &e, present: present}
		if closed {
			c.closed()
		} else {
			c.process()
			c.rates()
		}
		faults = append(faults, c.faults...)
	}
	unused := func(key string, given, used bool, reason, hint string) {
		if given && !used {
			faults = append(faults, Fault{Key: key, Reason: reason, Hint: hint})
		}
	}
	known := slices.Contains(Arrivals(), l.Arrival)
	unused("load.burstiness", l.Burstiness != 1 && known, used.burstiness,
		"goes with load.arrival gamma or weibull only, which is "+l.Arrival, "set load.arrival: gamma, or leave burstiness out")
	unused("load.states", present("load.states", &l.States) && known, used.states,
		"goes with load.arrival mmpp only, which is "+l.Arrival, "set load.arrival: mmpp, or leave states out")
	unused("load.clients", present("load.clients", &l.Clients) && known, used.clients,
		"goes with load.arrival clients only, which is "+l.Arrival, "set load.arrival: clients, or leave clients out")
	unused("load.think_time", present("load.think_time", &l.ThinkTime), used.think, "goes with concurrency only", openThink)
	if present("load.think_process", &l.Think) && !slices.ContainsFunc(l.measured(), func(s LoadStage) bool { return l.inherit(s).ThinkTime > 0 }) {
		faults = append(faults, Fault{Key: "load.think_process", Reason: "needs a think_time"})
	}
	return faults
}

const openThink = "an open loop does not wait for replies: leave it out, or set concurrency in place of rate"

// stageCheck gathers the faults of one stage's arrivals.
type stageCheck struct {
	path    string
	own     bool       // the stage has keys of its own; the short form's are the load's
	stage   *LoadStage // as given
	whole   *LoadStage // with what it inherits
	present presence
	faults  Faults
}

func (c *stageCheck) fault(name, reason, hint string) {
	c.faults = append(c.faults, Fault{Key: strings.TrimSuffix(c.path+"."+name, "."), Reason: reason, Hint: hint})
}

func (c *stageCheck) has(name string, field any) bool {
	return c.own && c.present(c.path+"."+name, field)
}

// closed refuses what only an open stage has.
func (c *stageCheck) closed() {
	s := c.stage
	for _, k := range []struct {
		name  string
		field any
	}{
		{"arrival", &s.Arrival}, {"burstiness", &s.Burstiness}, {"states", &s.States}, {"clients", &s.Clients},
		{"amplitude", &s.Amplitude}, {"period", &s.Period}, {"phase", &s.Phase},
		{"spike_rate", &s.SpikeRate}, {"spike_at", &s.SpikeAt}, {"spike_width", &s.SpikeWidth},
	} {
		if c.has(k.name, k.field) {
			c.fault(k.name, "goes with rate only", "in a closed loop requests follow replies")
		}
	}
	if c.has("think_process", &s.Think) && c.whole.ThinkTime == 0 {
		c.fault("think_process", "needs a think_time", "")
	}
}

// process checks the keys of the process of arrivals.
func (c *stageCheck) process() {
	s, arrival := c.stage, c.whole.Arrival
	if !slices.Contains(Processes(), arrival) {
		return
	}
	if c.has("burstiness", &s.Burstiness) && !shaped(arrival) {
		c.fault("burstiness", "goes with arrival gamma or weibull only, which is "+arrival, "")
	}
	if c.has("states", &s.States) && arrival != ArrivalMMPP {
		c.fault("states", "goes with arrival mmpp only, which is "+arrival, "")
	}
	if c.has("clients", &s.Clients) && arrival != ArrivalClients {
		c.fault("clients", "goes with arrival clients only, which is "+arrival, "")
	}
	if c.has("think_time", &s.ThinkTime) {
		c.fault("think_time", "goes with concurrency only", openThink)
	}
	if c.has("think_process", &s.Think) {
		c.fault("think_process", "goes with concurrency only", openThink)
	}
	switch arrival {
	case ArrivalGamma, ArrivalWeibull:
		if least := leastShape(arrival); c.whole.Burstiness < least && c.whole.Burstiness >= leastShape(ArrivalGamma) {
			c.fault("burstiness", fmt.Sprintf("must be at least %v for %s, got %v", least, arrival, c.whole.Burstiness), "")
		}
	case ArrivalMMPP:
		c.states()
	case ArrivalClients:
		if c.whole.Clients == "" {
			c.fault("", "needs clients", clientsHint)
		}
	}
}

func (c *stageCheck) states() {
	if c.whole.States == "" {
		c.fault("", "needs states", statesHint)
		return
	}
	states, _ := parseStates(c.whole.States)
	for _, state := range states {
		if n := c.whole.Rate * state.Sojourn.Seconds(); c.whole.Rate > 0 && n < schedule.LeastSojourn {
			c.fault("states", fmt.Sprintf("must have sojourns in which %v requests or more are expected, got %v at %v requests/s",
				schedule.LeastSojourn, state.Sojourn, c.whole.Rate), "states that change so often cannot be told from poisson")
			break
		}
	}
	const hint = "the states change the rate themselves: use poisson arrivals, or a steady rate"
	if c.stage.RateTo > 0 {
		c.fault("rate_to", "does not go with arrival mmpp", hint)
	}
	if c.stage.Period > 0 {
		c.fault("period", "does not go with arrival mmpp", hint)
	}
	if c.stage.SpikeWidth > 0 {
		c.fault("spike_width", "does not go with arrival mmpp", hint)
	}
}

// rates checks that a stage has one kind of changing rate at most, and all of its keys.
func (c *stageCheck) rates() {
	s := c.stage
	amplitude, period := c.has("amplitude", &s.Amplitude), c.has("period", &s.Period)
	rate, width := c.has("spike_rate", &s.SpikeRate), c.has("spike_width", &s.SpikeWidth)
	ramp, wave, spike := c.has("rate_to", &s.RateTo), amplitude || period, rate || width
	const hint = "give the stage one of rate_to, a wave (amplitude, period) or a spike"
	switch {
	case wave && ramp:
		c.fault("period", "does not go with rate_to", hint)
	case spike && ramp:
		c.fault("spike_width", "does not go with rate_to", hint)
	case spike && wave:
		c.fault("spike_width", "does not go with a wave", hint)
	}
	if amplitude != period {
		c.fault("", "needs both amplitude and period for a wave", "")
	}
	if c.has("phase", &s.Phase) && !wave {
		c.fault("phase", "needs amplitude and period", "")
	}
	if rate != width {
		c.fault("", "needs both spike_rate and spike_width for a spike", "")
	}
	if c.has("spike_at", &s.SpikeAt) && !spike {
		c.fault("spike_at", "needs spike_rate and spike_width", "")
	}
	if spike && s.Duration > 0 && s.SpikeAt >= s.Duration {
		c.fault("spike_at", fmt.Sprintf("must be before the stage ends, at %v, got %v", s.Duration, s.SpikeAt), "")
	}
}

// Peak returns the highest rate of an open stage, requests per second: that of the busiest state, and of all clients together.
func (s *Stage) Peak() float64 {
	switch {
	case s.trace != nil:
		return s.peak
	case s.open.Process == schedule.MMPP:
		return s.Rate * schedule.Busiest(s.open.States)
	case s.open.Wave.Period > 0:
		return s.Rate * (1 + s.open.Wave.Amplitude)
	case s.open.Spike.Width > 0:
		return max(s.Rate, s.open.Spike.Peak)
	}
	return max(s.Rate, s.RateTo)
}

// Arrivals says which arrivals an open stage was asked for, and the coefficient of variation of their gaps where each is drawn
// apart: "gamma, CV 1.414".
func (s *Stage) Arrivals() string {
	cv, ok := s.open.Variation()
	if !ok || s.trace != nil {
		return s.arrival
	}
	return fmt.Sprintf("%s, CV %.4g", s.arrival, cv)
}

// Course says how the rate of an open stage goes: "10/s", "10 to 20/s".
func (s *Stage) Course() string {
	plain := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	switch wave, spike := s.open.Wave, s.open.Spike; {
	case s.RateTo != s.Rate:
		return plain(s.Rate) + " to " + plain(s.RateTo) + "/s"
	case wave.Period > 0:
		return fmt.Sprintf("%s/s ± %s %% every %s", plain(s.Rate), plain(100*wave.Amplitude), durationText(wave.Period))
	case spike.Width > 0:
		return fmt.Sprintf("%s/s, %s/s from %s for %s", plain(s.Rate), plain(spike.Peak), durationText(spike.Start), durationText(spike.Width))
	}
	return plain(s.Rate) + "/s"
}

// ThinkTime returns the mean think time of a closed stage.
func (s *Stage) ThinkTime() time.Duration { return s.think.Mean }

// Begins returns how long after the start of a closed stage each of its places, from 0, sends first.
func (p *Plan) Begins(stage int) func(place int) time.Duration {
	s := &p.Stages[stage]
	times := s.think.Times(p.Spec.Load.Seed)
	return func(place int) time.Duration {
		at := times.Begin(s.First, place)
		if s.StartRate > 0 {
			at += time.Duration(math.Round(float64(place) / s.StartRate * 1e9))
		}
		return at
	}
}

// appendArrivals appends the canonical form of a stage's arrivals where they are more than the load's own process and shape,
// a rate and a ramp: the letter a, the numbers of the process, of wave, spike and think time, and of its states and clients.
func (s *Stage) appendArrivals(dst []byte, load *Load) []byte {
	o := &s.open
	same := s.Closed || s.trace != nil || o.Process == process(load.Arrival) && (!shaped(load.Arrival) || o.Shape == load.Burstiness)
	if s.StartRate > 0 {
		dst = binary.BigEndian.AppendUint64(append(dst, 's'), math.Float64bits(s.StartRate))
	}
	if same && o.Wave == (schedule.Wave{}) && o.Spike == (schedule.Spike{}) && s.think == (schedule.Think{}) && o.States == nil && o.Clients == nil {
		return dst
	}
	put := func(values ...uint64) {
		for _, v := range values {
			dst = binary.BigEndian.AppendUint64(dst, v)
		}
	}
	dst = append(dst, 'a')
	put(uint64(o.Process), math.Float64bits(o.Shape), math.Float64bits(o.Wave.Amplitude), uint64(o.Wave.Period), math.Float64bits(o.Wave.Phase))
	put(math.Float64bits(o.Spike.Peak), uint64(o.Spike.Start), uint64(o.Spike.Width), uint64(s.think.Mean), flag(s.think.Exponential))
	put(uint64(len(o.States)), uint64(len(o.Clients)))
	for _, state := range o.States {
		put(math.Float64bits(state.Weight), uint64(state.Sojourn))
	}
	for _, c := range o.Clients {
		put(math.Float64bits(c.Share), uint64(c.Process), math.Float64bits(c.Shape))
	}
	return dst
}
