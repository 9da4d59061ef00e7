package store_test

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"

	"tare/internal/plan/store"
)

func TestRowsComeBackAsTheyWere(t *testing.T) {
	rows := []store.Row{
		{Index: 1, Stage: 2, Due: 3, Think: 4, Session: 5, Turn: 6, Class: "gold", Model: "adapter", InputTokens: 7, OutputTokens: 8, Body: `{"a":"<&>\u2028 \"x\""}`},
		{Index: 1<<53 + 1, Body: "\x00\x1f\u2028\u00e9\U0001F600\ufffd\n{}"},
		{Body: strings.Repeat("long ", 100_000)},
		{},
	}
	var file bytes.Buffer
	w, err := store.NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := store.NewReader(io.NopCloser(&file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got store.Row
	for i, want := range rows {
		if err := r.Next(&got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("row %d: got %+v, %v, want %+v", i, got, err, want)
		}
	}
	if err := r.Next(&got); err != io.EOF {
		t.Errorf("after the last row: got %v, want EOF", err)
	}
}

func TestABodyThatJSONWouldChangeIsRefused(t *testing.T) {
	w, err := store.NewWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(&store.Row{Index: 7, Body: "\xff"}); err == nil || !strings.Contains(err.Error(), "request 7") {
		t.Errorf("got %v, want an error that names request 7", err)
	}
}

func TestWhatIsNoStoreIsAnError(t *testing.T) {
	r, err := store.NewReader(io.NopCloser(strings.NewReader("no zstandard at all")))
	if err != nil {
		return
	}
	defer r.Close()
	if err := r.Next(new(store.Row)); err == nil || err == io.EOF {
		t.Errorf("got %v, want an error", err)
	}
}
