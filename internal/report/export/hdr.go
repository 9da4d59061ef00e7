package export

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strings"
	"time"

	"tare/internal/judge/measure"
	"tare/internal/judge/stats"
)

// hdrLog writes a histogram of each metric and measured stage as a log of HdrHistogram (format 1.3, encoding V2), nanoseconds and tokens,
// to two significant digits: our own buckets are finer than those and coarser than three.
func hdrLog(r *Run, to io.Writer) error {
	tallies, err := r.tallies()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	start := r.Manifest.Clock.StartWall
	fmt.Fprintf(&b, "#[Histogram log format version 1.3]\n#[StartTime: %.3f (seconds since epoch), %s]\n", float64(start.UnixMilli())/1e3, start.UTC().Format(time.RFC3339Nano))
	b.WriteString("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n")
	for _, i := range r.measured() {
		p := &r.Summary.Stages[i]
		for k, m := range measure.Table() {
			d := tallies[i][k].Values()
			if d.N() == 0 {
				continue
			}
			h := hdrOf(d)
			if h.below > 0 {
				fmt.Fprintf(&b, "#[%s/%s: %d values below 0 are counted as 0]\n", tag(p.Name), m.Name, h.below)
			}
			code, err := h.encode()
			if err != nil {
				return err
			}
			most, _ := d.Max()
			fmt.Fprintf(&b, "Tag=%s/%s,%.3f,%.3f,%.3f,%s\n", tag(p.Name), m.Name, p.StartMs/1e3, p.WindowMs/1e3, float64(most)/m.Unit.Scale(), code)
		}
	}
	_, err = to.Write(b.Bytes())
	return err
}

// tag is a name without what parts the fields of a line.
func tag(s string) string { return strings.NewReplacer(",", "_", " ", "_").Replace(line(s)) }

// tallies gathers every metric of every stage anew.
func (r *Run) tallies() ([][]measure.Tally, error) {
	table := measure.Table()
	all := make([][]measure.Tally, len(r.Manifest.Stages))
	for i := range all {
		all[i] = make([]measure.Tally, len(table))
	}
	err := r.eachReply(func(reply *measure.Reply) error {
		if reply.Stage < 0 || reply.Stage >= len(all) {
			return fmt.Errorf("request %d: stage must be below %d, got %d", reply.Index, len(all), reply.Stage)
		}
		for k := range table {
			if m := &table[k]; m.Over.Holds(reply) {
				m.Of(reply, &all[reply.Stage][k])
			}
		}
		return nil
	})
	return all, err
}

// The layout of an HdrHistogram that tells values from 1 on apart to two significant digits: 256 sub-buckets, half of which are new in each
// bucket after the first.
const (
	hdrDigits        = 2
	hdrHalfMagnitude = 7
	hdrHalf          = 1 << hdrHalfMagnitude
)

type hdrHistogram struct {
	counts []int64
	most   int64
	below  int64 // values below 0
}

func hdrOf(d *stats.Distribution) *hdrHistogram {
	h := &hdrHistogram{most: 2 * hdrHalf}
	d.Each(func(value float64, n int64) {
		v := int64(math.Round(value))
		if v < 0 {
			h.below += n
			v = 0
		}
		h.add(v, n)
	})
	return h
}

func (h *hdrHistogram) add(v, n int64) {
	bucket := bits.Len64(uint64(v)|(2*hdrHalf-1)) - (hdrHalfMagnitude + 1)
	at := (bucket+1)<<hdrHalfMagnitude + int(v>>bucket) - hdrHalf
	for len(h.counts) <= at {
		h.counts = append(h.counts, 0)
	}
	h.counts[at] += n
	h.most = max(h.most, v)
}

// The cookies of encoding V2, whose counts are variable-length words.
const (
	hdrCookie           = 0x1c849303 | 0x10
	hdrCompressedCookie = 0x1c849304 | 0x10
)

// encode gives the histogram as logs hold it: compressed, in base 64.
func (h *hdrHistogram) encode() (string, error) {
	payload := h.payload()
	var plain bytes.Buffer
	for _, v := range []any{
		uint32(hdrCookie), uint32(len(payload)), uint32(0), uint32(hdrDigits), int64(1), h.most, math.Float64bits(1),
	} {
		binary.Write(&plain, binary.BigEndian, v) // into memory
	}
	plain.Write(payload)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	if _, err := z.Write(plain.Bytes()); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	head := binary.BigEndian.AppendUint32(nil, hdrCompressedCookie)
	head = binary.BigEndian.AppendUint32(head, uint32(packed.Len()))
	return base64.StdEncoding.EncodeToString(append(head, packed.Bytes()...)), nil
}

// payload writes counts as zigzag words, and n zeros in a row as −n.
func (h *hdrHistogram) payload() (b []byte) {
	zeros := int64(0)
	for _, n := range h.counts {
		if n == 0 {
			zeros++
			continue
		}
		if zeros > 0 {
			b = zigzag(b, -zeros)
			zeros = 0
		}
		b = zigzag(b, n)
	}
	return b
}

// zigzag appends a LEB128 word of at most nine bytes, the ninth of which is whole.
func zigzag(b []byte, v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63)
	for range 8 {
		if u < 0x80 {
			return append(b, byte(u))
		}
		b = append(b, byte(u)|0x80)
		u >>= 7
	}
	return append(b, byte(u))
}
