package media

import (
	"bytes"
	"compress/zlib"
	"io"
	"strconv"

	"remote-agent/internal/pattern"
)

// What a document may be to be passed to a model: the providers take 100 pages, and
// a request holds it in three forms at once.
const (
	MaxPDFPages = 100
	MaxPDFSize  = 8 << 20
)

// What is unpacked of a document to count its pages.
const (
	maxObjects  = 256 << 10 // of one stream
	maxUnpacked = 4 << 20   // in all
)

var (
	pdfCount   = pattern.Lazy(`/Count[ \t\r\n]{1,9}([0-9]{1,9})`)
	pdfPage    = pattern.Lazy(`/Type[ \t\r\n]{0,9}/Page[^s]`)
	pdfEncrypt = pattern.Lazy(`/Encrypt[ \t\r\n]{0,9}([0-9]|<<)`)
)

// CheckPDF returns how many pages a document says it has, zero if it does not say so.
// fault.Invalid means that it cannot be passed on: it needs a password, has
// too many pages, or is too large.
func CheckPDF(r io.ReaderAt, size int64) (pages int, err error) {
	if size > MaxPDFSize {
		return 0, refused("the PDF has %d MB, and %d MB is the limit; send the pages that matter", (size+1<<20-1)>>20, MaxPDFSize>>20)
	}
	data := make([]byte, size)
	if !readAt(r, data, 0) || Sniff(data) != PDF {
		return 0, refused("the file is not a PDF")
	}
	if pdfEncrypt.Match(data) {
		return 0, refused("the PDF is protected with a password; send it without one")
	}
	pages = countPages(data)
	u := unpacker{buffer: make([]byte, maxObjects)}
	for left := maxUnpacked; left > 0; {
		objects, rest, found := u.nextObjects(data)
		if !found {
			break
		}
		pages = max(pages, countPages(objects))
		left -= len(objects) + 1<<10
		data = rest
	}
	if pages > MaxPDFPages {
		return 0, refused("the PDF has %d pages, and %d is the limit; send the pages that matter", pages, MaxPDFPages)
	}
	return pages, nil
}

// countPages returns the largest count that a tree of pages has, or how many pages
// there are where no tree is.
func countPages(data []byte) (pages int) {
	for rest := data; ; {
		found := pdfCount.Regexp().FindSubmatchIndex(rest)
		if found == nil {
			break
		}
		if n, err := strconv.Atoi(string(rest[found[2]:found[3]])); err == nil {
			pages = max(pages, n)
		}
		rest = rest[found[1]:]
	}
	if pages > 0 {
		return pages
	}
	for rest := data; ; pages++ {
		found := pdfPage.Regexp().FindIndex(rest)
		if found == nil {
			return pages
		}
		rest = rest[found[1]:]
	}
}

// unpacker unpacks one stream after the other in the same memory: a document may have
// thousands.
type unpacker struct {
	zlib   io.ReadCloser // nil at first
	buffer []byte
}

// nextObjects unpacks the next stream of objects, as newer documents have them, and
// returns what comes behind its beginning. The objects are good until the next call.
func (u *unpacker) nextObjects(data []byte) (objects, rest []byte, found bool) {
	i := bytes.Index(data, []byte("/ObjStm"))
	if i < 0 {
		return nil, nil, false
	}
	data = data[i:]
	j := bytes.Index(data, []byte("stream"))
	if j < 0 {
		return nil, nil, false
	}
	data = data[j+len("stream"):]
	packed := bytes.NewReader(bytes.TrimLeft(data, "\r\n"))
	var err error
	if u.zlib == nil {
		u.zlib, err = zlib.NewReader(packed)
	} else {
		err = u.zlib.(zlib.Resetter).Reset(packed, nil)
	}
	if err != nil {
		return nil, data, true // packed in another way
	}
	n, _ := io.ReadFull(u.zlib, u.buffer) // what is there counts
	return u.buffer[:n], data, true
}
