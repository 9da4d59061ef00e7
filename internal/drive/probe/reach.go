package probe

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	mostAddresses = 8 // that are tried
	rttSamples    = 5
)

// reach finds the server's addresses and the first of them that takes connections.
func (p *prober) reach(ctx context.Context) bool {
	r := &p.found.Reach
	if p.cfg.Get.Network == "unix" {
		return p.reachSocket(ctx)
	}
	host, port, err := net.SplitHostPort(p.cfg.Get.Address)
	if err != nil {
		return p.fail(err.Error(), "")
	}
	r.Host = host
	addresses, err := p.resolve(ctx, host)
	if err != nil {
		return p.fail(fmt.Sprintf("the name %s is not resolved: %s", host, p.reason(err)), "check the URL's spelling and this machine's resolver")
	}
	p.tryAll(ctx, addresses, port)
	for _, a := range r.Addresses {
		if a.Error == "" {
			r.Used, p.used = a.Address, a.Address
			break
		}
	}
	if p.used == "" {
		return p.fail("no connection to "+p.cfg.Get.Address+": "+r.Addresses[0].Error, "check that the server runs, and on which address and port")
	}
	r.RTT = p.roundTrip(ctx)
	return true
}

// reachSocket connects to a socket of this machine, which has neither a name to resolve nor a way to travel.
func (p *prober) reachSocket(ctx context.Context) bool {
	path := p.cfg.Get.Address
	took, err := p.connect(ctx, path)
	if err != nil {
		return p.fail("no connection to "+path+": "+p.reason(err), "check that the server runs, and where its socket is")
	}
	p.found.Reach.Addresses = []Address{{Address: path, Connect: Milliseconds(took)}}
	p.found.Reach.Used, p.used = path, path
	return true
}

// resolve gives the addresses of a name, or the one that it is.
func (p *prober) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	ctx, cancel := p.limit(ctx)
	defer cancel()
	began := time.Now()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	p.found.Reach.Resolved = Milliseconds(time.Since(began))
	for i := range addresses {
		addresses[i] = addresses[i].Unmap()
	}
	return addresses, err
}

// tryAll connects to each address once, all at the same time: one that drops packets takes its whole step.
func (p *prober) tryAll(ctx context.Context, addresses []netip.Addr, port string) {
	if n := len(addresses); n > mostAddresses {
		p.note(fmt.Sprintf("of %d addresses the first %d were tried", n, mostAddresses))
		addresses = addresses[:mostAddresses]
	}
	tried := make([]Address, len(addresses))
	var trying sync.WaitGroup
	for i, a := range addresses {
		trying.Go(func() {
			tried[i].Address = net.JoinHostPort(a.String(), port)
			took, err := p.connect(ctx, tried[i].Address)
			if err != nil {
				tried[i].Error = p.reason(err)
				return
			}
			tried[i].Connect = Milliseconds(took)
		})
	}
	trying.Wait()
	p.found.Reach.Addresses = tried
}

// connect opens a connection, closes it, and says how long the opening took.
func (p *prober) connect(ctx context.Context, address string) (time.Duration, error) {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	began := time.Now()
	c, err := p.dialTo(ctx, address)
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, c.Close()
}

// roundTrip takes the time of some connections, one after another.
func (p *prober) roundTrip(ctx context.Context) RTT {
	var all []time.Duration
	for range rttSamples {
		if took, err := p.connect(ctx, p.used); err == nil {
			all = append(all, took)
		}
	}
	if len(all) == 0 {
		return RTT{}
	}
	slices.Sort(all)
	return RTT{Samples: len(all), Min: Milliseconds(all[0]), Median: Milliseconds(all[len(all)/2])}
}
