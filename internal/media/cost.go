package media

import (
	"errors"
	"image"
	"image/color"
	"io"
)

// What the decoders need is counted with all that they leave behind, because that is
// there until it is collected.

// decodedBytes returns what the decoder will need.
func (h *header) decodedBytes(r io.ReaderAt, size int64, config image.Config) (int64, error) {
	pixels := int64(h.width) * int64(h.height)
	switch h.kind {
	case JPEG:
		return h.jpegBytes(r, size)
	case WebP:
		return webpBytes(r, size, pixels)
	case GIF:
		return 2 * pixels, nil // the rows of an interlaced one are copied
	default:
		return pngBytes(r, size, config, pixels), nil
	}
}

// pngBytes counts an interlaced picture twice: its seven passes are decoded each by itself.
func pngBytes(r io.ReaderAt, size int64, config image.Config, pixels int64) int64 {
	bytes := pixels * 4
	switch config.ColorModel {
	case color.GrayModel:
		if bytes = pixels; clearable(r, size) {
			bytes = pixels * 4
		}
	case color.Gray16Model:
		if bytes = pixels * 2; clearable(r, size) {
			bytes = pixels * 8
		}
	case color.NRGBA64Model, color.RGBA64Model:
		bytes = pixels * 8
	}
	if _, is := config.ColorModel.(color.Palette); is {
		bytes = pixels
	}
	var interlaced [1]byte
	if !readAt(r, interlaced[:], 28) || interlaced[0] != 0 {
		bytes *= 2
	}
	return bytes
}

// clearable reports whether a PNG may have a color that is see-through, for which the
// decoder adds a channel.
func clearable(r io.ReaderAt, size int64) bool {
	for c := range pngChunks(r, size) {
		switch c.name {
		case "tRNS":
			return true
		case "IDAT":
			return false
		}
	}
	return true
}

// webpBytes follows the chunks up to the picture. None may be longer than the file: the
// decoder makes room for what a chunk says it has.
func webpBytes(r io.ReaderAt, size, pixels int64) (int64, error) {
	bytes := int64(0)
	for c := range riffChunks(r, size) {
		if c.length > size-c.at {
			return 0, damaged(errors.New("webp: a chunk is longer than the file"))
		}
		switch c.name {
		case "VP8L":
			return bytes + 7*pixels, nil
		case "VP8 ":
			return bytes + 2*pixels + c.length, nil
		case "ALPH":
			bytes += 8 * pixels
		}
	}
	return 0, damaged(errors.New("webp: no picture"))
}
