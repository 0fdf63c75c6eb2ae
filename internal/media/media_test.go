package media_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/media"
)

// photo is a picture with soft colors, some noise, and a red corner at the top left.
func photo(width, height int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	noise := rand.New(rand.NewPCG(1, 2))
	for y := range height {
		for x := range width {
			n := uint8(noise.IntN(6))
			c := color.RGBA{uint8(x*200/width) + n, uint8(y*200/height) + n, uint8((x+y)/16%180) + n, 255}
			if x < width/4 && y < height/4 {
				c = color.RGBA{255, 0, 0, 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	return m
}

func asJPEG(tb testing.TB, m image.Image) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 90}); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func asPNG(tb testing.TB, m image.Image) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, m); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// withExif puts an Exif segment with an orientation and a secret into a JPEG.
func withExif(file []byte, orientation byte) []byte {
	tiff := append([]byte("MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"), orientation, 0, 0, 0, 0, 0, 0)
	segment := append([]byte("Exif\x00\x00"), append(tiff, "GPS 52.5200 13.4050"...)...)
	head := []byte{0xff, 0xe1, 0, 0}
	binary.BigEndian.PutUint16(head[2:], uint16(len(segment)+2))
	return bytes.Join([][]byte{file[:2], head, segment, file[2:]}, nil)
}

func shrink(tb testing.TB, file []byte) (media.Picture, error) {
	tb.Helper()
	return media.NewDecoder().Shrink(tb.Context(), bytes.NewReader(file), int64(len(file)))
}

func TestShrink(t *testing.T) {
	var animation bytes.Buffer
	frame := func(c color.Color) *image.Paletted {
		return image.NewPaletted(image.Rect(0, 0, 40, 30), color.Palette{c, color.Black})
	}
	if err := gif.EncodeAll(&animation, &gif.GIF{Image: []*image.Paletted{frame(color.RGBA{255, 0, 0, 255}), frame(color.White)}, Delay: []int{1, 1}}); err != nil {
		t.Fatal(err)
	}
	clearer := image.NewNRGBA(image.Rect(0, 0, 8, 8)) // see-through, but for one pixel
	clearer.SetNRGBA(0, 0, color.NRGBA{255, 0, 0, 255})
	for _, test := range []struct {
		name          string
		file          []byte
		kind          media.Kind
		width, height int
		corner        color.RGBA // top left
		last          color.RGBA // bottom right
	}{
		{"camera", asJPEG(t, photo(3000, 2000)), media.JPEG, 1341, 894, color.RGBA{255, 0, 0, 255}, color.RGBA{200, 200, 132, 255}},
		{"wide", asJPEG(t, photo(4000, 100)), media.JPEG, 1568, 39, color.RGBA{255, 0, 0, 255}, color.RGBA{200, 200, 77, 255}},
		{"small", asPNG(t, photo(60, 40)), media.PNG, 60, 40, color.RGBA{255, 0, 0, 255}, color.RGBA{200, 196, 8, 255}},
		{"large screenshot", asPNG(t, photo(2400, 1200)), media.JPEG, 1549, 774, color.RGBA{255, 0, 0, 255}, color.RGBA{200, 200, 46, 255}},
		{"animation", animation.Bytes(), media.PNG, 40, 30, color.RGBA{255, 0, 0, 255}, color.RGBA{255, 0, 0, 255}},
		{"see-through", asPNG(t, clearer), media.PNG, 8, 8, color.RGBA{255, 0, 0, 255}, color.RGBA{255, 255, 255, 255}},
		{"one pixel", asPNG(t, photo(1, 1)), media.PNG, 1, 1, color.RGBA{3, 3, 3, 255}, color.RGBA{3, 3, 3, 255}},
		{"a line", asPNG(t, photo(9000, 1)), media.JPEG, 1568, 1, color.RGBA{6, 3, 10, 255}, color.RGBA{200, 3, 29, 255}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := shrink(t, test.file)
			if err != nil {
				t.Fatal(err)
			}
			if p.Kind != test.kind || p.Width != test.width || p.Height != test.height {
				t.Errorf("got %s of %d x %d, want %s of %d x %d", p.Kind, p.Width, p.Height, test.kind, test.width, test.height)
			}
			m, _, err := image.Decode(bytes.NewReader(p.Data))
			if err != nil {
				t.Fatal(err)
			}
			near(t, m, 0, 0, test.corner)
			near(t, m, p.Width-1, p.Height-1, test.last)
		})
	}
}

func near(t *testing.T, m image.Image, x, y int, want color.RGBA) {
	t.Helper()
	got := color.RGBAModel.Convert(m.At(x, y)).(color.RGBA)
	off := func(a, b uint8) bool { return max(a, b)-min(a, b) > 24 }
	if off(got.R, want.R) || off(got.G, want.G) || off(got.B, want.B) {
		t.Errorf("at %d,%d: got %v, want about %v", x, y, got, want)
	}
}

