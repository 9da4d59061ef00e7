package judge

import (
	"cmp"
	"slices"
	"strings"

	"tare/internal/record"
)

const (
	distinctMessages = 64  // kept apart in each stage; what comes after counts as one
	shownMessages    = 3   // of each outcome in a Summary
	messageLength    = 240 // bytes of a message kept
)

// messages groups what went wrong by outcome, status and text. Texts that differ only in their digits (ports, times,
// request numbers) are one; the first is kept as it was.
type messages map[messageKey]*Sample

type messageKey struct {
	outcome record.Outcome
	status  int
	shape   string
}

func (m messages) add(x *record.Exchange) {
	if x.Outcome == record.Completed || x.Error == "" && (x.Status == 0 || x.Status == 200) {
		return
	}
	text := clip(x.Error)
	key := messageKey{x.Outcome, x.Status, shape(text)}
	m.count(key, Sample{Outcome: x.Outcome.String(), Status: x.Status, Message: text, Requests: 1})
}

func (m messages) count(key messageKey, s Sample) {
	if known, ok := m[key]; ok {
		known.Requests += s.Requests
		return
	}
	if len(m) >= distinctMessages {
		key.status, key.shape = 0, "other"
		s.Status, s.Message = 0, "other messages"
		if known, ok := m[key]; ok {
			known.Requests += s.Requests
			return
		}
	}
	m[key] = &s
}

// merge takes other's messages in a fixed order, since the limit on distinct ones makes the order matter.
func (m messages) merge(other messages) {
	keys := make([]messageKey, 0, len(other))
	for key := range other {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b messageKey) int {
		return cmp.Or(cmp.Compare(other[b].Requests, other[a].Requests), compareKeys(a, b))
	})
	for _, key := range keys {
		m.count(key, *other[key])
	}
}

// most lists the most frequent messages, at most shownMessages of each outcome.
func (m messages) most() []Sample {
	keys := make([]messageKey, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b messageKey) int {
		return cmp.Or(cmp.Compare(a.outcome, b.outcome), cmp.Compare(m[b].Requests, m[a].Requests), compareKeys(a, b))
	})
	most := []Sample{}
	shown := map[record.Outcome]int{}
	for _, key := range keys {
		if shown[key.outcome]++; shown[key.outcome] <= shownMessages {
			most = append(most, *m[key])
		}
	}
	return most
}

func compareKeys(a, b messageKey) int {
	return cmp.Or(cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.status, b.status), strings.Compare(a.shape, b.shape))
}

// clip keeps the first line's worth of a message.
func clip(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > messageLength {
		text = strings.ToValidUTF8(text[:messageLength], "") + "…"
	}
	return text
}

// shape replaces every run of digits by one #.
func shape(text string) string {
	var b strings.Builder
	digits := false
	for _, c := range text {
		if c >= '0' && c <= '9' {
			if !digits {
				b.WriteByte('#')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteRune(c)
	}
	return b.String()
}
