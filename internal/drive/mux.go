package drive

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/record"
)

// mux is one shard of engine http2: a crew whose requests share connections, with a goroutine for each
// request. What the connections carry is the standard library's affair, so that no stamp of the kernel can be told to belong
// to one request: events have the time at which their bytes were handed out.
type mux struct {
	*crew    // its dialling counts the requests that wait for a trunk; its berths are none
	stations []*station
	buffers  sync.Pool // to read replies into
}

func newMux(r *run, id int) (*mux, error) {
	m := &mux{crew: newCrew(r, id)}
	m.on = m
	m.buffers.New = func() any { return new([readBytes]byte) }
	for server := range r.places {
		st, err := m.newStation(server)
		if err != nil {
			return nil, err
		}
		m.stations = append(m.stations, st)
	}
	return m, nil
}

// warmTo opens trunks, by which it is seen whether the server speaks HTTP/2.
func (m *mux) warmTo(ctx context.Context, server, n int) error {
	st := m.stations[server]
	for range n {
		t, err := st.dial(ctx)
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.tally.dials++
		st.trunks = append(st.trunks, t)
		m.mu.Unlock()
	}
	return nil
}

// begin counts the idle time of the trunks from the start of the run.
func (m *mux) begin() {
	for _, st := range m.stations {
		for _, t := range st.trunks {
			t.since = 0
		}
	}
}

// place sends a job that is due, or has it wait for a trunk. It reports false when it must stay where it is.
func (m *mux) place(j *job, due, now time.Duration) bool {
	st := m.stations[j.server]
	if t := m.seat(st, now); t != nil {
		m.send(st, t, m.hold(j, due, now))
		return true
	}
	free := m.unconnected(now, m.lines(), 0)
	if st.wanting() && (!free || m.mayDial == 0) {
		return false
	}
	m.wait(st, m.hold(j, due, now))
	return true
}

// resend sends a request again, or has it wait for a trunk. It reports false when it must stay where it is.
func (m *mux) resend(f *flight, now time.Duration) bool {
	st := m.stations[f.server]
	if t := m.seat(st, now); t != nil {
		m.send(st, t, f)
		return true
	}
	if st.wanting() && (m.lines() >= m.run.linesPerLoop || m.mayDial == 0) {
		return false
	}
	m.wait(st, f)
	return true
}

// seat takes a place on a trunk that nobody waits for, or none.
func (m *mux) seat(st *station, now time.Duration) *trunk {
	if len(st.held) > 0 {
		return nil
	}
	return st.reserve(now, m.run.cfg.IdleTimeout)
}

// lines is how many connections there are or will be.
func (m *mux) lines() (n int) {
	for _, st := range m.stations {
		n += len(st.trunks) + st.dialling
	}
	return n
}

// wait puts a flight behind those that wait for a trunk, and opens one if those under way will not do.
func (m *mux) wait(st *station, f *flight) {
	wanting := st.wanting()
	f.waits = m.clock.Now()
	st.held = append(st.held, f)
	m.dialling++
	if wanting {
		m.open(st)
	}
}

// open dials a trunk. What waited for one when it was begun fails with it.
func (m *mux) open(st *station) {
	began := m.clock.Now()
	st.dialling++
	m.mayDial--
	m.readers.Go(func() {
		ctx, cancel := context.WithTimeout(m.dialing, m.run.cfg.ConnectTimeout)
		defer cancel()
		t, err := st.dial(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		now := m.clock.Now()
		st.dialling--
		switch {
		case err == nil && m.dialing.Err() != nil:
			_ = t.conn.Close()
		case err == nil:
			m.tally.dials++
			t.since = now
			st.trunks = append(st.trunks, t)
		default:
			m.refuseHeld(st, began, err)
		}
		m.serve(st, now)
	})
}

// refuseHeld charges a failed dial to the requests that have waited for it.
func (m *mux) refuseHeld(st *station, began time.Duration, cause error) {
	for len(st.held) > 0 && st.held[0].waits <= began {
		f := st.next()
		m.dialling--
		if m.dialing.Err() != nil {
			m.withdraw(f, m.clock.Now())
		} else {
			m.refused(f, cause)
		}
	}
}

// serve sends what waits for a trunk as far as there is room, and opens another if nothing else would bring some.
func (m *mux) serve(st *station, now time.Duration) {
	for len(st.held) > 0 {
		if m.run.stopped(now) {
			m.dialling--
			m.withdraw(st.next(), now)
			continue
		}
		t := st.reserve(now, m.run.cfg.IdleTimeout)
		if t == nil {
			break
		}
		m.dialling--
		m.send(st, t, st.next())
	}
	if len(st.held) > 0 && st.dialling == 0 && m.lines() < m.run.linesPerLoop {
		m.open(st)
	}
}

// send gives a request to a trunk that has a place reserved for it.
func (m *mux) send(st *station, t *trunk, f *flight) {
	f.x.Reused = t.used
	t.used = true
	t.inFlight++
	m.sending(f, m.clock.Now())
	m.readers.Go(func() { m.exchange(st, t, f) })
}

// errOverdue ends a request that has run into one of its time-outs.
var errOverdue = errors.New("overdue")

// exchange carries one request from its first byte to the end of its reply.
func (m *mux) exchange(st *station, t *trunk, f *flight) {
	ctx, cancel := context.WithCancelCause(m.dialing)
	defer cancel(nil)
	f.depart(m.clock.Now()) // just before the first byte, later than the pacer gave it to the trunk
	watch := newAlarm(m.clock, m.until(f), func() { cancel(errOverdue) })
	defer watch.stop()
	var written atomic.Int64
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) {
		if i.Err == nil {
			written.Store(int64(m.clock.Now()))
		}
	}})
	id := m.run.cfg.RunID + "-" + strconv.FormatInt(f.x.Index, 10)
	reply, err := t.conn.RoundTrip(st.post(traced, id, f.lines, f.request))
	var v verdict
	if err != nil {
		v = m.failed(ctx, f, m.clock.Now(), err)
	} else {
		v = m.take(ctx, f, reply, watch)
		_ = reply.Body.Close() // gives the place on the trunk back
	}
	if at := written.Load(); at != 0 {
		f.x.LastWrite = record.At(time.Duration(at))
	}
	m.part(st, t, f, v)
}

