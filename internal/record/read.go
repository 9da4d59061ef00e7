package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// Tail says how much of an exchange log could be read.
type Tail struct {
	Blocks        int64 // read whole
	Exchanges     int64 // read
	LostBlocks    int64 // blocks whose header is sound and whose content is not
	LostExchanges int64 // what those headers counted; parts without a sound header are not in it
	LostBytes     int64 // all bytes that could not be read
	Torn          bool  // the file does not end where a block ends
}

// ReadLog gives yield every exchange of the log in dir, in the order in which they were written, which is not that of their
// indexes. The exchange is used again for the next one: yield must not keep it, nor its Events. A damaged or torn part is
// skipped and counted. An error of yield ends the reading and is returned as it is.
func ReadLog(dir string, yield func(*Exchange) error) (Tail, error) {
	f, err := os.Open(filepath.Join(dir, ExchangesFile))
	if err != nil {
		return Tail{}, fmt.Errorf("read exchange log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Tail{}, fmt.Errorf("read exchange log: %w", err)
	}
	return readLog(f, info.Size(), yield)
}

func readLog(f io.ReaderAt, size int64, yield func(*Exchange) error) (Tail, error) {
	r := logReader{file: f, size: size, yield: yield}
	if size < logHeader {
		return Tail{LostBytes: size, Torn: true}, nil
	}
	if err := r.checkHeader(); err != nil {
		return Tail{}, err
	}
	r.at = logHeader
	for r.at < r.size {
		if err := r.next(); err != nil {
			return r.tail, err
		}
	}
	return r.tail, nil
}

type logReader struct {
	file    io.ReaderAt
	size    int64
	at      int64 // where the next block should begin
	yield   func(*Exchange) error
	tail    Tail
	payload []byte
	x       Exchange
}

func (r *logReader) checkHeader() error {
	var head [logHeader]byte
	if err := r.read(head[:], 0); err != nil {
		return err
	}
	if string(head[:8]) != logMagic {
		return errors.New("read exchange log: not an exchange log of tare")
	}
	if v := binary.LittleEndian.Uint16(head[8:]); v != logVersion {
		return fmt.Errorf("read exchange log: version %d is not known, only %d", v, logVersion)
	}
	return nil
}

// next reads the block at r.at and moves past it, or past the damage to where the next block begins.
func (r *logReader) next() error {
	h, ok, err := r.header(r.at)
	if err != nil {
		return err
	}
	if !ok {
		return r.resync()
	}
	begin := r.at + blockHeader
	if h.length > r.size-begin { // cut while being written
		r.tail.LostBlocks++
		r.tail.LostExchanges += h.exchanges
		r.lose(r.size)
		r.tail.Torn = true
		return nil
	}
	if int64(cap(r.payload)) < h.length {
		r.payload = make([]byte, h.length)
	}
	r.payload = r.payload[:h.length]
	if err := r.read(r.payload, begin); err != nil {
		return err
	}
	if crc32.Checksum(r.payload, castagnoli) != h.sum {
		r.tail.LostBlocks++
		r.tail.LostExchanges += h.exchanges
		r.lose(begin + h.length)
		return nil
	}
	r.at = begin + h.length
	return r.block(h)
}

type header struct {
	length    int64 // bytes of payload
	exchanges int64
	sum       uint32
}

// header reads a block header; ok is false where none stands, or a damaged one.
func (r *logReader) header(at int64) (h header, ok bool, err error) {
	var b [blockHeader]byte
	if at+blockHeader > r.size {
		return header{}, false, nil
	}
	if err := r.read(b[:], at); err != nil {
		return header{}, false, err
	}
	if string(b[:4]) != blockMagic || crc32.Checksum(b[:16], castagnoli) != binary.LittleEndian.Uint32(b[16:]) {
		return header{}, false, nil
	}
	h = header{
		length:    int64(binary.LittleEndian.Uint32(b[4:])),
		exchanges: int64(binary.LittleEndian.Uint32(b[8:])),
		sum:       binary.LittleEndian.Uint32(b[12:]),
	}
	return h, h.length <= MaxBlock, nil
}

// block yields the exchanges of a sound payload.
func (r *logReader) block(h header) error {
	r.tail.Blocks++
	b, n := r.payload, int64(0)
	for len(b) > 0 {
		rest, err := DecodeExchange(b, &r.x)
		if err != nil {
			break
		}
		b = rest
		n++
		r.tail.Exchanges++
		if err := r.yield(&r.x); err != nil {
			return err
		}
	}
	r.tail.LostBytes += int64(len(b))
	r.tail.LostExchanges += max(h.exchanges-n, 0)
	return nil
}

// resync looks for the next sound block header after r.at. Without one, the rest of the file is a torn end.
func (r *logReader) resync() error {
	var window [64 << 10]byte
	for at := r.at + 1; at+blockHeader <= r.size; {
		b := window[:min(int64(len(window)), r.size-at)]
		if err := r.read(b, at); err != nil {
			return err
		}
		i := bytes.Index(b, []byte(blockMagic))
		if i < 0 {
			at += int64(len(b) - len(blockMagic) + 1)
			continue
		}
		at += int64(i)
		_, ok, err := r.header(at)
		if err != nil {
			return err
		}
		if ok {
			r.lose(at)
			return nil
		}
		at++
	}
	r.lose(r.size)
	r.tail.Torn = true
	return nil
}

// lose gives up everything from r.at to end.
func (r *logReader) lose(end int64) {
	r.tail.LostBytes += end - r.at
	r.at = end
}

func (r *logReader) read(b []byte, at int64) error {
	if n, err := r.file.ReadAt(b, at); n < len(b) {
		return fmt.Errorf("read exchange log at byte %d: %w", at, err)
	}
	return nil
}
