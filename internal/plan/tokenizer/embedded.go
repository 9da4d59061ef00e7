package tokenizer

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"sync"
)

// EmbeddedName is the name of the embedded tokenizer.
const EmbeddedName = "tare-bpe-8k"

//go:embed tare-bpe-8k.tiktoken.gz
var embeddedRanks []byte

// embeddedPattern splits as Llama 3 does.
const embeddedPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// Embedded returns the tokenizer that comes with tare, so that nothing has to be fetched to begin: byte-level BPE of 8,192
// tokens, trained by us on English and Go. It is nobody else's: its counts approximate no model's.
var Embedded = sync.OnceValue(func() *Tokenizer {
	content := unzip(embeddedRanks)
	t := newTokenizer(content, EmbeddedName)
	ranks, err := parseRanks(content)
	if err == nil {
		err = t.fromRanks(ranks, 0, encoding{pattern: embeddedPattern})
	}
	if err != nil {
		panic("tokenizer: embedded: " + err.Error())
	}
	return t
})

// unzip unpacks a file that is embedded, and thus whole.
func unzip(packed []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic("tokenizer: embedded: " + err.Error())
	}
	content, err := io.ReadAll(r)
	if err != nil {
		panic("tokenizer: embedded: " + err.Error())
	}
	return content
}
