package input_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"tare/internal/plan/input"
)

func open(t testing.TB, text []byte) *input.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := input.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func list(t testing.TB, spans iter.Seq2[input.Span, error]) (all []string) {
	t.Helper()
	for span, err := range spans {
		if err != nil {
			return append(all, err.Error())
		}
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%d@%d:%s|%s", span.Line, span.Offset, span.Text, span.Fault), "|"))
	}
	return all
}

func TestRowsKnowTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		name, text string
		rows       func(*input.File) iter.Seq2[input.Span, error]
		want       []string
	}{
		{"lines", "\ufeffa\r\n\n  \nb c\nd", (*input.File).Lines, []string{"1@3:a", "4@10:b c", "5@14:d"}},
		{"no lines", "", (*input.File).Lines, nil},
		{"records", "a,\"b\nc\"\"\"\r\n\nd,e\"\"f,\"g\"\n", commas, []string{"1@0:a,\"b\nc\"\"\"", "4@12:d,e\"\"f,\"g\""}},
		{"open quote", "a,\"b\nc\nd", commas, []string{"1@0:a,\"b|has a quote that is never closed", "2@5:c", "3@7:d"}},
		{"open quote at the end", "a\n\"b", commas, []string{"1@0:a", "2@2:\"b|has a quote that is never closed"}},
		{"elements", "\ufeff [\n{\"a\": \"]\\\"}\"},\n [1,[2]] ,3]", (*input.File).Elements, []string{"2@6:{\"a\": \"]\\\"}\"}", "3@22:[1,[2]]", "3@31:3"}},
		{"no elements", "[ ]", (*input.File).Elements, nil},
		{"bad element", "[{[}, {}]", (*input.File).Elements, []string{"1@1:{[}", "1@6:{}"}},
		{"cut elements", "[{}, {", (*input.File).Elements, []string{"1@1:{}", "1@5:{|ends within the array: the file is cut off"}},
	} {
		f := open(t, []byte(c.text))
		if got := list(t, c.rows(f)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := list(t, open(t, []byte("{}")).Elements()); len(got) != 1 || !strings.HasSuffix(got[0], "rows:1: must be a JSON array") {
		t.Errorf("an object for an array: got %q, want a fault", got)
	}
}

func commas(f *input.File) iter.Seq2[input.Span, error] { return f.Records(',') }

func TestLongRowsAreRefusedAndPassed(t *testing.T) {
	long := strings.Repeat("x", input.MaxRow+1)
	for name, c := range map[string]struct {
		text string
		rows func(*input.File) iter.Seq2[input.Span, error]
	}{
		"lines":    {"a\n" + long + "\nb\n", (*input.File).Lines},
		"records":  {"a\n" + long + "\nb\n", commas},
		"elements": {`["a",` + "\n\"" + long + "\",\n" + `"b"]`, (*input.File).Elements},
	} {
		got := list(t, c.rows(open(t, []byte(c.text))))
		if len(got) != 3 || !strings.HasSuffix(got[1], "must not be longer than 64 MiB") || len(got[1]) > 100 || !strings.HasPrefix(got[2], "3@") {
			t.Errorf("%s: got %d rows, want the long one refused and the third read at line 3", name, len(got))
		}
	}
}

func TestPackedFilesAreUnpacked(t *testing.T) {
	plain := []byte("one\ntwo\n")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write(plain)
	w.Close()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, packed := range map[string][]byte{"plain": plain, "gzip": zipped.Bytes(), "zstd": encoder.EncodeAll(plain, nil)} {
		f := open(t, packed)
		if got, want := list(t, f.Lines()), []string{"1@0:one", "2@4:two"}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		sum := sha256.Sum256(packed)
		if want := hex.EncodeToString(sum[:]); f.SHA256 != want || f.Bytes != int64(len(packed)) {
			t.Errorf("%s: got %s of %d bytes, want %s of %d", name, f.SHA256, f.Bytes, want, len(packed))
		}
	}
}

func TestNothingUnpackedStaysBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write([]byte("one\n"))
	w.Close()
	path := filepath.Join(t.TempDir(), "rows.gz")
	if err := os.WriteFile(path, zipped.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := input.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("close: got %v, want no error", err)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("temporary files left: got %v, want none", left)
	}
}

