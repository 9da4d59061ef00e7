package main

import (
	"math"
	"math/rand/v2"

	"tare/internal/judge/stats"
)

// law is how long a server takes for a request, with mean 1.
type law struct {
	name  string
	draw  func(*rand.Rand) float64
	exact func(rho, level float64) float64 // quantile of the response time; nil when it must be simulated
}

var (
	exponential = law{
		"exponential",
		func(r *rand.Rand) float64 { return r.ExpFloat64() },
		func(rho, level float64) float64 { return -math.Log(1-level) / (1 - rho) },
	}
	lognormal = law{name: "lognormal σ 1", draw: func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64() - 0.5) }}
)

// unit is one mean service time, in ns.
const unit = 1e6

// server answers requests one by one that arrive at random, ρ of them in the time it takes for one.
type server struct {
	law  law
	rho  float64
	rng  *rand.Rand
	wait float64
}

// start gives a server that has been at work for long.
func start(law law, rho float64, seed uint64) *server {
	s := &server{law: law, rho: rho, rng: rand.New(rand.NewPCG(seed, math.Float64bits(rho)))}
	for range 20_000 {
		s.next()
	}
	return s
}

// next is the response time of the next request, in ns.
func (s *server) next() int64 {
	service := s.law.draw(s.rng)
	response := s.wait + service
	s.wait = max(response-s.rng.ExpFloat64()/s.rho, 0)
	return int64(response * unit)
}

// truth tells the quantiles of the response time, in ns.
func (l law) truth(rho float64, requests int) (exact []float64) {
	if l.exact != nil {
		for _, ppm := range levels {
			exact = append(exact, unit*l.exact(rho, float64(ppm)/1e6))
		}
		return exact
	}
	var all stats.Distribution
	s := start(l, rho, math.MaxUint64)
	for range requests {
		all.Add(s.next())
	}
	for _, ppm := range levels {
		v, _ := all.Quantile(ppm)
		exact = append(exact, v)
	}
	return exact
}
