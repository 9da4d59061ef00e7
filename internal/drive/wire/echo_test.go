package wire

import "testing"

func TestAnEchoTellsWhoseReplyItIs(t *testing.T) {
	for _, c := range []struct {
		id        string
		ours, own bool
	}{
		{"tare-ab-7", true, true}, {"tare-ab-8", true, false}, {"tare-ab-07", true, true}, {"tare-ac-7", false, false},
		{"tare-ab-", false, false}, {"tare-ab-7x", false, false}, {"req_123", false, false}, {"", false, false},
	} {
		if ours, own := Echo([]byte(c.id), "tare-ab-", 7); ours != c.ours || own != c.own {
			t.Errorf("%q: got ours %v, own %v, want %v, %v", c.id, ours, own, c.ours, c.own)
		}
	}
}

// heads keeps the ids of replies.
type heads struct{ ids []string }

func (h *heads) Head(head *Head) { h.ids = append(h.ids, string(head.RequestID)) }
func (*heads) Event(_, _ []byte) {}
func (*heads) Comment()          {}
func (*heads) Body([]byte)       {}

func TestRequestIDsAreThoseOfTheirReplies(t *testing.T) {
	var h heads
	var r Response
	long := make([]byte, longestID+1)
	for i := range long {
		long[i] = 'a'
	}
	for _, text := range []string{"X-Request-ID: tare-1\r\n", "", "x-request-id:  b \r\n", "x-request-id: " + string(long) + "\r\n"} {
		r.Reset(&h)
		for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + text + "\r\n") { // byte by byte: fields come in pieces
			if _, _, err := r.Feed([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"tare-1", "", "b", ""}
	for i, id := range want {
		if len(h.ids) != len(want) || h.ids[i] != id {
			t.Fatalf("got ids %q, want %q", h.ids, want)
		}
	}
}
