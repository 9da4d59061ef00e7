package drive

import "testing"

func TestConnectionsAreDealtOutWhole(t *testing.T) {
	for servers := 1; servers <= 5; servers++ {
		for loops := 1; loops <= 5; loops++ {
			for n := 0; n <= 40; n++ {
				r := &run{cfg: Config{Servers: make([]Server, servers)}, loops: loops, connections: n}
				byServer := make([]int, servers)
				for shard := range loops {
					for s, k := range r.dealt(shard) {
						byServer[s] += k
						if servers == loops && n == servers && k > 0 && s != shard {
							t.Errorf("%d servers, as many shards: a connection to server %d is shard %d's, which sends it nothing", servers, s, shard)
						}
					}
				}
				for s, k := range byServer {
					if want := share(n, s, servers); k != want {
						t.Errorf("%d connections, %d servers, %d shards: server %d has %d, want %d", n, servers, loops, s, k, want)
					}
				}
			}
		}
	}
}
