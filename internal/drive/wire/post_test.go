package wire

import "testing"

func TestPostWritesWholeRequests(t *testing.T) {
	p := NewPost("/v1/completions?api-version=1", "host:8000", "run-", []string{"X-Team: blue"})
	got := string(p.Append([]byte("before "), 7, []byte("X-Session: 3\r\n"), []byte(`{"n":1}`)))
	want := "before POST /v1/completions?api-version=1 HTTP/1.1\r\nHost: host:8000\r\nContent-Type: application/json\r\nX-Team: blue\r\n" +
		"X-Session: 3\r\nX-Request-Id: run-7\r\nContent-Length: 7\r\n\r\n{\"n\":1}"
	if got != want {
		t.Errorf("request: got %q, want %q", got, want)
	}
}
