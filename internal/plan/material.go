package plan

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"tare/internal/plan/dataset"
	"tare/internal/plan/draw"
	"tare/internal/plan/input"
	"tare/internal/plan/tokenizer"
	"tare/internal/plan/tokenizer/chat"
	"tare/internal/plan/trace"
	"tare/internal/plan/workload"
)

// File is one that a spec names and that was read.
type File struct {
	Key    string // of the spec, without its section: "tokenizer", "dataset.file"
	Path   string
	SHA256 string // of the file as it lies on the disk
}

// material is what the requests are made of: the workload with its files read. It does not change.
type material struct {
	work      Workload
	shapes    []shape // by class; one without classes
	class     draw.Categorical
	private   workload.Sampler     // of the system message of each session, if there is one
	tokenizer *tokenizer.Tokenizer // nil for words
	prompts   *tokenizer.Prompts   // nil for words and ids
	template  *chat.Template
	tools     []byte
	rows      *dataset.File
	sample    *dataset.Sample
	trace     *trace.Trace
	turns     bool              // sessions may have more than one
	turnOf    []int32           // of each row of a trace that is sent by sessions
	models    map[string]string // what recorded models are called here

	prioritized bool // a class has a priority

	files []File
	notes []string // what a reader of a report must know of the files
}

// shape is what the requests of one class are like.
type shape struct {
	Class
	in, out workload.Sampler
	rank    draw.Categorical // of the prefix groups
}

// loader reads files and gathers what is wrong with them.
type loader struct {
	m      *material
	seed   uint64
	faults Faults
}

// load reads all files of a spec but the data set, which needs to know how many requests there are. All mistakes are in the error.
func (s *Spec) load() (*material, Faults) {
	l := loader{m: &material{work: s.Workload, turns: s.Workload.Conversation.most() > 1}, seed: s.Load.Seed}
	l.shapes()
	l.texts()
	l.tools()
	l.trace()
	return l.m, l.faults
}

// refuse records what is wrong with the file that a key names.
func (l *loader) refuse(key, path string, err error) {
	if faults, ok := errors.AsType[input.Faults](err); ok {
		for _, f := range faults {
			reason := f.Reason
			if f.Value != "" {
				reason += fmt.Sprintf(", got %q", shortened(f.Value))
			}
			if f.Row > 0 {
				reason = fmt.Sprintf("row %d: %s", f.Row, reason)
			}
			l.faults = append(l.faults, Fault{File: f.File, Line: f.Line, Key: f.Key, Reason: reason, Hint: f.Hint})
		}
		return
	}
	text := strings.TrimPrefix(err.Error(), path+": ")
	l.faults = append(l.faults, Fault{Key: "workload." + key, Reason: text})
}

// keep notes that a file was read, and holds it to the hash that the spec gives.
func (l *loader) keep(key, path, sum string) {
	l.m.files = append(l.m.files, File{key, path, sum})
	if want := l.m.work.SHA256[key]; want != "" && want != sum {
		l.faults = append(l.faults, Fault{
			Key: "workload.sha256." + key, Reason: fmt.Sprintf("%s has the SHA-256 %s, not %s", path, sum, want),
			Hint: "it is another file than the one that the spec was made for",
		})
	}
}

// read reads a whole file.
func (l *loader) read(key, path string) []byte {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		l.refuse(key, path, err)
		return nil
	}
	sum := sha256.Sum256(text)
	l.keep(key, path, hex.EncodeToString(sum[:]))
	return text
}

func (l *loader) shapes() {
	classes, prefix := l.m.work.Classes, ""
	if len(classes) == 0 {
		classes = []Class{{}}
	}
	var weights []float64
	for i, c := range classes {
		s := shape{Class: l.m.work.inherit(c)}
		l.m.prioritized = l.m.prioritized || c.Priority != 0
		if len(l.m.work.Classes) > 0 {
			prefix = fmt.Sprintf("classes[%d].", i)
		}
		s.in = l.sampler(prefix+"input_tokens", s.InputTokens)
		s.out = l.sampler(prefix+"output_tokens", s.OutputTokens)
		if s.PrefixGroups > 0 {
			var err error
			if s.rank, err = draw.NewZipf(l.m.work.Prefix.Zipf, s.PrefixGroups); err != nil {
				l.faults = append(l.faults, Fault{Key: "workload.prefix.zipf", Reason: err.Error()})
			}
		}
		l.m.shapes, weights = append(l.m.shapes, s), append(weights, s.Weight)
	}
	if own := l.m.work.Conversation.SystemTokens; own != "" {
		l.m.private = l.sampler("conversation.system_tokens", own)
	}
	l.m.class, _ = draw.NewCategorical(weights) // weights are checked
}

