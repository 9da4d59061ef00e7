package plan_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"tare/internal/plan"
	"tare/internal/plan/tokenizer"
)

// saying is an encoder that writes all that a request says.
type saying struct{}

func (saying) AppendBody(dst []byte, r *plan.Request) []byte {
	dst = fmt.Appendf(dst, "%s|%v|%s|%s|%s|", r.Prompt, r.PromptIDs, r.Model, r.CacheSalt, r.Tools)
	for _, m := range r.Messages {
		dst = fmt.Appendf(dst, "%s:%s", m.Role, m.Text)
		for _, i := range m.Media {
			dst = base64.StdEncoding.AppendEncode(dst, i.Bytes)
		}
	}
	return dst
}

// made returns copies of all requests of a plan.
func made(t *testing.T, p *plan.Plan) (requests []plan.Request) {
	t.Helper()
	w := p.Walk()
	var r plan.Request
	for w.Next(&r) {
		c := r
		c.Body, c.Prompt = append([]byte(nil), r.Body...), strings.Clone(r.Prompt)
		c.PromptIDs = append([]uint32(nil), r.PromptIDs...)
		c.Messages = nil
		for _, m := range r.Messages {
			c.Messages = append(c.Messages, plan.Message{Role: m.Role, Text: strings.Clone(m.Text), Media: append([]plan.Medium(nil), m.Media...)})
		}
		requests = append(requests, c)
	}
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	return requests
}

// asked makes a plan of n requests with a workload that is changed from the default one.
func asked(t *testing.T, n int64, change func(*plan.Workload)) *plan.Plan {
	t.Helper()
	p := frozen(t, saying{}, func(s *plan.Spec) {
		s.Load.Concurrency, s.Load.Requests = 4, n
		change(&s.Workload)
	})
	t.Cleanup(func() { p.Close() })
	return p
}

func mean(requests []plan.Request, of func(plan.Request) int) float64 {
	sum := 0
	for _, r := range requests {
		sum += of(r)
	}
	return float64(sum) / float64(len(requests))
}

func TestLengthsAreDrawnWithTheMeanAsked(t *testing.T) {
	p := asked(t, 4000, func(w *plan.Workload) {
		w.InputTokens, w.OutputTokens = "normal(100,20,min=10)", "uniform(1,31)"
	})
	requests := made(t, p)
	in, out := mean(requests, func(r plan.Request) int { return r.InputTokens }), mean(requests, func(r plan.Request) int { return r.OutputTokens })
	if math.Abs(in-100) > 2 || math.Abs(out-16) > 1 {
		t.Errorf("means: got %v and %v, want 100 and 16", in, out)
	}
	if a, b, ok := p.MeanLengths(); a != 100 || b != 16 || !ok {
		t.Errorf("asked means: got %v, %v, %v", a, b, ok)
	}
	for _, r := range requests {
		if got := len(strings.Fields(r.Prompt)); got != r.InputTokens {
			t.Fatalf("request %d: got %d words, want %d", r.Index, got, r.InputTokens)
		}
	}
}

func TestPromptsHaveExactlyTheTokensAsked(t *testing.T) {
	for _, text := range []string{plan.TextMarkov, plan.TextCorpus, plan.TextRandom} {
		for _, tokenizerFile := range []string{plan.TokenizerEmbedded, "tokenizer/testdata/llama3-style.json"} {
			p := frozenOr(t, func(s *plan.Spec) {
				s.Load.Concurrency, s.Load.Requests = 4, 200
				w := &s.Workload
				w.Text, w.Tokenizer, w.InputTokens = text, tokenizerFile, "uniform(20,300)"
				w.Prefix.Groups, w.Prefix.Tokens, w.SystemTokens = 3, 32, 24
			})
			if p == nil {
				continue // the small vocabulary has too few words
			}
			tok := tokenizer.Embedded()
			if tokenizerFile != plan.TokenizerEmbedded {
				tok, _ = tokenizer.Load(tokenizerFile)
			}
			for _, r := range made(t, p) {
				got := 0
				for _, m := range r.Messages {
					got += tok.Count([]byte(m.Text))
				}
				if got != r.InputTokens || len(r.Messages) != 2 {
					t.Fatalf("%s, %s, request %d: got %d tokens in %d messages, want %d in 2", text, tokenizerFile, r.Index, got, len(r.Messages), r.InputTokens)
				}
			}
		}
	}
}

