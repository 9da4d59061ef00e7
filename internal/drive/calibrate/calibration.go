package calibrate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"time"

	"tare/internal/record"
)

// Schema names the format of a stored calibration and its version.
const Schema = "tare.calibration/v1"

// Calibration is what was found out about one machine and one kind of load.
type Calibration struct {
	Schema   string    `json:"schema"`
	Made     time.Time `json:"made"`
	Expires  time.Time `json:"expires"`
	Machine  Machine   `json:"machine"`
	Shape    Shape     `json:"shape"`
	Mixed    Capacity  `json:"mixed"`               // streams that know nothing of each other
	LockStep *Capacity `json:"lock_step,omitempty"` // streams that emit all at once, as engines with continuous batching make them
}

// Machine is what a calibration is bound to: it says nothing about another one.
type Machine struct {
	CPU        string `json:"cpu"`
	CPUs       int    `json:"cpus"` // usable by the client
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel"`
	Tare       string `json:"tare"` // version and revision
	Go         string `json:"go"`
	Engine     string `json:"engine"`
	Loops      int    `json:"loops"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	SpinNs     int64  `json:"spin_ns"`
}

// MachineOf describes the machine that would carry a plan out as client says.
func MachineOf(env record.Environment, tool record.Tool, client record.Client) Machine {
	return Machine{
		CPU: env.CPU, CPUs: env.CPUs, OS: env.OS, Arch: env.Arch, Kernel: env.Kernel,
		Tare: tool.Version + " " + tool.Revision, Go: tool.GoVersion,
		Engine: client.Engine, Loops: client.Loops, GOMAXPROCS: client.GOMAXPROCS, SpinNs: client.SpinNs,
	}
}

// Shape is the kind of a load, whatever its rate.
type Shape struct {
	TLS       bool `json:"tls"`
	Stream    bool `json:"stream"`
	Reuse     bool `json:"reuse"`      // of connections
	BodyBytes int  `json:"body_bytes"` // of a request
	Events    int  `json:"events"`     // with tokens, in an answer; 1 where it is not streamed
}

// class is the shape that stands for all those near s: sizes up to the next power of two.
func (s Shape) class() Shape {
	s.BodyBytes = ceiling(max(s.BodyBytes, 256))
	s.Events = ceiling(max(s.Events, 1))
	return s
}

func ceiling(n int) int { return 1 << bits.Len(uint(n-1)) }

// Capacity is the highest load of a shape that was held.
type Capacity struct {
	RequestsPerS float64 `json:"requests_per_s"`
	EventsPerS   float64 `json:"events_per_s"`
	Streams      int64   `json:"streams"`            // open at the same time
	LoopLoad     float64 `json:"loop_load"`          // CPU time over wall time of the busiest loop then; 0 when unknown
	LagP99Ms     float64 `json:"receive_lag_p99_ms"` // then
	SlipP99Ms    float64 `json:"slip_p99_ms"`        // then
	BodyBytes    float64 `json:"request_body_bytes"`
	Broke        string  `json:"broke"`    // what was not held at the next level; empty when the search ended before
	BrokeAt      float64 `json:"broke_at"` // that level: requests per second, or streams in lock-step; 0 when there is none
	Accuracy     float64 `json:"accuracy"` // relative distance of the two levels; 0 when there is no next
	Trials       int     `json:"trials"`
}

// CapacityOf writes down what a search found.
func CapacityOf(f Found) Capacity {
	b := f.Best
	return Capacity{
		RequestsPerS: b.RequestsPerS, EventsPerS: b.EventsPerS, Streams: b.Streams, LoopLoad: b.LoopLoad,
		LagP99Ms: ms(b.LagP99), SlipP99Ms: ms(b.SlipP99), BodyBytes: b.BodyBytes,
		Broke: f.Broke.Why, BrokeAt: f.Broke.Level, Accuracy: f.Accuracy, Trials: f.Trials,
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// Demand is what a plan asks of the machine at its busiest. What is not known before a run is 0.
type Demand struct {
	RequestsPerS float64
	EventsPerS   float64
	Streams      int64 // open at the same time
}

// Use is the share of a capacity that a demand takes; 1 is all of it.
type Use struct {
	Share float64
	Of    string // requests, events or streams
}

// Use returns the larger of the shares of requests and of events. ok is false where the demand is not known.
func (c *Calibration) Use(d Demand) (u Use, ok bool) {
	u = Use{share(d.RequestsPerS, c.Mixed.RequestsPerS), "requests"}
	if events := share(d.EventsPerS, c.Mixed.EventsPerS); events > u.Share {
		u = Use{events, "events"}
	}
	return u, u.Share > 0
}

// LockStepUse returns the share of the streams that the machine can take in lock-step. ok is false where either is not known.
func (c *Calibration) LockStepUse(d Demand) (u Use, ok bool) {
	if c.LockStep == nil {
		return Use{}, false
	}
	u = Use{share(float64(d.Streams), float64(c.LockStep.Streams)), "streams"}
	return u, u.Share > 0
}

func share(demand, capacity float64) float64 {
	if capacity <= 0 {
		return 0
	}
	return demand / capacity
}

// Store is a directory of calibrations.
type Store struct{ Dir string }

// ErrNone says that no calibration of such a machine and shape is there, or that it has expired.
var ErrNone = errors.New("no calibration")

// path names the file of a machine and the shapes near one.
func (s Store) path(m Machine, shape Shape) string {
	key, _ := json.Marshal(struct {
		Machine
		Shape
	}{m, shape.class()}) // numbers, words and switches: it cannot fail
	sum := sha256.Sum256(key)
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:8])+".json")
}

// Find reads the calibration for a machine and a shape. It is ErrNone where there is none, or none that has not expired.
func (s Store) Find(m Machine, shape Shape, now time.Time) (*Calibration, error) {
	path := s.path(m, shape)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read calibration: %w", err)
	}
	var c Calibration
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("read calibration %s: %w", path, err)
	}
	if c.Schema != Schema {
		return nil, fmt.Errorf("read calibration %s: schema: must be %q, got %q", path, Schema, c.Schema)
	}
	if c.Machine != m || c.Shape.class() != shape.class() || !now.Before(c.Expires) || now.Before(c.Made) {
		return nil, ErrNone
	}
	return &c, nil
}

// Keep stores a calibration in one step, in place of an earlier one, and returns the file's path.
func (s Store) Keep(c *Calibration) (path string, err error) {
	path = s.path(c.Machine, c.Shape)
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", fmt.Errorf("store calibration: %w", err)
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return "", fmt.Errorf("store calibration: %w", err)
	}
	f, err := os.CreateTemp(s.Dir, ".new-*")
	if err != nil {
		return "", fmt.Errorf("store calibration: %w", err)
	}
	defer os.Remove(f.Name()) // finds nothing once renamed
	_, err = f.Write(append(b, '\n'))
	if err = cmp.Or(err, f.Close()); err != nil {
		return "", fmt.Errorf("store calibration: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return "", fmt.Errorf("store calibration: %w", err)
	}
	return path, nil
}
