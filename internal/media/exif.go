package media

import (
	"bytes"
	"encoding/binary"
	"io"
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
		return chunkOrientation(r, size, 8, "eXIf", binary.BigEndian, func(length int64) int64 { return length + 12 }, true)
	case WebP:
		return chunkOrientation(r, size, 12, "EXIF", binary.LittleEndian, func(length int64) int64 { return length + length&1 + 8 }, false)
	default:
		return upright
	}
}

// maxSegments bounds how many parts of a file are looked at for its orientation.
const maxSegments = 200

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

// chunkOrientation looks for a chunk of a name. In PNG the length comes first.
func chunkOrientation(r io.ReaderAt, size, at int64, name string, order binary.ByteOrder, next func(int64) int64, lengthFirst bool) int {
	for range maxSegments {
		var head [8]byte
		if at+8 > size || !readAt(r, head[:], at) {
			return upright
		}
		label, number := head[:4], head[4:]
		if lengthFirst {
			label, number = number, label
		}
		length := int64(order.Uint32(number))
		if string(label) == name {
			tiff := make([]byte, min(length, 64<<10, size-at-8))
			if !readAt(r, tiff, at+8) {
				return upright
			}
			return tiffOrientation(bytes.TrimPrefix(tiff, []byte("Exif\x00\x00")))
		}
		at += next(length)
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