// frozenOr is frozen, or nil if the tokenizer cannot make texts.
func frozenOr(t *testing.T, change func(*plan.Spec)) *plan.Plan {
	s := plan.Defaults()
	change(&s)
	p, err := plan.New(s, saying{})
	if err != nil && strings.Contains(err.Error(), "exact prompts") {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAChatTemplatesTokensCount(t *testing.T) {
	template := filepath.Join(t.TempDir(), "chat.jinja")
	source := "{% for m in messages %}[{{ m.role }}] {{ m.content }} [end]\n{% endfor %}[assistant]"
	if err := os.WriteFile(template, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	p := asked(t, 50, func(w *plan.Workload) {
		w.Text, w.Tokenizer, w.ChatTemplate, w.InputTokens = plan.TextMarkov, plan.TokenizerEmbedded, template, "uniform(60,90)"
		w.Prefix.Groups, w.Prefix.Tokens = 2, 16
	})
	for _, r := range made(t, p) {
		whole := "[user] " + r.Prompt + " [end]\n[assistant]"
		if got := tokenizer.Embedded().Count([]byte(whole)); got != r.InputTokens {
			t.Fatalf("request %d: got %d tokens in %q, want %d", r.Index, got, whole, r.InputTokens)
		}
	}
}

func TestTokenIDPromptsShareTheirPrefixes(t *testing.T) {
	p := asked(t, 40, func(w *plan.Workload) {
		w.Text, w.Tokenizer, w.InputTokens = plan.TextIDs, plan.TokenizerEmbedded, "10"
		w.Prefix.Groups, w.Prefix.Tokens = 1, 16
	})
	requests := made(t, p)
	for i, r := range requests {
		if len(r.PromptIDs) != 26 || !reflect.DeepEqual(r.PromptIDs[:16], requests[0].PromptIDs[:16]) {
			t.Fatalf("request %d: got %v, want 26 ids that begin like the first one's", i, r.PromptIDs)
		}
		if i > 0 && reflect.DeepEqual(r.PromptIDs[16:], requests[i-1].PromptIDs[16:]) {
			t.Fatalf("request %d repeats the ids of the one before", i)
		}
	}
}

// hits is what a cache of blocks that forgets nothing finds: words stand for tokens.
func hits(requests []plan.Request, block int) (shared, all int) {
	known := map[string]bool{}
	for _, r := range requests {
		words := strings.Fields(r.Prompt)
		all += len(words)
		found := true
		for end := block; end <= len(words); end += block {
			key := strings.Join(words[:end], " ")
			if found = found && known[key]; found {
				shared += block
			}
			known[key] = true
		}
	}
	return shared, all
}

func TestWhatACacheWouldFindIsExpected(t *testing.T) {
	for name, p := range map[string]*plan.Plan{
		"prefixes": asked(t, 300, func(w *plan.Workload) {
			w.InputTokens, w.Prefix.Groups, w.Prefix.Tokens, w.Prefix.Zipf, w.Prefix.Block = "uniform(20,60)", 20, 64, 1.1, 32
		}),
		"classes": asked(t, 300, func(w *plan.Workload) {
			w.Classes = []plan.Class{{Name: "a", PrefixGroups: 3, PrefixTokens: 32}, {Name: "b", PrefixGroups: 3, PrefixTokens: 32}, {Name: "c"}}
		}),
		"no prefix": asked(t, 50, func(w *plan.Workload) { w.InputTokens = "uniform(20,60)" }),
	} {
		requests := made(t, p)
		shared, all := hits(requests, p.Spec.Workload.Prefix.Block)
		w := p.Walk()
		for w.Next(new(plan.Request)) {
		}
		if got := w.Cache(); got.Shared != int64(shared) || got.Prompt != int64(all) || name == "no prefix" && shared != 0 {
			t.Errorf("%s: got %+v, a cache finds %d of %d", name, got, shared, all)
		}
	}
}

func TestClassesAreDrawnByWeight(t *testing.T) {
	requests := made(t, asked(t, 4000, func(w *plan.Workload) {
		w.Classes = []plan.Class{{Name: "gold", Weight: 1, Model: "lora-1", InputTokens: "7"}, {Name: "free", Weight: 3, OutputTokens: "5"}}
	}))
	gold := 0
	for _, r := range requests {
		switch {
		case r.Class == "gold" && r.Model == "lora-1" && r.InputTokens == 7 && r.OutputTokens == 32:
			gold++
		case r.Class == "free" && r.Model == "" && r.InputTokens == 128 && r.OutputTokens == 5:
		default:
			t.Fatalf("got %+v", r)
		}
	}
	if gold < 900 || gold > 1100 {
		t.Errorf("gold: got %d of 4000, want about 1000", gold)
	}
}

func TestImagesHaveTheirSizeAndDiffer(t *testing.T) {
	for _, format := range []string{"png", "jpeg"} {
		seen := map[string]bool{}
		for _, r := range made(t, asked(t, 3, func(w *plan.Workload) {
			w.Images = plan.Images{Count: "2", Width: 50, Height: 30, Format: format, Place: plan.PlaceBefore}
		})) {
			last := r.Messages[len(r.Messages)-1]
			if len(last.Media) != 2 || last.Text == "" || !last.Media[0].First {
				t.Fatalf("%s: got %d images beside %q", format, len(last.Media), last.Text)
			}
			for _, i := range last.Media {
				c, name, err := image.DecodeConfig(strings.NewReader(string(i.Bytes)))
				if err != nil || name != format || c.Width != 50 || c.Height != 30 || i.MediaType != "image/"+format {
					t.Errorf("got %s of %d×%d, %s, %v", name, c.Width, c.Height, i.MediaType, err)
				}
				seen[string(i.Bytes)] = true
			}
		}
		if len(seen) != 6 {
			t.Errorf("%s: got %d different images, want 6", format, len(seen))
		}
	}
}

func TestADataSetsRowsAreSent(t *testing.T) {
	p := asked(t, 4, func(w *plan.Workload) {
		w.Dataset.File, w.Dataset.Output, w.OutputTokens = "dataset/testdata/lines.txt", plan.OutputAsked, "9"
		w.Cache = plan.CacheCold
	})
	requests := made(t, p)
	bare := made(t, asked(t, 4, func(w *plan.Workload) { w.Dataset.File = "dataset/testdata/lines.txt" }))
	for i, r := range requests {
		nonce, text, _ := strings.Cut(r.Prompt, "\n\n")
		if text != bare[i].Prompt || len(strings.Fields(nonce)) != 4 || r.OutputTokens != 9 {
			t.Errorf("request %d: got %q of %d tokens, want four words before %q", i, r.Prompt, r.OutputTokens, bare[i].Prompt)
		}
	}
	if got := p.Spec.Workload.SHA256["dataset.file"]; len(got) != 64 {
		t.Errorf("sha256: got %q", got)
	}
}

func TestACacheThatCannotBeEmptyIsRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*plan.Spec)
		want   string // key of the only fault; empty for none
	}{
		{func(s *plan.Spec) {
			s.Load.Arrival, s.Workload.Trace.File, s.Workload.Cache = plan.ArrivalTrace, "trace/testdata/otel.json", plan.CacheCold
		}, "workload.cache"},
		{func(s *plan.Spec) {
			s.Load.Arrival, s.Workload.Trace.File, s.Workload.Cache = plan.ArrivalTrace, "trace/testdata/otel.json", plan.CacheSalted
		}, ""},
		{func(s *plan.Spec) {
			s.Load.Arrival, s.Workload.Trace.File, s.Workload.Cache = plan.ArrivalTrace, "trace/testdata/azure2023.csv", plan.CacheCold
		}, ""},
		{func(s *plan.Spec) {
			s.Workload.Dataset.File, s.Workload.Cache = "dataset/testdata/batch.jsonl", plan.CacheCold
		}, "workload.cache"},
		{func(s *plan.Spec) {
			s.Workload.Dataset.File, s.Workload.Cache = "dataset/testdata/batch.jsonl", plan.CacheSalted
		}, "workload.cache"},
		{func(s *plan.Spec) {
			s.Workload.Dataset.File, s.Workload.Cache = "dataset/testdata/batch.jsonl", plan.CacheWarm
		}, ""},
		{func(s *plan.Spec) {
			s.Workload.Classes, s.Workload.Cache = []plan.Class{{Name: "a", PrefixGroups: 2, PrefixTokens: 32}}, plan.CacheCold
		}, "workload.classes[0].prefix_groups"},
		{func(s *plan.Spec) {
			s.Workload.Classes, s.Workload.Cache = []plan.Class{{Name: "a", PrefixGroups: 2, PrefixTokens: 32}}, plan.CacheSalted
		}, "workload.classes[0].prefix_groups"},
	} {
		s := plan.Defaults()
		c.change(&s)
		if s.Workload.Trace.File == "" {
			s.Load.Concurrency, s.Load.Requests = 1, 2
		}
		p, err := plan.New(s, saying{})
		if err == nil {
			p.Close()
		}
		name := fmt.Sprintf("%s with %s%s%v", s.Workload.Cache, s.Workload.Trace.File, s.Workload.Dataset.File, s.Workload.Classes)
		faults, _ := errors.AsType[plan.Faults](err)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: got %v, want no fault", name, err)
		case c.want != "" && (len(faults) != 1 || faults[0].Key != c.want || faults[0].Hint == ""):
			t.Errorf("%s: got %v, want one fault of %s with a hint", name, err, c.want)
		}
	}
}

