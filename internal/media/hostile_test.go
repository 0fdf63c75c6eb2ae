package media_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"runtime"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/heavytest"
	"remote-agent/internal/media"
)

// mostMemory is what a picture may take beyond what the program has.
const mostMemory = 64_000_000

// allocated returns how much memory f takes, with all that it leaves behind.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func chunk(name, data string) string {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), name+data...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:])))
}

// aPNG is a PNG with too few pixels.
func aPNG(side, depth, color, interlaced int, between string) string {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(side)), uint32(side))
	return "\x89PNG\r\n\x1a\n" + chunk("IHDR", string(append(head, byte(depth), byte(color), 0, 0, byte(interlaced)))) +
		between + chunk("IDAT", packed("few pixels")) + chunk("IEND", "")
}

func segment(marker byte, data string) string {
	return "\xff" + string([]byte{marker, byte((len(data) + 2) >> 8), byte(len(data) + 2)}) + data
}

// frame is the frame header of a JPEG whose components are sampled as said.
func frame(marker byte, side int, sampling string) string {
	data := []byte{8, byte(side >> 8), byte(side), byte(side >> 8), byte(side), byte(len(sampling))}
	for i, s := range []byte(sampling) {
		data = append(data, byte(i+1), s, 0)
	}
	return segment(marker, string(data))
}

// aJPEG is a JPEG with too few pixels, in scans of one component each.
func aJPEG(before, frame string, components int) string {
	all := "\xff\xd8" + before + frame
	for i := range components {
		all += segment(0xda, string([]byte{1, byte(i + 1), 0, 0, 0, 0})) + "few"
	}
	return all
}

func aWebP(chunks ...string) string {
	all := "WEBP" + strings.Join(chunks, "")
	return "RIFF" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(all)))) + all
}

func riff(name string, length int, data string) string {
	return name + string(binary.LittleEndian.AppendUint32(nil, uint32(length))) + data
}

// Whatever a header says, reading the picture takes no more than the bound.
func TestHeadersDoNotMakeRoomForMore(t *testing.T) {
	clear := chunk("tRNS", "\x00\x00")
	many := strings.Repeat(chunk("tEXt", "a\x00b"), 300)
	for _, side := range []int{1500, 2600, 3600, 5200, 7200, 10_000} {
		for name, file := range map[string]string{
			"gray":              aPNG(side, 8, 0, 0, ""),
			"clear gray":        aPNG(side, 8, 0, 0, clear),
			"hidden clear gray": aPNG(side, 1, 0, 0, many+clear),
			"deep clear gray":   aPNG(side, 16, 0, 0, clear),
			"interlaced":        aPNG(side, 8, 2, 1, ""),
			"deep interlaced":   aPNG(side, 16, 6, 1, ""),
			"JPEG":              aJPEG("", frame(0xc0, side, "\x22\x11\x11"), 3),
			"gray JPEG":         aJPEG("", frame(0xc2, side, "\x44"), 1),
			"scans":             aJPEG("", frame(0xc2, side, "\x22\x11\x11"), 3),
			"full scans":        aJPEG("", frame(0xc2, side, "\x42\x42\x42"), 3),
			"restart before":    aJPEG("\xff\xd0", frame(0xc2, side, "\x11\x11\x11"), 3),
			"ink":               aJPEG(segment(0xee, "Adobe\x00\x00\x00\x00\x00\x00\x00"), frame(0xc0, side, "\x22\x11\x11\x22"), 4),
			"claims of WebP":    aWebP(riff("VP8 ", 120<<20, "\x10\x02\x00\x9d\x01\x2a\x40\x00\x40\x00"+strings.Repeat("\xff", 400))),
			"alpha of WebP": aWebP(riff("VP8X", 10, "\x10\x00\x00\x00"+string([]byte{byte(side - 1), byte((side - 1) >> 8), 0, byte(side - 1), byte((side - 1) >> 8), 0})),
				riff("ALPH", 4, "\x01aaa")),
			"GIF": "GIF89a" + string([]byte{byte(side), byte(side >> 8), byte(side), byte(side >> 8), 0x80, 0, 0}) + "\x00\x00\x00\xff\xff\xff" +
				"," + "\x00\x00\x00\x00" + string([]byte{byte(side), byte(side >> 8), byte(side), byte(side >> 8), 0x40}) + "\x02\x02\x4c\x01\x00;",
		} {
			var err error
			took := allocated(func() { _, err = shrink(t, []byte(file)) })
			if took > mostMemory {
				t.Errorf("%s of %d x %d takes %d MB", name, side, side, took/1_000_000)
			}
			if !fault.Is(err, fault.Invalid) || fault.Public(err) == "" {
				t.Errorf("%s of %d x %d: %v", name, side, side, err)
			}
		}
	}
}

