package dialect_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"tare/internal/drive/dialect"
	"tare/internal/drive/wire"
)

// keeper is a wire.Sink that keeps a reply's text.
type keeper struct {
	reader dialect.Reader
	answer dialect.Answer
	doc    []byte
}

func (k *keeper) Head(*wire.Head) {}
func (k *keeper) Comment()        {}
func (k *keeper) Body(b []byte)   { k.doc = append(k.doc, b...) }

func (k *keeper) Event(name, data []byte) {
	if _, ok := k.reader.Glance(&k.answer, name, data); !ok {
		k.reader.Read(&k.answer, name, data)
	}
}

// keptTexts are the fixtures whose kept text is not all that their events say: without reasoning, calls of tools and bytes of an
// audio; once, where events repeat it; and with what encoding/json does not read.
var keptTexts = map[string]string{
	"W24": "wörld", "W24b": "wörld", "W30": "", "R04": "wörld", "R04b": "wörld", "R05": "", "A03": "wörld", "A04": "", "G05": "wörld",
	"G05b": "wörld", "O03": "", "P05": "wörld", "R08": "Hello wörld",
	"W36": "Hello wörld", "S01": "Hello wörld", "S02": "Hello wörld", "S03": "Hello wörld", "S04": "Hello wörld", "S06": "",
	"P11": "Hello wörld", "P11b": "Hello wörld",
	"X01": "Hello\nwörld", "X01b": "f() {}\n\nHello wörld", "X04": "Hello ",
}

func TestAnAnswersTextIsKeptWhereItIsWanted(t *testing.T) {
	for _, f := range allFixtures() {
		want, ok := keptTexts[f.id]
		if !ok {
			want = f.want.text
		}
		l := newListener(t, &f)
		k := keeper{reader: l.quick}
		k.answer.Keep = true
		for range 2 { // its memory is used again
			k.answer.Reset()
			k.doc = nil
			r := new(wire.Response)
			r.Expect(l.framing)
			r.Reset(&k)
			for _, b := range f.chunked() {
				if _, done, err := r.Feed([]byte(b)); err != nil || done {
					break
				}
			}
			if !r.Framed() {
				k.reader.ReadDocument(&k.answer, k.doc)
			}
			if got := string(k.answer.Text); got != want {
				t.Errorf("%s %s: got %.300q, want %.300q", f.id, f.says, got, want)
			}
		}
	}
}

func TestKeptTextIsWhatItsEscapesSay(t *testing.T) {
	d := speak(t, "openai-chat", dialect.Options{Stream: true})
	for said, want := range map[string]string{
		`a\nb\t\"c\" \\ \/ \b\f\r`: "a\nb\t\"c\" \\ / \b\f\r", `\u00e9\u4E16\ud83d\ude00!`: "é世😀!", `\ud83dx\ude00\ud83d\n`: "�x��\n", `\u0041`: "A",
	} {
		var a dialect.Answer
		a.Keep = true
		d.NewReader().Read(&a, nil, []byte(`{"choices":[{"index":0,"delta":{"content":"`+said+`"}}]}`))
		if got := string(a.Text); got != want {
			t.Errorf("%s: got %q, want %q", said, got, want)
		}
	}
}

func TestKeptTextIsCutBetweenCharacters(t *testing.T) {
	d := speak(t, "openai-chat", dialect.Options{Stream: true})
	var a dialect.Answer
	a.Keep = true
	piece := strings.Repeat("世", 1<<18)
	for range 8 {
		d.NewReader().Read(&a, nil, []byte(`{"choices":[{"index":0,"delta":{"content":"`+piece+`"}}]}`))
	}
	if n := len(a.Text); n > dialect.MaxText || n < dialect.MaxText-3 || !utf8.Valid(a.Text) {
		t.Errorf("got %d bytes, valid %v, want %d or some less, and whole characters", n, utf8.Valid(a.Text), dialect.MaxText)
	}
}
