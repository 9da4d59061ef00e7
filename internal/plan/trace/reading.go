package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/internal/plan/draw"
	"tare/internal/plan/input"
)

// Read reads a recording: a file, or, for Weka and OTel, also a directory, of which all files that end in .json or .jsonl
// are read in the order of their names, or a pattern of files like traces/*.json. Bad rows are counted and named in Facts. It is an error, of type input.Faults, if
// no row is good, if times are not in order and Options.Sort is not set, or if a file as a whole is broken; all such
// mistakes of all files are in it. Of a folder of ServeGen's client models it draws what they send; From and Until count from its start.
func Read(path string, options Options) (*Trace, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	r := &reading{options: options, trace: &Trace{Format: options.Format}, interned: map[string]string{}, sessions: map[string]int{}, turns: map[int]int{}}
	if options.Format == ServeGen || options.Format == "" && modelled(path) {
		r.trace.Format = ServeGen
		if err := r.clients(path); err != nil {
			return nil, err
		}
		return r.finish(path)
	}
	paths, err := files(path)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if err := r.file(path, len(paths) > 1); err != nil {
			return nil, err
		}
	}
	return r.finish(path)
}

func (o Options) check() error {
	var all input.Faults
	fault := func(key, reason string, value any) {
		all = append(all, input.Fault{File: "trace", Key: key, Reason: reason, Value: fmt.Sprint(value)})
	}
	if o.Until > 0 && o.Until <= o.From {
		fault("until", "must be after from", o.Until)
	}
	for key, d := range map[string]time.Duration{"from": o.From, "until": o.Until, "grid": o.Grid, "max_gap": o.MaxGap} {
		if d < 0 {
			fault(key, "must not be below 0", d)
		}
	}
	if o.Grid > longest {
		fault("grid", "must not be above 100 years", o.Grid)
	}
	if o.BlockSize < 0 {
		fault("block_size", "must not be below 0", o.BlockSize)
	}
	slices.SortFunc(all, func(a, b input.Fault) int { return cmp.Compare(a.Key, b.Key) })
	if len(all) > 0 {
		return all
	}
	return nil
}

// files lists what is to be read.
func files(path string) ([]string, error) {
	stat, err := os.Stat(path)
	if paths, bad := filepath.Glob(path); err != nil && bad == nil && len(paths) > 0 {
		return paths, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	if !stat.IsDir() {
		return []string{path}, nil
	}
	var paths []string
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		plain := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
		if err == nil && !d.IsDir() && (strings.HasSuffix(plain, ".json") || strings.HasSuffix(plain, ".jsonl")) {
			paths = append(paths, name)
		}
		return err
	})
	if err == nil && len(paths) == 0 {
		err = input.Faults{{File: path, Reason: "has no file that ends in .json or .jsonl"}}
	}
	return paths, err
}

// reading gathers the rows of all files. Times are kept as the files have them until finish.
type reading struct {
	options  Options
	trace    *Trace
	clocks   []int64 // of the rows, in nanoseconds from whatever the format counts from
	bad      input.Tally
	fatal    input.Faults
	unsorted input.Tally
	notes    input.Tally
	interned map[string]string
	sessions map[string]int
	turns    map[int]int // so far, of sessions that may go on in another file
	scopes   int         // agents seen
	blockIDs uint64      // block ids given out, where those of the file mean something within a conversation only
	source   string      // path of the file being read
	first    int64       // clock of the first good row
	any      bool
	last     int64 // clock of the row before, in the file being read
	begun    bool  // last is valid
}

