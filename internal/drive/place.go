package drive

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// place is where a server is found.
type place struct {
	network string // "tcp" or "unix"
	addr    netip.AddrPort
	text    string // the address as the network package takes it
}

// locate finds a server's address. Names are looked up once, before the run; of several addresses the first that takes a
// connection is used.
func (r *run) locate(ctx context.Context, s *Server) (place, error) {
	switch {
	case r.cfg.Dial != nil || s.Network == "unix":
		return place{network: "unix", text: s.Address}, nil
	default:
		addr, err := r.resolve(ctx, s.Address)
		return place{network: "tcp", addr: addr, text: addr.String()}, err
	}
}

func (r *run) resolve(ctx context.Context, address string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("server address: %w", err)
	}
	n, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("server address: %w", err)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, err // it names the host
	}
	dialer := net.Dialer{Timeout: r.cfg.ConnectTimeout}
	for _, a := range addrs[:len(addrs)-1] {
		to := netip.AddrPortFrom(a.Unmap(), uint16(n))
		if c, err := dialer.DialContext(ctx, "tcp", to.String()); err == nil {
			c.Close()
			return to, nil
		}
	}
	return netip.AddrPortFrom(addrs[len(addrs)-1].Unmap(), uint16(n)), nil
}

// dealt is how many connections the shard of that number makes to each server before the start. With as many shards as
// servers, those to one server fall to the shard that its requests fall to.
func (r *run) dealt(shard int) []int {
	k := len(r.cfg.Servers)
	part := make([]int, k)
	for s := range part {
		whole := share(r.connections, s, k)
		part[s] = share(whole, (shard-s%r.loops+r.loops)%r.loops, r.loops)
	}
	return part
}

// share is the part of a whole n that falls to one of so many.
func share(n, one, of int) int {
	part := n / of
	if one < n%of {
		part++
	}
	return part
}
