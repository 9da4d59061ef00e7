package plan

import "strings"

// transportFaults checks that the keys go together that say how requests get to the servers.
func (s *Spec) transportFaults() (faults Faults) {
	fault := func(key, reason, hint string) { faults = append(faults, Fault{Key: key, Reason: reason, Hint: hint}) }
	t := &s.Target
	if reason, _ := t.urlFault(); t.URL != "" && reason == "" && !strings.HasPrefix(t.URLs()[0], "https://") {
		for _, key := range []string{"target.insecure", "target.ca_file", "target.client_cert_file", "target.client_key_file", "target.server_name"} {
			if k, _ := find(specKeys, key); given(k.field(s)) {
				fault(key, "goes with https:// only, which target.url "+maskURLs(t.URL)+" is not", "")
			}
		}
	}
	const both = "a certificate and its private key go together"
	switch {
	case t.ClientCertFile != "" && t.ClientKeyFile == "":
		fault("target.client_cert_file", "needs target.client_key_file", both)
	case t.ClientCertFile == "" && t.ClientKeyFile != "":
		fault("target.client_key_file", "needs target.client_cert_file", both)
	}
	if t.HTTP == HTTP2 && s.Client.Engine != EngineAuto {
		fault("client.engine", "goes with target.http 1.1 only, got "+s.Client.Engine, "HTTP/2 has an engine of its own: leave the key out")
	}
	if !t.Reuse && t.HTTP == HTTP2 {
		fault("target.reuse", "must be true with target.http 2", "HTTP/2 is many requests over a connection")
	}
	if !t.Reuse && s.Client.Connections > 0 {
		fault("client.connections", "goes with target.reuse only", "without reuse no connection is made before its request is due")
	}
	return faults
}