func (r *reading) file(path string, several bool) error {
	file, err := input.Open(path)
	if fault := (input.Fault{}); errors.As(err, &fault) {
		r.fatal = append(r.fatal, fault)
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	r.source, r.begun = path, false
	r.trace.Facts.Files = append(r.trace.Facts.Files, Source{Path: path, SHA256: file.SHA256, Bytes: file.Bytes})
	format := r.options.Format
	if format == "" {
		format = Detect(file)
	}
	switch {
	case r.trace.Format == "":
		r.trace.Format = format
	case r.trace.Format != format:
		r.fatal = append(r.fatal, input.Fault{File: path, Reason: "is of another format than the files before it", Value: string(format)})
		return nil
	}
	if several && format != Weka && format != OTel {
		r.fatal = append(r.fatal, input.Fault{File: path, Reason: "must be given alone: its format is one file", Value: string(format)})
		return nil
	}
	err = r.rows(file, format)
	var faults input.Faults
	if fault := (input.Fault{}); errors.As(err, &fault) {
		faults = input.Faults{fault}
	}
	if len(faults) > 0 || errors.As(err, &faults) {
		r.fatal = append(r.fatal, faults...)
		return nil
	}
	return err
}

func (r *reading) rows(file *input.File, format Format) error {
	switch format {
	case Azure:
		return r.azure(file)
	case BurstGPT:
		return r.burst(file)
	case Mooncake:
		return r.mooncake(file)
	case Bailian:
		return r.bailian(file)
	case Weka:
		return r.weka(file)
	case OTel:
		return r.otel(file)
	}
	hint := "formats: "
	for i, f := range Formats() {
		if i > 0 {
			hint += ", "
		}
		hint += string(f)
	}
	return input.Faults{{File: file.Path, Reason: "is no recording of a format that is known", Value: string(format), Hint: hint}}
}

// refuse counts a bad row.
func (r *reading) refuse(line int, key, reason, value string) {
	r.bad.Add(input.Fault{File: r.source, Line: line, Key: key, Reason: reason, Value: value})
}

// note counts a peculiarity.
func (r *reading) note(line int, key, reason string) {
	r.notes.Add(input.Fault{File: r.source, Line: line, Key: key, Reason: reason})
}

// sorted notes a row whose clock is before that of the row above.
func (r *reading) sorted(line int, key string, clock int64, value string) {
	if r.begun && clock < r.last {
		r.unsorted.Add(input.Fault{File: r.source, Line: line, Key: key, Reason: "is before the time of the row above", Value: value})
	}
	r.last, r.begun = clock, true
}

// add keeps a row if it is within the window. Where it is kept, index is its number so far.
func (r *reading) add(clock int64, row Row) (index int, kept bool, err error) {
	if !r.any {
		r.first, r.any = clock, true
	}
	if !r.sorts() && !r.trace.Relative && !r.within(clock) {
		r.trace.Facts.Outside++
		return 0, false, nil
	}
	limit := r.options.MaxRows
	if limit == 0 {
		limit = defaultMaxRows
	}
	if len(r.trace.Rows) >= limit {
		return 0, false, input.Fault{
			File: r.source, Line: row.Line, Reason: fmt.Sprintf("has more than %d requests", limit),
			Hint: "read a part of it (from, until), or allow more",
		}
	}
	row.File = len(r.trace.Facts.Files) - 1
	r.trace.Rows = append(r.trace.Rows, row)
	r.clocks = append(r.clocks, clock)
	return len(r.trace.Rows) - 1, true, nil
}

// sorts reports whether the first row may not be the earliest: the window is then applied when all are known.
func (r *reading) sorts() bool {
	return r.options.Sort || r.trace.Format == OTel || r.trace.Format == ServeGen
}

// within reports whether a clock is in the part of the recording that was asked for.
func (r *reading) within(clock int64) bool {
	offset := time.Duration(clock - r.first)
	return offset >= r.options.From && (r.options.Until == 0 || offset < r.options.Until)
}

// intern makes one string of equal ones: a long file has few classes.
func (r *reading) intern(text string) string {
	if one, ok := r.interned[text]; ok {
		return one
	}
	one := strings.Clone(text)
	if len(r.interned) < 1<<16 {
		r.interned[one] = one
	}
	return one
}

// session numbers sessions by when they first occur; an empty name is a session of its own.
func (r *reading) session(name string) int {
	if name == "" {
		r.trace.Facts.Sessions++
		return r.trace.Facts.Sessions - 1
	}
	number, ok := r.sessions[name]
	if !ok {
		number = r.trace.Facts.Sessions
		r.trace.Facts.Sessions++
		r.sessions[strings.Clone(name)] = number
	}
	return number
}

// gap notes the recorded time between the end of what row comes after and its start.
func (r *reading) gap(row *Row, gap time.Duration) {
	if gap < 0 {
		return
	}
	if limit := r.options.MaxGap; limit > 0 && gap > limit {
		gap = limit
		r.trace.Facts.CutGaps++
	}
	row.Gap, row.HasGap = gap, true
}

func (r *reading) finish(path string) (*Trace, error) {
	t := r.trace
	f := &t.Facts
	f.Refused, f.Faults, f.Notes, f.Unsorted = r.bad.Counts(), r.bad.Examples(), r.notes.Counts(), r.unsorted.Total()
	all := r.fatal
	if !r.options.Sort && r.unsorted.Total() > 0 {
		all = append(all, r.unsorted.Err(path).(input.Faults)...)
		all[len(all)-1].Hint = "if that is how it was recorded, ask for sorting"
	}
	if len(r.fatal) == 0 {
		r.order()
	}
	if len(t.Rows) == 0 && len(r.fatal) == 0 {
		if r.bad.Total() > 0 {
			all = append(all, r.bad.Err(path).(input.Faults)...)
		}
		all = append(all, input.Fault{File: path, Reason: r.emptiness()})
	} else if len(all) > 0 && r.bad.Total() > 0 {
		all = append(all, r.bad.Err(path).(input.Faults)...)
	}
	if len(all) > 0 {
		return nil, all
	}
	if err := r.times(); err != nil {
		return nil, err
	}
	t.sum()
	return t, nil
}

func (r *reading) emptiness() string {
	if r.trace.Facts.Outside > 0 {
		return "has no request in the part that was asked for"
	}
	return "has no request that can be used"
}

// order sorts the rows by their times, leaves out those that are not in the window, and what refers to them follows.
func (r *reading) order() {
	t := r.trace
	if t.Relative || len(t.Rows) == 0 || !r.sorts() && slices.IsSorted(r.clocks) {
		return
	}
	order := make([]int, len(t.Rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.clocks[a], r.clocks[b]) })
	if t.Format != ServeGen { // whose times count from the recording's start
		r.first = r.clocks[order[0]]
	}
	var rows []Row
	var clocks []int64
	now := make(map[int]int, len(order))
	for _, from := range order {
		if !r.within(r.clocks[from]) {
			t.Facts.Outside++
			continue
		}
		now[from] = len(rows)
		rows, clocks = append(rows, t.Rows[from]), append(clocks, r.clocks[from])
	}
	for i := range rows {
		rows[i].refer(now)
	}
	t.Rows, r.clocks = rows, clocks
}

