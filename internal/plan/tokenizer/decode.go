package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// decoder turns tokens back into text.
type decoder struct {
	names      []string          // by token, as the file writes it; "" for none
	ids        map[string]uint32 // the other way round
	texts      [][]byte          // by token
	firstTexts [][]byte          // by token, where the text's first token is written otherwise; else nil
	stripped   []byte            // taken away at the beginning of the text, up to strips times
	strips     int
}

func (d *decoder) name(id uint32, text string) {
	for int(id) >= len(d.names) {
		d.names = append(d.names, make([]string, max(1024, len(d.names)))...)
	}
	d.names[id] = text
	if d.ids == nil {
		d.ids = map[string]uint32{}
	}
	d.ids[text] = id
}

func (d *decoder) id(text string) (uint32, bool) {
	id, ok := d.ids[text]
	return id, ok
}

// Decode appends the text of tokens, special ones written out. Bytes that are no UTF-8 stay as they are.
func (t *Tokenizer) Decode(dst []byte, tokens []uint32) ([]byte, error) {
	begin := len(dst)
	for i, token := range tokens {
		if int(token) >= len(t.decoder.texts) || t.decoder.texts[token] == nil {
			return dst, fmt.Errorf("token %d is not in the vocabulary", token)
		}
		if i == 0 && t.decoder.firstTexts != nil {
			dst = append(dst, t.decoder.firstTexts[token]...)
		} else {
			dst = append(dst, t.decoder.texts[token]...)
		}
	}
	for n := 0; n < t.decoder.strips && bytes.HasPrefix(dst[begin:], t.decoder.stripped); n++ {
		dst = append(dst[:begin], dst[begin+len(t.decoder.stripped):]...)
	}
	return dst, nil
}

// fill writes the texts of all named tokens.
func (d *decoder) fill(texts *[][]byte, text func(name string) []byte) {
	*texts = make([][]byte, len(d.names))
	for id, name := range d.names {
		if d.ids[name] == uint32(id) && (name != "" || id == 0) {
			(*texts)[id] = append(make([]byte, 0, len(name)), text(name)...)
		}
	}
}

// readDecoder reads the decoder. A file without one gets the text of its tokens one behind the other.
func (t *Tokenizer) readDecoder(raw json.RawMessage) error {
	steps, err := decoderSteps(raw)
	if err != nil {
		return err
	}
	if t.byteLevel {
		for _, step := range steps {
			if step.Type != "ByteLevel" && step.Type != "Fuse" {
				return fmt.Errorf("%s with a ByteLevel pre-tokenizer is not supported", step.Type)
			}
		}
		t.decoder.fill(&t.decoder.texts, byteLevelText)
		return nil
	}
	return t.decoder.chain(steps)
}

type decoderStep struct {
	Type        string          `json:"type"`
	Pattern     json.RawMessage `json:"pattern"`
	Content     string          `json:"content"`
	Start       int             `json:"start"`
	Stop        int             `json:"stop"`
	Replacement string          `json:"replacement"`
	Prepend     string          `json:"prepend_scheme"`
	PrefixSpace *bool           `json:"add_prefix_space"`
	Decoders    []json.RawMessage
}

func decoderSteps(raw json.RawMessage) ([]decoderStep, error) {
	if absent(raw) {
		return nil, nil
	}
	var step decoderStep
	if err := json.Unmarshal(raw, &step); err != nil {
		return nil, err
	}
	switch step.Type {
	case "ByteLevel", "Fuse", "Replace", "ByteFallback", "Strip", "Metaspace":
		return []decoderStep{step}, nil
	case "Sequence":
		var steps []decoderStep
		for _, inner := range step.Decoders {
			more, err := decoderSteps(inner)
			if err != nil {
				return nil, err
			}
			steps = append(steps, more...)
		}
		return steps, nil
	}
	return nil, fmt.Errorf("type %q is not supported", step.Type)
}

// chain makes the texts of a decoder whose steps look at one token at a time, and at the whole text after Fuse.
func (d *decoder) chain(steps []decoderStep) error {
	var each []func(string) string
	fused, metaspaceStep := false, -1
	for _, step := range steps {
		switch {
		case step.Type == "Fuse":
			fused = true
		case step.Type == "Strip" && fused && step.Stop == 0 && d.strips == 0:
			d.stripped, d.strips = []byte(step.Content), step.Start
		case step.Type == "Replace" && !fused:
			finder, err := readPattern(step.Pattern)
			if err != nil {
				return fmt.Errorf("decoder Replace: %w", err)
			}
			rewrite := replace{finder, []byte(step.Content)}
			each = append(each, func(s string) string { return string(rewrite.normalize([]byte(s))) })
		case step.Type == "ByteFallback" && !fused:
			each = append(each, fallbackText)
		case step.Type == "Metaspace" && !fused && metaspaceStep < 0:
			metaspaceStep = len(each)
			each = append(each, func(s string) string { return strings.ReplaceAll(s, step.Replacement, " ") })
			if step.Prepend == "never" || step.Prepend == "" && step.PrefixSpace != nil && !*step.PrefixSpace {
				continue
			}
			d.fill(&d.firstTexts, func(s string) []byte { return []byte(fallbackText(strings.ReplaceAll(s, step.Replacement, ""))) })
		default:
			return fmt.Errorf("%s at this place is not supported", step.Type)
		}
	}
	d.fill(&d.texts, func(s string) []byte {
		for _, rewrite := range each {
			s = rewrite(s)
		}
		return []byte(s)
	})
	return nil
}

// fallbackText is the byte that a token like <0x0A> stands for, or the token as it is.
func fallbackText(name string) string {
	var b byte
	if len(name) == 6 && strings.HasPrefix(name, "<0x") && name[5] == '>' {
		if n, err := fmt.Sscanf(name[3:5], "%02X", &b); n == 1 && err == nil {
			return string([]byte{b})
		}
	}
	return name
}

// byteLevelText is the bytes that a token's characters stand for, or the token as it is.
func byteLevelText(name string) []byte {
	if raw, ok := bytesOf(name); ok {
		return raw
	}
	return []byte(name)
}

// bytesOf maps the characters of byte-level BPE back to bytes: visible Latin-1 stands for itself, and the other bytes are, in
// turn, the characters from U+0100.
func bytesOf(text string) ([]byte, bool) {
	raw := make([]byte, 0, len(text))
	for _, r := range text {
		switch {
		case r >= 0x100 && r <= 0x120:
			raw = append(raw, byte(r-0x100)) // 0x00–0x20
		case r >= 0x121 && r <= 0x142:
			raw = append(raw, byte(r-0x121+0x7f)) // 0x7f–0xa0
		case r == 0x143:
			raw = append(raw, 0xad)
		case r > 0x20 && r < 0x7f, r > 0xa0 && r <= 0xff && r != 0xad:
			raw = append(raw, byte(r))
		default:
			return nil, false
		}
	}
	return raw, utf8.ValidString(text)
}