func TestTheMeanOfOutputsIsThatOfTheRequests(t *testing.T) {
	for _, c := range []struct {
		from   string
		output plan.Lengths
		want   float64 // 0: the mean of the requests
	}{
		{plan.OutputAsked, "uniform(101,103)", 102},
		{plan.OutputRecorded, "uniform(101,103)", 0},
		{plan.OutputAsked, "77", 77},
	} {
		p := asked(t, 2, func(w *plan.Workload) {
			w.Tokenizer, w.OutputTokens = plan.TokenizerEmbedded, c.output
			w.Dataset.File, w.Dataset.Turns, w.Dataset.Output = "dataset/testdata/sharegpt.json", "first-two", c.from
		})
		want := c.want
		if want == 0 {
			want = mean(made(t, p), func(r plan.Request) int { return r.OutputTokens })
		}
		if _, got, ok := p.MeanLengths(); got != want || !ok || c.want == 0 && got > 100 {
			t.Errorf("%s, %s: got %v, %v, want %v", c.from, c.output, got, ok, want)
		}
	}
}

func TestRowsThatAreSentAgainAreNoted(t *testing.T) {
	rows := len(made(t, asked(t, 1000, func(w *plan.Workload) { w.Dataset.File = "dataset/testdata/lines.txt" })))
	if rows != 1000 {
		t.Fatalf("got %d requests, want 1000", rows)
	}
	for _, c := range []struct {
		name   string
		change func(*plan.Load)
		want   string // empty for no note
	}{
		{"fewer", func(l *plan.Load) { l.Concurrency, l.Requests = 1, 2 }, ""},
		{"more", func(l *plan.Load) { l.Concurrency, l.Requests = 1, 1000 }, " of 1000 requests repeat a row"},
		{"until a time", func(l *plan.Load) { l.Concurrency, l.Duration = 1, time.Second }, "requests behind the first"},
		{"more in the mean", func(l *plan.Load) { l.Arrival, l.Rate, l.Duration = plan.ArrivalPoisson, 100, 10*time.Second }, "requests behind the first"},
		{"fewer in the mean", func(l *plan.Load) { l.Arrival, l.Rate, l.Duration = plan.ArrivalPoisson, 1, time.Second }, ""},
	} {
		p := frozen(t, saying{}, func(s *plan.Spec) {
			c.change(&s.Load)
			s.Workload.Dataset.File = "dataset/testdata/lines.txt"
		})
		notes := strings.Join(p.Notes(), "\n")
		if c.want == "" && strings.Contains(notes, "repeat") || !strings.Contains(notes, c.want) {
			t.Errorf("%s: got notes %q, want %q in them", c.name, notes, c.want)
		}
		p.Close()
	}
}

