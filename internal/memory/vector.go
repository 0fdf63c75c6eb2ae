package memory

import (
	"encoding/binary"
	"math"

	"remote-agent/internal/fault"
)

// Dimensions is how long every embedding is.
const Dimensions = 384

// EncodedSize is how many bytes Encode returns.
const EncodedSize = 4 * Dimensions

// Vector is an embedding.
type Vector []float32

// Check returns fault.Invalid for what cannot be compared: a wrong length, a
// number that is not finite, or nothing but zeros. PostgreSQL takes NaN for
// greater than every number, so one such vector would match everything.
func (v Vector) Check() error {
	if len(v) != Dimensions {
		return fault.Newf(fault.Invalid, "An embedding has %d numbers, not %d; ask the embedding model for %d dimensions.", Dimensions, len(v), Dimensions)
	}
	var sum float64
	for i, x := range v {
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fault.Newf(fault.Invalid, "Number %d of an embedding is not finite.", i+1)
		}
		sum += f * f
	}
	if sum == 0 {
		return fault.New(fault.Invalid, "An embedding is all zeros, so it is like nothing.")
	}
	return nil
}

// Encode returns v as little-endian 32-bit floats.
func (v Vector) Encode() []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// Decode reads what Encode made. A wrong length is fault.Invalid.
func Decode(raw []byte) (Vector, error) {
	if len(raw) != EncodedSize {
		return nil, fault.Newf(fault.Invalid, "A stored embedding has %d bytes, not %d.", len(raw), EncodedSize)
	}
	v := make(Vector, Dimensions)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v, nil
}

// Comparable reports whether an encoded vector passes Check.
func Comparable(raw []byte) bool {
	var sum float64
	for at := 0; at+4 <= len(raw); at += 4 {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[at:])))
		sum += x * x // stays infinite or not a number
	}
	return len(raw) == EncodedSize && sum > 0 && !math.IsInf(sum, 1)
}

// Probe compares one vector with many encoded ones.
type Probe struct {
	vector [Dimensions]float32
	norm   float64 // 0 if the vector cannot be compared
}

// NewProbe returns a Probe of v.
func NewProbe(v Vector) *Probe {
	p := &Probe{}
	if v.Check() == nil {
		copy(p.vector[:], v)
		p.norm = math.Sqrt(dot64(v, v))
	}
	return p
}

func dot64(a, b Vector) (sum float64) {
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}

// Cosine returns the similarity to an encoded vector, and -1 for one that cannot
// be compared. It reads the bytes as they are stored, without a copy.
func (p *Probe) Cosine(raw []byte) float64 {
	if p.norm == 0 || len(raw) != EncodedSize {
		return -1
	}
	var d0, d1, d2, d3, s0, s1, s2, s3 float32 // independent sums, which the processor adds at once
	vector := p.vector[:]
	for len(raw) >= 16 && len(vector) >= 4 { // conditions that let the compiler leave out checks
		x0 := math.Float32frombits(binary.LittleEndian.Uint32(raw[0:4]))
		x1 := math.Float32frombits(binary.LittleEndian.Uint32(raw[4:8]))
		x2 := math.Float32frombits(binary.LittleEndian.Uint32(raw[8:12]))
		x3 := math.Float32frombits(binary.LittleEndian.Uint32(raw[12:16]))
		d0, s0 = d0+x0*vector[0], s0+x0*x0
		d1, s1 = d1+x1*vector[1], s1+x1*x1
		d2, s2 = d2+x2*vector[2], s2+x2*x2
		d3, s3 = d3+x3*vector[3], s3+x3*x3
		raw, vector = raw[16:], vector[4:]
	}
	sum := float64(d0) + float64(d1) + float64(d2) + float64(d3)
	square := float64(s0) + float64(s1) + float64(s2) + float64(s3)
	similarity := sum / (p.norm * math.Sqrt(square))
	if math.IsNaN(similarity) || math.IsInf(similarity, 0) {
		return -1 // zeros, or numbers too large to multiply
	}
	return max(-1, min(1, similarity))
}
