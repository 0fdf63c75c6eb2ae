package media

import (
	"encoding/binary"
	"math"

	"golang.org/x/image/draw"
)

// raster is a picture that is read row by row: a plane of one channel, or pixels of
// three.
type raster struct {
	width, height, channels int
	row                     func(y int, to []byte)
}

// scale returns a picture of the given size, without gaps between its rows. It first
// averages whole cells while that leaves at least half as many pixels again as are wanted,
// then filters with Catmull-Rom, and holds no more than a few rows besides the result.
// Behind three channels it leaves room for a fourth.
func (s raster) scale(width, height int) []byte {
	pix := make([]byte, width*height*s.channels, width*height*(s.channels+s.channels/3))
	if width == s.width && height == s.height {
		for y := range height {
			s.row(y, pix[y*width*s.channels:(y+1)*width*s.channels])
		}
		return pix
	}
	s = s.averaged(max(1, int(float64(s.width)/float64(width)/1.5)), max(1, int(float64(s.height)/float64(height)/1.5)))
	stride := width * s.channels
	across, down := weights(s.width, width), weights(s.height, height)
	ring := make([][]int32, down.most)
	for i := range ring {
		ring[i] = make([]int32, stride)
	}
	source, sum := make([]byte, s.width*s.channels), make([]int32, stride)
	have := 0 // rows that were filtered across
	for y := range height {
		for ; have < down.first[y]+len(down.of[y]); have++ {
			s.row(have, source)
			across.filter(source, ring[have%len(ring)], s.channels)
		}
		clear(sum)
		for i, weight := range down.of[y] {
			row := ring[(down.first[y]+i)%len(ring)]
			for x := range row[:len(sum)] {
				sum[x] += row[x] * weight
			}
		}
		to := pix[y*stride : (y+1)*stride]
		for x, v := range sum {
			to[x] = clamp((v + 1<<(sumBits-1)) >> sumBits)
		}
	}
	return pix
}

// Fixed-point numbers: a weight has weightBits behind its point, a row that was
// filtered across keeps rowBits, and the sum has both.
const (
	weightBits = 14
	rowBits    = 6
	sumBits    = weightBits + rowBits
)

// kernel has for each place of the result where its sources begin, and their
// weights, which add up to one.
type kernel struct {
	first []int
	of    [][]int32
	most  int // of the sources of one place
}

func weights(from, to int) kernel {
	k := kernel{first: make([]int, to), of: make([][]int32, to)}
	ratio := float64(from) / float64(to)
	stretch := max(ratio, 1)
	reach := draw.CatmullRom.Support * stretch
	for i := range to {
		center := (float64(i)+0.5)*ratio - 0.5
		first, last := max(0, int(math.Ceil(center-reach))), min(from-1, int(math.Floor(center+reach)))
		raw := make([]float64, last-first+1)
		total := 0.0
		for j := range raw {
			distance := math.Abs(float64(first+j)-center) / stretch
			if distance < draw.CatmullRom.Support {
				raw[j] = draw.CatmullRom.At(distance)
			}
			total += raw[j]
		}
		k.first[i], k.of[i] = first, make([]int32, len(raw))
		rest := int32(1 << weightBits)
		heaviest := 0
		for j, w := range raw {
			k.of[i][j] = int32(math.Round(w / total * (1 << weightBits)))
			rest -= k.of[i][j]
			if raw[j] > raw[heaviest] {
				heaviest = j
			}
		}
		k.of[i][heaviest] += rest
		k.most = max(k.most, len(raw))
	}
	return k
}

