package export

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"io"
	"testing"

	"tare/internal/judge/stats"
)

// The oracle is hdrhistogram for Python 0.10.8: the same values recorded in a histogram of two digits up to the greatest of them.
func TestHistogramsAreThoseOfHdrHistogram(t *testing.T) {
	const want = "1c8493130000000c000000000000000200000000000000010000000002fcd2c03ff000000000000004028b03069901d804cf2202"
	var d stats.Distribution
	for _, v := range []struct{ value, n int64 }{{0, 2}, {1, 1}, {200, 3}, {300, 300}, {50_123_456, 1}} {
		d.AddN(v.value, v.n)
	}
	code, err := hdrOf(&d).encode()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := base64.StdEncoding.DecodeString(code)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zlib.NewReader(bytes.NewReader(packed[8:]))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if got := hex.EncodeToString(plain); err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	if got := hex.EncodeToString(packed[:4]); got != "1c849314" {
		t.Errorf("cookie: got %s", got)
	}
}
