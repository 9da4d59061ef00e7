package scrape

import (
	"net/http"
	"os"
	"testing"
)

func BenchmarkPage(b *testing.B) {
	for _, name := range []string{"vllm", "openmetrics"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := new(reader)
			for b.Loop() {
				if _, err := r.parse(http.Header{}, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
