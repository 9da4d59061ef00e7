//go:build linux

// Nethttp is the reference client of the benchmarks: what a careful programmer gets out of net/http for open-loop load
// on a streaming model server. It is tuned, keeps only time stamps, and reports its own CPU time and lateness.
//
//	nethttp -url http://127.0.0.1:8000 -rate 1000 -duration 10s -tokens 16
//	nethttp -url http://127.0.0.1:8000 -concurrency 64 -duration 10s
//
// It prints one line of JSON. The first fifth of the run is left out of every number but the totals.
//
// Note: its slip is taken just before Client.Do. The bytes leave later, from another goroutine of the transport, so the
// true slip is larger than reported.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// options say what load to make.
type options struct {
	url         string
	rate        float64 // requests per second, open loop
	concurrency int     // requests in flight, closed loop; 0 for an open one
	duration    time.Duration
	tokens      int // asked of the server per request
	conns       int // idle connections kept
	inFlight    int // most requests in flight of an open loop; what falls due beyond is not sent
	seed        uint64
	json        bool // decode every event
	poisson     bool
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "http://127.0.0.1:8000", "base URL of the server")
	flag.Float64Var(&o.rate, "rate", 0, "requests per second")
	flag.IntVar(&o.concurrency, "concurrency", 0, "requests in flight (closed loop, instead of -rate)")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "time in which requests are sent")
	flag.IntVar(&o.tokens, "tokens", 16, "output tokens asked for")
	flag.IntVar(&o.conns, "conns", 256, "idle connections kept")
	flag.IntVar(&o.inFlight, "in-flight", 4096, "most requests in flight of an open loop")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the arrivals")
	flag.BoolVar(&o.json, "json", false, "decode every event with encoding/json")
	flag.BoolVar(&o.poisson, "poisson", false, "Poisson arrivals instead of constant gaps")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "nethttp:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if (o.rate > 0) == (o.concurrency > 0) {
		return errors.New("one of -rate and -concurrency is needed")
	}
	if o.duration <= 0 || o.conns < 1 || o.inFlight < 1 || o.tokens < 1 {
		return errors.New("-duration, -conns, -in-flight and -tokens must be above 0")
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.duration+30*time.Second)
	defer cancel()
	debug.SetGCPercent(400) // fewer collections: they cost it more lateness than memory
	c := newClient(o)
	var l load
	if o.rate > 0 {
		l = openLoop(ctx, c, o)
	} else {
		l = closedLoop(ctx, c, o)
	}
	return json.NewEncoder(os.Stdout).Encode(summarize(l, o))
}
