package workload

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"tare/internal/plan/draw"
)

// Pictures draws images of squares in random colours: small files. No two are alike but by chance, which the smallest leave room for.
type Pictures struct {
	Width, Height int // pixels
	JPEG          bool
	source        *draw.Source
}

// square is the width of a square in pixels.
const square = 16

// Seed starts the pictures of a seed.
func (p *Pictures) Seed(seed uint64) { p.source = draw.New(seed, "image") }

// MediaType is that of the files.
func (p *Pictures) MediaType() string {
	if p.JPEG {
		return "image/jpeg"
	}
	return "image/png"
}

// Draw returns the file of a picture.
func (p *Pictures) Draw(number uint64) ([]byte, error) {
	picture := p.picture(number)
	var file bytes.Buffer
	if p.JPEG {
		err := jpeg.Encode(&file, picture, &jpeg.Options{Quality: 85})
		return file.Bytes(), err
	}
	err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&file, picture)
	return file.Bytes(), err
}

func (p *Pictures) picture(number uint64) *image.RGBA {
	p.source.Seek(number)
	picture := image.NewRGBA(image.Rect(0, 0, p.Width, p.Height))
	for top := 0; top < p.Height; top += square {
		for left := 0; left < p.Width; left += square {
			bits := p.source.Uint64()
			c := color.RGBA{uint8(bits), uint8(bits >> 8), uint8(bits >> 16), 255}
			for y := top; y < min(top+square, p.Height); y++ {
				for x := left; x < min(left+square, p.Width); x++ {
					picture.SetRGBA(x, y, c)
				}
			}
		}
	}
	return picture
}