// replaying makes a plan of a trace.
func replaying(t *testing.T, change func(*plan.Spec)) *plan.Plan {
	t.Helper()
	p := frozen(t, saying{}, func(s *plan.Spec) { s.Load.Arrival = plan.ArrivalTrace; change(s) })
	t.Cleanup(func() { p.Close() })
	return p
}

func TestTracesAreReplayed(t *testing.T) {
	for _, name := range []string{"azure2023.csv", "azure2024.csv", "azure2025.csv", "burstgpt.csv", "burstgpt-first.csv", "mooncake.jsonl", "mooncake-sessions.jsonl", "bailian.jsonl", "otel.json"} {
		p := replaying(t, func(s *plan.Spec) { s.Workload.Trace.File = "trace/testdata/" + name })
		slow := replaying(t, func(s *plan.Spec) { s.Workload.Trace = plan.Trace{File: "trace/testdata/" + name, Scale: 3} })
		requests, slower := made(t, p), made(t, slow)
		if len(requests) == 0 || len(requests) != len(slower) || int64(len(requests)) != p.Stages[0].Requests {
			t.Errorf("%s: got %d requests, %d slower, %d said", name, len(requests), len(slower), p.Stages[0].Requests)
		}
		for i, r := range requests {
			if slower[i].Due != 3*r.Due || r.Due >= p.Stages[0].Duration || string(slower[i].Body) != string(r.Body) {
				t.Errorf("%s: request %d falls due at %v, slower at %v, of %v", name, i, r.Due, slower[i].Due, p.Stages[0].Duration)
			}
			if words := len(strings.Fields(r.Prompt)); len(r.Messages) == 0 && words != r.InputTokens {
				t.Errorf("%s: request %d: got %d words, want %d", name, i, words, r.InputTokens)
			}
		}
	}
}

