package sandbox

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// DefaultCapture is how many bytes a Capture of unspecified size keeps.
const DefaultCapture = 64 << 10

// Capture is a writer that keeps the beginning and the end of what is written,
// together at most a fixed number of bytes, and counts the rest. It is safe for
// concurrent use and its zero value keeps DefaultCapture bytes.
type Capture struct {
	mu    sync.Mutex
	limit int
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // of the ring: where the oldest byte is
	total int64
}

// NewCapture returns a Capture that keeps limit bytes, one half of them from the
// end; zero or less means DefaultCapture.
func NewCapture(limit int) *Capture { return &Capture{limit: limit} }

func (c *Capture) sizes() (head, tail int) {
	limit := c.limit
	if limit <= 0 {
		limit = DefaultCapture
	}
	return limit - limit/2, limit / 2
}

// Write takes all of p and never fails.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	head, tail := c.sizes()
	if room := head - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	if tail == 0 {
		return n, nil
	}
	if len(p) > tail {
		p = p[len(p)-tail:]
	}
	if room := tail - len(c.tail); room > 0 {
		take := min(room, len(p))
		c.tail = append(c.tail, p[:take]...)
		p = p[take:]
	}
	for len(p) > 0 {
		k := copy(c.tail[c.next:], p)
		c.next = (c.next + k) % tail
		p = p[k:]
	}
	return n, nil
}

// Total returns how many bytes were written.
func (c *Capture) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// Bytes returns the beginning and the end; if nothing was left out, tail follows
// directly on head.
func (c *Capture) Bytes() (head, tail []byte, omitted int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head = append([]byte(nil), c.head...)
	tail = append(append(make([]byte, 0, len(c.tail)), c.tail[c.next:]...), c.tail[:c.next]...)
	return head, tail, c.total - int64(len(head)+len(tail))
}

// String returns what was kept as valid UTF-8, with a line in the middle that
// says how much was left out. Bytes that are no UTF-8 become U+FFFD; a character
// that was cut in two at the gap is left out.
func (c *Capture) String() string {
	head, tail, omitted := c.Bytes()
	if omitted == 0 {
		return strings.ToValidUTF8(string(head)+string(tail), "\uFFFD")
	}
	head, tail, cut := trimGap(head, tail)
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s",
		strings.ToValidUTF8(string(head), "\uFFFD"), omitted+cut, strings.ToValidUTF8(string(tail), "\uFFFD"))
}

// trimGap removes the parts of characters on both sides of the gap.
func trimGap(head, tail []byte) (h, t []byte, cut int64) {
	for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
		b := head[len(head)-i]
		if utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(head[len(head)-i:]) {
				head = head[:len(head)-i]
				cut += int64(i)
			}
			break
		}
	}
	n := 0
	for n < len(tail) && n < utf8.UTFMax-1 && !utf8.RuneStart(tail[n]) {
		n++
	}
	return head, tail[n:], cut + int64(n)
}
