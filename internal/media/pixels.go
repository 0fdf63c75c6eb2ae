package media

import (
	"image"
	"image/color"
	"image/draw"
)

// reduce scales a decoded picture. What is see-through becomes white. lossy says that
// the picture came with the colors of a camera's compression.
func reduce(m image.Image, width, height int) (small image.Image, lossy bool) {
	if source, is := m.(*image.YCbCr); is {
		return reducePlanes(source, width, height), true
	}
	if source, is := m.(*image.NYCbCrA); is {
		m, lossy = source, true
	}
	if source, is := m.(*image.Gray); is {
		b := source.Rect
		s := raster{b.Dx(), b.Dy(), 1, func(y int, to []byte) { copy(to, source.Pix[y*source.Stride:]) }}
		return &image.Gray{Pix: s.scale(width, height), Stride: width, Rect: image.Rect(0, 0, width, height)}, false
	}
	b := m.Bounds()
	pix := raster{b.Dx(), b.Dy(), 3, opaqueRows(m)}.scale(width, height)
	return &image.RGBA{Pix: widened(pix), Stride: 4 * width, Rect: image.Rect(0, 0, width, height)}, lossy
}

// widened makes four channels of three, in the room that scale leaves.
func widened(pix []byte) []byte {
	n := len(pix) / 3
	pix = pix[:4*n]
	for i := n - 1; i >= 0; i-- {
		pix[4*i+2], pix[4*i+1], pix[4*i] = pix[3*i+2], pix[3*i+1], pix[3*i]
		pix[4*i+3] = 255
	}
	return pix
}

// reducePlanes scales brightness and colors by themselves, the colors to half of
// the size each way, as they are stored.
func reducePlanes(m *image.YCbCr, width, height int) *image.YCbCr {
	b := m.Rect
	out := &image.YCbCr{
		YStride: width, CStride: (width + 1) / 2,
		SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: image.Rect(0, 0, width, height),
	}
	out.Y = raster{b.Dx(), b.Dy(), 1, func(y int, to []byte) { copy(to, m.Y[y*m.YStride:]) }}.scale(width, height)
	cw, ch := chromaSize(m)
	plane := func(pix []byte) []byte {
		return raster{cw, ch, 1, func(y int, to []byte) { copy(to, pix[y*m.CStride:]) }}.scale(out.CStride, (height+1)/2)
	}
	out.Cb, out.Cr = plane(m.Cb), plane(m.Cr)
	return out
}

// chromaSize returns the size of the planes of colors that belongs to the picture.
func chromaSize(m *image.YCbCr) (width, height int) {
	b := m.Rect
	last := m.COffset(b.Max.X-1, b.Max.Y-1) - m.COffset(b.Min.X, b.Min.Y)
	return last%m.CStride + 1, last/m.CStride + 1
}

// opaqueRows returns the rows of any picture as pixels of three channels, on white.
func opaqueRows(m image.Image) func(y int, to []byte) {
	b := m.Bounds()
	switch m := m.(type) {
	case *image.NRGBA:
		return func(y int, to []byte) {
			row := m.Pix[y*m.Stride : y*m.Stride+4*b.Dx()]
			for x := range b.Dx() {
				p, q := row[4*x:4*x+4:4*x+4], to[3*x:3*x+3:3*x+3]
				if p[3] == 255 {
					q[0], q[1], q[2] = p[0], p[1], p[2]
					continue
				}
				a := uint32(p[3])
				for c := range 3 {
					q[c] = byte((uint32(p[c])*a + 255*(255-a) + 127) / 255) //nolint:gosec // at most 255
				}
			}
		}
	case *image.RGBA: // premultiplied
		return func(y int, to []byte) {
			row := m.Pix[y*m.Stride : y*m.Stride+4*b.Dx()]
			for x := range b.Dx() {
				p, q := row[4*x:4*x+4:4*x+4], to[3*x:3*x+3:3*x+3]
				if p[3] == 255 {
					q[0], q[1], q[2] = p[0], p[1], p[2]
					continue
				}
				for c := range 3 {
					q[c] = byte(min(255, uint32(p[c])+255-uint32(p[3])))
				}
			}
		}
	case *image.Paletted:
		return palettedRows(m)
	}
	line := image.NewRGBA(image.Rect(0, 0, b.Dx(), 1))
	return func(y int, to []byte) {
		draw.Draw(line, line.Rect, image.White, image.Point{}, draw.Src)
		draw.Draw(line, line.Rect, m, image.Pt(b.Min.X, b.Min.Y+y), draw.Over)
		for x := range b.Dx() {
			copy(to[3*x:3*x+3], line.Pix[4*x:])
		}
	}
}

func palettedRows(m *image.Paletted) func(y int, to []byte) {
	var colors [256][3]byte
	for i := range colors {
		colors[i] = [3]byte{255, 255, 255}
		if i < len(m.Palette) {
			c := color.NRGBAModel.Convert(m.Palette[i]).(color.NRGBA)
			for k, v := range [3]byte{c.R, c.G, c.B} {
				colors[i][k] = byte((uint32(v)*uint32(c.A) + 255*(255-uint32(c.A)) + 127) / 255) //nolint:gosec // at most 255
			}
		}
	}
	return func(y int, to []byte) {
		for x, i := range m.Pix[y*m.Stride : y*m.Stride+m.Rect.Dx()] {
			copy(to[3*x:3*x+3], colors[i][:])
		}
	}
}

// turn returns what reduce made, of an Exif orientation, as it is to be seen.
func turn(m image.Image, orientation int) image.Image {
	if orientation <= upright || orientation > 8 {
		return m
	}
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	wide, rect := w, image.Rect(0, 0, w, h)
	if orientation >= 5 {
		wide, rect = h, image.Rect(0, 0, h, w)
	}
	switch m := m.(type) {
	case *image.Gray:
		return &image.Gray{Pix: turned(m.Pix, w, h, 1, orientation), Stride: wide, Rect: rect}
	case *image.YCbCr:
		cw, ch := m.CStride, len(m.Cb)/m.CStride
		return &image.YCbCr{
			Y: turned(m.Y, w, h, 1, orientation), Cb: turned(m.Cb, cw, ch, 1, orientation), Cr: turned(m.Cr, cw, ch, 1, orientation),
			YStride: wide, CStride: (wide + 1) / 2, SubsampleRatio: m.SubsampleRatio, Rect: rect,
		}
	default:
		return &image.RGBA{Pix: turned(m.(*image.RGBA).Pix, w, h, 4, orientation), Stride: 4 * wide, Rect: rect}
	}
}

// turned returns the pixels of a picture of an orientation.
func turned(pix []byte, w, h, channels, orientation int) []byte {
	// Where the first pixel comes from, and how far it is to that of the next column and
	// of the next row.
	way := [...]struct{ first, column, row int }{
		2: {w - 1, -1, w}, 3: {w*h - 1, -1, -w}, 4: {(h - 1) * w, 1, -w},
		5: {0, w, 1}, 6: {(h - 1) * w, -w, 1}, 7: {w*h - 1, -w, -1}, 8: {w - 1, w, -1},
	}[orientation]
	if orientation >= 5 {
		w, h = h, w
	}
	out := make([]byte, 0, len(pix))
	for y := range h {
		from := way.first + y*way.row
		for range w {
			if channels == 1 {
				out = append(out, pix[from])
			} else {
				out = append(out, pix[from*channels:(from+1)*channels]...)
			}
			from += way.column
		}
	}
	return out
}
