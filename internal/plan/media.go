package plan

import (
	"fmt"

	"tare/internal/plan/draw"
	"tare/internal/plan/workload"
)

// mostMedia is the largest number of pictures, of videos or of sounds beside a prompt.
const mostMedia = 64

// mediaFault says why so many pictures cannot be had.
func mediaFault(count Lengths) (reason, hint string) {
	l, err := workload.ParseLengths(string(count))
	l.Within.Most = min(l.Within.Most, mostMedia)
	const write = "write a number, uniform(LEAST,MOST), normal(MEAN,SD) or poisson(MEAN)"
	switch n, fixed := l.Fixed(); {
	case err != nil:
		return err.Error(), write
	case l.File != "":
		return "must not be a file", write
	case fixed && n > mostMedia, l.Family == "uniform" && l.Parameter[1] > mostMedia:
		return fmt.Sprintf("must be at most %d, got %s", mostMedia, shortened(string(count))), ""
	}
	if _, err := l.Sampler(nil); err != nil { // it would be drawn anew for ever
		return fmt.Sprintf("must be mostly at most %d, got %s: %v", mostMedia, shortened(string(count)), err), ""
	}
	return "", ""
}

func sizesFault(text string) (reason, hint string) {
	_, err := workload.ParseSizes(text)
	return textOfError(err), "write 640x480, or 1920x1080*3 640x640"
}

func textOfError(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// gallery makes the pictures, videos and sounds of requests. It is not safe for concurrent use.
type gallery struct {
	kinds    []mediaKind
	pictures workload.Pictures
	videos   workload.Videos
	sounds   workload.Sounds
}

// mediaKind is one of the three: how many a request has, and of which sort.
type mediaKind struct {
	count  workload.Sampler
	source *draw.Source
	first  bool
	which  draw.Categorical // of the sorts
	make   func(number uint64, sort int) (Medium, error)
}

// newGallery freezes what is beside prompts; the spec has no fault.
func newGallery(w *Workload, seed uint64) *gallery {
	g := &gallery{videos: workload.NewVideos(seed), sounds: workload.NewSounds(seed)}
	g.pictures.JPEG = w.Images.Format == "jpeg"
	g.pictures.Seed(seed)
	sizes, _ := workload.ParseSizes(w.Images.Sizes)
	if len(sizes) == 0 {
		sizes = []workload.Size{{Width: w.Images.Width, Height: w.Images.Height, Weight: 1}}
	}
	g.add(seed, "images", w.Images.Count, w.Images.Place, weights(sizes, func(s workload.Size) float64 { return s.Weight }), func(number uint64, sort int) (Medium, error) {
		g.pictures.Width, g.pictures.Height = sizes[sort].Width, sizes[sort].Height
		file, err := g.pictures.Draw(number)
		return Medium{MediaType: g.pictures.MediaType(), Bytes: file}, err
	})
	films, _ := workload.ParseSizes(w.Videos.Sizes)
	g.add(seed, "videos", w.Videos.Count, w.Videos.Place, weights(films, func(s workload.Size) float64 { return s.Weight }), func(number uint64, sort int) (Medium, error) {
		file, err := g.videos.Draw(number/mostMedia+number%mostMedia, films[sort], w.Videos.Frames)
		return Medium{MediaType: "video/mp4", Bytes: file}, err
	})
	spans, _ := workload.ParseSpans(w.Audio.Lengths)
	g.add(seed, "sounds", w.Audio.Count, w.Audio.Place, weights(spans, func(s workload.Span) float64 { return s.Weight }), func(number uint64, sort int) (Medium, error) {
		return Medium{MediaType: "audio/wav", Bytes: g.sounds.Draw(number, spans[sort].Length)}, nil
	})
	return g
}

func weights[T any](all []T, weight func(T) float64) (list []float64) {
	for _, one := range all {
		list = append(list, weight(one))
	}
	return list
}

func (g *gallery) add(seed uint64, stream string, count Lengths, place string, weights []float64, make func(uint64, int) (Medium, error)) {
	if count == "" {
		return
	}
	l, _ := workload.ParseLengths(string(count))
	l.Within.Most = min(l.Within.Most, mostMedia)
	k := mediaKind{source: draw.New(seed, stream), first: place == PlaceBefore, make: make}
	k.count, _ = l.Sampler(nil)
	k.which, _ = draw.NewCategorical(weights)
	g.kinds = append(g.kinds, k)
}

// append appends the media of a request.
func (g *gallery) append(dst []Medium, index int64) ([]Medium, error) {
	for i := range g.kinds {
		k := &g.kinds[i]
		k.source.Seek(uint64(index))
		for n := range k.count.Draw(k.source) {
			m, err := k.make(uint64(index)*mostMedia+uint64(n), k.which.Draw(k.source))
			if err != nil {
				return dst, err
			}
			m.First = k.first
			dst = append(dst, m)
		}
	}
	return dst, nil
}
