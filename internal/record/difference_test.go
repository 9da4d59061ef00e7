package record_test

import (
	"slices"
	"testing"

	"tare/internal/record"
)

func TestDifferencesNameTheirPlaces(t *testing.T) {
	a := `{"same":1,"n":1.0,"list":[1,{"k":"x"}],"gone":{"deep":[1]},"null":null,"kind":[]}`
	b := `{"same":1,"n":1,"list":[1,{"k":"y"},3],"new":true,"null":0,"kind":{}}`
	got, err := record.Differences([]byte(a), []byte(b))
	if err != nil {
		t.Fatal(err)
	}
	want := []record.Difference{
		{"gone", `{"deep":[1]}`, ""}, {"kind", "[]", "{}"}, {"list[1].k", `"x"`, `"y"`}, {"list[2]", "", "3"}, {"n", "1.0", "1"},
		{"new", "", "true"}, {"null", "null", "0"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestDifferencesOfWhatIsNoJSON(t *testing.T) {
	if _, err := record.Differences([]byte(`{}`), []byte(`{"a":`)); err == nil {
		t.Error("got no error for half a document")
	}
	if got, err := record.Differences([]byte(`{"a": [1, 2]}`), []byte("{\n\"a\":[1,2]}")); err != nil || len(got) > 0 {
		t.Errorf("spaces: got %v, %v, want none", got, err)
	}
}
