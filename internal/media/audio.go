package media

import (
	"bytes"
	"encoding/binary"
	"io"
	"time"
)

// What is transcribed.
const (
	MaxAudioLength = 20 * time.Minute
	MaxAudioSize   = 20 << 20
)

// CheckAudio returns how long a recording is, zero if it does not say. fault.Invalid
// means that it cannot be transcribed, and says why.
func CheckAudio(r io.ReaderAt, size int64) (Kind, time.Duration, error) {
	head := make([]byte, min(size, SniffLen))
	if !readAt(r, head, 0) {
		return Unknown, 0, refused("the file cannot be read")
	}
	kind := Sniff(head)
	if !kind.IsAudio() {
		return Unknown, 0, refused("the recording is of a kind that cannot be read; send OGG, M4A, MP3 or WAV")
	}
	if size > MaxAudioSize {
		return kind, 0, refused("the recording has %d MB, and %d MB is the limit", (size+1<<20-1)>>20, MaxAudioSize>>20)
	}
	length := audioLength(kind, r, size)
	if length <= MaxAudioLength {
		return kind, length, nil
	}
	return kind, length, refused("the recording is %d minutes long, and %d minutes is the limit; send it in parts", int(length.Minutes()), int(MaxAudioLength.Minutes()))
}

// audioLength returns what the file says of its length, without decoding it.
func audioLength(kind Kind, r io.ReaderAt, size int64) time.Duration {
	switch kind {
	case OggAudio:
		return oggLength(r, size)
	case WAV:
		return wavLength(r, size)
	case MP4Audio:
		return mp4Length(r, size)
	case MP3:
		return mp3Length(r, size)
	default:
		return 0
	}
}

// oggLength reads the position of the last page. Opus always counts 48,000 a second;
// Vorbis says how many in its header.
func oggLength(r io.ReaderAt, size int64) time.Duration {
	head, tail := make([]byte, min(size, 256)), make([]byte, min(size, 72<<10)) // a page has at most 65,307 bytes
	if !readAt(r, head, 0) || !readAt(r, tail, size-int64(len(tail))) {
		return 0
	}
	rate := int64(48000)
	if i := bytes.Index(head, []byte("\x01vorbis")); i >= 0 && len(head) >= i+16 {
		rate = int64(binary.LittleEndian.Uint32(head[i+12:]))
	}
	i := bytes.LastIndex(tail, []byte("OggS\x00"))
	if i < 0 || len(tail) < i+14 || rate <= 0 {
		return 0
	}
	return samples(int64(binary.LittleEndian.Uint64(tail[i+6:])), rate) //nolint:gosec // samples takes what is negative for nothing
}

func samples(n, rate int64) time.Duration {
	if n <= 0 || rate <= 0 {
		return 0
	}
	const longest = int64(1000 * time.Hour / time.Second)
	return time.Duration(min(n/rate, longest))*time.Second + time.Duration(n%rate)*time.Second/time.Duration(rate)
}

// wavLength divides the size of the samples by their rate.
func wavLength(r io.ReaderAt, size int64) time.Duration {
	rate := int64(0)
	for c := range riffChunks(r, size) {
		switch c.name {
		case "fmt ":
			var format [12]byte
			if !readAt(r, format[:], c.at) {
				return 0
			}
			rate = int64(binary.LittleEndian.Uint32(format[8:]))
		case "data":
			return samples(min(c.length, size-c.at), rate)
		}
	}
	return 0
}

// mp4Length reads the movie header.
func mp4Length(r io.ReaderAt, size int64) time.Duration {
	at, end := int64(0), size
	for range maxSegments {
		var head [16]byte
		if at+8 > end || !readAt(r, head[:], at) {
			return 0
		}
		length, body := int64(binary.BigEndian.Uint32(head[:])), int64(8)
		if length == 1 {
			length, body = int64(binary.BigEndian.Uint64(head[8:])), 16 //nolint:gosec // what is negative ends the walk
		}
		if length == 0 || length > end-at {
			length = end - at
		}
		if length < body {
			return 0
		}
		switch string(head[4:8]) {
		case "moov":
			at, end = at+body, at+length
			continue
		case "mvhd":
			return movieLength(r, at+body)
		}
		at += length
	}
	return 0
}

func movieLength(r io.ReaderAt, at int64) time.Duration {
	var h [32]byte
	if !readAt(r, h[:], at) {
		return 0
	}
	if h[0] == 1 {
		return samples(int64(binary.BigEndian.Uint64(h[24:])), int64(binary.BigEndian.Uint32(h[20:]))) //nolint:gosec // as above
	}
	return samples(int64(binary.BigEndian.Uint32(h[16:])), int64(binary.BigEndian.Uint32(h[12:])))
}

// mp3Length takes the rate of the first frame for that of all.
func mp3Length(r io.ReaderAt, size int64) time.Duration {
	var head [10]byte
	if !readAt(r, head[:], 0) {
		return 0
	}
	at := int64(0)
	if string(head[:3]) == "ID3" { // its size has seven bits a byte
		at = 10 + int64(head[6]&127)<<21 + int64(head[7]&127)<<14 + int64(head[8]&127)<<7 + int64(head[9]&127)
	}
	buffer := make([]byte, max(0, min(size-at, 8<<10)))
	if !readAt(r, buffer, at) {
		return 0
	}
	for i := 0; i+4 <= len(buffer); i++ {
		if buffer[i] != 0xff || buffer[i+1]&0xe6 != 0xe2 {
			continue
		}
		rates := []int64{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0} // kbit/s of MPEG 1, layer 3
		if buffer[i+1]&0x18 != 0x18 {
			rates = []int64{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0} // of MPEG 2
		}
		if rate := rates[buffer[i+2]>>4]; rate > 0 {
			return samples(size-at-int64(i), rate*1000/8)
		}
	}
	return 0
}
