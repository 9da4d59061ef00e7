package workload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image/jpeg"
	"math"
	"strconv"
	"strings"
	"time"

	"tare/internal/plan/draw"
)

// Size is what pictures and videos may be like.
type Size struct {
	Width, Height int     // pixels
	Weight        float64 // how often, in proportion to the others
}

const (
	maxSide    = 8192
	maxSeconds = 600
)

// ParseSizes reads "1920x1080*3 640x640": sizes with their weights, which are 1 unless given.
func ParseSizes(text string) (sizes []Size, err error) {
	for _, word := range strings.Fields(text) {
		size, weight, err := weighted(word)
		width, height, _ := strings.Cut(size, "x")
		w, wrong := strconv.Atoi(width)
		h, wrongToo := strconv.Atoi(height)
		if err != nil || wrong != nil || wrongToo != nil || w < 1 || h < 1 || w > maxSide || h > maxSide {
			return nil, fmt.Errorf("must be sizes within 1x1 and %dx%d, and perhaps weights, got %q", maxSide, maxSide, word)
		}
		sizes = append(sizes, Size{w, h, weight})
	}
	if len(sizes) == 0 {
		return nil, errors.New("must name a size")
	}
	return sizes, nil
}

// Span is how long a sound may be.
type Span struct {
	Length time.Duration
	Weight float64
}

// ParseSpans reads "5s*3 30s": lengths with their weights, which are 1 unless given.
func ParseSpans(text string) (spans []Span, err error) {
	for _, word := range strings.Fields(text) {
		length, weight, err := weighted(word)
		d, wrong := time.ParseDuration(length)
		if err != nil || wrong != nil || d < 10*time.Millisecond || d > maxSeconds*time.Second {
			return nil, fmt.Errorf("must be durations within 10ms and 10m, and perhaps weights, got %q", word)
		}
		spans = append(spans, Span{d, weight})
	}
	if len(spans) == 0 {
		return nil, errors.New("must name a duration")
	}
	return spans, nil
}

// weighted cuts a weight off a word.
func weighted(word string) (rest string, weight float64, err error) {
	rest, text, given := strings.Cut(word, "*")
	if !given {
		return rest, 1, nil
	}
	weight, err = strconv.ParseFloat(text, 64)
	if err != nil || !(weight > 0) || math.IsInf(weight, 0) {
		return rest, 0, fmt.Errorf("weight must be a number above 0, got %q", text)
	}
	return rest, weight, nil
}

// Sounds draws waves of faint noise: mono, 16 bits, 16,000 samples a second.
type Sounds struct{ source *draw.Source }

// NewSounds starts the sounds of a seed.
func NewSounds(seed uint64) Sounds { return Sounds{draw.New(seed, "sound")} }

const samplesPerSecond = 16_000

// Draw returns the WAV file of a sound.
func (s Sounds) Draw(number uint64, length time.Duration) []byte {
	s.source.Seek(number)
	samples := int(length * samplesPerSecond / time.Second)
	file := append(make([]byte, 0, 44+2*samples), "RIFF"...)
	file = binary.LittleEndian.AppendUint32(file, uint32(36+2*samples))
	file = append(file, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	file = binary.LittleEndian.AppendUint32(file, samplesPerSecond)
	file = binary.LittleEndian.AppendUint32(file, 2*samplesPerSecond)
	file = append(file, "\x02\x00\x10\x00data"...)
	file = binary.LittleEndian.AppendUint32(file, uint32(2*samples))
	for i := 0; i < samples; i += 8 {
		bits := s.source.Uint64()
		for n := i; n < min(i+8, samples); n++ {
			file = binary.LittleEndian.AppendUint16(file, uint16(int16(int8(bits))/8))
			bits >>= 8
		}
	}
	return file
}

// Videos draws films of squares in random colours, one picture after another: MP4 with a JPEG for each frame (ISO/IEC 14496-14, object type
// 0x6C), 24 a second.
type Videos struct {
	seed  uint64
	films map[film][]byte
}

type film struct {
	size   Size
	frames int
	number uint64
}

// NewVideos starts the videos of a seed.
func NewVideos(seed uint64) Videos { return Videos{seed, map[film][]byte{}} }

const (
	filmsOfASize = 4 // different ones: making them takes some 10 ms a frame
	framesPerS   = 24
)

// Draw returns the file of a video. There are four of each size, which are kept.
func (v Videos) Draw(number uint64, size Size, frames int) ([]byte, error) {
	size.Weight = 0
	f := film{size, frames, number % filmsOfASize}
	if file, made := v.films[f]; made {
		return file, nil
	}
	p := Pictures{Width: size.Width, Height: size.Height}
	p.source = draw.New(v.seed, "video")
	var pictures [][]byte
	for i := range frames {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, p.picture(f.number<<32|uint64(i)), &jpeg.Options{Quality: 75}); err != nil {
			return nil, err
		}
		pictures = append(pictures, b.Bytes())
	}
	v.films[f] = movie(size, pictures)
	return v.films[f], nil
}

// box writes a box of an ISO media file (ISO/IEC 14496-12) of what is in it: bytes, texts, numbers of 16 and 32 bits, and boxes.
func box(kind string, inside ...any) []byte {
	b := append(make([]byte, 4), kind...)
	for _, part := range inside {
		switch v := part.(type) {
		case []byte:
			b = append(b, v...)
		case string:
			b = append(b, v...)
		case uint16:
			b = binary.BigEndian.AppendUint16(b, v)
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

// movie puts pictures into a file, each shown for a 24th of a second.
func movie(size Size, pictures [][]byte) []byte {
	n := len(pictures)
	kind := box("ftyp", "isom", 0x200, "isommp42")
	data := box("mdat", bytes.Join(pictures, nil))
	const unity = "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00"
	var sizes []byte
	for _, p := range pictures {
		sizes = binary.BigEndian.AppendUint32(sizes, uint32(len(p)))
	}
	w, h := uint16(size.Width), uint16(size.Height)
	// an elementary stream of JPEG pictures: no buffer size and no bit rates are given
	config := "\x04\x0d\x6c\x11" + strings.Repeat("\x00", 11)
	stream := box("esds", 0, "\x03", string(rune(3+len(config)+3)), uint16(1), "\x00", config, "\x06\x01\x02")
	entry := box("mp4v", 0, uint16(0), uint16(1), strings.Repeat("\x00", 16), w, h, 0x480000, 0x480000, 0, uint16(1), strings.Repeat("\x00", 32), uint16(24), "\xff\xff", stream)
	table := box("stbl", box("stsd", 0, 1, entry), box("stts", 0, 1, n, 1), box("stsc", 0, 1, 1, n, 1), box("stsz", 0, 0, n, sizes), box("stco", 0, 1, len(kind)+8))
	media := box("mdia", box("mdhd", 0, 0, 0, framesPerS, n, uint16(0x55c4), uint16(0)), box("hdlr", 0, 0, "vide", 0, 0, 0, "video\x00"),
		box("minf", box("vmhd", 1, 0, 0), box("dinf", box("dref", 0, 1, box("url ", 1))), table))
	track := box("trak", box("tkhd", 7, 0, 0, 1, 0, n, 0, 0, 0, 0, unity, size.Width<<16, size.Height<<16), media)
	header := box("mvhd", 0, 0, 0, framesPerS, n, 0x10000, uint16(0x100), uint16(0), 0, 0, unity, strings.Repeat("\x00", 24), 2)
	return bytes.Join([][]byte{kind, data, box("moov", header, track)}, nil)
}
