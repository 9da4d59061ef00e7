// Package objective says what a server is asked to keep: objectives such as "ttft.p99 < 500ms" (SLOs), as people write them.
//
// It knows what can be asked, and not how it is measured: docs/metrics.md defines the metrics.
package objective

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Objective is one thing that is asked. Without a level and a mean it is asked of each request, else of all planned requests together.
type Objective struct {
	Metric string  // as docs/metrics.md has it, "ttft_ms", or ErrorRate
	Level  int64   // of the quantile, parts per million; 0 for none
	Mean   bool    // asked of the mean
	Strict bool    // the limit itself misses it: "<"; else "<="
	Limit  float64 // in the metric's unit: ms, ms/token, or a fraction in [0, 1]
	text   string
}

// ErrorRate is the share of the planned requests that did not complete. It is asked of all together.
const ErrorRate = "error_rate"

// String returns the objective as it is written, without spaces: "ttft.p99<500ms".
func (o Objective) String() string { return o.text }

// PerRequest reports whether it is asked of each request.
func (o Objective) PerRequest() bool { return o.Level == 0 && !o.Mean && o.Metric != ErrorRate }

// Keeps reports whether a value, in the metric's unit, keeps the limit.
func (o Objective) Keeps(value float64) bool {
	return value < o.Limit || !o.Strict && value <= o.Limit
}

// metric is what can be asked of.
type metric struct {
	name, key string
	streamed  bool // of streamed replies only
}

var metrics = []metric{
	{"ttft", "ttft_ms", true}, {"ttft_from_due", "ttft_from_due_ms", true}, {"first_event", "first_event_ms", true}, {"first_answer", "first_answer_ms", true},
	{"tpot", "tpot_ms", true}, {"stall", "stall_ms", true}, {"ntpot", "ntpot_ms", false},
	{"e2e", "e2e_ms", false}, {"e2e_from_due", "e2e_from_due_ms", false}, {"error_rate", ErrorRate, false},
}

// others are metrics that nothing can be asked of, and what to do instead.
var others = map[string]string{
	"itl":             "a reply has many: ask for tpot, their mean in a reply, or stall, the longest gap",
	"icl":             "a reply has many: ask for tpot, the mean time per token in a reply, or stall, the longest gap",
	"slip":            "it is the client's own: the verdict looks at it",
	"receive_lag":     "it is the client's own: the verdict looks at it",
	"connect":         "it is part of ttft_from_due and e2e_from_due",
	"input_tokens":    "it follows from what is sent",
	"output_tokens":   "set workload.output_tokens and ignore_eos for answers of a length",
	"cached_tokens":   "set workload.cache for what a cache is to find",
	"token_events":    "it follows from how the server cuts its reply",
	"completed_share": "ask for error_rate, which is the rest of it",
}

// Metrics returns the names of the metrics that can be asked of, as they are written.
func Metrics() (names []string) {
	for _, m := range metrics {
		names = append(names, m.name)
	}
	return names
}

// Streamed reports whether the objective is about replies that are streamed.
func (o Objective) Streamed() bool {
	for _, m := range metrics {
		if m.key == o.Metric {
			return m.streamed
		}
	}
	return false
}

// Fault says why a text is no objective.
type Fault struct {
	Reason string
	Hint   string
	Word   string   // that is none of OneOf; empty when it is something else
	OneOf  []string // what it could have been
}

func (f *Fault) Error() string { return f.Reason }

var relations = regexp.MustCompile(`\s*([<>=]+)\s*`)

// Split cuts a text of one or more objectives, "ttft < 500ms tpot<50ms", into one text for each, without spaces around relations.
func Split(text string) []string {
	return strings.FieldsFunc(relations.ReplaceAllString(text, "$1"), func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == ';' })
}

// Parse reads one objective: METRIC<LIMIT, METRIC.LEVEL<LIMIT or METRIC.mean<LIMIT, with < or <=.
func Parse(text string) (Objective, *Fault) {
	const form = "write METRIC<LIMIT for each request, like tpot<50ms, or METRIC.p99<LIMIT for all of them, like ttft.p99<500ms"
	tight := strings.Join(Split(text), "")
	at := strings.IndexAny(tight, "<>=")
	if at <= 0 {
		return Objective{}, &Fault{Reason: fmt.Sprintf("is no objective: %q", text), Hint: form}
	}
	name, rest := tight[:at], tight[at:]
	limit := strings.TrimLeft(rest, "<>=")
	o := Objective{text: tight}
	switch relation := rest[:len(rest)-len(limit)]; relation {
	case "<":
		o.Strict = true
	case "<=":
	default:
		return Objective{}, &Fault{Reason: fmt.Sprintf("must have < or <=, got %q", relation), Hint: "all that can be asked for is better when it is lower"}
	}
	name, level, levelled := strings.Cut(name, ".")
	if fault := o.ask(name, level, levelled); fault != nil {
		return Objective{}, fault
	}
	fault := o.limit(limit)
	return o, fault
}

// ask takes the metric and what of it.
func (o *Objective) ask(name, level string, levelled bool) *Fault {
	for _, m := range metrics {
		if m.name == name || m.key == name {
			o.Metric = m.key
		}
	}
	if o.Metric == "" {
		if hint, known := others[strings.TrimSuffix(name, "_ms")]; known {
			return &Fault{Reason: name + " cannot be an objective", Hint: hint}
		}
		return &Fault{Reason: fmt.Sprintf("%q is not a metric", name), Word: name, OneOf: Metrics()}
	}
	switch {
	case !levelled:
		return nil
	case o.Metric == ErrorRate && level != "":
		return &Fault{Reason: "error_rate has no " + level, Hint: "write error_rate<1%"}
	case level == "mean":
		o.Mean = true
		return nil
	}
	return o.quantile(level)
}

func (o *Objective) quantile(level string) *Fault {
	percent, err := strconv.ParseFloat(strings.TrimPrefix(level, "p"), 64)
	if ppm := math.Round(percent * 1e4); err == nil && strings.HasPrefix(level, "p") && ppm >= 500_000 && ppm <= 999_900 {
		o.Level = int64(ppm)
		return nil
	}
	return &Fault{Reason: fmt.Sprintf("%q is none of p50 to p99.99, and not mean", level), Hint: "leave it out for an objective of each request"}
}

func (o *Objective) limit(text string) *Fault {
	if o.Metric == ErrorRate {
		return o.share(text)
	}
	limit, err := time.ParseDuration(text)
	if _, bare := strconv.ParseFloat(text, 64); bare == nil {
		return &Fault{Reason: "the limit has no unit: " + text, Hint: "write a time like " + text + "ms"}
	}
	if err != nil || limit <= 0 {
		return &Fault{Reason: fmt.Sprintf("the limit must be a time above 0, got %q", text), Hint: "write it like 500ms or 1.5s"}
	}
	o.Limit = float64(limit) / 1e6
	return nil
}

func (o *Objective) share(text string) *Fault {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return &Fault{Reason: fmt.Sprintf("the limit must be a share from 0 to 1, or from 0 %% to 100 %%, got %q", text), Hint: "write error_rate<1%"}
	}
	o.Limit = v
	return nil
}
