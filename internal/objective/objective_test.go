package objective_test

import (
	"slices"
	"strings"
	"testing"

	"tare/internal/objective"
)

func TestParseReadsWhatPeopleWrite(t *testing.T) {
	for text, want := range map[string]objective.Objective{
		"ttft<500ms":               {Metric: "ttft_ms", Strict: true, Limit: 500},
		" ttft.p99 < 500ms":        {Metric: "ttft_ms", Level: 990_000, Strict: true, Limit: 500},
		"ttft_ms.p99.9<=1.5s":      {Metric: "ttft_ms", Level: 999_000, Limit: 1500},
		"tpot <= 50ms":             {Metric: "tpot_ms", Limit: 50},
		"e2e_from_due.mean<1m":     {Metric: "e2e_from_due_ms", Mean: true, Strict: true, Limit: 60_000},
		"stall.p50<250us":          {Metric: "stall_ms", Level: 500_000, Strict: true, Limit: 0.25},
		"error_rate < 1%":          {Metric: "error_rate", Strict: true, Limit: 0.01},
		"error_rate<=0":            {Metric: "error_rate"},
		"first_answer.p95 < 200ms": {Metric: "first_answer_ms", Level: 950_000, Strict: true, Limit: 200},
	} {
		got, fault := objective.Parse(text)
		if fault != nil {
			t.Errorf("%q: got %q, want an objective", text, fault.Reason)
			continue
		}
		if got.Metric != want.Metric || got.Level != want.Level || got.Mean != want.Mean || got.Strict != want.Strict || got.Limit != want.Limit {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
		if spelled := strings.ReplaceAll(text, " ", ""); got.String() != spelled {
			t.Errorf("%q: got the text %q, want %q", text, got, spelled)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "is no objective",
		"ttft":             "is no objective",
		"<500ms":           "is no objective",
		"ttft>500ms":       "must have < or <=, got \">\"",
		"ttft==500ms":      "must have < or <=, got \"==\"",
		"tftt<500ms":       "\"tftt\" is not a metric",
		"itl<5ms":          "itl cannot be an objective",
		"slip_ms<1ms":      "slip_ms cannot be an objective",
		"ttft.99<500ms":    "\"99\" is none of p50",
		"ttft.p49<500ms":   "\"p49\" is none of p50",
		"ttft.p100<500ms":  "\"p100\" is none of p50",
		"ttft.max<500ms":   "\"max\" is none of p50",
		"ttft.pNaN<500ms":  "\"pNaN\" is none of p50",
		"ttft<500":         "the limit has no unit: 500",
		"ttft<":            "the limit must be a time above 0",
		"ttft<-1s":         "the limit must be a time above 0",
		"ttft<0s":          "the limit must be a time above 0",
		"ttft<fast":        "the limit must be a time above 0",
		"error_rate<101%":  "the limit must be a share",
		"error_rate<NaN":   "the limit must be a share",
		"error_rate.p9<1%": "error_rate has no p9",
		"error_rate.<1%":   "\"\" is none of p50",
		"ttft.<500ms":      "\"\" is none of p50",
	} {
		_, fault := objective.Parse(text)
		if fault == nil || !strings.Contains(fault.Reason, want) {
			t.Errorf("%q: got %v, want %q", text, fault, want)
		}
	}
}

func TestUnknownMetricsBringTheKnownOnes(t *testing.T) {
	_, fault := objective.Parse("tftt<500ms")
	if fault == nil || fault.Word != "tftt" || !slices.Contains(fault.OneOf, "ttft") {
		t.Errorf("got %+v, want the word and the names it could be", fault)
	}
}

func TestSplitKeepsObjectivesWhole(t *testing.T) {
	for text, want := range map[string][]string{
		"ttft.p99 < 500ms tpot<50ms": {"ttft.p99<500ms", "tpot<50ms"},
		"a<=1s,b <\t2s; c< 3s":       {"a<=1s", "b<2s", "c<3s"},
		"ttft":                       {"ttft"},
		"  ":                         {},
		"a < ":                       {"a<"},
	} {
		if got := objective.Split(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestLimitItselfIsKeptWithoutStrictness(t *testing.T) {
	strict, _ := objective.Parse("ttft<500ms")
	loose, _ := objective.Parse("ttft<=500ms")
	for value, want := range map[float64][2]bool{499.9: {true, true}, 500: {false, true}, 500.1: {false, false}} {
		if got := [2]bool{strict.Keeps(value), loose.Keeps(value)}; got != want {
			t.Errorf("%g ms: got %v, want %v", value, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"ttft.p99 < 500ms", "tpot<=50ms", "error_rate<1%", "a.b.c<=>1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, fault := objective.Parse(text)
		if fault != nil {
			if fault.Reason == "" {
				t.Errorf("%q: got a fault without a reason", text)
			}
			return
		}
		again, fault := objective.Parse(o.String())
		if fault != nil || again != o {
			t.Errorf("%q: got %+v when its text %q is read again, want %+v", text, again, o, o)
		}
	})
}