// refer gives the rows that a row speaks of their new numbers; those that are gone are forgotten.
func (row *Row) refer(now map[int]int) {
	var after []int
	for _, before := range row.After {
		if to, ok := now[before]; ok {
			after = append(after, to)
		}
	}
	if row.After = after; after == nil {
		row.Gap, row.HasGap = 0, false
	}
	if row.Call == nil {
		return
	}
	for i := range row.Call.Messages {
		m := &row.Call.Messages[i]
		m.From, m.HasFrom = now[m.From], m.HasFrom && has(now, m.From)
	}
}

func has(now map[int]int, row int) bool {
	_, ok := now[row]
	return ok
}

// stream is the draw stream that spreads times over the cells of a grid; the index is the row's.
const stream = "trace/spread"

// times makes offsets of clocks: from the first row on, spread over the cells of the grid.
func (r *reading) times() error {
	t := r.trace
	if t.Relative {
		for i, clock := range r.clocks {
			t.Rows[i].At = time.Duration(clock)
		}
		t.Facts.Span = slices.MaxFunc(t.Rows, func(a, b Row) int { return cmp.Compare(a.At, b.At) }).At
		return nil
	}
	start := r.clocks[0]
	if t.Format == ServeGen {
		start = int64(r.options.From) // it begins with its first window, not with its first request
	}
	for i, clock := range r.clocks {
		offset := time.Duration(clock - start)
		if offset > longest {
			source := t.Facts.Files[t.Rows[i].File]
			return input.Faults{{File: source.Path, Line: t.Rows[i].Line, Reason: "is more than 100 years after the first request"}}
		}
		t.Rows[i].At = offset
	}
	t.grid()
	if r.options.Grid > 0 {
		t.Facts.Grid = r.options.Grid
	}
	if t.Facts.Grid > 0 && !r.options.KeepGrid && (r.options.Grid > 0 || t.Facts.Instants < len(t.Rows)) {
		t.spread(r.options.Seed)
	}
	last := t.Rows[len(t.Rows)-1].At
	t.Facts.Span = last - t.Rows[0].At
	return nil
}