// What a header says is found where the decoder finds it.
func TestFramesCannotHide(t *testing.T) {
	const side = 12_000
	real, small := frame(0xc0, side, "\x22\x11\x11"), frame(0xc0, 16, "")
	begin := "\xff\xd8" + segment(0xe0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")
	adobe := segment(0xee, "Adobe\x00\x64\x00\x00\x00\x00\x00")
	for name, test := range map[string]struct{ file, want string }{
		"behind a marker without a length": {begin + "\xff\xd0" + real + strings.Repeat("\x00", 0xffc0-len(real)) + small, "megapixels"},
		"behind two bytes of ones and nil": {begin + "\xff\x00" + real + small, "megapixels"},
		"behind what is no segment":        {begin + "abc" + real + small, "megapixels"},
		"no components":                    {"\xff\xd8" + frame(0xc0, side, ""), "damaged"},
		"two components":                   {"\xff\xd8" + frame(0xc0, side, "\x11\x11"), "damaged"},
		"sampled in no way":                {"\xff\xd8" + frame(0xc0, side, "\xff\x00\x00"), "damaged"},
		"RGB of Adobe, said at the end":    {"\xff\xd8" + frame(0xc0, 3500, "\x22\x11\x11") + segment(0xda, "\x03\x01\x00\x02\x00\x03\x00\x00\x3f\x00") + adobe, "megapixels"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := shrink(t, []byte(test.file)); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), test.want) {
				t.Errorf("got %v, want fault.Invalid with %q", err, test.want)
			}
		})
	}
}

// Each pass over a picture may take a few bytes and goes over all of it.
func TestManyScansAreRefused(t *testing.T) {
	file := asJPEG(t, photo(64, 64))
	scans := bytes.Index(file, []byte("\xff\xda"))
	whole := file[scans : len(file)-2]
	for n, want := range map[int]bool{1: true, 60: true, 100: false} {
		_, err := shrink(t, append(append(bytes.Clone(file[:scans]), bytes.Repeat(whole, n)...), "\xff\xd9"...))
		if (err == nil) != want {
			t.Errorf("%d scans: %v", n, err)
		}
	}
}

func TestShrinkEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := asPNG(t, photo(40, 40))
	for range 20 { // it may have a free place and a context that is done
		if _, err := media.NewDecoder().Shrink(ctx, bytes.NewReader(file), int64(len(file))); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
}

// A picture of 12 megapixels takes what the issue allows, also one that is turned.
func TestLargePicturesFit(t *testing.T) {
	large, part := image.NewRGBA(image.Rect(0, 0, 4000, 3000)), photo(4000, 100)
	for y := range 30 {
		copy(large.Pix[y*len(part.Pix):], part.Pix)
	}
	file := asPNG(t, large)
	exif := chunk("eXIf", "MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00")
	for name, file := range map[string][]byte{
		"PNG": bytes.Join([][]byte{file[:33], []byte(exif), file[33:]}, nil), "JPEG": withExif(asJPEG(t, large), 6),
	} {
		var p media.Picture
		var err error
		took := allocated(func() { p, err = shrink(t, file) })
		if err != nil || took > 60_000_000 {
			t.Errorf("%s takes %d MB: %v", name, took/1_000_000, err)
		}
		if p.Height <= p.Width {
			t.Errorf("%s has %d x %d pixels", name, p.Width, p.Height)
		}
	}
}

// A PDF of nothing but counts, or pages, or empty streams, is read as it is looked at.
func TestHostilePDFTakesLittle(t *testing.T) {
	size := heavytest.Size(2<<20, media.MaxPDFSize-100)
	if raceDetector {
		t.Skip("the race detector drops what pools keep, so memory says nothing; .ci/heavy runs without it")
	}
	for name, unit := range map[string]string{
		"counts":  "/Count 7 ",
		"pages":   "/Type/Page ",
		"streams": "/ObjStm stream\n" + packed("") + " ",
		"bombs":   "/ObjStm stream\n" + packed(strings.Repeat("/Count 7 ", 50_000)) + " ",
	} {
		file := pdf(strings.Repeat(unit, size/len(unit)))
		var pages int
		var err error
		if took := allocated(func() { pages, err = media.CheckPDF(bytes.NewReader(file), int64(len(file))) }); took > mostMemory {
			t.Errorf("%s take %d MB: %d pages, %v", name, took/1_000_000, pages, err)
		}
	}
}
