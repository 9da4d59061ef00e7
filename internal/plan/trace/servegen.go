package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/internal/plan/input"
)

// Clients are ServeGen's client models: a production load as the sum of clients, each with its own arrivals and lengths.
type Clients struct {
	Clients []Client // by their numbers
	Files   []Source
}

// Client is one client's model.
type Client struct {
	Number   int // of its files: "chunk-7-trace.csv"
	Windows  []Window
	Datasets []Dataset
}

// Window is how a client's requests arrive for a while: a renewal process.
type Window struct {
	Start  time.Duration // offset from the start of the recording; it lasts to the next window's
	Rate   float64       // requests per second; 0 for a client that is idle
	CV     float64       // of the gaps
	Family string        // "Gamma" or "Weibull"; empty if idle
	Shape  float64
	Scale  float64 // seconds
}

// Dataset is what a client's requests are like for a while.
type Dataset struct {
	Start  time.Duration
	Fields []Histogram // by name: "input_tokens", "output_tokens" …
}

// Histogram is a distribution of one field. Note: ServeGen draws all fields of a request with one uniform number, which makes
// long inputs have long outputs; they are to be drawn apart.
type Histogram struct {
	Field   string
	Values  []float64 // ascending
	Weights []float64 // of the values, above 0; their sum is not always 1
}

// ReadClients reads the client models of a directory: chunk-N-trace.csv and chunk-N-dataset.json for each client. All
// mistakes of all files are in the error, which is of type input.Faults: a model with a part missing is no model.
func ReadClients(dir string) (*Clients, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "chunk-*-trace.csv"))
	if err != nil {
		return nil, fmt.Errorf("open client models: %w", err)
	}
	if len(paths) == 0 {
		return nil, input.Faults{{File: dir, Reason: "has no file of the form chunk-N-trace.csv"}}
	}
	r := &clientReading{}
	for _, path := range paths {
		if err := r.client(path); err != nil {
			return nil, err
		}
	}
	if err := r.bad.Err(dir); err != nil {
		return nil, err
	}
	slices.SortFunc(r.Clients.Clients, func(a, b Client) int { return cmp.Compare(a.Number, b.Number) })
	return &r.Clients, nil
}

type clientReading struct {
	Clients
	bad  input.Tally
	path string
}

func (r *clientReading) fault(line int, key, reason, value string) {
	r.bad.Add(input.Fault{File: r.path, Line: line, Key: key, Reason: reason, Value: value})
}

func (r *clientReading) client(path string) error {
	r.path = path
	name := strings.TrimSuffix(filepath.Base(path), "-trace.csv")
	number, err := strconv.Atoi(strings.TrimPrefix(name, "chunk-"))
	if err != nil || number < 0 {
		r.fault(0, "", "must have a number in its name: chunk-N-trace.csv", "")
		return nil
	}
	c := Client{Number: number}
	if err := r.read(path, func(file *input.File) error { return r.windows(file, &c) }); err != nil {
		return err
	}
	other := filepath.Join(filepath.Dir(path), name+"-dataset.json")
	if err := r.read(other, func(file *input.File) error { return r.datasets(file, &c) }); err != nil {
		return err
	}
	r.Clients.Clients = append(r.Clients.Clients, c)
	return nil
}