// sampler reads the file of lengths, if they have one.
func (l *loader) sampler(key string, text Lengths) workload.Sampler {
	lengths, err := workload.ParseLengths(string(text))
	if err != nil {
		return workload.Sampler{} // a fault of the spec
	}
	var buckets []draw.Bucket
	if lengths.File != "" {
		if buckets = l.buckets(key, lengths.File, l.read(key, lengths.File)); buckets == nil {
			return workload.Sampler{}
		}
	}
	s, err := lengths.Sampler(buckets)
	if err != nil {
		l.faults = append(l.faults, Fault{Key: "workload." + key, Reason: err.Error()})
	}
	return s
}

// buckets reads a length on each line, and its weight behind a comma or white space if it has one. A first line of words is a head.
func (l *loader) buckets(key, path string, text []byte) (buckets []draw.Bucket) {
	var wrong input.Tally
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		fields := strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\t' })
		if len(fields) == 0 || n == 1 && strings.Trim(fields[0], "0123456789.-") != "" {
			continue
		}
		length, err := strconv.ParseInt(fields[0], 10, 64)
		weight := 1.0
		if len(fields) > 1 && err == nil {
			weight, err = parseNumber(fields[1])
		}
		if err != nil || length < 1 || length > workload.MaxLength || !(weight >= 0) || len(fields) > 2 {
			wrong.Add(input.Fault{File: path, Line: n, Reason: "must be a length of 1 token or more, and perhaps a weight", Value: lines.Text()})
			continue
		}
		buckets = append(buckets, draw.Bucket{Range: draw.Range{Least: length, Most: length}, Weight: weight})
	}
	if err := errors.Join(lines.Err(), wrong.Err(path)); err != nil {
		l.refuse(key, path, err)
		return nil
	}
	if len(buckets) == 0 && text != nil {
		l.faults = append(l.faults, Fault{Key: "workload." + key, Reason: path + " has no length"})
	}
	return buckets
}

func (l *loader) texts() {
	w := &l.m.work
	switch w.Tokenizer {
	case "":
		return
	case TokenizerEmbedded:
		l.m.tokenizer = tokenizer.Embedded()
	default:
		t, err := tokenizer.Load(w.Tokenizer)
		if err != nil {
			l.refuse("tokenizer", w.Tokenizer, err)
			return
		}
		l.m.tokenizer = t
		l.keep("tokenizer", w.Tokenizer, t.ID())
	}
	l.template()
	from := map[string]tokenizer.Source{TextMarkov: tokenizer.Markov, TextCorpus: tokenizer.Corpus, TextRandom: tokenizer.Random}
	source, made := from[w.Text]
	text := l.read("text_file", w.TextFile)
	if !made {
		return
	}
	p, err := tokenizer.NewPrompts(l.m.tokenizer, source, text, l.seed, proved)
	if err != nil {
		l.faults = append(l.faults, Fault{Key: "workload.text", Reason: err.Error(), Hint: "words need no tokenizer"})
	}
	l.m.prompts = p
}

func (l *loader) template() {
	path := l.m.work.ChatTemplate
	if text := l.read("chat_template", path); text == nil {
		return
	}
	t, err := chat.Load(path)
	if err != nil {
		l.refuse("chat_template", path, err)
	}
	l.m.template = t
}

func (l *loader) tools() {
	path := l.m.work.Tools
	text := l.read("tools", path)
	if text == nil {
		return
	}
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		l.faults = append(l.faults, Fault{File: path, Line: 1 + bytes.Count(text[:faultAt(err, text)], []byte{'\n'}), Reason: "must be a JSON array of tool definitions: " + err.Error()})
		return
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err == nil {
		l.m.tools = compact.Bytes()
	}
}

// faultAt is where in a JSON text a mistake is.
func faultAt(err error, text []byte) int {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return min(int(syntax.Offset), len(text))
	}
	return 0
}

func (l *loader) trace() {
	w := &l.m.work.Trace
	if w.File == "" {
		return
	}
	headers, _ := w.attributes()
	t, err := trace.Read(w.File, trace.Options{
		Format: trace.Format(w.Format), From: w.From, Until: w.Until, Sort: w.Sort, Seed: l.seed, BlockSize: w.Block, MaxGap: w.MaxGap, Grid: w.Grid, KeepGrid: w.KeepGrid,
		Class: w.Class, Headers: headers,
	})
	if err != nil {
		l.refuse("trace.file", w.File, err)
		return
	}
	l.m.trace = t
	l.m.models, _ = w.models()
	for i, f := range t.Facts.Files {
		key := "trace.file"
		if len(t.Facts.Files) > 1 {
			key = fmt.Sprintf("trace.file[%d]", i)
		}
		l.keep(key, f.Path, f.SHA256)
	}
	if l.m.work.Cache == CacheCold && !w.Sessions && slices.ContainsFunc(t.Rows, func(r trace.Row) bool { return said(&r) }) {
		l.fixed(w.File, "what was said, which is sent as it is")
	}
	l.count(w.File, t.Facts.Refused, t.Facts.Read)
	pictures := 0
	for i := range t.Rows {
		if t.Rows[i].Images > 0 {
			pictures++
		}
	}
	if pictures > 0 {
		l.m.notes = append(l.m.notes, fmt.Sprintf("%s: %d of %d requests had pictures when they were recorded, which are not sent", w.File, pictures, len(t.Rows)))
	}
	if t.Format == trace.ServeGen {
		l.m.notes = append(l.m.notes, fmt.Sprintf("%s: %d requests drawn from its models of clients", w.File, len(t.Rows)))
	}
	if t.Facts.Spread != "" {
		l.m.notes = append(l.m.notes, fmt.Sprintf("%s: times on a grid of %v were spread over its cells (stream %s)", w.File, t.Facts.Grid, t.Facts.Spread))
	}
}

