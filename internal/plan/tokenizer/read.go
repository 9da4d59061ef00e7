package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// file is a tokenizer.json.
type file struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"` // servers set these two by call, whatever the file says
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []fileToken     `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

type fileToken struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Left       bool   `json:"lstrip"`
	Right      bool   `json:"rstrip"`
	Normalized *bool  `json:"normalized"`
	Special    bool   `json:"special"`
}

// fileModel is the BPE model of a tokenizer.json.
type fileModel struct {
	Type        string            `json:"type"`
	Dropout     *float64          `json:"dropout"`
	Unknown     *string           `json:"unk_token"`
	Prefix      *string           `json:"continuing_subword_prefix"`
	Suffix      *string           `json:"end_of_word_suffix"`
	FuseUnknown bool              `json:"fuse_unk"`
	Fallback    bool              `json:"byte_fallback"`
	Whole       bool              `json:"ignore_merges"`
	Vocabulary  map[string]uint32 `json:"vocab"`
	Merges      json.RawMessage   `json:"merges"`
}

// readJSON reads a tokenizer.json or a tekken.json.
func (t *Tokenizer) readJSON(content []byte) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(content, &keys); err != nil {
		return err
	}
	if keys["model"] == nil && keys["config"] != nil && keys["vocab"] != nil {
		return t.readTekken(keys)
	}
	if keys["model"] == nil {
		return fmt.Errorf("model: missing; this is no tokenizer.json")
	}
	var f file
	if err := strict(content, &f); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		read func() error
	}{
		{"normalizer", func() error { return t.readNormalizer(f.Normalizer) }},
		{"pre_tokenizer", func() error { return t.readPreTokenizer(f.PreTokenizer) }},
		{"model", func() error { return t.readModel(f.Model) }},
		{"added_tokens", func() error { return t.readAdded(f.AddedTokens) }},
		{"post_processor", func() error { return t.readPostProcessor(f.PostProcessor) }},
		{"decoder", func() error { return t.readDecoder(f.Decoder) }},
	} {
		if err := part.read(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// strict decodes JSON and refuses keys that are not known, since they may change the tokens.
func strict(content []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// kind returns the type of a component.
func kind(raw json.RawMessage) (string, error) {
	var component struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(raw, &component)
	return component.Type, err
}

func (t *Tokenizer) readNormalizer(raw json.RawMessage) error {
	if absent(raw) {
		return nil
	}
	name, err := kind(raw)
	if err != nil {
		return err
	}
	var c struct {
		Type        string            `json:"type"`
		Normalizers []json.RawMessage `json:"normalizers"`
		Pattern     json.RawMessage   `json:"pattern"`
		Content     string            `json:"content"`
		Prepend     string            `json:"prepend"`
		Left        bool              `json:"strip_left"`
		Right       bool              `json:"strip_right"`
	}
	switch name {
	case "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Replace", "Prepend", "Strip", "Sequence":
	default:
		return fmt.Errorf("type %q is not supported", name)
	}
	if err := strict(raw, &c); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch name {
	case "Lowercase":
		t.normalizers = append(t.normalizers, lowercase{})
	case "Replace":
		finder, err := readPattern(c.Pattern)
		if err != nil {
			return fmt.Errorf("normalizer Replace: %w", err)
		}
		t.normalizers = append(t.normalizers, replace{finder, []byte(c.Content)})
	case "Prepend":
		t.normalizers = append(t.normalizers, prepend(c.Prepend))
	case "Strip":
		t.normalizers = append(t.normalizers, strip{c.Left, c.Right})
	case "Sequence":
		for _, inner := range c.Normalizers {
			if err := t.readNormalizer(inner); err != nil {
				return err
			}
		}
	default:
		t.normalizers = append(t.normalizers, olderForm{forms[name]})
	}
	return nil
}

// readPattern reads {"String": …} or {"Regex": …}.
func readPattern(raw json.RawMessage) (finder, error) {
	var c struct {
		String *string
		Regex  *string
	}
	if err := strict(raw, &c); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	switch {
	case c.String != nil:
		return literal(*c.String), nil
	case c.Regex != nil:
		return compile(*c.Regex)
	}
	return nil, fmt.Errorf("pattern: neither String nor Regex")
}

// gpt2Pattern is what ByteLevel splits with.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func (t *Tokenizer) readPreTokenizer(raw json.RawMessage) error {
	if absent(raw) {
		return nil
	}
	name, err := kind(raw)
	if err != nil {
		return err
	}
	if t.byteLevel {
		return fmt.Errorf("%s behind ByteLevel is not supported", name)
	}
	var c struct {
		Type          string            `json:"type"`
		PreTokenizers []json.RawMessage `json:"pretokenizers"`
		Pattern       json.RawMessage   `json:"pattern"`
		Behavior      string            `json:"behavior"`
		Invert        bool              `json:"invert"`
		PrefixSpace   *bool             `json:"add_prefix_space"`
		TrimOffsets   bool              `json:"trim_offsets"`
		UseRegex      *bool             `json:"use_regex"`
		Individual    bool              `json:"individual_digits"`
		Replacement   string            `json:"replacement"`
		Prepend       string            `json:"prepend_scheme"`
		Split         *bool             `json:"split"`
		StrRep        string            `json:"str_rep"`
	}
	switch name {
	case "Sequence", "ByteLevel", "Split", "Digits", "Punctuation", "Metaspace":
	default:
		return fmt.Errorf("type %q is not supported", name)
	}
	if err := strict(raw, &c); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	add := func(s splitter) { t.splits = append(t.splits, s) }
	switch name {
	case "Sequence":
		for _, inner := range c.PreTokenizers {
			if err := t.readPreTokenizer(inner); err != nil {
				return err
			}
		}
	case "ByteLevel":
		t.byteLevel = true
		if c.PrefixSpace == nil || *c.PrefixSpace {
			add(spacePrefix{})
		}
		if c.UseRegex == nil || *c.UseRegex {
			add(divider{finder: mustCompile(gpt2Pattern), behavior: isolated})
		}
	case "Split":
		finder, err := readPattern(c.Pattern)
		if err != nil {
			return fmt.Errorf("pre-tokenizer Split: %w", err)
		}
		b, ok := behaviors[strings.ToLower(c.Behavior)]
		if !ok {
			return fmt.Errorf("pre-tokenizer Split: behavior %q is not known", c.Behavior)
		}
		add(divider{finder, b, c.Invert})
	case "Digits":
		b := contiguous
		if c.Individual {
			b = isolated
		}
		add(divider{finder: characters(unicode.IsNumber), behavior: b})
	case "Punctuation":
		b, ok := behaviors[strings.ToLower(c.Behavior)]
		if !ok && c.Behavior != "" {
			return fmt.Errorf("pre-tokenizer Punctuation: behavior %q is not known", c.Behavior)
		}
		if !ok {
			b = isolated
		}
		add(divider{finder: characters(isPunctuation), behavior: b})
	case "Metaspace":
		scheme := prependAlways
		if c.Prepend != "" {
			scheme = prependScheme(strings.ToLower(c.Prepend))
		} else if c.PrefixSpace != nil && !*c.PrefixSpace {
			scheme = prependNever
		}
		if !slices.Contains([]prependScheme{prependAlways, prependFirst, prependNever}, scheme) {
			return fmt.Errorf("pre-tokenizer Metaspace: prepend_scheme %q is not known", c.Prepend)
		}
		if utf8.RuneCountInString(c.Replacement) != 1 {
			return fmt.Errorf("pre-tokenizer Metaspace: replacement %q is not one character", c.Replacement)
		}
		add(metaspace{[]byte(c.Replacement), scheme, c.Split == nil || *c.Split})
	}
	return nil
}

// mustCompile compiles a pattern of this package.
func mustCompile(source string) *pattern {
	p, err := compile(source)
	if err != nil {
		panic("tokenizer: " + err.Error())
	}
	return p
}

func (t *Tokenizer) readModel(raw json.RawMessage) error {
	name, err := kind(raw)
	if err != nil {
		return err
	}
	if name != "BPE" && name != "" {
		return fmt.Errorf("type %q is not supported, only BPE", name)
	}
	var m fileModel
	if err := strict(raw, &m); err != nil {
		return err
	}
	switch {
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("dropout %v: a tokenizer that draws lots is not supported", *m.Dropout)
	case m.Prefix != nil && *m.Prefix != "":
		return fmt.Errorf("continuing_subword_prefix %q is not supported", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return fmt.Errorf("end_of_word_suffix %q is not supported", *m.Suffix)
	case len(m.Vocabulary) == 0:
		return fmt.Errorf("vocab: empty")
	}
	t.whole, t.fallback, t.fuseUnknown = m.Whole, m.Fallback, m.FuseUnknown
	if err := t.readUnknown(m); err != nil {
		return err
	}
	t.readVocabulary(m)
	merges, err := readMerges(m.Merges)
	if err != nil {
		return err
	}
	return t.readPairs(m, merges)
}

func (t *Tokenizer) readUnknown(m fileModel) error {
	if m.Unknown == nil {
		return nil
	}
	id, ok := m.Vocabulary[*m.Unknown]
	if !ok {
		return fmt.Errorf("unk_token %q is not in vocab", *m.Unknown)
	}
	t.unknown = id
	return nil
}

// readVocabulary keeps the vocabulary by bytes, or by characters if the model is of characters.
func (t *Tokenizer) readVocabulary(m fileModel) {
	for text, id := range m.Vocabulary {
		t.decoder.name(id, text)
		if !t.byteLevel {
			t.vocabulary[text] = id
		} else if raw, ok := bytesOf(text); ok {
			t.vocabulary[string(raw)] = id
		}
	}
	for b := range t.bytes {
		key := fmt.Sprintf("<0x%02X>", b)
		if t.byteLevel {
			key = string([]byte{byte(b)})
		}
		if id, ok := t.vocabulary[key]; ok {
			t.bytes[b] = id
		}
	}
}

// readMerges reads merges in either form: "a b", or ["a", "b"].
func readMerges(raw json.RawMessage) ([][2]string, error) {
	var pairs [][2]string
	if json.Unmarshal(raw, &pairs) == nil {
		return pairs, nil
	}
	var lines []string
	if err := json.Unmarshal(raw, &lines); err != nil {
		return nil, fmt.Errorf("merges: neither strings nor pairs")
	}
	pairs = make([][2]string, len(lines))
	for i, line := range lines {
		left, right, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(right, " ") {
			return nil, fmt.Errorf("merges[%d]: %q is not two tokens", i, line)
		}
		pairs[i] = [2]string{left, right}
	}
	return pairs, nil
}

func (t *Tokenizer) readPairs(m fileModel, merges [][2]string) error {
	t.merges = newPairs(len(merges))
	if !t.byteLevel {
		t.joins = map[uint64]struct{}{}
	}
	for rank, merge := range merges {
		left, leftOK := m.Vocabulary[merge[0]]
		right, rightOK := m.Vocabulary[merge[1]]
		merged, ok := m.Vocabulary[merge[0]+merge[1]]
		if !leftOK || !rightOK || !ok {
			return fmt.Errorf("merges[%d]: %q is not in vocab", rank, merge)
		}
		t.merges.put(left, right, uint32(rank), merged)
		if t.joins != nil {
			before, _ := utf8.DecodeLastRuneInString(merge[0])
			after, _ := utf8.DecodeRuneInString(merge[1])
			t.joins[joint(before, after)] = struct{}{}
		}
	}
	if t.joins != nil && t.whole {
		t.joins = nil // any two characters may stand together in a token that needs no merge
	}
	return nil
}

func (t *Tokenizer) readAdded(tokens []fileToken) error {
	t.early, t.late = new(addedTokens), new(addedTokens)
	for i, token := range tokens {
		if id, ok := t.decoder.id(token.Content); ok && id != token.ID {
			return fmt.Errorf("[%d]: %q has id %d here and %d in vocab", i, token.Content, token.ID, id)
		}
		t.decoder.name(token.ID, token.Content)
		t.added[token.ID] = token.Content
		t.special[token.ID] = token.Special
		found := addedToken{token.ID, token.SingleWord, token.Left, token.Right}
		// The reference normalizes tokens that do not say, unless they are special.
		if token.Normalized == nil && token.Special || token.Normalized != nil && !*token.Normalized {
			t.early.add([]byte(token.Content), found)
			continue
		}
		text := []byte(token.Content)
		for _, n := range t.normalizers {
			text = n.normalize(text)
		}
		t.late.add(text, found)
	}
	return nil
}

func (t *Tokenizer) readPostProcessor(raw json.RawMessage) error {
	if absent(raw) {
		return nil
	}
	name, err := kind(raw)
	if err != nil {
		return err
	}
	switch name {
	case "ByteLevel": // moves offsets only
		return nil
	case "TemplateProcessing":
		return t.readTemplate(raw)
	case "Sequence":
		var c struct {
			Processors []json.RawMessage `json:"processors"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		for _, inner := range c.Processors {
			if err := t.readPostProcessor(inner); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("type %q is not supported", name)
}

func (t *Tokenizer) readTemplate(raw json.RawMessage) error {
	var c struct {
		Single []struct {
			SpecialToken *struct {
				ID string `json:"id"`
			}
			Sequence *struct {
				ID string `json:"id"`
			}
		} `json:"single"`
		Tokens map[string]struct {
			IDs []uint32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("TemplateProcessing: %w", err)
	}
	reached := false
	for _, step := range c.Single {
		switch {
		case step.Sequence != nil && reached:
			return fmt.Errorf("TemplateProcessing: the text more than once is not supported")
		case step.Sequence != nil:
			reached = true
		case step.SpecialToken == nil:
			return fmt.Errorf("TemplateProcessing: a step is neither SpecialToken nor Sequence")
		case len(c.Tokens[step.SpecialToken.ID].IDs) == 0:
			return fmt.Errorf("TemplateProcessing: token %q is not in special_tokens", step.SpecialToken.ID)
		}
	}
	return nil
}
