package wire

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// The kernel takes some milliseconds to begin to stamp, and ceases when the last socket that wants stamps is closed.
func TestNothingComesUnstampedWhileStampingIsKept(t *testing.T) {
	if !HasStamps {
		t.Skip("this system has no receive stamps")
	}
	kept, err := KeepStamping(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for n := range 300 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		peer, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		s, _ := Stamp(c)
		_, _ = peer.Write([]byte("x"))
		_, err = s.Read(make([]byte, 1))
		c.Close()
		peer.Close()
		if err != nil || s.Last() == 0 {
			t.Fatalf("connection %d: stamp %d, error %v, want a stamp", n, s.Last(), err)
		}
	}
}

// A connection is quiet until bytes or its end have come, even while a reader waits for them.
func TestConnectionsAreQuietUntilSomethingComes(t *testing.T) {
	if !HasStamps {
		t.Skip("this system has no receive stamps")
	}
	for name, stir := range map[string]func(net.Conn){
		"bytes":     func(c net.Conn) { _, _ = c.Write([]byte("x")) },
		"its end":   func(c net.Conn) { c.Close() },
		"its reset": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		peer, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		s, ok := Stamp(c)
		if !ok {
			t.Fatal("no receive stamps")
		}
		if !s.Quiet() {
			t.Errorf("%s: not quiet before it came", name)
		}
		stir(peer)
		for s.Quiet() { // ends when it has come, or with the test's time
			runtime.Gosched()
		}
		_, _ = s.Read(make([]byte, 1))
		if want := name == "bytes"; s.Quiet() != want {
			t.Errorf("%s: quiet %v once it was read, want %v", name, s.Quiet(), want)
		}
	}
}
