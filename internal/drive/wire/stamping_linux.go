//go:build linux && (amd64 || arm64)

package wire

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// Stamping keeps the kernel stamping what arrives, until it is closed. The kernel begins to, for the whole machine, some
// milliseconds after the first socket has asked, and ends with the last: without it the first replies have no stamps, and
// where every request has a connection of its own any may have none.
type Stamping struct{ conn *net.UDPConn }

// KeepStamping returns once the kernel stamps what arrives. It is an error if it does not within a time.
func KeepStamping(within time.Duration) (*Stamping, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("ask for receive stamps: %w", err)
	}
	if err := awaitStamp(conn, time.Now().Add(within)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("ask for receive stamps: %w", err)
	}
	return &Stamping{conn}, nil
}

// awaitStamp has conn send itself bytes until one comes with a stamp.
func awaitStamp(conn *net.UDPConn, until time.Time) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	if err := raw.Control(func(fd uintptr) { set = Socket(fd).StampReceives() }); err != nil || set != nil {
		return errors.Join(err, set)
	}
	if err := conn.SetDeadline(until); err != nil {
		return err
	}
	var b [1]byte
	var control [128]byte
	for {
		if _, err := conn.WriteTo(b[:], conn.LocalAddr()); err != nil {
			return err
		}
		_, n, _, _, err := conn.ReadMsgUDP(b[:], control[:])
		if err != nil {
			return err
		}
		if receiveStamp(control[:n]) != 0 {
			return nil
		}
	}
}

// Close lets the kernel cease, unless others want stamps.
func (s *Stamping) Close() { s.conn.Close() }
