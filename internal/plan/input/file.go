package input

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

const (
	// MaxRow is the longest row that is read, in bytes. A longer one is refused without being held in memory.
	MaxRow = 64 << 20

	maxUnpacked = 64 << 30 // bytes that a packed file may unpack to
	maxWindow   = 128 << 20
)

// File is a file of rows, open for reading at any place. One packed with gzip or zstd is unpacked into a temporary file,
// which Close removes.
type File struct {
	Path   string
	SHA256 string // of the file as it lies on the disk, in hexadecimal
	Bytes  int64  // of the file as it lies on the disk

	rows      *os.File
	size      int64  // of the rows, unpacked
	temporary string // to be removed; empty for none
}

// Open opens the file and reads it once for its SHA-256.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open data: %w", err)
	}
	file := &File{Path: path, rows: f}
	if err := file.prepare(); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (f *File) prepare() error {
	if stat, err := f.rows.Stat(); err == nil && !stat.Mode().IsRegular() {
		return Fault{File: f.Path, Reason: "must be a file"}
	}
	hash := sha256.New()
	n, err := io.Copy(hash, f.rows)
	if err != nil {
		return fmt.Errorf("read data: %w", err)
	}
	f.Bytes, f.size, f.SHA256 = n, n, hex.EncodeToString(hash.Sum(nil))
	return f.unpack()
}

// unpack replaces the rows by their unpacked form if they are packed.
func (f *File) unpack() error {
	var magic [4]byte
	f.rows.ReadAt(magic[:], 0)
	packed := io.NewSectionReader(f.rows, 0, f.size)
	switch {
	case magic[0] == 0x1f && magic[1] == 0x8b:
		r, err := gzip.NewReader(packed)
		if err != nil {
			return f.unpackFault(err)
		}
		return f.unpackFrom(r)
	case bytes.Equal(magic[:], []byte{0x28, 0xb5, 0x2f, 0xfd}):
		r, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return f.unpackFault(err)
		}
		defer r.Close()
		return f.unpackFrom(r)
	}
	return nil
}

func (f *File) unpackFrom(r io.Reader) error {
	plain, err := os.CreateTemp("", "tare-rows-*")
	if err != nil {
		return fmt.Errorf("unpack %s: %w", f.Path, err)
	}
	n, err := io.Copy(plain, io.LimitReader(r, maxUnpacked+1))
	f.rows.Close()
	f.rows, f.size, f.temporary = plain, n, plain.Name()
	if os.Remove(plain.Name()) == nil {
		f.temporary = ""
	}
	var onDisk *os.PathError
	switch {
	case errors.As(err, &onDisk):
		return fmt.Errorf("unpack %s: %w", f.Path, err)
	case err != nil:
		return f.unpackFault(err)
	case n > maxUnpacked:
		return f.unpackFault(fmt.Errorf("more than %d bytes", int64(maxUnpacked)))
	}
	return nil
}

func (f *File) unpackFault(err error) error {
	return Fault{File: f.Path, Reason: "cannot be unpacked: " + err.Error()}
}

// Close closes the file and removes what was unpacked.
func (f *File) Close() error {
	err := f.rows.Close()
	if f.temporary != "" {
		err = errors.Join(err, os.Remove(f.temporary))
	}
	return err
}

// ReadAt reads the unpacked rows at an offset in bytes.
func (f *File) ReadAt(p []byte, offset int64) (int, error) { return f.rows.ReadAt(p, offset) }

// Size is the length of the unpacked rows in bytes.
func (f *File) Size() int64 { return f.size }

// Start is where the rows begin: behind a byte order mark, if there is one.
func (f *File) Start() int64 {
	var head [3]byte
	f.rows.ReadAt(head[:], 0)
	if bytes.Equal(head[:], mark) {
		return int64(len(mark))
	}
	return 0
}

// Head returns the first bytes of the unpacked rows, at most n, without a byte order mark.
func (f *File) Head(n int) []byte {
	start := f.Start()
	head := make([]byte, min(int64(n), f.size-start))
	read, _ := f.rows.ReadAt(head, start)
	return head[:read]
}
