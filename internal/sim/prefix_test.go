package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// cachedOf runs bodies one after another on a server, and returns the cached tokens that each reply tells.
func cachedOf(t *testing.T, cfg Config, bodies ...string) (cached []int) {
	t.Helper()
	b := newBench(t, cfg)
	for i, body := range bodies {
		c := &conn{}
		b.ask(c, time.Duration(i)*time.Second, body)
		b.until(time.Duration(i+1) * time.Second)
		_, doc, _ := strings.Cut(b.w.sent[c][0].data, "\r\n\r\n")
		var said struct {
			Usage struct {
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal([]byte(doc), &said); err != nil {
			t.Fatalf("reply %d: %v: %s", i, err, doc)
		}
		cached = append(cached, said.Usage.Details.Cached)
	}
	return cached
}

// numbered is n words, all different.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d ", i)
	}
	return b.String()
}

func prompt(text string) string { return fmt.Sprintf(`{"prompt":%q,"max_tokens":1}`, text) }

func TestWholeBlocksAreFoundAndNeverTheLastToken(t *testing.T) {
	for _, c := range []struct{ before, now, want int }{
		{40, 40, 32}, {32, 32, 16}, {33, 33, 32}, {16, 64, 16}, {15, 64, 0}, {64, 20, 16}, {1, 1, 0}, {16, 16, 0},
	} {
		got := cachedOf(t, Config{PrefixCache: true}, prompt(numbered(c.before)), prompt(numbered(c.now)))
		if !slices.Equal(got, []int{0, c.want}) {
			t.Errorf("%d tokens behind %d: got %v cached, want [0 %d]", c.now, c.before, got, c.want)
		}
	}
	if got := cachedOf(t, Config{PrefixCache: true, KVBlock: 10}, prompt(numbered(40)), prompt(numbered(40))); got[1] != 30 {
		t.Errorf("blocks of 10: got %d cached, want 30", got[1])
	}
	if got := cachedOf(t, Config{}, prompt(numbered(40)), prompt(numbered(40))); got[1] != 0 {
		t.Errorf("without a cache: got %d cached, want 0", got[1])
	}
}

func TestABlockIsFoundBehindItsOwnBeginningOnly(t *testing.T) {
	text := numbered(48)
	got := cachedOf(t, Config{PrefixCache: true}, prompt(text), prompt("other "+text), prompt(strings.Replace(text, "w20 ", "x ", 1)))
	if !slices.Equal(got, []int{0, 0, 16}) {
		t.Errorf("a prompt, the same moved by a word, the same with word 20 changed: got %v cached, want [0 0 16]", got)
	}
}

func TestSaltsPartTheCache(t *testing.T) {
	salted := func(salt string) string {
		return fmt.Sprintf(`{"cache_salt":%q,"prompt":%q,"max_tokens":20}`, salt, numbered(40))
	}
	late := fmt.Sprintf(`{"prompt":%q,"max_tokens":1,"cache_salt":"a"}`, numbered(40))
	got := cachedOf(t, Config{PrefixCache: true}, salted("a"), salted("b"), prompt(numbered(40)), salted("a"), late, prompt(numbered(40)))
	if !slices.Equal(got, []int{0, 0, 0, 32, 32, 32}) {
		t.Errorf("salts a, b, none, a, a behind the prompt, none: got %v cached, want [0 0 0 32 32 32]", got)
	}
}

func TestTokenIdsAreNoWords(t *testing.T) {
	ids := "[" + strings.Repeat("7,", 39) + "7]"
	got := cachedOf(t, Config{PrefixCache: true}, `{"prompt":`+ids+`,"max_tokens":1}`, prompt(strings.Repeat("7 ", 40)), `{"prompt":[`+ids+`],"max_tokens":1}`)
	if !slices.Equal(got, []int{0, 0, 32}) {
		t.Errorf("ids, the same as words, ids in a list: got %v cached, want [0 0 32]", got)
	}
}