// fixed refuses a cache that is to find nothing where nothing of a request's own can be added.
func (l *loader) fixed(path, what string) {
	l.faults = append(l.faults, Fault{
		Key: "workload.cache", Reason: fmt.Sprintf("%s does not go with %s: it has %s", l.m.work.Cache, path, what),
		Hint: "leave it out: requests that begin alike are then found in a cache",
	})
}

// count notes how many rows of a file were refused, and why.
func (l *loader) count(path string, refused []input.Count, of int64) {
	for _, c := range refused {
		l.m.notes = append(l.m.notes, strings.TrimSpace(fmt.Sprintf("%s: %d of %d rows refused: %s %s", path, c.Rows, of, c.Key, c.Reason)))
	}
}

// recorded is a pick's own output length, tokens; ok is false where output_tokens is asked for in its place.
func (m *material) recorded(pick *dataset.Pick) (tokens int, ok bool) {
	return pick.OutputTokens, pick.OutputTokens > 0 && m.work.Dataset.Output == OutputRecorded
}

// data reads the data set and selects as many requests of it as the plan has, or all there are where that is not known.
func (l *loader) data(p *Plan) {
	w, m := &l.m.work.Dataset, l.m
	if w.File == "" {
		return
	}
	columns, _ := w.columns()
	file, err := dataset.Open(w.File, dataset.Options{Format: dataset.Format(w.Format), Columns: columns, Template: w.Template})
	if err != nil {
		l.refuse("dataset.file", w.File, err)
		return
	}
	m.rows = file
	facts := file.Facts()
	l.keep("dataset.file", w.File, facts.SHA256)
	l.count(w.File, facts.Refused, facts.Rows)
	rules, preset := dataset.Preset(w.Preset)
	if !preset {
		rules = dataset.Rules{Turns: dataset.Turns(w.Turns), Order: dataset.Order(w.Order), Seed: l.seed}
	}
	if n, fixed := m.work.OutputTokens.Fixed(); fixed && w.Output == OutputAsked {
		rules.OutputTokens = n
	}
	var counter dataset.Counter
	if m.tokenizer != nil {
		counter = m.tokenizer
	}
	if whole := facts.Format == dataset.OpenAI || facts.Format == dataset.OpenAIBatch; whole && m.work.apart() {
		l.fixed(w.File, "whole request bodies, which are sent as they are")
		return
	}
	count, exact := p.Requests()
	if !exact {
		count = 0
	}
	if m.sample, err = dataset.Select(file, rules, int(count), counter); err != nil {
		key, hint := "workload.dataset.file", ""
		if preset && counter == nil {
			key, hint = "workload.dataset.preset", "its rules count tokens: set workload.tokenizer"
		}
		l.faults = append(l.faults, Fault{Key: key, Reason: err.Error(), Hint: hint})
		return
	}
	for _, d := range m.sample.Dropped {
		m.notes = append(m.notes, fmt.Sprintf("%s: %d rows left out: %s", w.File, d.Rows, d.Rule))
	}
	if m.sample.Again > 0 {
		m.notes = append(m.notes, fmt.Sprintf("%s: %d of %d requests repeat a row", w.File, m.sample.Again, len(m.sample.Picks)))
	}
	l.wrap(p)
}

// wrap notes that requests begin with the data set's first row again.
func (l *loader) wrap(p *Plan) {
	path, rows := l.m.work.Dataset.File, int64(len(l.m.sample.Picks))
	endless := slices.ContainsFunc(p.Stages, func(s Stage) bool { return !s.counted() })
	switch count, exact := p.Requests(); {
	case exact && count > rows:
		l.m.notes = append(l.m.notes, fmt.Sprintf("%s: %d of %d requests repeat a row: %d are used, and then again from the first", path, count-rows, count, rows))
	case !exact && (endless || count > rows):
		l.m.notes = append(l.m.notes, fmt.Sprintf("%s: requests behind the first %d repeat its rows", path, rows))
	}
}

// sums are the hashes of all files, as the effective spec has them.
func (m *material) sums() map[string]string {
	if len(m.files) == 0 {
		return nil
	}
	sums := map[string]string{}
	for _, f := range m.files {
		sums[f.Key] = f.SHA256
	}
	return sums
}

func (m *material) close() error {
	if m == nil || m.rows == nil {
		return nil
	}
	return m.rows.Close()
}
