// Package media makes what people attach fit for a model: it tells what a file is
// by its content, scales pictures and takes out of them what cameras add, counts
// the pages of documents and the length of recordings.
//
// Nothing of a file is believed before it was looked at: its header is read first
// and bounds what is decoded. One picture is decoded at a time (Decoder), in at
// most MaxDecoded bytes. The package keeps nothing and does no I/O but reading
// what it is given.
package media

import (
	"bytes"
	"fmt"
	"strings"

	"remote-agent/internal/fault"
)

// Kind is what a file is.
type Kind string

// The kinds that this package knows, as media types.
const (
	JPEG Kind = "image/jpeg"
	PNG  Kind = "image/png"
	WebP Kind = "image/webp"
	GIF  Kind = "image/gif"
	PDF  Kind = "application/pdf"

	OggAudio Kind = "audio/ogg"
	MP4Audio Kind = "audio/mp4"
	MP3      Kind = "audio/mpeg"
	WAV      Kind = "audio/wav"

	Unknown Kind = ""
)

// SniffLen is how many bytes from the beginning of a file Sniff looks at.
const SniffLen = 64

// Sniff returns what a file is, by its first bytes; SniffLen of them are enough.
func Sniff(head []byte) Kind {
	at := func(i int, s string) bool { return len(head) >= i+len(s) && string(head[i:i+len(s)]) == s }
	switch {
	case at(0, "\xff\xd8\xff"):
		return JPEG
	case at(0, "\x89PNG\r\n\x1a\n"):
		return PNG
	case at(0, "RIFF") && at(8, "WEBP"):
		return WebP
	case at(0, "GIF87a"), at(0, "GIF89a"):
		return GIF
	case at(0, "%PDF-"):
		return PDF
	case at(0, "OggS"):
		return OggAudio
	case at(0, "RIFF") && at(8, "WAVE"):
		return WAV
	case at(4, "ftyp") && (at(8, "M4A") || at(8, "M4B") || at(8, "isom") || at(8, "mp42") || at(8, "mp41") || at(8, "iso2")):
		return MP4Audio
	case at(0, "ID3"), len(head) > 1 && head[0] == 0xff && head[1]&0xe6 == 0xe2: // any MPEG version, layer 3
		return MP3
	}
	return Unknown
}

// IsImage reports whether a picture of this kind can be shown to a model.
func (k Kind) IsImage() bool { return k == JPEG || k == PNG || k == WebP || k == GIF }

// IsAudio reports whether a recording of this kind can be transcribed.
func (k Kind) IsAudio() bool { return k == OggAudio || k == MP4Audio || k == MP3 || k == WAV }

// Claims returns the kind that a platform says a file is, by its media type or,
// where that says nothing, its name: whether it is worth fetching. What it is says
// Sniff. It is Unknown for what no model can be given.
func Claims(mediaType, name string) Kind {
	base, _, _ := strings.Cut(strings.ToLower(mediaType), ";")
	switch base = strings.TrimSpace(base); base {
	case "", "application/octet-stream", "binary/octet-stream":
		return byExtension(strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]))
	}
	return byMediaType(base)
}

// byMediaType returns the kind of a media type.
func byMediaType(name string) Kind {
	switch name {
	case "image/jpeg", "image/jpg", "image/pjpeg":
		return JPEG
	case "image/png", "image/x-png", "image/apng":
		return PNG
	case "image/webp":
		return WebP
	case "image/gif":
		return GIF
	case "application/pdf", "application/x-pdf":
		return PDF
	case "audio/ogg", "audio/opus", "application/ogg":
		return OggAudio
	case "audio/mp4", "audio/m4a", "audio/x-m4a", "audio/aac":
		return MP4Audio
	case "audio/mpeg", "audio/mp3":
		return MP3
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return WAV
	}
	return Unknown
}

// byExtension returns the kind of a file whose name ends so.
func byExtension(end string) Kind {
	switch end {
	case "jpg", "jpeg", "jpe":
		return JPEG
	case "png":
		return PNG
	case "webp":
		return WebP
	case "gif":
		return GIF
	case "pdf":
		return PDF
	case "ogg", "oga", "opus":
		return OggAudio
	case "m4a":
		return MP4Audio
	case "mp3":
		return MP3
	case "wav":
		return WAV
	}
	return Unknown
}

// Reason returns why a file that is not of a kind that can be read cannot be, in
// a few words for the person and the model.
func Reason(head []byte) string {
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	lower := bytes.ToLower(trimmed)
	switch {
	case bytes.HasPrefix(lower, []byte("<svg")), bytes.HasPrefix(lower, []byte("<?xml")):
		return "SVG drawings are not opened; export it as PNG"
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\x1f\x8b")), bytes.HasPrefix(head, []byte("7z\xbc\xaf")), bytes.HasPrefix(head, []byte("Rar!")):
		return "archives are not opened; send the files themselves"
	case len(head) >= 12 && string(head[4:8]) == "ftyp" && (bytes.HasPrefix(head[8:], []byte("hei")) || bytes.HasPrefix(head[8:], []byte("mif1")) || bytes.HasPrefix(head[8:], []byte("avif"))):
		return "HEIC and AVIF pictures cannot be read; send it as JPEG"
	case bytes.HasPrefix(head, []byte("BM")), bytes.HasPrefix(head, []byte("II*\x00")), bytes.HasPrefix(head, []byte("MM\x00*")):
		return "BMP and TIFF pictures cannot be read; send it as PNG or JPEG"
	}
	return "its content is not what its name says"
}

// refused returns the error of a file that cannot be used, with the reason in a few words.
func refused(format string, args ...any) error {
	return fault.New(fault.Invalid, fmt.Sprintf(format, args...))
}
