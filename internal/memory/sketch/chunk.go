package sketch

import (
	"encoding/binary"
	"math"
	"math/bits"

	"remote-agent/internal/memory"
)

// Chunk is a stored chunk as Shortlist looks through it. It does not change and is
// safe for concurrent use.
type Chunk struct{ entries []entry }

// entry is a sketch with what each comparison would work out anew.
type entry struct {
	low, high [words]uint64
	id        int64
	sum       float64 // of its levels, from 0 to 3
	scale     float64 // one through its product; 0 where it is not what Append wrote
	margin    float64 // the most that Upper is above the estimate
	expires   uint32
}

// Decode reads what Append wrote, and keeps nothing of it. Sketches without an id
// are left out, and what is left after the last whole sketch is ignored.
func Decode(chunk []byte) *Chunk {
	entries := make([]entry, 0, len(chunk)/Size)
	for ; len(chunk) >= Size; chunk = chunk[Size:] {
		if id := binary.LittleEndian.Uint64(chunk); id != 0 {
			entries = append(entries, decode(chunk[:Size]))
		}
	}
	return &Chunk{entries: entries}
}

func decode(s []byte) entry {
	e := entry{
		id:      int64(binary.LittleEndian.Uint64(s)), //nolint:gosec // as Append wrote it
		expires: binary.LittleEndian.Uint32(s[atExpires:]),
	}
	outside, sum := 0, 0
	for w := range words {
		low, high := binary.LittleEndian.Uint64(s[atBits+8*w:]), binary.LittleEndian.Uint64(s[atBits+8*(words+w):])
		outside += bits.OnesCount64(^(low ^ high))
		sum += bits.OnesCount64(low) + 2*bits.OnesCount64(high)
		e.low[w], e.high[w] = low, high
	}
	product := float64(math.Float32frombits(binary.LittleEndian.Uint32(s[atProduct:])))
	square := float64(memory.Dimensions + 8*outside) // of what the bits stand for
	fit := product * product / square                // how well they stand for it, 1 is entirely
	if product > 0 && fit > 0.1 && fit < 1.01 {
		e.sum, e.scale = float64(sum), 1/product
		e.margin = spread*math.Sqrt(max(0, 1-fit)/fit/(memory.Dimensions-1)) + slack
	}
	return e
}