func TestBlocksOfATraceAreRealPrefixes(t *testing.T) {
	for name, block := range map[string]int{"mooncake.jsonl": 512, "bailian.jsonl": 16} {
		p := replaying(t, func(s *plan.Spec) { s.Workload.Trace.File = "trace/testdata/" + name })
		shared, _ := hits(made(t, p), block)
		w := p.Walk()
		for w.Next(new(plan.Request)) {
		}
		if got := w.Cache().Shared; got == 0 || got < int64(shared) || got > int64(shared)+int64(block)*w.IDs().Requests {
			t.Errorf("%s: got %d shared tokens, a cache of whole blocks finds %d", name, got, shared)
		}
	}
}

func TestAStoredReplayIsTheSamePlan(t *testing.T) {
	p := replaying(t, func(s *plan.Spec) {
		s.Workload.Trace = plan.Trace{File: "trace/testdata/azure2023.csv", Scale: 0.5}
	})
	s, ids := stored(t, p)
	again := reopened(t, p, s.open)
	got, err := again.Identify(t.Context())
	if err != nil || got != ids || again.Stages[0].Duration != p.Stages[0].Duration || again.Stages[0].Rate != p.Stages[0].Rate {
		t.Errorf("got %+v over %v, %v, want %+v over %v", got, again.Stages[0].Duration, err, ids, p.Stages[0].Duration)
	}
}