// The red corner tells how a picture was turned.
func TestOrientationIsAppliedAndExifIsGone(t *testing.T) {
	file := asJPEG(t, photo(80, 40))
	corners := map[byte][2]int{1: {0, 0}, 2: {1, 0}, 3: {1, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 1}, 8: {0, 1}}
	for orientation, corner := range corners {
		p, err := shrink(t, withExif(file, orientation))
		if err != nil {
			t.Fatal(err)
		}
		if tall := orientation >= 5; tall != (p.Height > p.Width) || tall != (p.FromHeight > p.FromWidth) {
			t.Errorf("orientation %d: %d x %d of %d x %d", orientation, p.Width, p.Height, p.FromWidth, p.FromHeight)
		}
		if bytes.Contains(p.Data, []byte("GPS")) || bytes.Contains(p.Data, []byte("Exif")) {
			t.Errorf("orientation %d: what the camera added is still there", orientation)
		}
		m, _, err := image.Decode(bytes.NewReader(p.Data))
		if err != nil {
			t.Fatal(err)
		}
		near(t, m, corner[0]*(p.Width-1), corner[1]*(p.Height-1), color.RGBA{255, 0, 0, 255})
	}
}

// pngHeader is a PNG that says it has a size, and nothing besides.
func pngHeader(width, height uint32) []byte {
	data := make([]byte, 13)
	binary.BigEndian.PutUint32(data, width)
	binary.BigEndian.PutUint32(data[4:], height)
	data[8], data[9] = 8, 6
	chunk := append([]byte("IHDR"), data...)
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), chunk...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
}

func TestWhatCannotBeUsedIsSaid(t *testing.T) {
	whole := asPNG(t, photo(300, 200))
	for name, test := range map[string]struct {
		file []byte
		want string
	}{
		"100 megapixels": {pngHeader(10000, 10000), "100 megapixels"},
		"no PNG":         {[]byte("\x89PNG\r\n\x1a\nthis is only a name"), "damaged"},
		"text":           {[]byte("hello, I am photo.png"), "not what its name says"},
		"cut":            {whole[:len(whole)/2], "damaged"},
		"SVG":            {[]byte(`<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "aaaa">]><svg/>`), "SVG"},
		"archive":        {[]byte("PK\x03\x04" + strings.Repeat("x", 90)), "archives"},
		"HEIC":           {[]byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"), "JPEG"},
		"empty":          {nil, "not what its name says"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := shrink(t, test.file)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), test.want) {
				t.Errorf("got %v, want fault.Invalid with %q", err, test.want)
			}
		})
	}
}

func pdf(parts ...string) []byte { return []byte("%PDF-1.7\n" + strings.Join(parts, "\n") + "\n%%EOF") }

func packed(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func TestCheckPDF(t *testing.T) {
	for name, test := range map[string]struct {
		file  []byte
		pages int
		want  string
	}{
		"three pages":     {pdf("<< /Type /Pages /Kids [] /Count 3 >>", "<< /Type /Pages /Count 2 >>"), 3, ""},
		"packed pages":    {pdf("<< /Type /ObjStm /Filter /FlateDecode >>\nstream\r\n" + packed("<< /Type /Pages /Count 7 >>") + "\nendstream"), 7, ""},
		"no tree":         {pdf("<< /Type /Page >>", "<< /Type /Page\n>>"), 2, ""},
		"5,000 pages":     {pdf("<< /Type /Pages /Count 5000 >>"), 0, "5000 pages"},
		"packed 5,000":    {pdf("<< /Type /ObjStm >>\nstream\n" + packed("<< /Type /Pages /Count 5000 >>")), 0, "5000 pages"},
		"with a password": {pdf("<< /Type /Pages /Count 1 >>", "trailer << /Encrypt 5 0 R >>"), 0, "password"},
		"a bomb":          {pdf("<< /Type /ObjStm >>\nstream\n" + packed(strings.Repeat(" ", 50<<20)) + "/Count 3"), 0, ""},
		"no PDF":          {[]byte("hello"), 0, "not a PDF"},
		"too large":       {append(pdf(), make([]byte, media.MaxPDFSize)...), 0, "8 MB is the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			pages, err := media.CheckPDF(bytes.NewReader(test.file), int64(len(test.file)))
			if test.want == "" && (err != nil || pages != test.pages && name != "a bomb") {
				t.Errorf("got %d pages, %v; want %d", pages, err, test.pages)
			}
			if test.want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), test.want)) {
				t.Errorf("got %v, want fault.Invalid with %q", err, test.want)
			}
		})
	}
}

