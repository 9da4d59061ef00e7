package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"
)

func TestVocabularyKeepsWhatIsSpelledInASCII(t *testing.T) {
	ids := map[string]int{"a": 0, "Ġ": 1, "Ċ": 2, "ab": 3, "Ã": 4, "Ġa": 5, "b": 6, "Ã©": 7, "late": candidates}
	merges := []merge{{"a", "b"}, {"Ã", "©"}, {"Ġ", "a"}, {"Ġ", "Ã"}}
	v, err := newVocabulary(ids, merges, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "Ġ", "Ċ", "ab", "Ġa", "b"}; !slices.Equal(v.tokens[:v.plain], want) {
		t.Errorf("tokens: got %q, want %q", v.tokens[:v.plain], want)
	}
	if want := []string{"a b", "Ġ a"}; !slices.Equal(v.merges, want) {
		t.Errorf("merges: got %q, want %q", v.merges, want)
	}
	if got, want := v.id("<|eot_id|>"), uint32(v.plain+4); got != want {
		t.Errorf("end of turn: got id %d, want %d", got, want)
	}
}

func TestMergeRulesReadInBothSpellings(t *testing.T) {
	var got []merge
	if err := json.Unmarshal([]byte(`["Ġ t", ["he", "re"]]`), &got); err != nil {
		t.Fatal(err)
	}
	if want := []merge{{"Ġ", "t"}, {"he", "re"}}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestModelFileEndsWithItsLastTensor(t *testing.T) {
	v := vocabulary{tokens: append([]string{"a", "Ġ", "Ċ"}, specials...), plain: 3}
	var file bytes.Buffer
	writeModel(&file, v, 1)

	var weights uint64
	for _, ts := range tensors(uint64(len(v.tokens))) {
		weights += padded(ts.len() * 4)
	}
	head := uint64(file.Len()) - weights
	if head%alignment != 0 {
		t.Errorf("weights start at byte %d, want a multiple of %d", head, alignment)
	}
	if got := binary.LittleEndian.Uint64(file.Bytes()[8:]); got != uint64(len(tensors(1))) {
		t.Errorf("tensors: got %d, want %d", got, len(tensors(1)))
	}
}
