package trace

import (
	"fmt"
	"math"
	"math/bits"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tare/internal/plan/draw"
	"tare/internal/plan/input"
)

// modelled says that a path is a folder of client models.
func modelled(path string) bool {
	files, err := filepath.Glob(filepath.Join(path, "chunk-*-trace.csv"))
	return err == nil && len(files) > 0
}

// usualWindow is how long ServeGen's windows last, which the last one of a client does not say.
const usualWindow = 600 * time.Second

// clients draws a recording from client models: what each client sends in each window, independent of the others. Arrivals are a renewal
// process of the window's rate and shape, which has been going on before the window begins: neither does every client begin at once, nor is
// the number of requests in a window fixed. Input and output lengths are drawn apart.
func (r *reading) clients(dir string) error {
	models, err := ReadClients(dir)
	if err != nil {
		return err
	}
	r.trace.Facts.Files = append(r.trace.Facts.Files, models.Files...)
	r.source, r.first, r.any = dir, 0, true
	for i := range models.Clients {
		if err := r.client(&models.Clients[i]); err != nil {
			return err
		}
	}
	return nil
}

// sampler draws what one client sends.
type sampler struct {
	arrivals, input, output *draw.Source
	ins, outs               []lengthsFrom
	requests                uint64 // so far
}

// lengthsFrom are lengths from a moment on.
type lengthsFrom struct {
	start time.Duration
	draw  draw.Histogram
}

func (r *reading) client(c *Client) error {
	name := strconv.Itoa(c.Number)
	s := sampler{
		arrivals: draw.New(r.options.Seed, "sg at "+name), input: draw.New(r.options.Seed, "sg in "+name), output: draw.New(r.options.Seed, "sg out "+name),
		ins: c.lengths("input_tokens"), outs: c.lengths("output_tokens"),
	}
	if c.idle() {
		return nil
	}
	missing := func(field string) {
		r.fatal = append(r.fatal, input.Fault{File: r.source, Key: field, Reason: fmt.Sprintf("client %d has no lengths", c.Number)})
	}
	if len(s.ins) == 0 {
		missing("input_tokens")
	}
	if len(s.outs) == 0 {
		missing("output_tokens")
	}
	if len(s.ins) == 0 || len(s.outs) == 0 {
		return nil
	}
	class := "client " + name
	for i := range c.Windows {
		s.arrivals.Seek(uint64(i))
		err := c.arrivals(i, s.arrivals, func(at time.Duration) error {
			s.requests++
			if at < r.options.From || r.options.Until > 0 && at >= r.options.Until {
				return nil // counted, so that a part of the recording is the same as in the whole
			}
			s.input.Seek(s.requests)
			s.output.Seek(s.requests)
			r.trace.Facts.Read++
			_, _, err := r.add(int64(at), Row{
				InputTokens: int(lengthsAt(s.ins, at).Draw(s.input)), OutputTokens: int(lengthsAt(s.outs, at).Draw(s.output)), Session: r.session(""), Class: class,
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) idle() bool {
	return !slices.ContainsFunc(c.Windows, func(w Window) bool { return w.Rate > 0 })
}

// lengths are a field's by when they begin. Windows in which there are none have those before them.
func (c *Client) lengths(field string) (all []lengthsFrom) {
	for _, d := range c.Datasets {
		for _, f := range d.Fields {
			if f.Field != field || len(f.Values) == 0 {
				continue
			}
			var buckets []draw.Bucket
			for i, v := range f.Values {
				n := int64(math.Round(min(max(v, 1), longestPrompt)))
				buckets = append(buckets, draw.Bucket{Range: draw.Range{Least: n, Most: n}, Weight: f.Weights[i]})
			}
			if h, err := draw.NewHistogram(buckets); err == nil {
				all = append(all, lengthsFrom{d.Start, h})
			}
		}
	}
	return all
}

// longestPrompt bounds a length that no model can have meant, tokens.
const longestPrompt = 4 << 20

// lengthsAt are the lengths at a moment, or the first there are.
func lengthsAt(all []lengthsFrom, at time.Duration) draw.Histogram {
	i := len(all) - 1
	for i > 0 && all[i].start > at {
		i--
	}
	return all[i].draw
}

// arrivals calls do with every moment of window i at which the client sends. Shapes are held to those that can be drawn: 0.05 to 100 of gamma
// gaps, 0.2 to 100 of Weibull's.
func (c *Client) arrivals(i int, s *draw.Source, do func(at time.Duration) error) error {
	w := &c.Windows[i]
	span := usualWindow
	if i+1 < len(c.Windows) {
		span = c.Windows[i+1].Start - w.Start
	}
	if w.Rate*span.Seconds() < 1e-9 {
		return nil
	}
	mean := uint64(math.Round(min(max(1e9/w.Rate, 1), 1<<62))) // ns
	gap, residual := draw.NewGamma(min(max(w.Shape, 0.05), 100)).Draw, draw.NewGamma(min(max(w.Shape, 0.05), 100)).Residual
	if w.Family == "Weibull" {
		d := draw.NewWeibull(min(max(w.Shape, 0.2), 100))
		gap, residual = d.Draw, d.Residual
	}
	for at := scaled(residual(s), mean); at < span; at = time.Duration(later(int64(at), scaled(gap(s), mean))) {
		if err := do(time.Duration(later(int64(w.Start), at))); err != nil {
			return err
		}
	}
	return nil
}

// scaled is a number in units of 1/draw.One times a span of time in ns, rounded down.
func scaled(x, ns uint64) time.Duration {
	high, low := bits.Mul64(x, ns)
	if high >= 1<<47 {
		return math.MaxInt64
	}
	return time.Duration(high<<16 | low>>48)
}