// ogg is a file of Opus pages, the last of which ends at a position of 48,000 a second.
func ogg(length time.Duration) []byte {
	page := func(position uint64, body string) []byte {
		head := append([]byte("OggS\x00\x00"), binary.LittleEndian.AppendUint64(nil, position)...)
		return append(append(head, make([]byte, 13)...), body...)
	}
	return append(page(0, "OpusHead\x01\x01"), page(uint64(length.Seconds()*48000), "sound")...)
}

func wav(length time.Duration) []byte {
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	b = binary.LittleEndian.AppendUint32(b, 100) // samples a second
	b = binary.LittleEndian.AppendUint32(b, 100) // bytes a second
	b = append(b, 1, 0, 8, 0)
	b = binary.LittleEndian.AppendUint32(append(b, "data"...), uint32(length.Seconds()*100))
	return append(b, make([]byte, int(length.Seconds()*100))...)
}

func m4a(length time.Duration) []byte {
	header := make([]byte, 100)
	binary.BigEndian.PutUint32(header[12:], 1000)
	binary.BigEndian.PutUint32(header[16:], uint32(length.Milliseconds()))
	box := func(name string, body []byte) []byte {
		return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+8)), name...), body...)
	}
	return append(box("ftyp", []byte("M4A \x00\x00\x00\x00")), box("moov", box("mvhd", header))...)
}

func mp3(length time.Duration) []byte {
	b := append([]byte("ID3\x04\x00\x00\x00\x00\x00\x05tags!"), 0xff, 0xfb, 0x10, 0) // 32 kbit/s
	return append(b, make([]byte, int(length.Seconds()*4000)-4)...)
}

func TestCheckAudio(t *testing.T) {
	for name, make := range map[string]func(time.Duration) []byte{"ogg": ogg, "wav": wav, "m4a": m4a, "mp3": mp3} {
		t.Run(name, func(t *testing.T) {
			file := make(90 * time.Second)
			kind, length, err := media.CheckAudio(bytes.NewReader(file), int64(len(file)))
			if err != nil || length.Round(time.Second) != 90*time.Second || !kind.IsAudio() {
				t.Errorf("90 s: got %s of %s, %v", kind, length, err)
			}
			file = make(2 * time.Hour)
			if _, _, err = media.CheckAudio(bytes.NewReader(file), int64(len(file))); !fault.Is(err, fault.Invalid) {
				t.Errorf("2 hours: got %v", err)
			} else if len(file) < media.MaxAudioSize && !strings.Contains(fault.Public(err), "120 minutes") {
				t.Errorf("2 hours: got %q", fault.Public(err))
			}
		})
	}
	if _, _, err := media.CheckAudio(strings.NewReader("hello"), 5); !fault.Is(err, fault.Invalid) {
		t.Errorf("text: got %v", err)
	}
}

// FuzzLook looks at whatever there is, in each way that the program does.
func FuzzLook(f *testing.F) {
	small := photo(20, 10)
	for _, seed := range [][]byte{
		asJPEG(f, small), withExif(asJPEG(f, small), 6), asPNG(f, small), pngHeader(100000, 100000),
		pdf("<< /Type /Pages /Count 3 >>"), ogg(time.Second), wav(time.Second), m4a(time.Second), mp3(time.Second), []byte("<svg/>"),
	} {
		f.Add(seed)
	}
	decoder := media.NewDecoder()
	f.Fuzz(func(t *testing.T, file []byte) {
		r, size := bytes.NewReader(file), int64(len(file))
		if p, err := decoder.Shrink(t.Context(), r, size); err == nil {
			if p.Width < 1 || p.Height < 1 || p.Width > media.MaxEdge || p.Height > media.MaxEdge || p.Width*p.Height > media.MaxPixels || len(p.Data) == 0 {
				t.Errorf("a picture of %d x %d in %d bytes", p.Width, p.Height, len(p.Data))
			}
		} else if fault.Public(err) == "" {
			t.Errorf("no text for a person: %v", err)
		}
		_, _ = media.CheckPDF(r, size)
		if _, length, err := media.CheckAudio(r, size); err == nil && (length < 0 || length > media.MaxAudioLength) {
			t.Errorf("a recording of %s", length)
		}
	})
}

// BenchmarkShrink is one picture of 12 megapixels: what it costs of the processor, and
// what it allocates, of which all may be held at once.
func BenchmarkShrink(b *testing.B) {
	large := photo(4000, 3000)
	for name, file := range map[string][]byte{"JPEG": asJPEG(b, large), "PNG": asPNG(b, large)} {
		b.Run(fmt.Sprintf("%s 12 MP", name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := shrink(b, file); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
