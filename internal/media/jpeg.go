package media

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// jpegBytes returns what a JPEG needs: its planes, of whole cells; all coefficients if it
// comes in several passes; and four channels if its colors are not those of a camera.
func (h *header) jpegBytes(r io.ReaderAt, size int64) (int64, error) {
	f, err := firstFrame(bufio.NewReader(io.NewSectionReader(r, 0, size)))
	if err != nil {
		return 0, damaged(err)
	}
	if f.width != h.width || f.height != h.height {
		return 0, damaged(errors.New("jpeg: two frames"))
	}
	bytes := f.planes()
	if h.progressive = f.progressive; f.progressive {
		bytes *= 5
	}
	if converted := bytes + 4*int64(h.width)*int64(h.height); len(f.parts) == 4 || len(f.parts) == 3 && (f.isRGB() || converted > MaxDecoded && adobeRGB(r, size)) {
		bytes = converted
	}
	return bytes, nil
}

// frame is what the first frame header of a JPEG says.
type frame struct {
	width, height int
	progressive   bool
	parts         [][3]byte // of each component its name, how it is sampled, and its table
}

// firstFrame finds the first frame header as the decoder does, which skips what is no
// segment.
func firstFrame(r *bufio.Reader) (f frame, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	for {
		marker, err := nextMarker(r)
		if err != nil {
			return f, err
		}
		if marker == 0 || marker >= 0xd0 && marker <= 0xd7 {
			continue // without a length
		}
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return f, err
		}
		length := int(binary.BigEndian.Uint16(head[:])) - 2
		switch {
		case marker == 0xd9 || marker == 0xda || length < 0:
			return f, errors.New("jpeg: no frame header")
		case marker < 0xc0 || marker > 0xc2:
			if _, err := r.Discard(length); err != nil {
				return f, err
			}
		default:
			return readFrame(r, length, marker == 0xc2)
		}
	}
}

// nextMarker returns what follows the next bytes of ones.
func nextMarker(r io.ByteReader) (marker byte, err error) {
	for marker != 0xff {
		if marker, err = r.ReadByte(); err != nil {
			return 0, err
		}
	}
	for marker == 0xff {
		if marker, err = r.ReadByte(); err != nil {
			return 0, err
		}
	}
	return marker, nil
}

func readFrame(r io.Reader, length int, progressive bool) (f frame, err error) {
	if length != 6+3 && length != 6+9 && length != 6+12 {
		return f, errors.New("jpeg: a number of components that there is not")
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(r, data); err != nil {
		return f, err
	}
	f.height, f.width = int(binary.BigEndian.Uint16(data[1:])), int(binary.BigEndian.Uint16(data[3:]))
	f.progressive = progressive
	for part := data[6:]; len(part) > 0; part = part[3:] {
		across, down := part[1]>>4, part[1]&15
		if across < 1 || across > 4 || down < 1 || down > 4 {
			return f, fmt.Errorf("jpeg: sampled %d x %d", across, down)
		}
		f.parts = append(f.parts, [3]byte(part))
	}
	return f, nil
}

// planes returns the bytes of the planes of a frame.
func (f frame) planes() int64 {
	across, down, area := int64(f.parts[0][1]>>4), int64(f.parts[0][1]&15), int64(0)
	if len(f.parts) == 1 {
		across, down = 1, 1 // whatever it says
	}
	for _, part := range f.parts {
		area += max(1, int64(part[1]>>4)*int64(part[1]&15))
	}
	if len(f.parts) == 1 {
		area = 1
	}
	whole := func(n int, cell int64) int64 { return (int64(n) + cell - 1) / cell }
	return whole(f.width, 8*across) * whole(f.height, 8*down) * 64 * area
}

func (f frame) isRGB() bool {
	return f.parts[0][0] == 'R' && f.parts[1][0] == 'G' && f.parts[2][0] == 'B'
}

// adobeRGB reports whether a file has a segment, anywhere, that says that the colors of a
// JPEG are red, green and blue.
func adobeRGB(r io.ReaderAt, size int64) bool {
	const step, overlap = 64 << 10, 16
	buffer := make([]byte, step+overlap)
	for at := int64(0); at < size; at += step {
		part := buffer[:min(step+overlap, size-at)]
		if !readAt(r, part, at) {
			return true
		}
		for i := bytes.Index(part, []byte("Adobe")); i >= 0 && i+11 < len(part); {
			if i >= 4 && part[i-4] == 0xff && part[i-3] == 0xee && part[i+11] == 0 {
				return true
			}
			next := bytes.Index(part[i+1:], []byte("Adobe"))
			if next < 0 {
				break
			}
			i += 1 + next
		}
	}
	return false
}

// maxScans is how many passes over a JPEG are made: each may take a few bytes of the file
// and goes over the whole picture. Encoders make about ten at most.
const maxScans = 64

// patient is what a decoder reads of a file. It ends when its context does, and before the
// passes over a JPEG are too many.
type patient struct {
	ctx   context.Context
	r     io.Reader
	scans int  // -1 for what is no JPEG
	last  byte // that was read
}

func (p *patient) Read(to []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.r.Read(to)
	if p.scans >= 0 && n > 0 {
		const start = "\xff\xda"
		p.scans += bytes.Count(to[:n], []byte(start))
		if p.last == start[0] && to[0] == start[1] {
			p.scans++
		}
		if p.last = to[n-1]; p.scans > maxScans {
			return 0, errors.New("jpeg: too many scans")
		}
	}
	return n, err
}