func TestARepliesTokensAreFoundButItsLast(t *testing.T) {
	for _, c := range []struct{ tokens, want int }{{22, 48}, {23, 64}} { // 42 + 22 − 1 = 63, 42 + 23 − 1 = 64
		b := newBench(t, Config{PrefixCache: true})
		first := &conn{}
		b.ask(first, 0, fmt.Sprintf(`{"prompt":%q,"max_tokens":%d,"cache_salt":"s"}`, numbered(42), c.tokens))
		b.until(time.Second)
		_, after, _ := strings.Cut(b.w.sent[first][0].data, `"text":"`)
		said, _, _ := strings.Cut(after, `"`)
		b.ask(&conn{}, time.Second, fmt.Sprintf(`{"prompt":%q,"max_tokens":1,"cache_salt":"s"}`, numbered(42)+said+" and more"))
		b.until(2 * time.Second)
		if got := b.k.ended[1].cached; got != c.want {
			t.Errorf("42 tokens and a reply of %d: got %d cached, want %d", c.tokens, got, c.want)
		}
	}
}

func TestCachedTokensNeedNoPrefill(t *testing.T) {
	b := newBench(t, Config{PrefixCache: true, TTFT: Constant(5 * ms), Prefill: ms})
	first, second, third := &conn{}, &conn{}, &conn{}
	b.ask(first, 0, prompt(numbered(40)))
	b.ask(second, 10*ms, prompt(numbered(40))) // the first is still being computed
	b.ask(third, 100*ms, prompt(numbered(40)))
	b.until(time.Second)
	b.expectTimes("first", first, 45*ms)
	b.expectTimes("second", second, 55*ms)
	b.expectTimes("third, of which 32 tokens are cached", third, 113*ms)
	text := string(b.k.metrics.append(nil, b.k.timing.load()))
	for _, want := range []string{
		"prefix_cache_queries_total{engine=\"0\",model_name=\"sim\"} 120\n", "prefix_cache_hits_total{engine=\"0\",model_name=\"sim\"} 32\n",
	} {
		if !strings.Contains(text, "\nvllm:"+want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestTheLeastRecentlyUsedGoesFirst(t *testing.T) {
	mark := func(s string) string { return prompt(s + " " + numbered(31)) } // two whole blocks
	got := cachedOf(t, Config{PrefixCache: true, KVTokens: 64}, mark("a"), mark("b"), mark("a"), mark("c"), mark("a"), mark("b"))
	if !slices.Equal(got, []int{0, 0, 16, 0, 16, 0}) {
		t.Errorf("room for two prompts, a b a c a b: got %v cached, want [0 0 16 0 16 0]", got)
	}
}

// TestBlocksAgreeWithAPlainModel holds the memory to one that is simple enough to be seen to be right.
func TestBlocksAgreeWithAPlainModel(t *testing.T) {
	const most = 20
	r := rand.New(rand.NewPCG(1, 2))
	b := newBlocks(most)
	var held [][]int32
	var names [][]uint64
	recent := []uint64{} // names of free blocks, the one to go first at the front
	holders := map[uint64]int{}
	for step := range 20000 {
		if r.IntN(2) == 0 && len(held) > 0 {
			i := r.IntN(len(held))
			b.release(held[i])
			for _, name := range slices.Backward(names[i]) {
				if holders[name]--; holders[name] == 0 {
					recent = append(recent, name)
				}
			}
			held, names = slices.Delete(held, i, i+1), slices.Delete(names, i, i+1)
		} else {
			var h []int32
			var ns []uint64
			family := uint64(r.IntN(8)) * 100
			for k := range uint64(r.IntN(6)) {
				name := family + k + 1
				n, ok := b.keep(name)
				if want := holders[name] > 0 || len(recent) > 0 || len(b.all)-1 <= most && len(holders) < most; ok != want {
					t.Fatalf("step %d: block kept %v, want %v", step, ok, want)
				}
				if !ok {
					break
				}
				switch at := slices.Index(recent, name); {
				case holders[name] > 0:
				case at >= 0:
					recent = slices.Delete(recent, at, at+1)
				case len(holders) == most:
					delete(holders, recent[0])
					recent = recent[1:]
				}
				holders[name]++
				h, ns = append(h, n), append(ns, name)
			}
			held, names = append(held, h), append(names, ns)
		}
		if b.free() != most-(len(holders)-len(recent)) {
			t.Fatalf("step %d: %d free, want %d", step, b.free(), most-(len(holders)-len(recent)))
		}
		for name := range holders {
			if b.find([]uint64{name}) != 1 {
				t.Fatalf("step %d: %d is not found", step, name)
			}
		}
		if len(b.named) != len(holders) {
			t.Fatalf("step %d: %d blocks are named, want %d", step, len(b.named), len(holders))
		}
	}
}
