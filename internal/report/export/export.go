// Package export writes a run in forms that other programs read: tables, histograms, and the result files of other load generators,
// these by the definitions of those tools and not by ours (docs/exports.md).
package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"tare/internal/judge"
	"tare/internal/judge/measure"
	"tare/internal/record"
	"tare/internal/report"
)

// Run is a run directory as exports read it. What not every form needs is read when one asks for it.
type Run struct {
	Dir      string
	Manifest *record.Manifest
	Summary  *judge.Summary
	Detail   *judge.Detail
}

// Read reads the run in dir.
func Read(dir string) (*Run, error) {
	m, err := record.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	s, d, err := judge.Examine(dir)
	if err != nil {
		return nil, err
	}
	return &Run{Dir: dir, Manifest: m, Summary: s, Detail: d}, nil
}

// Format is one form of export.
type Format struct {
	Name  string
	File  string // its usual name; with a slash at its end a directory of several files
	About string
	Joins bool // those of several runs, one after another, are one of all of them

	write func(r *Run, to io.Writer) error // of a single file
	files func(r *Run) ([]file, error)     // of several
}

// file is one of several that a form has.
type file struct {
	name  string
	write func(to io.Writer) error
}

// Formats lists all forms in the order of docs/exports.md.
func Formats() []Format {
	return []Format{
		{Name: "parquet", File: "requests.parquet", About: "every request, a row each", write: requests("parquet")},
		{Name: "csv", File: "requests.csv", About: "every request, a line each", write: requests("csv")},
		{Name: "jsonl", File: "requests.jsonl", About: "every request, an object each", write: requests("jsonl")},
		{Name: "timeseries", File: "timeseries.csv", About: "the run second by second", write: timeseries},
		{Name: "hdr", File: "latencies.hlog", About: "HdrHistogram log, a histogram for each metric and stage", write: hdrLog},
		{Name: "openmetrics", File: "metrics.txt", About: "OpenMetrics text", write: openMetrics},
		{Name: "benchstat", File: "benchmark.txt", About: "lines of the Go benchmark format, for benchstat", Joins: true, write: benchstat},
		{Name: "inference-perf", File: "inference-perf/", About: "reports of inference-perf", files: inferencePerfFiles},
		{Name: "vllm", File: "vllm/", About: "results and tables of vllm bench serve", files: vllmFiles},
		{Name: "aiperf", File: "aiperf/", About: "profile export of AIPerf", files: aiperfFiles},
		{Name: "llm-d", File: "llm-d/", About: "benchmark reports of llm-d, schema 0.2.1", files: llmdFiles},
		{Name: "mlperf", File: "mlperf/", About: "summaries in the form of MLPerf's LoadGen", files: mlperfFiles},
	}
}

// Find returns the format of a name.
func Find(name string) (Format, error) {
	var names []string
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, fmt.Errorf("must be one of %s, got %q", strings.Join(names, ", "), name)
}

// Several reports whether the form is a directory of files.
func (f Format) Several() bool { return f.files != nil }

// Write writes a form that is a single file.
func (f Format) Write(r *Run, to io.Writer) error {
	if err := f.write(r, to); err != nil {
		return fmt.Errorf("export %s: %w", f.Name, err)
	}
	return nil
}

// Save writes a form to a path, which is made: the file's, or the directory's for a form of several files. Only forms that join take several
// runs. It returns what it wrote.
func (f Format) Save(runs []*Run, path string) (written []string, err error) {
	if len(runs) != 1 && !f.Joins {
		return nil, fmt.Errorf("export %s: must be of one run, got %d", f.Name, len(runs))
	}
	all := []file{{filepath.Base(path), func(to io.Writer) error { return f.join(runs, to) }}}
	dir := filepath.Dir(path)
	if f.Several() {
		dir = path
		if all, err = f.files(runs[0]); err != nil {
			return nil, fmt.Errorf("export %s: %w", f.Name, err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("export %s: %w", f.Name, err)
	}
	for _, one := range all {
		at := filepath.Join(dir, one.name)
		if err := create(at, one.write); err != nil {
			return written, fmt.Errorf("export %s: %w", f.Name, err)
		}
		written = append(written, at)
	}
	return written, nil
}

func (f Format) join(runs []*Run, to io.Writer) error {
	for _, r := range runs {
		if err := f.write(r, to); err != nil {
			return err
		}
	}
	return nil
}

func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func requests(format string) func(*Run, io.Writer) error {
	return func(r *Run, to io.Writer) error { return report.Requests(to, r.Dir, format) }
}

// eachReply gives yield every reply on record, in the order of the log. The reply is used again for the next one.
func (r *Run) eachReply(yield func(*measure.Reply) error) error {
	var reply measure.Reply
	seen := map[int64]bool{}
	_, err := record.ReadLog(r.Dir, func(x *record.Exchange) error {
		if seen[x.Index] {
			return nil // counted and not measured, as in the summary
		}
		seen[x.Index] = true
		reply.Read(x)
		return yield(&reply)
	})
	return err
}

// measured are the places of the stages that are not warm-up, in the manifest.
func (r *Run) measured() (stages []int) {
	for i := range r.Manifest.Stages {
		if !r.Manifest.Stages[i].Warmup {
			stages = append(stages, i)
		}
	}
	return stages
}

// seconds is a number of milliseconds in seconds, with the digits that summary.json has: the point is moved, nothing is rounded again.
func seconds(n judge.Number) string {
	ms := n.Text()
	if ms == "" {
		return ""
	}
	sign := ""
	if ms[0] == '-' {
		sign, ms = "-", ms[1:]
	}
	whole, part, _ := strings.Cut(ms, ".")
	whole = strings.Repeat("0", max(4-len(whole), 0)) + whole
	at := len(whole) - 3
	digits := strings.TrimRight(whole[at:]+part, "0")
	if digits == "" {
		return sign + whole[:at]
	}
	return sign + whole[:at] + "." + digits
}
