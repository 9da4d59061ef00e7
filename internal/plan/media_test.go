package plan_test

import (
	"bytes"
	"image"
	_ "image/png"
	"math"
	"strings"
	"testing"

	"tare/internal/plan"
)

// Each request has as many pictures, videos and sounds as are drawn for it, of the sizes and lengths in proportion to their weights, each in its
// place; pictures and sounds are like none other, videos are of four.
func TestPromptsHaveMediaOfAllKindsBesideThem(t *testing.T) {
	const n = 400
	counts, sizes, lengths, films := map[string]int{}, map[int]int{}, map[int]int{}, map[string]bool{}
	seen := map[string]bool{}
	for _, r := range made(t, asked(t, n, func(w *plan.Workload) {
		w.Images = plan.Images{Count: "uniform(1,3)", Width: 1, Height: 1, Format: "png", Place: plan.PlaceBefore, Sizes: "32x16*3 48x16"}
		w.Videos = plan.Videos{Count: "1", Sizes: "16x16", Frames: 2, Place: plan.PlaceBehind}
		w.Audio = plan.Audio{Count: "1", Lengths: "50ms 100ms*4", Place: plan.PlaceBehind}
	})) {
		for _, m := range r.Messages[0].Media {
			counts[m.MediaType]++
			kind, _, _ := strings.Cut(m.MediaType, "/")
			if m.First != (kind == "image") {
				t.Fatalf("%s stands before the text: %v", m.MediaType, m.First)
			}
			if kind == "video" {
				films[string(m.Bytes)] = true
				if !bytes.Contains(m.Bytes, []byte("ftypisom")) || bytes.Count(m.Bytes, []byte("\xff\xd8\xff")) != 2 {
					t.Fatal("a video is no MP4 with two JPEG pictures in it")
				}
				continue
			}
			if seen[string(m.Bytes)] {
				t.Fatalf("a %s comes twice", m.MediaType)
			}
			seen[string(m.Bytes)] = true
			if kind == "audio" {
				lengths[len(m.Bytes)]++
				continue
			}
			picture, _, err := image.Decode(bytes.NewReader(m.Bytes))
			if err != nil || picture.Bounds().Dy() != 16 {
				t.Fatalf("picture: %v, %v", picture.Bounds(), err)
			}
			sizes[picture.Bounds().Dx()]++
		}
	}
	near := func(what string, got, want int) {
		if math.Abs(float64(got-want)) > 4*math.Sqrt(float64(want)) {
			t.Errorf("%s: got %d, want about %d", what, got, want)
		}
	}
	near("pictures", counts["image/png"], 2*n)
	near("pictures of 32 pixels", sizes[32], counts["image/png"]*3/4)
	near("sounds of 100 ms", lengths[44+2*1600], n*4/5)
	near("sounds of 50 ms", lengths[44+2*800], n/5)
	if counts["video/mp4"] != n || counts["audio/wav"] != n || len(films) != 4 {
		t.Errorf("got %v media, %d different videos, want %d videos of 4 and as many sounds", counts, len(films), n)
	}
}

func TestMediaThatCannotBeAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"images: {count: 65}":                     "workload.images.count: must be at most 64",
		"images: {count: 'poisson(1000)'}":        "workload.images.count: must be mostly at most 64",
		"images: {count: 'normal(3000,2)'}":       "workload.images.count: must be mostly at most 64",
		"audio: {count: 'zipf(1,500,min=100)'}":   "workload.audio.count: must be mostly at most 64",
		"images: {count: 'file(x)'}":              "workload.images.count: must not be a file",
		"images: {count: 1, sizes: 5x}":           `workload.images.sizes: must be sizes within`,
		"images: {count: 1, sizes: 5x5*0}":        `workload.images.sizes: must be sizes within`,
		"images: {count: 1, sizes: ' '}":          "workload.images.sizes: must name a size",
		"videos: {count: 1, sizes: ''}":           "workload.videos.sizes: must name a size",
		"audio: {count: 1, lengths: ' '}":         "workload.audio.lengths: must name a duration",
		"videos: {count: 1, frames: 0}":           "workload.videos.frames: must be at least 1",
		"audio: {count: 1, lengths: 1h}":          "workload.audio.lengths: must be durations within",
		"{dataset: {file: x}, audio: {count: 1}}": "workload.audio.count: does not go with workload.dataset.file",
	} {
		_, err := draft(enough + "workload:\n  " + strings.ReplaceAll(text, "{dataset: {file: x}, audio: {count: 1}}", "dataset: {file: x}\n  audio: {count: 1}") + "\n").Spec()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
