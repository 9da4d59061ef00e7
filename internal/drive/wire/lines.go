package wire

import "bytes"

// Lines frames newline-delimited JSON: every line that is not blank is an event without a name, whatever it holds. A line
// ends at LF; a CR before it is a blank. EOF dispatches a last line that has no line end. The zero value must be Reset
// before use.
type Lines struct {
	sink  Sink
	err   error
	told  int    // events
	began bool   // the first line has ended: no byte order mark may follow
	line  []byte // unfinished line
}

// Reset prepares l for the next stream. Of the Sink, only Event is called.
func (l *Lines) Reset(sink Sink) { *l = Lines{sink: sink, line: shrunk(l.line)} }

// Feed takes the next bytes of the stream. The only errors are ErrTooLong and ErrTooMany; they stay.
func (l *Lines) Feed(b []byte) error {
	for l.err == nil {
		end := bytes.IndexByte(b, '\n')
		if len(l.line)+max(end, 0) > MaxEvent || end < 0 && len(l.line)+len(b) > MaxEvent {
			l.err = ErrTooLong
			break
		}
		if end < 0 {
			l.line = append(l.line, b...)
			break
		}
		l.take(b[:end])
		b = b[end+1:]
	}
	return l.err
}

// EOF ends the stream: the last line needs no line end.
func (l *Lines) EOF() error {
	if l.err == nil {
		l.take(nil)
	}
	return l.err
}

// Pending reports whether an unfinished line is held.
func (l *Lines) Pending() bool { return len(l.line) > 0 }

// take puts the last part of a line to what was held of it, and passes it on.
func (l *Lines) take(line []byte) {
	if len(l.line) > 0 {
		l.line = append(l.line, line...)
		line, l.line = l.line, l.line[:0]
	}
	if !l.began {
		l.began = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if line = bytes.Trim(line, " \t\r"); len(line) == 0 {
		return
	}
	if l.told == MaxEvents {
		l.err = ErrTooMany
		return
	}
	l.told++
	l.sink.Event(nil, line)
}
