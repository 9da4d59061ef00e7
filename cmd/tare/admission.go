package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tare/internal/drive/calibrate"
	"tare/internal/judge/verdict"
	"tare/internal/plan"
	"tare/internal/record"
)

// admissionOptions say what is to be done about a plan that this machine may not carry out well.
type admissionOptions struct {
	allowBiased bool
	calibrate   bool // first, where that was not done
}

// admit holds the plan against the calibration of this machine, and says on notices what it takes. A plan that takes too much is
// refused, unless that is allowed; without a calibration there is nothing to hold it against.
func (l *load) admit(ctx context.Context, o admissionOptions, notices io.Writer) error {
	b, err := newBench(*l)
	if err != nil {
		return nil // the drive refuses to choose, and says why when it is to run
	}
	c, err := b.known(ctx, o, notices)
	if errors.Is(err, calibrate.ErrNone) {
		fmt.Fprintln(notices, "capacity: not known for such a load on this machine (tare calibrate, or --auto-calibrate)")
		return nil
	}
	if err != nil {
		return err
	}
	d := demandOn(l.plan, b.shape)
	l.warnOfSteps(c, d)
	use, ok := c.Use(d)
	if !ok {
		fmt.Fprintln(notices, "capacity: a closed loop goes as fast as the replies, and how fast that is is not known before")
		return nil
	}
	l.admission = &record.Admission{Calibrated: c.Made, Utilisation: use.Share, Of: use.Of}
	said := describeUse(c, d, use)
	if use.Share > verdict.CapacityValid && !o.allowBiased {
		return misused(errors.New("load: "+said+": its latencies would hold the client's own delays"),
			"lower the rate, give the client more loops and cores (--loops), or share the plan out; --allow-biased sends it all the same, and the verdict says so")
	}
	fmt.Fprintln(notices, "capacity: "+said)
	switch {
	case use.Share > verdict.CapacityValid:
		l.admission.AllowedBiased = true
		fallthrough
	case use.Share > verdict.CapacityCertified:
		l.target.warnings = append(l.target.warnings, said)
	}
	return nil
}

// known is the calibration for this load: the one that is stored, or a new one if that is wanted.
func (b bench) known(ctx context.Context, o admissionOptions, notices io.Writer) (*calibrate.Calibration, error) {
	store, err := calibrations()
	if err != nil {
		return nil, calibrate.ErrNone // no home, as in a container: nothing can have been stored
	}
	c, err := store.Find(b.machine, b.shape, time.Now())
	if !errors.Is(err, calibrate.ErrNone) || !o.calibrate {
		return c, err
	}
	fmt.Fprintf(notices, "calibrating this machine, %v at most\n", calibrateTime)
	c, _, err = b.calibrate(ctx, calibrateOptions{time: calibrateTime, keep: calibrateKeep})
	return c, err
}

func describeUse(c *calibrate.Calibration, d calibrate.Demand, u calibrate.Use) string {
	demand, capacity := d.RequestsPerS, c.Mixed.RequestsPerS
	if u.Of == "events" {
		demand, capacity = d.EventsPerS, c.Mixed.EventsPerS
	}
	return fmt.Sprintf("at its busiest the plan takes %.2f of the %s this machine was calibrated for, %s of %s per second",
		u.Share, u.Of, short(demand), short(capacity))
}

// warnOfSteps tells of streams that are too many to be read at once. Whether the server emits them at once is not known before.
func (l *load) warnOfSteps(c *calibrate.Calibration, d calibrate.Demand) {
	if u, ok := c.LockStepUse(d); ok && u.Share > verdict.CapacityCertified {
		l.target.warnings = append(l.target.warnings, fmt.Sprintf(
			"if the server decodes its streams in lock-step, %d of them take %.2f of what this machine was calibrated for: more loops read them sooner", d.Streams, u.Share))
	}
}

// demandOn is what a plan asks at its busiest. Of a closed stage no rate is known before the run.
func demandOn(p *plan.Plan, s calibrate.Shape) (d calibrate.Demand) {
	for i := range p.Stages {
		stage := &p.Stages[i]
		d.Streams = max(d.Streams, int64(stage.Concurrency), int64(stage.MaxInFlight))
		if !stage.Closed {
			d.RequestsPerS = max(d.RequestsPerS, stage.Peak())
		}
	}
	d.EventsPerS = d.RequestsPerS * float64(s.Events)
	return d
}
