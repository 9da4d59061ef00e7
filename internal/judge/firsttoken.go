package judge

import (
	"fmt"
	"slices"

	"tare/internal/judge/stats"
	"tare/internal/record"
)

// FirstTokens is when the first tokens of measured requests came, in ns since their send, whatever became of the requests.
type FirstTokens struct {
	Kernel stats.Distribution // by the kernel's stamps
	User   stats.Distribution // by a clock that was read when the program had the bytes
	Merged int64              // of the answers of several tokens, those whose first came in one read with later ones: its stamp is an upper bound
}

// ReadFirstTokens reads them from the run directory dir.
func ReadFirstTokens(dir string) (*FirstTokens, error) {
	m, err := record.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	f := new(FirstTokens)
	_, err = record.ReadLog(dir, func(x *record.Exchange) error {
		if x.Stage < 0 || x.Stage >= len(m.Stages) {
			return fmt.Errorf("request %d: stage must be below %d, got %d", x.Index, len(m.Stages), x.Stage)
		}
		if !m.Stages[x.Stage].Warmup {
			f.add(x)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read first tokens of %s: %w", dir, err)
	}
	return f, nil
}

func (f *FirstTokens) add(x *record.Exchange) {
	sent, ok := x.FirstWrite.Get()
	i := slices.IndexFunc(x.Events, func(e record.Event) bool { return e.Kind.Token() })
	if !ok || i < 0 {
		return
	}
	first := &x.Events[i]
	f.Kernel.Add(int64(first.KernelAt - sent))
	f.User.Add(int64(first.UserAt - sent))
	if x.PlannedOut > 1 && first.Flags&record.FlagMerged != 0 { // a lone token came in one piece with the end of its answer
		f.Merged++
	}
}
