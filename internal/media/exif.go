package media

import (
	"bytes"
	"encoding/binary"
	"io"
	"iter"
)

// upright is the orientation of a picture that is stored as it is to be seen.
const upright = 1

// orientation returns the Exif orientation (1 to 8) that a picture says it has, and
// upright where it says none. It reads the segments before the pixels only.
func orientation(kind Kind, r io.ReaderAt, size int64) int {
	switch kind {
	case JPEG:
		return jpegOrientation(r, size)
	case PNG:
		return chunkOrientation(r, size, pngChunks(r, size), "eXIf")
	case WebP:
		return chunkOrientation(r, size, riffChunks(r, size), "EXIF")
	default:
		return upright
	}
}

// maxSegments bounds how many parts of a file are looked at.
const maxSegments = 200

// chunk is a part of a file that says what it is, and how long.
type chunk struct {
	name       string
	at, length int64 // of its data
}

// pngChunks yields the chunks of a PNG.
func pngChunks(r io.ReaderAt, size int64) iter.Seq[chunk] {
	return chunks(r, size, 8, func(head [8]byte) (string, int64, int64) {
		length := int64(binary.BigEndian.Uint32(head[:]))
		return string(head[4:]), length, length + 4 // a sum follows
	})
}

// riffChunks yields the chunks of a WebP or WAV.
func riffChunks(r io.ReaderAt, size int64) iter.Seq[chunk] {
	return chunks(r, size, 12, func(head [8]byte) (string, int64, int64) {
		length := int64(binary.LittleEndian.Uint32(head[4:]))
		return string(head[:4]), length, length + length&1
	})
}

// chunks yields those of a file from a place on. read returns the name and the length
// that a head of eight bytes tells, and how far behind that the next one is.
func chunks(r io.ReaderAt, size, at int64, read func(head [8]byte) (name string, length, step int64)) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		for range maxSegments {
			var head [8]byte
			if at+8 > size || !readAt(r, head[:], at) {
				return
			}
			name, length, step := read(head)
			if !yield(chunk{name, at + 8, length}) {
				return
			}
			at += 8 + step
		}
	}
}

func jpegOrientation(r io.ReaderAt, size int64) int {
	at := int64(2)
	for range maxSegments {
		var head [4]byte
		if at+4 > size || !readAt(r, head[:], at) || head[0] != 0xff {
			return upright
		}
		if head[1] == 0xff { // fill
			at++
			continue
		}
		length := int64(binary.BigEndian.Uint16(head[2:]))
		if head[1] == 0xda || head[1] == 0xd9 || length < 2 { // the pixels begin
			return upright
		}
		if head[1] == 0xe1 {
			segment := make([]byte, min(length-2, size-at-4))
			if readAt(r, segment, at+4) {
				if tiff, is := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); is {
					return tiffOrientation(tiff)
				}
			}
		}
		at += 2 + length
	}
	return upright
}

// chunkOrientation looks for a chunk of a name.
func chunkOrientation(r io.ReaderAt, size int64, all iter.Seq[chunk], name string) int {
	for c := range all {
		if c.name != name {
			continue
		}
		tiff := make([]byte, min(c.length, 64<<10, size-c.at))
		if !readAt(r, tiff, c.at) {
			return upright
		}
		return tiffOrientation(bytes.TrimPrefix(tiff, []byte("Exif\x00\x00")))
	}
	return upright
}

func readAt(r io.ReaderAt, to []byte, at int64) bool {
	n, _ := r.ReadAt(to, at)
	return n == len(to)
}

// tiffOrientation reads tag 0x0112 of the first directory.
func tiffOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return upright
	}
	var order binary.ByteOrder
	switch string(tiff[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return upright
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return upright
	}
	entries := int64(order.Uint16(tiff[at:]))
	for i := range entries {
		entry := at + 2 + 12*i
		if entry+12 > int64(len(tiff)) {
			return upright
		}
		if order.Uint16(tiff[entry:]) != 0x0112 {
			continue
		}
		if o := int(order.Uint16(tiff[entry+8:])); o >= 1 && o <= 8 {
			return o
		}
		return upright
	}
	return upright
}
