package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
)

// secure shakes hands once and looks at the certificate. One that is not trusted ends the probe, unless the user said that it may
// not be: no key is sent to whoever that is.
func (p *prober) secure(ctx context.Context) bool {
	c := p.cfg.Get.TLS
	if c == nil {
		return true
	}
	state, err := p.handshake(ctx, c)
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return p.fail("the server does not speak TLS", "write http://")
	}
	if err != nil {
		return p.fail("TLS handshake: "+p.reason(err), "if the server speaks plain HTTP, write http://")
	}
	t := describe(state)
	p.found.TLS = t
	if t.ALPN == "h2" {
		p.found.HTTP = append(p.found.HTTP, "h2")
	}
	t.Fault = verify(state, c)
	t.Verified = t.Fault == ""
	if !t.Verified && !c.InsecureSkipVerify {
		return p.fail("the certificate is not trusted: "+t.Fault, "name the authority with --ca-file, or do not check with --insecure")
	}
	return true
}

// handshake accepts any certificate and offers every version of HTTP. No byte of a request is sent.
func (p *prober) handshake(ctx context.Context, c *tls.Config) (tls.ConnectionState, error) {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	conn, err := p.dial(ctx)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	c = c.Clone()
	c.InsecureSkipVerify, c.NextProtos = true, []string{"h2", "http/1.1"}
	secure := tls.Client(conn, c)
	err = secure.HandshakeContext(ctx)
	return secure.ConnectionState(), err
}

func describe(s tls.ConnectionState) *TLS {
	t := &TLS{Version: tls.VersionName(s.Version), Cipher: tls.CipherSuiteName(s.CipherSuite), ALPN: s.NegotiatedProtocol}
	if len(s.PeerCertificates) > 0 {
		leaf := s.PeerCertificates[0]
		t.Subject, t.Issuer, t.Expires = leaf.Subject.String(), leaf.Issuer.String(), leaf.NotAfter.UTC()
		t.Names = leaf.DNSNames
		for _, ip := range leaf.IPAddresses {
			t.Names = append(t.Names, ip.String())
		}
	}
	return t
}

// verify checks the certificates as a run does, and names what is wrong with them; it is empty if nothing is.
func verify(s tls.ConnectionState, c *tls.Config) string {
	if len(s.PeerCertificates) == 0 {
		return "there is none"
	}
	leaf := s.PeerCertificates[0]
	between := x509.NewCertPool()
	for _, next := range s.PeerCertificates[1:] {
		between.AddCert(next)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: c.RootCAs, Intermediates: between, DNSName: c.ServerName})
	if err == nil {
		return ""
	}
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return "it is signed by an unknown authority, " + leaf.Issuer.String()
	}
	if _, is := errors.AsType[x509.HostnameError](err); is {
		return fmt.Sprintf("it is for %s, not for %s", strings.Join(describe(s).Names, ", "), c.ServerName)
	}
	if invalid, is := errors.AsType[x509.CertificateInvalidError](err); is && invalid.Reason == x509.Expired {
		return fmt.Sprintf("it is valid from %s to %s only", leaf.NotBefore.UTC().Format(time.DateOnly), leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	return strings.TrimPrefix(err.Error(), "x509: ")
}

// speaksTLS tries a handshake where plain HTTP got nowhere.
func (p *prober) speaksTLS(ctx context.Context) bool {
	_, err := p.handshake(ctx, &tls.Config{ServerName: p.found.Reach.Host, MinVersion: tls.VersionTLS12})
	return err == nil
}
