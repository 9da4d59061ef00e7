package record

// Cause is the class of an exchange's end, finer than its Outcome: every cause belongs to exactly one. The zero value is that
// of an exchange that completed, or whose record is older than causes.
type Cause uint8

const (
	CauseNone Cause = iota

	CauseEmpty // well ended, without any token

	CauseEOFClean // the body ended well, before its end marker
	CauseEOFBody  // the connection was closed within the body: a chunk is missing, or bytes that were announced
	CauseEncoded  // the body has a Content-Encoding that was not asked for

	CauseStreamError // an error object in a reply with status 200
	CauseErrorEvent  // an event named error
	CauseNotStreamed // a document that is no answer, such as a page of HTML, where a stream was asked for
	CauseMalformed   // the framing of the body broke, or a document is not readable
	CauseNoBody      // status 200 without a body
	CauseTooLarge    // a line, an event or a document above the limit

	CauseRedirect    // a status of 3xx; none is followed
	CauseRateLimited // status 429 or 503
	CauseHTTPStatus  // another status than 200
	CauseNotHTTP     // what came is no HTTP reply

	CauseTimeoutHeaders       // no end of the header block in time
	CauseTimeoutFirstToken    // no token in time
	CauseTimeoutBetweenTokens // no further token in time
	CauseTimeoutTotal         // no end of the reply in time

	CauseRefused        // nobody listens at the address
	CauseUnreachable    // no way to the address
	CauseDNS            // the name has no address
	CauseTLS            // the TLS handshake failed
	CauseConnectTimeout // no connection in time
	CauseFileLimit      // this client may not open another: open files, local ports, memory
	CauseClosedAtOnce   // the server closed the new connection before the request was written
	CauseUnconnected    // another fault of connecting

	CauseStale          // a kept connection was closed or reset without a byte of a reply: lost in the keep-alive race
	CauseUnanswered     // a new connection was closed without a byte of a reply
	CauseConnectionLost // the connection was reset or broke

	CauseInterrupted // cut by the user
	CauseDrainLimit  // still under way at the drain limit

	CauseNotSent      // the run ended before
	CauseSessionEnded // an earlier turn of its session failed
)

// causes names each cause and the outcome it belongs to.
var causes = [...]struct {
	name string
	of   Outcome
}{
	CauseNone:                 {"", Completed},
	CauseEmpty:                {"empty", Empty},
	CauseEOFClean:             {"eof_clean", Truncated},
	CauseEOFBody:              {"eof_body", Truncated},
	CauseEncoded:              {"encoded", Truncated},
	CauseStreamError:          {"stream_error", StreamError},
	CauseErrorEvent:           {"error_event", StreamError},
	CauseNotStreamed:          {"not_streamed", StreamError},
	CauseMalformed:            {"malformed", StreamError},
	CauseNoBody:               {"no_body", StreamError},
	CauseTooLarge:             {"too_large", StreamError},
	CauseRedirect:             {"redirect", HTTPError},
	CauseRateLimited:          {"rate_limited", HTTPError},
	CauseHTTPStatus:           {"http_status", HTTPError},
	CauseNotHTTP:              {"not_http", HTTPError},
	CauseTimeoutHeaders:       {"timeout_headers", TimedOut},
	CauseTimeoutFirstToken:    {"timeout_first_token", TimedOut},
	CauseTimeoutBetweenTokens: {"timeout_between_tokens", TimedOut},
	CauseTimeoutTotal:         {"timeout_total", TimedOut},
	CauseRefused:              {"refused", ConnectFailed},
	CauseUnreachable:          {"unreachable", ConnectFailed},
	CauseDNS:                  {"dns", ConnectFailed},
	CauseTLS:                  {"tls", ConnectFailed},
	CauseConnectTimeout:       {"connect_timeout", ConnectFailed},
	CauseFileLimit:            {"file_limit", ConnectFailed},
	CauseClosedAtOnce:         {"closed_at_once", ConnectFailed},
	CauseUnconnected:          {"connect_failed", ConnectFailed},
	CauseStale:                {"stale_connection", Reset},
	CauseUnanswered:           {"closed_unanswered", Reset},
	CauseConnectionLost:       {"reset", Reset},
	CauseInterrupted:          {"interrupted", Cancelled},
	CauseDrainLimit:           {"drain_limit", Cancelled},
	CauseNotSent:              {"not_sent", NotSent},
	CauseSessionEnded:         {"session_ended", NotSent},
}

// Causes returns every cause but CauseNone, those of one outcome together.
func Causes() []Cause {
	all := make([]Cause, 0, len(causes)-1)
	for c := CauseNone + 1; int(c) < len(causes); c++ {
		all = append(all, c)
	}
	return all
}

// Outcome is the one that c belongs to; 0 for a cause that this version does not know.
func (c Cause) Outcome() Outcome {
	if int(c) < len(causes) {
		return causes[c].of
	}
	return 0
}

// String gives the cause's name in files: rate_limited, timeout_headers, …; empty for CauseNone.
func (c Cause) String() string {
	if int(c) < len(causes) {
		return causes[c].name
	}
	return "unknown"
}