func (r *clientReading) read(path string, do func(*input.File) error) error {
	r.path = path
	file, err := input.Open(path)
	if fault := (input.Fault{}); errors.As(err, &fault) {
		r.bad.Add(fault)
		return nil
	}
	if errors.Is(err, os.ErrNotExist) {
		r.fault(0, "", "is missing", "")
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	r.Files = append(r.Files, Source{Path: path, SHA256: file.SHA256, Bytes: file.Bytes})
	return do(file)
}

// windows reads window_start_s,rate,cv,pattern,shape,scale without a header.
func (r *clientReading) windows(file *input.File, c *Client) error {
	for span, err := range file.Records(',') {
		if err != nil {
			return err
		}
		fields, err := input.Fields(span.Text, ',')
		if span.Fault != "" || err != nil || len(fields) != 6 {
			r.fault(span.Line, "", "must have the six fields window_start_s,rate,cv,pattern,shape,scale", string(span.Text))
			continue
		}
		w, ok := r.window(span.Line, fields)
		if n := len(c.Windows); ok && n > 0 && w.Start <= c.Windows[n-1].Start {
			r.fault(span.Line, "window_start_s", "must be after the window above", fields[0])
			ok = false
		}
		if ok {
			c.Windows = append(c.Windows, w)
		}
	}
	if len(c.Windows) == 0 {
		r.fault(0, "", "has no window that can be used", "")
	}
	return nil
}

func (r *clientReading) window(line int, fields []string) (w Window, ok bool) {
	ok = true
	start, good := input.Decimal(fields[0], time.Second)
	if !good || start < 0 {
		r.fault(line, "window_start_s", notTime, fields[0])
		ok = false
	}
	w = Window{Start: start, Family: strings.TrimSpace(fields[3])}
	for _, f := range []struct {
		key  string
		text string
		into *float64
	}{{"rate", fields[1], &w.Rate}, {"cv", fields[2], &w.CV}, {"shape", fields[4], &w.Shape}, {"scale", fields[5], &w.Scale}} {
		value, good := number(f.text)
		if !good {
			r.fault(line, f.key, "must be a number from 0", f.text)
			ok = false
		}
		*f.into = value
	}
	switch {
	case w.Family != "" && w.Family != "Gamma" && w.Family != "Weibull":
		r.fault(line, "pattern", "must be Gamma, Weibull, or empty for an idle client", w.Family)
		ok = false
	case ok && w.Rate > 0 && (w.Family == "" || w.Shape == 0 || w.Scale == 0):
		r.fault(line, "pattern", "must come with a shape and a scale above 0 where the rate is above 0", w.Family)
		ok = false
	}
	return w, ok
}

// number reads a finite number from 0.
func number(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, false
	}
	value, err := strconv.ParseFloat(text, 64)
	return value, err == nil && value >= 0 && !math.IsInf(value, 0)
}

// datasets reads {"window_start_s": {"field": "{value: weight, …}"}}.
func (r *clientReading) datasets(file *input.File, c *Client) error {
	if file.Size() > input.MaxRow {
		r.fault(0, "", "must not be longer than 64 MiB", "")
		return nil
	}
	var raw map[string]map[string]json.RawMessage
	if err := json.Unmarshal(file.Head(int(file.Size())), &raw); err != nil {
		r.fault(0, "", "must be a JSON object of windows, each an object of fields", "")
		return nil
	}
	for _, key := range sortedKeys(raw) {
		start, ok := input.Decimal(key, time.Second)
		if !ok || start < 0 {
			r.fault(0, "window", notTime, key)
			continue
		}
		d := Dataset{Start: start}
		for _, field := range sortedKeys(raw[key]) {
			if h, ok := r.histogram(field, raw[key][field]); ok {
				d.Fields = append(d.Fields, h)
			}
		}
		c.Datasets = append(c.Datasets, d)
	}
	slices.SortStableFunc(c.Datasets, func(a, b Dataset) int { return cmp.Compare(a.Start, b.Start) })
	if len(c.Datasets) == 0 {
		r.fault(0, "", "has no window that can be used", "")
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// histogram reads a Python dictionary in a string. It is read as data and by a grammar of its own, never run. An empty one,
// of a window without requests, has no values.
func (r *clientReading) histogram(field string, raw json.RawMessage) (h Histogram, ok bool) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		r.fault(0, field, "must be a string that holds a dictionary", string(raw))
		return h, false
	}
	pairs, ok := dictionary(text)
	if !ok {
		r.fault(0, field, "must be a dictionary of numbers: {12: 0.5, 40: 0.5}", text)
		return h, false
	}
	slices.SortStableFunc(pairs, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	h.Field = field
	for i, pair := range pairs {
		switch {
		case i > 0 && pair[0] == pairs[i-1][0]:
			r.fault(0, field, "must not have a value twice", strconv.FormatFloat(pair[0], 'g', -1, 64))
			return h, false
		case pair[1] > 0:
			h.Values, h.Weights = append(h.Values, pair[0]), append(h.Weights, pair[1])
		}
	}
	return h, true
}

// dictionary reads "{number: number, …}", with a comma behind the last pair or not.
func dictionary(text string) (pairs [][2]float64, ok bool) {
	text = strings.TrimSpace(text)
	body, isOpen := strings.CutPrefix(text, "{")
	body, isClosed := strings.CutSuffix(body, "}")
	if !isOpen || !isClosed {
		return nil, false
	}
	body = strings.TrimSpace(body)
	if body == "" {
		return nil, true
	}
	for pair := range strings.SplitSeq(strings.TrimSuffix(body, ","), ",") {
		key, value, hasColon := strings.Cut(pair, ":")
		k, keyOK := number(key)
		v, valueOK := number(value)
		if !hasColon || !keyOK || !valueOK {
			return nil, false
		}
		pairs = append(pairs, [2]float64{k, v})
	}
	return pairs, true
}
