package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync/atomic"
)

// ExchangesFile is the name of the exchange log in a run directory.
const ExchangesFile = "exchanges.tare"

// MaxBlock is the largest payload of a block, in bytes. A reader needs no more memory than the largest block.
const MaxBlock = 64 << 20

const (
	logMagic   = "TARELOG\n"
	logVersion = 1
	logHeader  = 16 // magic, version uint16, reserved uint16, CRC-32C of what precedes

	blockMagic  = "\xf5TB\n"
	blockHeader = 20 // magic, payload length, exchanges, CRC-32C of the payload, CRC-32C of what precedes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Log writes a run's exchanges to its directory, block by block. A block is whole on disk or it is skipped on reading, so
// that a killed run keeps all that was written before.
type Log struct {
	file *os.File
	end  atomic.Int64 // where the next block goes
}

// CreateLog starts a new exchange log in the directory dir, which must exist and hold none yet.
func CreateLog(dir string) (*Log, error) {
	f, err := os.OpenFile(filepath.Join(dir, ExchangesFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create exchange log: %w", err)
	}
	if _, err := f.WriteAt(fileHeader(), 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("create exchange log: %w", err)
	}
	l := &Log{file: f}
	l.end.Store(logHeader)
	return l, nil
}

func fileHeader() []byte {
	b := append(make([]byte, 0, logHeader), logMagic...)
	b = binary.LittleEndian.AppendUint16(b, logVersion)
	b = binary.LittleEndian.AppendUint16(b, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// WriteBlock writes one block: payload holds exactly that many exchanges, whole, as AppendExchange left them. It is safe for
// concurrent use and keeps no reference to payload. Writers share no lock: each takes its own part of the file. The header
// is written last, as what makes the block valid.
func (l *Log) WriteBlock(payload []byte, exchanges int) error {
	if exchanges == 0 {
		return nil
	}
	if len(payload) > MaxBlock {
		return fmt.Errorf("write exchange log: block of %d bytes is over the limit of %d", len(payload), MaxBlock)
	}
	var head [blockHeader]byte
	putBlockHeader(head[:], payload, exchanges)
	size := int64(blockHeader + len(payload))
	at := l.end.Add(size) - size
	if _, err := l.file.WriteAt(payload, at+blockHeader); err != nil {
		return fmt.Errorf("write exchange log: %w", err)
	}
	if _, err := l.file.WriteAt(head[:], at); err != nil {
		return fmt.Errorf("write exchange log: %w", err)
	}
	return nil
}

func putBlockHeader(head, payload []byte, exchanges int) {
	copy(head, blockMagic)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(head[8:], uint32(exchanges))
	binary.LittleEndian.PutUint32(head[12:], crc32.Checksum(payload, castagnoli))
	binary.LittleEndian.PutUint32(head[16:], crc32.Checksum(head[:16], castagnoli))
}

// Close waits until the disk has everything. No WriteBlock may be under way or follow.
func (l *Log) Close() error {
	syncErr := l.file.Sync()
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("close exchange log: %w", err)
	}
	if syncErr != nil {
		return fmt.Errorf("sync exchange log: %w", syncErr)
	}
	return nil
}
