// Package sketch summarizes embeddings in 112 bytes each, so that a hundred
// thousand of them are looked through in a few milliseconds. A sketch only says
// about how similar a vector is, with a bound on the error: who searches takes
// the best of a Shortlist and compares their whole vectors.
//
// The method is that of RaBitQ (Gao and Long, 2024): the vector is turned by a
// fixed rotation, which spreads what it says evenly over its numbers, and two bits
// of each number are kept. The rotation and the layout are stored data: changing
// them makes stored sketches useless.
package sketch

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"remote-agent/internal/memory"
)

// Sizes of the stored form.
const (
	Size     = 112 // bytes of one sketch
	PerChunk = 64  // sketches stored together, so that they fit into a page of PostgreSQL
)

// The layout of a sketch, little-endian: the id of its row, 0 for none; when it
// expires, in seconds since 1970, 0 for never; the product of the vector with what
// the bits stand for; the low bits of its numbers, then the high ones. The four
// values of two bits stand for -3, -1, 1 and 3.
const (
	atExpires = 8
	atProduct = 12
	atBits    = 16
	words     = memory.Dimensions / 64
)

// outer is from where on a number counts as 3 and not as 1: of four levels for
// normally distributed numbers, which the rotation makes, this errs least.
var outer = float32(0.98 / math.Sqrt(memory.Dimensions))

// Append appends the sketch of a vector to a chunk. The id is above 0; expires
// may be zero. The vector must pass its Check.
func Append(chunk []byte, id int64, expires time.Time, v memory.Vector) []byte {
	turned := rotate(v)
	var low, high [words]uint64
	var product float64
	for i, x := range turned {
		level := 0 // -3
		for _, bound := range []float32{-outer, 0, outer} {
			if x > bound {
				level++
			}
		}
		product += float64(x) * float64(2*level-3)
		low[i/64] |= uint64(level&1) << (i % 64)   //nolint:gosec // 0 or 1
		high[i/64] |= uint64(level>>1) << (i % 64) //nolint:gosec // 0 or 1
	}
	chunk = binary.LittleEndian.AppendUint64(chunk, uint64(id)) //nolint:gosec // the bits of it
	chunk = binary.LittleEndian.AppendUint32(chunk, seconds(expires))
	chunk = binary.LittleEndian.AppendUint32(chunk, math.Float32bits(float32(product)))
	for w := range words {
		chunk = binary.LittleEndian.AppendUint64(chunk, low[w])
	}
	for w := range words {
		chunk = binary.LittleEndian.AppendUint64(chunk, high[w])
	}
	return chunk
}

// seconds rounds up, so that nothing expires here before it does.
func seconds(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(max(1, min(t.Add(time.Second-1).Unix(), math.MaxUint32))) //nolint:gosec // bounded
}

// planes is how many bits of each number of the question are used; the highest
// coarse of them tell that most sketches are not similar enough.
const (
	planes = 5
	coarse = 2
)

// Probe estimates how similar one vector is to many sketches.
type Probe struct {
	planes    [words][planes]uint64
	low, step float64 // what a number of the planes stands for
	sum       float64 // of all numbers
	rest      float64 // what the planes below the coarse ones say of a number on average
}

// NewProbe returns a Probe of v, which must pass its Check.
func NewProbe(v memory.Vector) *Probe {
	turned := rotate(v)
	most := float32(0)
	for _, x := range turned {
		most = max(most, x, -x)
	}
	p := &Probe{low: -float64(most), step: 2 * float64(most) / (1<<planes - 1)}
	for i, x := range turned {
		p.sum += float64(x)
		level := uint(math.Round((float64(x) - p.low) / p.step))
		for b := range planes {
			p.planes[i/64][b] |= uint64(level>>b&1) << (i % 64)
		}
		p.rest += float64(level&(1<<(planes-coarse)-1)) / memory.Dimensions
	}
	return p
}

// spread is how many standard deviations of the estimate's error Upper allows, and
// slack what it allows besides. rough is how far off the coarse planes are at most,
// in steps of them: four standard deviations of the sum of 384 products of what they
// leave out and two bits.
const (
	spread = 3.5
	slack  = 0.01
	rough  = 4 * 51
)

// estimate returns the estimated cosine and a bound that the true one hardly ever
// exceeds. Where that bound is as good as surely below floor, it may return another
// one that is, too, which takes a fraction of the time.
func (p *Probe) estimate(s *entry, floor float64) (cosine, upper float64) {
	if s.scale == 0 {
		return 0, 1 // not what Append wrote: let the whole vector decide
	}
	weighted := 0
	for w := range words {
		low, high, q := s.low[w], s.high[w], &p.planes[w]
		next, top := q[planes-2], q[planes-1]
		weighted += bits.OnesCount64(low&next) + 2*(bits.OnesCount64(high&next)+bits.OnesCount64(low&top)) + 4*bits.OnesCount64(high&top)
	}
	weighted <<= planes - coarse
	if upper = p.cosine(s, float64(weighted)+p.rest*s.sum+rough) + s.margin; upper < floor {
		return upper, upper
	}
	for w := range words {
		low, high, q := s.low[w], s.high[w], &p.planes[w]
		for b := range planes - coarse {
			weighted += (bits.OnesCount64(low&q[b]) + 2*bits.OnesCount64(high&q[b])) << b
		}
	}
	cosine = max(-1, min(1, p.cosine(s, float64(weighted))))
	return cosine, cosine + (s.margin-slack)*math.Sqrt(1-cosine*cosine) + slack
}

// cosine is what the product of a sketch with the planes amounts to.
func (p *Probe) cosine(s *entry, weighted float64) float64 {
	return (2*(p.step*weighted+p.low*s.sum) - 3*p.sum) * s.scale
}

// rotate returns v with length 1, turned by a fixed rotation: twice, signs are
// changed and three blocks of 128 numbers are mixed by a Hadamard transform; in
// between the blocks are dealt out among each other.
func rotate(v memory.Vector) (out [memory.Dimensions]float32) {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	scale := 1 / math.Sqrt(square) / block // two transforms, each makes it longer by the root of block
	var dealt [memory.Dimensions]float32
	for i, x := range v {
		dealt[i] = float32(float64(x) * scale)
	}
	mix(&dealt, 0x9e3779b97f4a7c15)
	for i, x := range dealt {
		out[i%3*block+i/3] = x
	}
	mix(&out, 0xd1b54a32d192ed03)
	return out
}

const block = memory.Dimensions / 3

func mix(v *[memory.Dimensions]float32, seed uint64) {
	for i := range v {
		seed += 0x9e3779b97f4a7c15 // splitmix64
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		if z>>63 == 1 {
			v[i] = -v[i]
		}
	}
	for at := 0; at < len(v); at += block {
		part := v[at : at+block]
		for half := 1; half < block; half *= 2 {
			for i := 0; i < block; i += 2 * half {
				for j := i; j < i+half; j++ {
					part[j], part[j+half] = part[j]+part[j+half], part[j]-part[j+half]
				}
			}
		}
	}
}