// longest is how far from its first request a recording may go. Twice as much can still be said in nanoseconds.
const longest = 100 * 365 * 24 * time.Hour

// coarse is the finest grid that is one: finer times than these are not spread.
const coarse = 100 * time.Millisecond

// grid finds the largest step of which all offsets are multiples.
func (t *Trace) grid() {
	var step time.Duration
	t.Facts.Instants = 1
	for i := 1; i < len(t.Rows); i++ {
		if between := t.Rows[i].At - t.Rows[i-1].At; between > 0 {
			t.Facts.Instants++
			step = divisor(step, between)
		}
	}
	if t.Format == BurstGPT && step%time.Second == 0 {
		step = time.Second // as it was recorded, whatever a part of it happens to have
	}
	if t.Facts.Instants > 2 && step >= coarse {
		t.Facts.Grid = step
	}
}

func divisor(a, b time.Duration) time.Duration {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// spread gives the rows of each cell uniform times within it. Their order stays: the sorted draws go to the rows in turn.
func (t *Trace) spread(seed uint64) {
	t.Facts.Spread = stream
	source := draw.New(seed, stream)
	cell := t.Facts.Grid
	var draws []time.Duration
	for i := 0; i < len(t.Rows); {
		start := t.Rows[i].At / cell * cell
		end := i
		draws = draws[:0]
		for end < len(t.Rows) && t.Rows[end].At-start < cell {
			source.Seek(uint64(end))
			draws = append(draws, time.Duration(source.Below(uint64(cell))))
			end++
		}
		slices.Sort(draws)
		for j := range draws {
			t.Rows[i+j].At = start + draws[j]
		}
		i = end
	}
	first := t.Rows[0].At
	for i := range t.Rows {
		t.Rows[i].At -= first
	}
}

// sum fills in the facts that follow from the rows.
func (t *Trace) sum() {
	var in, out int64
	seen := map[uint64]struct{}{}
	for i := range t.Rows {
		row := &t.Rows[i]
		in, out = in+int64(row.InputTokens), out+int64(row.OutputTokens)
		prefix := true
		for _, block := range row.Blocks {
			_, again := seen[block]
			prefix = prefix && again
			if prefix {
				t.Facts.Reused++
			}
			seen[block] = struct{}{}
		}
		t.Facts.Blocks += int64(len(row.Blocks))
	}
	n := float64(len(t.Rows))
	t.Facts.MeanInput, t.Facts.MeanOutput = float64(in)/n, float64(out)/n
	if seconds := t.Facts.Span.Seconds(); seconds > 0 && !t.Relative {
		t.Facts.Rate = n / seconds
	}
}

// later is a clock after a span of time, at most the last one there is.
func later(clock int64, d time.Duration) int64 {
	if int64(d) > 0 && clock > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return clock + int64(d)
}