func TestTimesAreReadExactly(t *testing.T) {
	for _, c := range []struct {
		text string
		unit time.Duration
		want time.Duration
		ok   bool
	}{
		{"61.114", time.Second, 61_114_000_000, true},
		{"19440110.0", time.Second, 19440110 * time.Second, true},
		{"27482", time.Millisecond, 27482 * time.Millisecond, true},
		{"0.1", time.Second, 100 * time.Millisecond, true},
		{"1e3", time.Microsecond, time.Millisecond, true},
		{"1.5E-9", time.Second, 2, true},
		{"0.0000000004999", time.Second, 0, true},
		{"-2.5", time.Second, -2500 * time.Millisecond, true},
		{"9223372036.854775807", time.Second, 1<<63 - 1, true},
		{"9223372036.854775808", time.Second, 0, false},
		{"9223372036.8547758075", time.Second, 0, false},
		{"1e300", time.Second, 0, false},
		{"0e300", time.Second, 0, true},
		{"1e-300", time.Second, 0, true},
		{"", time.Second, 0, false}, {".5", time.Second, 0, false}, {"5.", time.Second, 0, false}, {"+1", time.Second, 0, false},
		{"NaN", time.Second, 0, false}, {"1e", time.Second, 0, false}, {"0x10", time.Second, 0, false}, {"1_000", time.Second, 0, false},
	} {
		got, ok := input.Decimal(c.text, c.unit)
		if got != c.want && ok || ok != c.ok {
			t.Errorf("Decimal(%q, %v): got %v %v, want %v %v", c.text, c.unit, got, ok, c.want, c.ok)
		}
	}
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"1970-01-01 00:00:01.9799600", 1_979_960_000, true},
		{"1970-01-01T00:00:01Z", 1_000_000_000, true},
		{"1970-01-01 02:00:00.000000001+02:00", 1, true},
		{"1969-12-31 22:30:00-0130", 0, true},
		{"1970-01-01 00:00:00.1234567891", 0, false},
		{"1970-01-01 00:00:00.", 0, false},
		{"1970-02-30 00:00:00", 0, false},
		{"1970-01-01", 0, false},
		{"1970-01-01 00:00:00 Europe/Berlin", 0, false},
		{"9999-01-01 00:00:00", 0, false},
		{"2151-01-01 00:00:00", 0, false},
		{"1899-12-31 23:59:59", 0, false},
	} {
		if got, ok := input.Clock(c.text); got != c.want && c.ok || ok != c.ok {
			t.Errorf("Clock(%q): got %d %v, want %d %v", c.text, got, ok, c.want, c.ok)
		}
	}
	for text, want := range map[string]int{"12": 12, " 7.0 ": 7, "0": 0, "-1": -1, "1.5": -1, "": -1, "2147483648": -1, "1.": -1} {
		if got, ok := input.Whole(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("Whole(%q): got %d %v, want %d", text, got, ok, want)
		}
	}
}

// FuzzDecimal holds the reading of decimals to exact fractions.
func FuzzDecimal(f *testing.F) {
	for _, text := range []string{"61.114", "-0.5", "1e3", "12.34e-5", "9223372036.854775807", "00012.50"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := input.Decimal(text, time.Second)
		if !ok || len(text) > 40 {
			return
		}
		want, valid := new(big.Rat).SetString(strings.TrimSpace(text))
		if !valid {
			t.Fatalf("Decimal(%q): got %v, want it refused", text, got)
		}
		want.Mul(want, big.NewRat(int64(time.Second), 1))
		difference := want.Sub(want, new(big.Rat).SetInt64(int64(got)))
		if difference.Abs(difference).Cmp(big.NewRat(1, 2)) > 0 {
			t.Errorf("Decimal(%q): got %d ns, which is %v ns off", text, got, difference.FloatString(3))
		}
	})
}

// FuzzRows holds the parting of any file into rows to what it promises: every row is where it says, in order.
func FuzzRows(f *testing.F) {
	f.Add([]byte("a,\"b\nc\",d\r\n\ne\"\",f"))
	f.Add([]byte("[{\"a\": [1, \"]\"]}, {]}, 3"))
	f.Add([]byte("\xef\xbb\xbf\n\n\"\"\"\n\""))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "rows")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := input.Open(path)
		if fault := (input.Fault{}); errors.As(err, &fault) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for name, rows := range map[string]iter.Seq2[input.Span, error]{"lines": file.Lines(), "records": file.Records(','), "elements": file.Elements()} {
			last := int64(-1)
			for span, err := range rows {
				if err != nil {
					break
				}
				if span.Offset < last || span.Offset+int64(len(span.Text)) > file.Size() {
					t.Fatalf("%s: row at %d of %d bytes after one at %d, in a file of %d", name, span.Offset, len(span.Text), last, file.Size())
				}
				again := make([]byte, len(span.Text))
				if file.ReadAt(again, span.Offset); !bytes.Equal(again, span.Text) {
					t.Fatalf("%s: at %d: got %q, want %q", name, span.Offset, again, span.Text)
				}
				last = span.Offset
			}
		}
	})
}

func TestFaultsAreCountedByKindAndShownInPart(t *testing.T) {
	var tally input.Tally
	for i := range 1000 {
		tally.Add(input.Fault{File: "a", Line: i + 1, Key: "x", Reason: "is bad", Value: strings.Repeat("é", 100)})
		if i%100 == 0 {
			tally.Add(input.Fault{File: "a", Line: i + 1, Reason: "is worse"})
		}
	}
	want := []input.Count{{Key: "x", Reason: "is bad", Rows: 1000}, {Reason: "is worse", Rows: 10}}
	if got := tally.Counts(); !reflect.DeepEqual(got, want) {
		t.Errorf("counts: got %v, want %v", got, want)
	}
	lines := strings.Split(tally.Err("a").Error(), "\n")
	if len(lines) != 7 || lines[6] != "a: 1004 more rows like these" || !strings.HasPrefix(lines[0], `a:1: x: is bad, got "é`) || len(lines[0]) > 100 {
		t.Errorf("got %q, want three of each kind, values cut short, and a count of the rest", lines)
	}
	if err := new(input.Tally).Err("a"); err != nil {
		t.Errorf("no faults: got %v, want nil", err)
	}
}
