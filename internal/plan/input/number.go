package input

import (
	"bytes"
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"time"
)

// Whole reads a whole number that is not negative; "12.0", which some writers make of 12, is one too.
func Whole(text string) (int, bool) {
	text = strings.TrimSpace(text)
	if head, zeros, ok := strings.Cut(text, "."); ok && zeros != "" && strings.Trim(zeros, "0") == "" {
		text = head
	}
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err == nil
}

// Decimal reads a decimal number of units as a span of time, exactly to the nanosecond: no float comes in between, so
// that every machine reads the same. What is finer is rounded. unit is a second, a millisecond or a microsecond.
func Decimal(text string, unit time.Duration) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	negative := strings.HasPrefix(text, "-")
	if negative {
		text = text[1:]
	}
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, err := strconv.ParseInt(text[i+1:], 10, 16)
		if err != nil {
			return 0, false
		}
		mantissa, exponent = text[:i], int(e)
	}
	head, tail, dotted := strings.Cut(mantissa, ".")
	digits := head + tail
	if digits == "" || head == "" || dotted && tail == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	exponent -= len(tail)
	for u := unit; u > 1; u /= 10 {
		exponent++
	}
	n, ok := scaled(digits, exponent)
	if negative {
		n = -n
	}
	return time.Duration(n), ok
}

// scaled returns digits·10^exponent, rounded half up.
func scaled(digits string, exponent int) (int64, bool) {
	digits = strings.TrimLeft(digits, "0")
	end := len(digits) + exponent // digits before the point
	switch {
	case digits == "" || end < 0:
		return 0, true
	case end > 19:
		return 0, false
	}
	whole, up := digits, false
	if exponent < 0 {
		whole, up = digits[:end], digits[end] >= '5'
	} else {
		whole += strings.Repeat("0", exponent)
	}
	n, err := strconv.ParseInt("0"+whole, 10, 64)
	if err != nil || up && n == math.MaxInt64 {
		return 0, false
	}
	if up {
		n++
	}
	return n, true
}

// Clock reads a date and time as nanoseconds since 1970 in UTC: "2023-11-16 18:17:03.9799600", a T or a space between
// them, up to nine digits of a second or none, and Z, an offset or nothing, which counts as UTC, at the end. It takes the
// years from 1900 to 2150, so that any two times are less than 292 years apart, which is all that nanoseconds can say.
func Clock(text string) (nanoseconds int64, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) < 19 || text[10] != ' ' && text[10] != 'T' && text[10] != 't' {
		return 0, false
	}
	t, err := time.Parse("2006-01-02 15:04:05", text[:10]+" "+text[11:19])
	if err != nil || t.Year() < 1900 || t.Year() > 2150 {
		return 0, false
	}
	rest, fraction := text[19:], int64(0)
	if strings.HasPrefix(rest, ".") {
		n := 1
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		if n == 1 || n > 10 {
			return 0, false
		}
		fraction, _ = strconv.ParseInt((rest[1:n] + "000000000")[:9], 10, 64)
		rest = rest[n:]
	}
	offset, ok := zone(rest)
	return t.UnixNano() + fraction - offset, ok
}

// zone returns an offset from UTC in nanoseconds.
func zone(text string) (int64, bool) {
	switch text = strings.TrimSpace(text); text {
	case "", "Z", "z", "UTC":
		return 0, true
	}
	if len(text) == 3 {
		text += ":00"
	}
	for _, layout := range []string{"-07:00", "-0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			_, seconds := t.Zone()
			return int64(seconds) * int64(time.Second), true
		}
	}
	return 0, false
}

// Fields parts one CSV record.
func Fields(record []byte, comma byte) ([]string, error) {
	r := csv.NewReader(bytes.NewReader(record))
	r.Comma, r.FieldsPerRecord = rune(comma), -1
	return r.Read()
}
