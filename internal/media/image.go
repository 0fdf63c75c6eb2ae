package media

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"runtime"

	"golang.org/x/image/webp"

	"remote-agent/internal/fault"
)

// What a model is shown of a picture: what the providers scale larger ones down to
// (Anthropic's documentation: 1,568 pixels and about 1,600 tokens of 750 pixels).
const (
	MaxEdge   = 1568
	MaxPixels = 1_200_000
)

// MaxDecoded bounds the memory of a decoded picture, in bytes. It is enough for 13
// megapixels in four channels and for 34 of a camera's JPEG.
const MaxDecoded = 52 << 20

const (
	jpegQuality = 88
	maxPNG      = 1 << 20 // a larger one is stored as JPEG
	collectFrom = 8 << 20 // what a decoded picture leaves is collected from here on
	maxTrouble  = 60      // characters of a decoder's error in the log
)

// Picture is a picture as a model gets it: upright, at most MaxEdge on a side and
// MaxPixels in all, without anything that the file had besides.
type Picture struct {
	Data          []byte
	Kind          Kind // JPEG or PNG
	Width, Height int

	FromWidth, FromHeight int // of what came, as it is to be seen
}

// Decoder decodes pictures, one at a time. It is safe for concurrent use.
type Decoder struct{ slot chan struct{} }

// NewDecoder returns a Decoder.
func NewDecoder() *Decoder { return &Decoder{slot: make(chan struct{}, 1)} }

// Shrink decodes the picture of size bytes in r, the first frame of an animation,
// and returns it as a model gets it. It waits for its turn until ctx is done.
// fault.Invalid says in its public text why the file cannot be used.
func (d *Decoder) Shrink(ctx context.Context, r io.ReaderAt, size int64) (Picture, error) {
	select {
	case d.slot <- struct{}{}:
	case <-ctx.Done():
		return Picture{}, ctx.Err()
	}
	defer func() { <-d.slot }()
	h, err := examine(r, size)
	if err != nil {
		return Picture{}, err
	}
	if h.cost > collectFrom {
		// The garbage of one picture would be counted as what the next may double.
		defer runtime.GC()
	}
	return h.shrink(ctx, r, size)
}

// header is what is known of a picture before it is decoded.
type header struct {
	kind          Kind
	width, height int
	cost          int64 // bytes, decoded
	progressive   bool  // a JPEG in several passes
	orientation   int
}

// examine reads the header of a picture and refuses what is too large.
func examine(r io.ReaderAt, size int64) (header, error) {
	head := make([]byte, min(size, SniffLen))
	if !readAt(r, head, 0) {
		return header{}, refused("the file cannot be read")
	}
	h := header{kind: Sniff(head)}
	if !h.kind.IsImage() {
		return header{}, refused("%s", Reason(head))
	}
	config, err := h.kind.config(io.NewSectionReader(r, 0, size))
	if err != nil {
		return header{}, damaged(err)
	}
	if h.width, h.height = config.Width, config.Height; h.width < 1 || h.height < 1 {
		return header{}, refused("the picture is empty")
	}
	pixels := int64(h.width) * int64(h.height)
	if h.cost, err = h.decodedBytes(r, size, config); err != nil {
		return header{}, err
	}
	if h.cost > MaxDecoded {
		if h.progressive {
			return header{}, refused("the picture has %s megapixels and is saved in several passes (a progressive JPEG), which takes too much memory here; send a smaller one", megapixels(pixels))
		}
		return header{}, refused("the picture has %s megapixels, more than can be looked at here; send a smaller one", megapixels(pixels))
	}
	h.orientation = orientation(h.kind, r, size)
	return h, nil
}

func megapixels(pixels int64) string {
	if pixels >= 10_000_000 {
		return fmt.Sprint(pixels / 1_000_000)
	}
	return fmt.Sprintf("%.1f", float64(pixels)/1_000_000)
}

// decoders are those of the kinds of pictures. That of GIF decodes the first frame only.
var decoders = map[Kind]struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}{
	JPEG: {jpeg.DecodeConfig, jpeg.Decode}, PNG: {png.DecodeConfig, png.Decode},
	WebP: {webp.DecodeConfig, webp.Decode}, GIF: {gif.DecodeConfig, gif.Decode},
}

func (k Kind) config(r io.Reader) (config image.Config, err error) {
	defer rescue(&err)
	return decoders[k].config(bufio.NewReader(r))
}

// rescue makes an error of a panic in a decoder, which reads what strangers send.
func rescue(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the decoder panicked: %v", p)
	}
}

func damaged(err error) error {
	said := err.Error()
	if len(said) > maxTrouble {
		said = said[:maxTrouble]
	}
	return &fault.Error{Kind: fault.Invalid, Public: "the picture is damaged or of a kind that cannot be read", Err: errors.New(said)}
}

// shrink decodes the picture and makes it what a model gets.
func (h header) shrink(ctx context.Context, r io.ReaderAt, size int64) (Picture, error) {
	source := &patient{ctx: ctx, r: io.NewSectionReader(r, 0, size), scans: -1}
	if h.kind == JPEG {
		source.scans = 0
	}
	decoded, err := h.decode(bufio.NewReaderSize(source, 64<<10))
	switch {
	case ctx.Err() != nil:
		return Picture{}, ctx.Err()
	case err != nil:
		return Picture{}, damaged(err)
	}
	bounds := decoded.Bounds() // of a GIF: of its first frame
	if bounds.Empty() {
		return Picture{}, refused("the picture is empty")
	}
	width, height := fit(bounds.Dx(), bounds.Dy())
	small, lossy := reduce(decoded, width, height)
	scaled := width != bounds.Dx() || height != bounds.Dy()
	small = turn(small, h.orientation)
	p := Picture{Width: small.Bounds().Dx(), Height: small.Bounds().Dy(), FromWidth: bounds.Dx(), FromHeight: bounds.Dy()}
	if h.orientation >= 5 {
		p.FromWidth, p.FromHeight = p.FromHeight, p.FromWidth
	}
	p.Data, p.Kind, err = encode(small, !lossy && !scaled)
	return p, err
}

func (h header) decode(r io.Reader) (m image.Image, err error) {
	defer rescue(&err)
	return decoders[h.kind].decode(r)
}

// fit returns the size of a picture within MaxEdge and MaxPixels.
func fit(width, height int) (w, h int) {
	shrink := min(1, float64(MaxEdge)/float64(max(width, height)), math.Sqrt(MaxPixels/(float64(width)*float64(height))))
	return max(1, int(float64(width)*shrink)), max(1, int(float64(height)*shrink))
}

// encode returns a picture as a file: PNG if it should be exact and is not large,
// else JPEG.
func encode(m image.Image, exact bool) ([]byte, Kind, error) {
	var out bytes.Buffer
	if exact {
		if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, m); err != nil {
			return nil, Unknown, fmt.Errorf("encode PNG: %w", err)
		}
		if out.Len() <= maxPNG {
			return out.Bytes(), PNG, nil
		}
		out.Reset()
	}
	if err := jpeg.Encode(&out, m, &jpeg.Options{Quality: jpegQuality}); err != nil {
		return nil, Unknown, fmt.Errorf("encode JPEG: %w", err)
	}
	return out.Bytes(), JPEG, nil
}