// take reads a reply to its end.
func (m *mux) take(ctx context.Context, f *flight, reply *http.Response, watch *alarm) verdict {
	f.kernel, f.user, f.stamped = m.clock.Now(), m.clock.Now(), false
	if err := f.resp.Open(reply.StatusCode, reply.Header); err != nil {
		return f.broken(err)
	}
	buf := m.buffers.Get().(*[readBytes]byte)
	defer m.buffers.Put(buf)
	for {
		watch.set(m.until(f))
		n, err := reply.Body.Read(buf[:])
		at := m.clock.Now()
		if n > 0 {
			_, bad := f.take(buf[:n], at, at, false)
			f.worked(m.clock.Now())
			if bad != nil {
				return f.broken(bad)
			}
			f.linger(at)
		}
		switch {
		case err == io.EOF:
			return f.peerClosed(at)
		case err != nil:
			return m.failed(ctx, f, at, err)
		}
	}
}

// failed says how a flight ends whose request could not be sent or whose reply could not be read on.
func (m *mux) failed(ctx context.Context, f *flight, at time.Duration, err error) verdict {
	switch {
	case errors.Is(context.Cause(ctx), errOverdue):
		return f.overdue(&m.run.limits, at)
	case ctx.Err() != nil:
		return m.run.severed(at)
	case !f.resp.Started() && refusal(err) != nil:
		return shutOut(at, err)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		if !f.resp.Started() {
			return f.peerClosed(at)
		}
		return verdict{at: at, err: "the server closed the connection within the reply"}
	}
	if stream, ok := errors.AsType[streamError](err); ok {
		return stream.verdict(f, at, err)
	}
	return f.snapped(at, "read reply", err)
}

// streamError is the end of one stream of a connection that goes on. The standard library's own type, which it does not
// export, says that it is one like this if the fields are the same.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (s streamError) Error() string { return s.Cause.Error() }

// verdict says how a flight ends whose stream ended so. The server has reset it, or what it sent is no reply: its kept
// connection has nothing to do with it.
func (s streamError) verdict(f *flight, at time.Duration, err error) verdict {
	if s.Cause != nil && s.Cause.Error() != "received from peer" {
		f.user = at
		return f.broken(err)
	}
	return verdict{cause: record.CauseConnectionLost, at: at, err: "read reply: " + err.Error()}
}

// part ends the exchange of f on t, and sends what is due by now.
func (m *mux) part(st *station, t *trunk, f *flight, v verdict) {
	f.close(v)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	t.inFlight--
	t.since = now
	m.wroteAt(f, f.sent)
	m.conclude(f, v, now)
	m.serve(st, now)
	m.sendOn(now)
}

// tidy does what can wait. The lock is held.
func (m *mux) tidy(now time.Duration) {
	for _, st := range m.stations {
		st.drop(now, m.run.cfg.IdleTimeout)
		m.serve(st, now)
	}
}

// hangUp closes every trunk. The lock is held.
func (m *mux) hangUp() {
	for _, st := range m.stations {
		for _, t := range st.trunks {
			_ = t.conn.Close()
		}
	}
}
