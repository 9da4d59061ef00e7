package probe

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// Text writes the finding for people, in lines.
func (f *Finding) Text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name, format string, of ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, printable(fmt.Sprintf(format, of...)))
	}
	line("target", "%s", f.URL)
	f.Reach.write(line)
	if f.TLS != nil {
		f.TLS.write(line)
	}
	if len(f.HTTP) > 0 {
		line("http", "%s", strings.Join(f.HTTP, ", "))
	}
	f.Server.write(line, len(f.HTTP) > 0)
	f.writeModels(line)
	for i := range f.Endpoints {
		f.Endpoints[i].write(line)
	}
	f.KeepAlive.write(line)
	f.UnknownModel.write(line)
	for _, n := range f.Notes {
		line("note", "%s", n)
	}
	f.Sent.write(line)
	w.Flush() // to memory
	return trimmed(b.String())
}

// writer adds one line of a name and a text.
type writer func(name, format string, of ...any)

func (r Reach) write(line writer) {
	if n := len(r.Addresses); r.Resolved > 0 && n > 0 {
		line("resolve", "%s has %s, found in %s", r.Host, counted(n, "address", "addresses"), r.Resolved)
	}
	for _, a := range r.Addresses {
		if a.Error != "" {
			line("connect", "%s: %s", a.Address, a.Error)
		} else {
			line("connect", "%s in %s", a.Address, a.Connect)
		}
	}
	if r.RTT.Samples > 0 {
		line("round trip", "%s at least, %s in the median of %d connections to %s", r.RTT.Min, r.RTT.Median, r.RTT.Samples, r.Used)
	}
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// String writes the span as people read it.
func (m Milliseconds) String() string { return time.Duration(m).Round(time.Microsecond).String() }

func (t TLS) write(line writer) {
	alpn := "nothing by ALPN"
	if t.ALPN != "" {
		alpn = t.ALPN + " by ALPN"
	}
	line("tls", "%s, %s, %s", t.Version, t.Cipher, alpn)
	line("certificate", "%s, from %s, for %s, until %s", orNone(t.Subject), orNone(t.Issuer), orNone(strings.Join(t.Names, " ")),
		t.Expires.Format(time.DateOnly))
	if t.Verified {
		line("", "trusted")
	} else {
		line("", "NOT trusted: %s", t.Fault)
	}
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

func (s Server) write(line writer, answered bool) {
	if !answered {
		return
	}
	kind := "of a kind that is not known"
	if s.Kind != "" {
		kind = strings.TrimSpace(s.Kind + " " + s.Version)
	}
	if s.Header != "" {
		kind += ", header Server: " + s.Header
	}
	line("server", "%s", kind)
	for _, e := range s.Evidence {
		line("", "by %s", e)
	}
}

// mostListed is how many models the text names.
const mostListed = 10

func (f *Finding) writeModels(line writer) {
	for i, m := range f.Models {
		if i == mostListed {
			line("", "and %d more", len(f.Models)-i)
			break
		}
		text := m.Name
		if m.Context > 0 {
			text += fmt.Sprintf(", context of %d tokens", m.Context)
		}
		if m.Name == f.Model {
			text += ", asked for below"
		}
		line(onlyFirst("models", i), "%s", text)
	}
}

func onlyFirst(name string, i int) string {
	if i > 0 {
		return ""
	}
	return name
}

func (e *Endpoint) write(line writer) {
	state := e.State
	if e.Path != "" {
		state += " at " + e.Path
	}
	switch {
	case e.State == Absent:
	case e.Why != "":
		state += ": " + brief(e.Why)
	}
	line(e.Name, "%s", state)
	if e.State != Answers {
		return
	}
	if e.Whole != nil {
		line("", "whole: %s", e.Whole.text())
	}
	if e.Streamed != nil {
		line("", "streamed: %s", e.Streamed.text())
	}
	if e.Continuous != nil {
		line("", "usage in every event, asked for: %s", e.Continuous.continuous())
	}
	if e.IDs != nil {
		line("", "token ids, asked for: %s", e.IDs.ids())
	}
	if e.Buffering != nil {
		line("", "buffering: %s: %s", e.Buffering.Verdict, e.Buffering.How)
	}
}

func (x *Exchange) text() string {
	if !x.read {
		return x.refusal()
	}
	said := []string{x.Outcome}
	if x.NotStreamed {
		said[0] += ", but not streamed"
	}
	if x.FinishReason != "" {
		said = append(said, "finish reason "+x.FinishReason)
	}
	said = append(said, x.Usage.text())
	if x.TokenEvents > 0 {
		said = append(said, fmt.Sprintf("first token after %s", x.FirstToken), fmt.Sprintf("%d token events, tokens counted in %d", x.TokenEvents, x.Counted))
		if x.Reasoning > 0 {
			said = append(said, fmt.Sprintf("%d of reasoning", x.Reasoning))
		}
	}
	if x.TokenIDs {
		said = append(said, "token ids")
	}
	if x.Mistyped {
		said = append(said, "under a Content-Type that is not a stream's")
	}
	if x.Encoding != "" {
		said = append(said, "packed as "+x.Encoding+", which was not asked for")
	}
	if x.Comments > 0 {
		said = append(said, fmt.Sprintf("%d comments", x.Comments))
	}
	if x.Malformed > 0 {
		said = append(said, fmt.Sprintf("%d malformed events", x.Malformed))
	}
	return strings.Join(append(said, "end after "+x.End.String()), ", ")
}

func (u *Usage) text() string {
	switch {
	case u == nil:
		return "no usage"
	case u.Told:
		return fmt.Sprintf("usage %d in, %d out, %d cached", u.Input, u.Output, u.Cached)
	}
	return fmt.Sprintf("usage %d in, %d out, cached not told", u.Input, u.Output)
}

func (x *Exchange) refusal() string {
	return fmt.Sprintf("%s, status %d: %s", x.Outcome, x.Status, brief(x.Evidence))
}

func (x *Exchange) ids() string {
	switch {
	case !x.read:
		return x.refusal()
	case !x.TokenIDs:
		return "do not come"
	}
	return fmt.Sprintf("come, tokens counted in %d of %d token events", x.Counted, x.TokenEvents)
}

func (x *Exchange) continuous() string {
	switch {
	case !x.read:
		return x.refusal()
	case x.exact():
		return fmt.Sprintf("comes, in all %d token events", x.Counted)
	}
	return fmt.Sprintf("does not come: tokens counted in %d of %d token events", x.Counted, x.TokenEvents)
}

func (k KeepAlive) write(line writer) {
	if k.AfterWhole+k.AfterStreamed == "" {
		return
	}
	var said []string
	if k.AfterWhole != "" {
		said = append(said, k.AfterWhole+" behind a whole reply")
	}
	if k.AfterStreamed != "" {
		said = append(said, k.AfterStreamed+" behind a streamed one")
	}
	if k.Header != "" {
		said = append(said, k.Header)
	}
	line("connection", "%s", strings.Join(said, ", "))
	if k.Unsaid() {
		line("", "a request on such a connection may be lost: target.reuse: false gives each its own")
	}
}

func (u UnknownModel) write(line writer) {
	switch {
	case u.Endpoint == "":
	case u.Shape != "":
		line("unknown model", "%s, status %d, JSON with %s: %s", u.Outcome, u.Status, u.Shape, brief(u.Evidence))
	case u.Evidence != "":
		line("unknown model", "%s, status %d: %s", u.Outcome, u.Status, brief(u.Evidence))
	default:
		line("unknown model", "%s: the server answers whatever the model is called", u.Outcome)
	}
}

func (s Sent) write(line writer) {
	line("sent", "%d GET and %d POST on %d connections; %d POST cost tokens, %d in and %d out by the server's count", s.Gets, s.Posts, s.Connections,
		s.Costly, s.Input, s.Output)
}

// printable keeps what a server says from steering a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// trimmed has no blanks at the ends of lines.
func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