// filter filters a row across.
func (k kernel) filter(source []byte, to []int32, channels int) {
	if channels == 1 {
		for i, first := range k.first {
			sum := int32(0)
			part := source[first:]
			for j, weight := range k.of[i] {
				sum += int32(part[j]) * weight
			}
			to[i] = (sum + 1<<(weightBits-rowBits-1)) >> (weightBits - rowBits)
		}
		return
	}
	for i, first := range k.first {
		var r, g, b int32
		part := source[first*3:]
		for j, weight := range k.of[i] {
			pixel := part[j*3 : j*3+3 : j*3+3]
			r += int32(pixel[0]) * weight
			g += int32(pixel[1]) * weight
			b += int32(pixel[2]) * weight
		}
		const half = 1 << (weightBits - rowBits - 1)
		to[i*3], to[i*3+1], to[i*3+2] = (r+half)>>(weightBits-rowBits), (g+half)>>(weightBits-rowBits), (b+half)>>(weightBits-rowBits)
	}
}

func clamp(v int32) byte { return byte(max(0, min(255, v))) }

// averaged is s with cells of about x times y pixels made one.
func (s raster) averaged(x, y int) raster {
	if x == 1 && y == 1 {
		return s
	}
	width, height := max(1, s.width/x), max(1, s.height/y)
	source, sums := make([]byte, s.width*s.channels), make([]uint32, width*s.channels)
	edges := make([]int, width+1)
	for i := range edges {
		edges[i] = i * s.width / width
	}
	if s.channels == 1 && x == 2 && s.width == 2*width && s.height == 2*height {
		return s.halved(source)
	}
	return raster{width: width, height: height, channels: s.channels, row: func(to int, out []byte) {
		clear(sums)
		from, until := to*s.height/height, (to+1)*s.height/height
		for y := from; y < until; y++ {
			s.row(y, source)
			addCells(source, sums, edges, s.channels)
		}
		divide(sums, out, edges, s.channels, until-from)
	}}
}

// halved is averaged for cells of two times two pixels of one channel, the usual case of a
// camera's picture: eight pixels of a row at once, in four sums of 16 bits.
func (s raster) halved(first []byte) raster {
	const even = 0x00ff00ff00ff00ff
	second := make([]byte, len(first))
	return raster{width: s.width / 2, height: s.height / 2, channels: 1, row: func(to int, out []byte) {
		s.row(2*to, first)
		s.row(2*to+1, second)
		x := 0
		for ; x+4 <= len(out); x += 4 {
			a, b := binary.LittleEndian.Uint64(first[2*x:]), binary.LittleEndian.Uint64(second[2*x:])
			sums := (a & even) + (a >> 8 & even) + (b & even) + (b >> 8 & even)
			sums = (sums + 0x0002000200020002) >> 2 & even
			sums |= sums >> 8
			binary.LittleEndian.PutUint32(out[x:], uint32(sums&0xffff|sums>>16&0xffff0000)) //nolint:gosec // the upper half is empty
		}
		for ; x < len(out); x++ {
			out[x] = byte((uint32(first[2*x]) + uint32(first[2*x+1]) + uint32(second[2*x]) + uint32(second[2*x+1]) + 2) / 4) //nolint:gosec // an average
		}
	}}
}

// addCells adds the pixels between two edges to the sum of their cell.
func addCells(source []byte, sums []uint32, edges []int, channels int) {
	for x, first := range edges[:len(edges)-1] {
		for i := first; i < edges[x+1]; i++ {
			for c := range channels {
				sums[x*channels+c] += uint32(source[i*channels+c])
			}
		}
	}
}

// divide makes averages of sums over so many rows.
func divide(sums []uint32, out []byte, edges []int, channels, rows int) {
	const point = 16
	cells, share := 0, uint32(0)
	for x, first := range edges[:len(edges)-1] {
		if n := (edges[x+1] - first) * rows; n != cells {
			cells, share = n, uint32((1<<point)+n-1)/uint32(n) //nolint:gosec // a cell has fewer pixels than a picture
		}
		for c := x * channels; c < (x+1)*channels; c++ {
			out[c] = byte(min(255, (sums[c]*share+1<<(point-1))>>point))
		}
	}
}
