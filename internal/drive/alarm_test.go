package drive

import (
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/drive/clock"
)

func TestAlarmsGoOffAtTheLastMomentGiven(t *testing.T) {
	s := time.Second
	type change struct{ at, until time.Duration }
	for _, c := range []struct {
		name    string
		changes []change
		want    time.Duration
	}{
		{"as begun", nil, 10 * s},
		{"put off twice", []change{{5 * s, 15 * s}, {9 * s, 19 * s}}, 19 * s},
		{"put off once it has looked again", []change{{5 * s, 15 * s}, {12 * s, 30 * s}}, 30 * s},
		{"brought forward", []change{{2 * s, 3 * s}}, 3 * s},
		{"put off, then brought forward", []change{{5 * s, 40 * s}, {11 * s, 12 * s}}, 12 * s},
	} {
		synctest.Test(t, func(t *testing.T) {
			time0 := clock.New()
			began := time0.Now()
			var ended []time.Duration
			a := newAlarm(time0, began+10*s, func() { ended = append(ended, time0.Now()-began) })
			for _, step := range c.changes {
				<-time.After(began + step.at - time0.Now())
				a.set(began + step.until)
			}
			<-time.After(time.Minute)
			a.stop()
			if len(ended) != 1 || ended[0] != c.want {
				t.Errorf("%s: went off after %v, want once after %v", c.name, ended, c.want)
			}
		})
	}
}

func TestAlarmsThatAreStoppedStaySilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		a := newAlarm(c, c.Now()+time.Second, func() { t.Error("went off, want silence") })
		a.set(c.Now() + time.Minute)
		a.stop()
		<-time.After(time.Hour)
	})
}
