package tokenizer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/plan/tokenizer"
)

// minimal is a tokenizer.json that loads once fill has filled in the parts written in capitals.
const minimal = `{"version":"1.0","truncation":null,"padding":null,"added_tokens":[ADDED],"normalizer":NORMALIZER,"pre_tokenizer":PRE,` +
	`"post_processor":POST,"decoder":DECODER,"model":{"type":"BPE",MODEL"vocab":{"a":0,"b":1,"ab":2},"merges":MERGES}}`

func TestWhatIsNotSupportedIsRefusedByName(t *testing.T) {
	for _, c := range []struct{ part, text, want string }{
		{"NORMALIZER", `{"type":"BertNormalizer"}`, `normalizer: type "BertNormalizer" is not supported`},
		{"NORMALIZER", `{"type":"Sequence","normalizers":[{"type":"Precompiled"}]}`, `normalizer: type "Precompiled" is not supported`},
		{"NORMALIZER", `{"type":"Replace","pattern":{"Regex":"(?<=a)b"},"content":"x"}`, `group "(?<=a)b" is not supported`},
		{"NORMALIZER", `{"type":"NFC","surprise":1}`, `unknown field "surprise"`},
		{"PRE", `{"type":"UnicodeScripts"}`, `pre_tokenizer: type "UnicodeScripts" is not supported`},
		{"PRE", `{"type":"Split","pattern":{"Regex":"a+?"},"behavior":"Isolated","invert":false}`, `lazy quantifier`},
		{"PRE", `{"type":"Split","pattern":{"Regex":"(ab)*"},"behavior":"Isolated","invert":false}`, `a repeated group`},
		{"PRE", `{"type":"Split","pattern":{"Regex":"\\p{Klingon}"},"behavior":"Isolated","invert":false}`, `property "Klingon" is not known`},
		{"PRE", `{"type":"Split","pattern":{"Regex":"\\ba"},"behavior":"Isolated","invert":false}`, `escape "\\ba" is not supported`},
		{"PRE", `{"type":"Split","pattern":{"String":"a"},"behavior":"Sideways","invert":false}`, `behavior "Sideways" is not known`},
		{"PRE", `{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits","individual_digits":true}]}`, `Digits behind ByteLevel`},
		{"POST", `{"type":"BertProcessing","sep":["a",0],"cls":["b",1]}`, `post_processor: type "BertProcessing" is not supported`},
		{"DECODER", `{"type":"WordPiece","prefix":"##","cleanup":true}`, `decoder: type "WordPiece" is not supported`},
		{"DECODER", `{"type":"Strip","content":" ","start":1,"stop":0}`, `Strip at this place`},
		{"MODEL", `"dropout":0.1,`, `model: dropout 0.1`},
		{"MODEL", `"continuing_subword_prefix":"##",`, `continuing_subword_prefix "##" is not supported`},
		{"MODEL", `"end_of_word_suffix":"</w>",`, `end_of_word_suffix "</w>" is not supported`},
		{"MODEL", `"unk_token":"[UNK]",`, `unk_token "[UNK]" is not in vocab`},
		{"MODEL", `"mood":"good",`, `unknown field "mood"`},
		{"MERGES", `["a c"]`, `merges[0]`},
		{"MERGES", `["a b c"]`, `merges[0]: "a b c" is not two tokens`},
		{"MERGES", `{}`, `merges: neither strings nor pairs`},
		{"ADDED", `{"id":7,"content":"ab","special":true}`, `"ab" has id 7 here and 2 in vocab`},
	} {
		_, err := tokenizer.Load(write(t, "tokenizer.json", fill(c.part, c.text)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: got %v, want it to say %q", c.part, c.text, err, c.want)
		}
	}
}

func TestFilesThatAreNoTokenizersAreRefused(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"tokenizer.json", "", "the file is empty"},
		{"tokenizer.json", "{", "unexpected end"},
		{"tokenizer.json", "{}", "model: missing"},
		{"tokenizer.json", `{"model":{"type":"Unigram","vocab":[]}}`, `type "Unigram" is not supported, only BPE`},
		{"tokenizer.model", "\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02", "a SentencePiece model (.model) is not read"},
		{"mine.tiktoken", "IQ== 0\n", `its name "mine" is not one of`},
		{"cl100k_base.tiktoken", "IQ== 0\n!! 1\n", `line 2: "!!" is not base64`},
		{"cl100k_base.tiktoken", "IQ== x\n", `line 1: rank "x" is not a whole number`},
		{"cl100k_base.tiktoken", "IQ== 0\n", "the byte 0x00 has no rank"},
	} {
		_, err := tokenizer.Load(write(t, c.name, c.content))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: got %v, want it to say %q", c.name, c.content, err, c.want)
		}
	}
	if _, err := tokenizer.Load("testdata/missing.json"); err == nil {
		t.Error("a missing file: got no error")
	}
}

func TestMinimalFileLoads(t *testing.T) {
	tok := load(t, write(t, "tokenizer.json", fill("", "")))
	if got := tok.Append(nil, []byte("abxba")); len(got) != 3 {
		t.Errorf("got %v, want [2 1 0]: a character that has no token and no stand-in is left out", got)
	}
	if got := tok.ID(); len(got) != 64 {
		t.Errorf("id: got %q, want a SHA-256", got)
	}
}

func TestBytesThatAreNotUTF8StandForReplacementCharacters(t *testing.T) {
	tok := tokenizer.Embedded()
	got := tok.Append(nil, []byte("a\xed\xa0\x80b\xff"))
	want := tok.Append(nil, []byte("a\ufffd\ufffd\ufffdb\ufffd"))
	if len(want) == 0 || !equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func equal(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func fill(part, text string) string {
	content := minimal
	for key, normal := range map[string]string{
		"NORMALIZER": "null", "PRE": "null", "POST": "null", "DECODER": "null", "MODEL": "", "MERGES": `["a b"]`, "ADDED": "",
	} {
		if key == part {
			normal = text
		}
		content = strings.ReplaceAll(content, key, normal)
	}
	return content
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPatternsKnowNewerCharacters(t *testing.T) {
	content := fill("PRE", `{"type":"Split","pattern":{"Regex":"[\\p{Han}\\p{Lu}\\d]"},"behavior":"Removed","invert":false}`)
	tok := load(t, write(t, "tokenizer.json", strings.Replace(content, `"type":"BPE",`, `"type":"BPE","unk_token":"a",`, 1)))
	for text, want := range map[string]int{"\U0002ebf0": 0, "\U0002ee5d": 0, "\u1c89": 0, "\U0001e5f1": 0, "字Ä٣": 0, "\u1c8a": 1, "\U0002ee5e": 1} {
		if got := tok.Count([]byte(text)); got != want {
			t.Errorf("%+q: got %d tokens, want %d", text, got, want)
		}
	}
}
