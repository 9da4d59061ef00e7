package verdict

import (
	"fmt"
	"math"
	"strings"
)

// Workload is what was asked of the requests, and what the server said of their prompts, warm-up included.
type Workload struct {
	Files []File // that the spec names
	Rows  string // how rows of a data set are chosen and cut; empty without one

	Bodies   int64 // made, as far as is known
	Silent   int64 // of them, that leave temperature or top_p to the server
	Compared int64 // with each other
	Repeated int64 // of the compared, that say what one before said
	Rerun    bool  // rows of a file are to be sent more than once

	Prompts Prompts
	Cache   Cache
}

// File is one that a spec names.
type File struct{ Key, SHA256 string }

// Prompts compares their lengths as the server counted them with those that were planned, of first turns.
type Prompts struct {
	Counted int64  // with a planned length
	Common  int64  // tokens that the server counted more than were planned, in most of the replies
	Others  int64  // replies with another number
	Unsure  string // why the planned lengths are not said to be the model's; empty when they are
	Whole   bool   // they hold what the server's template adds
}

// Cache is the share of prompt tokens that the server found in its prefix cache.
type Cache struct {
	Policy   string  // as-is, cold, salted or warm
	Found    float64 // by replies that say
	Told     bool    // some do
	Expected float64 // for a cache that forgets nothing
	Known    bool    // that is known
}

func generator(e *Evidence) []finding {
	switch g := e.Generator; {
	case g == nil:
		return []finding{{level: Unobservable, measured: "the self-test was not made"}}
	case g.SHA256 != g.Golden:
		return []finding{{level: Failed, measured: fmt.Sprintf("%.12s, not %.12s", g.SHA256, g.Golden)}}
	default:
		return []finding{{level: CertifiedLevel, measured: fmt.Sprintf("%.12s", g.SHA256)}}
	}
}

func files(e *Evidence) []finding {
	w := &e.Workload
	if len(w.Files) == 0 {
		return []finding{{level: NotApplicable, measured: "the plan was made of no file"}}
	}
	var bare []string
	for _, f := range w.Files {
		if f.SHA256 == "" {
			bare = append(bare, f.Key)
		}
	}
	if len(bare) > 0 {
		return []finding{{level: Failed, strain: float64(len(bare)), measured: "no hash of " + strings.Join(bare, ", ")}}
	}
	text := fmt.Sprintf("%d files hashed", len(w.Files))
	if w.Rows != "" {
		text += "; rows: " + w.Rows
	}
	return []finding{{level: CertifiedLevel, measured: text}}
}

// promptLengths accuses no plan that does not claim to count in the model's tokens; but where the counts agree they agree.
func promptLengths(e *Evidence) []finding {
	p := &e.Workload.Prompts
	if p.Counted == 0 {
		return []finding{{level: Unobservable, measured: "the server counted no prompt of a planned length"}}
	}
	others := p.Others
	text := fmt.Sprintf("%d of %d replies count another number than planned", others, p.Counted)
	switch {
	case p.Common < 0 || p.Whole && p.Common != 0:
		others = p.Counted
		text = fmt.Sprintf("the server counts %+d tokens, most often", p.Common)
	case p.Common > 0:
		text = fmt.Sprintf("%d of %d replies count another number than planned and %d of the template's", others, p.Counted, p.Common)
	}
	level, strain := promptLimits.grade(float64(others) / float64(p.Counted))
	if level == Failed && p.Unsure != "" {
		return []finding{{level: Unobservable, strain: strain, measured: text + ": " + p.Unsure}}
	}
	return []finding{{level: level, strain: strain, measured: text}}
}

// cache condemns a run only where the user declared what the cache would find. As it is, a full or forgetful cache is the server's.
func cache(e *Evidence) []finding {
	c := &e.Workload.Cache
	declared := c.Policy != "as-is" && c.Policy != ""
	switch {
	case !c.Told:
		return []finding{{level: Unobservable, advisory: true, untold: true, measured: "the server does not tell what it found in a cache"}}
	case !c.Known:
		return []finding{{level: Unobservable, advisory: true, measured: fmt.Sprintf("found %.3g %%; nobody knows what was to be found", 100*c.Found)}}
	}
	off := math.Abs(c.Found - c.Expected)
	if c.Policy == "warm" { // caches with smaller blocks find more
		off = max(c.Expected-c.Found, 0)
	}
	level, strain := cacheLimits.grade(off)
	return []finding{{level: level, strain: strain, advisory: !declared,
		measured: fmt.Sprintf("%s: %.3g %% of the prompt tokens found, %.3g %% expected", c.Policy, 100*c.Found, 100*c.Expected)}}
}

func sampling(e *Evidence) []finding {
	w := &e.Workload
	if w.Bodies == 0 {
		return []finding{{level: Unobservable, measured: "how many bodies were made was never written"}}
	}
	f := finding{level: CertifiedLevel, measured: fmt.Sprintf("%d of %d bodies leave temperature or top_p to the server", w.Silent, w.Bodies)}
	if w.Silent > 0 {
		f.level, f.strain = Failed, float64(w.Silent)/float64(w.Bodies)
	}
	return []finding{f}
}

func duplicates(e *Evidence) []finding {
	w := &e.Workload
	switch {
	case w.Rerun:
		return []finding{{level: NotApplicable, measured: "rows of a file may be sent more than once, as planned"}}
	case w.Compared == 0:
		return []finding{{level: Unobservable, measured: "the bodies were not compared"}}
	}
	level, strain := duplicateLimits.grade(float64(w.Repeated) / float64(w.Compared))
	return []finding{{level: level, strain: strain, measured: fmt.Sprintf("%d of %d bodies say what one before said", w.Repeated, w.Compared)}}
}

// ownReplies goes by the ids that servers repeat in the heads of their replies.
func ownReplies(e *Evidence) []finding {
	echoed, foreign := int64(0), int64(0)
	for _, l := range e.Loops {
		echoed, foreign = echoed+l.Echoed, foreign+l.Foreign
	}
	if echoed == 0 {
		return []finding{{level: Unobservable, advisory: true, untold: true, measured: "no reply repeats the X-Request-Id of its request"}}
	}
	f := finding{level: CertifiedLevel, measured: fmt.Sprintf("%d of %d replies", foreign, echoed)}
	if foreign > 0 {
		f.level, f.strain = Failed, float64(foreign)
	}
	return []finding{f}
}