func TestIDsCoverTheWorkload(t *testing.T) {
	changes := map[string]func(*plan.Workload){
		"lengths":  func(w *plan.Workload) { w.InputTokens = "uniform(100,156)" },
		"text":     func(w *plan.Workload) { w.Text, w.Tokenizer = plan.TextMarkov, plan.TokenizerEmbedded },
		"prefix":   func(w *plan.Workload) { w.Prefix.Groups, w.Prefix.Tokens = 2, 16 },
		"classes":  func(w *plan.Workload) { w.Classes = []plan.Class{{Name: "a"}, {Name: "b"}} },
		"other":    func(w *plan.Workload) { w.Classes = []plan.Class{{Name: "a"}, {Name: "c"}} },
		"images":   func(w *plan.Workload) { w.Images.Count = "1" },
		"data set": func(w *plan.Workload) { w.Dataset.File = "dataset/testdata/lines.txt" },
		"none":     func(w *plan.Workload) {},
	}
	seen := map[string]string{}
	for name, change := range changes {
		ids, err := asked(t, 20, change).Identify(t.Context())
		again, _ := asked(t, 20, change).Identify(t.Context())
		if err != nil || ids != again {
			t.Errorf("%s: got %+v and %+v, %v", name, ids, again, err)
		}
		if other := seen[ids.PlanID]; other != "" {
			t.Errorf("%s has the plan id of %s", name, other)
		}
		seen[ids.PlanID] = name
	}
}

func TestFilesAreNamedByTheirContent(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other.txt")
	text, err := os.ReadFile("dataset/testdata/lines.txt")
	if err == nil {
		err = os.WriteFile(other, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, _ := asked(t, 4, func(w *plan.Workload) { w.Dataset.File = "dataset/testdata/lines.txt" }).Identify(t.Context())
	b, _ := asked(t, 4, func(w *plan.Workload) { w.Dataset.File = other }).Identify(t.Context())
	if a != b {
		t.Errorf("the same file elsewhere: got %+v, want %+v", b, a)
	}
}

func TestAllFaultsOfFilesAreReported(t *testing.T) {
	s := plan.Defaults()
	s.Load.Rate, s.Load.Requests = 1, 5
	dir := t.TempDir()
	tools, lengths := filepath.Join(dir, "tools.json"), filepath.Join(dir, "lengths.csv")
	err := errors.Join(os.WriteFile(tools, []byte("[\n{]"), 0o644), os.WriteFile(lengths, []byte("length\n12\nmany\n-3\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	s.Workload.Tools, s.Workload.InputTokens = tools, plan.Lengths("file("+lengths+")")
	s.Workload.Tokenizer, s.Workload.Text = filepath.Join(dir, "none.json"), plan.TextMarkov
	_, err = plan.New(s, saying{})
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"tools.json:2: must be a JSON array", "lengths.csv:3: ", "lengths.csv:4: ", "workload.tokenizer: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got\n%v\nwant %q in it", err, want)
		}
	}
	s = plan.Defaults()
	s.Load.Arrival, s.Workload.Trace.File = plan.ArrivalTrace, "trace/testdata/azure-columns.csv"
	if _, err := plan.New(s, saying{}); err == nil || !strings.Contains(err.Error(), "azure-columns.csv:") {
		t.Errorf("trace: got %v", err)
	}
	s = plan.Defaults()
	s.Load.Rate, s.Load.Requests, s.Workload.Dataset.File = 1, 5, "dataset/testdata/cut.parquet"
	if _, err := plan.New(s, saying{}); err == nil || !strings.Contains(err.Error(), "cut.parquet") {
		t.Errorf("parquet: got %v", err)
	}
	s.Workload.Dataset.File, s.Workload.SHA256 = "dataset/testdata/lines.txt", map[string]string{"dataset.file": "00"}
	if _, err := plan.New(s, saying{}); err == nil || !strings.Contains(err.Error(), "workload.sha256.dataset.file: ") {
		t.Errorf("hash: got %v", err)
	}
}

func TestAThinnedTraceKeepsItsTimes(t *testing.T) {
	all := map[time.Duration]bool{}
	for _, r := range made(t, replaying(t, func(s *plan.Spec) { s.Workload.Trace.File = "trace/testdata/mooncake.jsonl" })) {
		all[r.Due] = true
	}
	kept := made(t, replaying(t, func(s *plan.Spec) { s.Workload.Trace = plan.Trace{File: "trace/testdata/mooncake.jsonl", Thin: 0.6} }))
	for _, r := range kept {
		if !all[r.Due] {
			t.Errorf("request %d falls due at %v, which is not in the trace", r.Index, r.Due)
		}
	}
	if len(kept) == 0 || len(kept) >= len(all) {
		t.Errorf("kept: got %d of %d", len(kept), len(all))
	}
}
