package media

import (
	"encoding/binary"
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
	at := int64(8)
	for range maxSegments {
		var head [8]byte
		if at+8 > size || !readAt(r, head[:], at) || string(head[4:]) == "tRNS" {
			return true
		}
		if string(head[4:]) == "IDAT" {
			return false
		}
		at += int64(binary.BigEndian.Uint32(head[:])) + 12
	}
	return true
}

// webpBytes follows the chunks up to the picture. None may be longer than the file: the
// decoder makes room for what a chunk says it has.
func webpBytes(r io.ReaderAt, size, pixels int64) (int64, error) {
	bytes := int64(0)
	at := int64(12)
	for range maxSegments {
		var head [8]byte
		if !readAt(r, head[:], at) {
			break
		}
		length := int64(binary.LittleEndian.Uint32(head[4:]))
		if length > size-at-8 {
			return 0, damaged(errors.New("webp: a chunk is longer than the file"))
		}
		switch string(head[:4]) {
		case "VP8L":
			return bytes + 7*pixels, nil
		case "VP8 ":
			return bytes + 2*pixels + length, nil
		case "ALPH":
			bytes += 8 * pixels
		}
		at += 8 + length + length&1
	}
	return 0, damaged(errors.New("webp: no picture"))
}
