package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// writeLog writes blocks of the given numbers of exchanges, indexes counting up from 0, and returns the directory.
func writeLog(t *testing.T, blocks ...int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	log, err := CreateLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	var index int64
	for _, n := range blocks {
		var payload []byte
		for range n {
			payload = AppendExchange(payload, typical(index, 4))
			index++
		}
		if err := log.WriteBlock(payload, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func contents(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, ExchangesFile))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// indexes reads a log from memory and returns the indexes found.
func indexes(t *testing.T, b []byte) (found []int64, tail Tail) {
	t.Helper()
	tail, err := readLog(bytes.NewReader(b), int64(len(b)), func(x *Exchange) error {
		found = append(found, x.Index)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, tail
}

func TestLogGivesBackWhatWasWritten(t *testing.T) {
	dir := writeLog(t, 3, 1, 5)
	var got []int64
	tail, err := ReadLog(dir, func(x *Exchange) error {
		got = append(got, x.Index)
		sameExchange(t, x, typical(x.Index, 4))
		return nil
	})
	if want := (Tail{Blocks: 3, Exchanges: 9}); err != nil || tail != want || len(got) != 9 {
		t.Errorf("got %d exchanges, tail %+v, error %v, want 9, %+v and none", len(got), tail, err, want)
	}
}

func TestLoopsWriteAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	log, err := CreateLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	const loops, blocks = 8, 50
	var wg sync.WaitGroup
	for loop := range loops {
		wg.Go(func() {
			var payload []byte
			for i := range blocks {
				payload = AppendExchange(payload[:0], typical(int64(loop*blocks+i), 1+i%7))
				if err := log.WriteBlock(payload, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[int64]int{}
	tail, err := ReadLog(dir, func(x *Exchange) error { seen[x.Index]++; return nil })
	if err != nil || len(seen) != loops*blocks || tail.LostBytes != 0 {
		t.Errorf("got %d distinct exchanges, tail %+v, error %v, want %d and nothing lost", len(seen), tail, err, loops*blocks)
	}
}

func TestLogCutAnywhereReadsToItsLastWholeBlock(t *testing.T) {
	b := contents(t, writeLog(t, 2, 3, 1))
	ends := map[int]int64{logHeader: 0} // file length → exchanges, where the file is whole
	at, n := logHeader, int64(0)
	for _, block := range []int64{2, 3, 1} {
		n += block
		at += blockHeader + int(uint32(b[at+4])|uint32(b[at+5])<<8)
		ends[at] = n
	}
	var whole int64
	for cut := range len(b) + 1 {
		found, tail := indexes(t, b[:cut])
		n, ok := ends[cut]
		if ok {
			whole = n
		}
		if int64(len(found)) != whole || tail.Torn == ok {
			t.Fatalf("cut at %d: got %d exchanges, torn %v, want %d and %v", cut, len(found), tail.Torn, whole, !ok)
		}
	}
}

func TestDamagedBlockIsSkippedAndCounted(t *testing.T) {
	whole := contents(t, writeLog(t, 2, 3, 1))
	second := logHeader + blockHeader + int(uint32(whole[logHeader+4])|uint32(whole[logHeader+5])<<8)
	size := blockHeader + int(uint32(whole[second+4])|uint32(whole[second+5])<<8)
	for at := second; at < second+size; at++ {
		b := bytes.Clone(whole)
		b[at] ^= 0x40
		found, tail := indexes(t, b)
		if len(found) != 3 || found[2] != 5 || tail.LostBytes != int64(size) || tail.Torn {
			t.Fatalf("byte %d of the second block damaged: got indexes %v, tail %+v, want [0 1 5] and %d bytes lost", at-second, found, tail, size)
		}
		if inPayload := at >= second+blockHeader; inPayload && tail.LostExchanges != 3 {
			t.Fatalf("payload damaged: got %d exchanges counted as lost, want 3", tail.LostExchanges)
		}
	}
}

func TestUnwrittenHoleIsSkipped(t *testing.T) {
	b := contents(t, writeLog(t, 2, 3))
	second := logHeader + blockHeader + int(uint32(b[logHeader+4])|uint32(b[logHeader+5])<<8)
	holed := append(append(bytes.Clone(b[:second]), make([]byte, 200_000)...), b[second:]...)
	found, tail := indexes(t, holed)
	if len(found) != 5 || tail.LostBytes != 200_000 || tail.Torn {
		t.Errorf("got indexes %v, tail %+v, want all 5 and 200000 bytes lost", found, tail)
	}
}

func TestReadLogStopsAtTheFirstErrorOfYield(t *testing.T) {
	stop := errors.New("enough")
	n := 0
	_, err := ReadLog(writeLog(t, 3), func(*Exchange) error { n++; return stop })
	if err != stop || n != 1 {
		t.Errorf("got error %v after %d exchanges, want %v after 1", err, n, stop)
	}
}

func TestReadLogRefusesWhatItDoesNotKnow(t *testing.T) {
	b := contents(t, writeLog(t, 1))
	newer := bytes.Clone(b)
	newer[8] = 9
	for want, b := range map[string][]byte{"version 9": newer, "not an exchange log": []byte(strings.Repeat("x", 99))} {
		_, err := readLog(bytes.NewReader(b), int64(len(b)), func(*Exchange) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

func TestCreateLogRefusesToOverwrite(t *testing.T) {
	if _, err := CreateLog(writeLog(t, 1)); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want %v", err, os.ErrExist)
	}
}

func FuzzReadLog(f *testing.F) {
	block := AppendExchange(nil, typical(7, 2))
	whole := append(fileHeader(), make([]byte, blockHeader)...)
	putBlockHeader(whole[logHeader:], block, 1)
	whole = append(whole, block...)
	f.Add(whole)
	f.Add(append(bytes.Clone(whole), whole[logHeader:]...))
	f.Add(whole[:len(whole)-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		var n int64
		tail, err := readLog(bytes.NewReader(b), int64(len(b)), func(*Exchange) error { n++; return nil })
		if err == nil && (tail.Exchanges != n || tail.LostBytes < 0 || tail.LostBytes > int64(len(b))) {
			t.Errorf("%d bytes: got tail %+v for %d exchanges", len(b), tail, n)
		}
	})
}
