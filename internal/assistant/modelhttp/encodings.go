package modelhttp

import (
	"bytes"
	"container/list"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"unsafe"

	"remote-agent/internal/messages"
)

// Bounds of what Encodings remembers.
const (
	encodingsLimit = 4 << 20 // bytes, of all conversations together
	encodingsMost  = 64      // conversations: each keeps its messages, too, which nobody else may need any more
	encodingsLeast = 16      // messages: fewer are encoded sooner than looked up
)

// Encodings remembers how the beginnings of message arrays were encoded, so that
// a request encodes what is new and not the whole conversation again. What it
// returns depends on its arguments only, never on what it remembers: a beginning
// is used again only where its messages are equal. It holds at most 4 MB, of
// 64 conversations, and forgets first what was not used for longest. It is safe for concurrent use.
type Encodings struct {
	mu    sync.Mutex // guards all below
	size  int
	order list.List // of *encoding, most recently used first
	byKey map[string]*list.Element
}

// Encoder says how messages are encoded. Under one key it is always the same.
type Encoder struct {
	// Encode appends a unit to JSON: elements of an array, with commas between and
	// none at the ends, at least one.
	Encode func(to []byte, unit []messages.Message) ([]byte, error)

	// Joins reports whether a message is encoded in one unit with the one before
	// it; nil: none is.
	Joins func(before, m messages.Message) bool
}

// encoding is the text of an array. It belongs to one request at a time; what was
// handed out of text is only ever added to behind its end.
type encoding struct {
	key   string
	array []messages.Message
	units []unit
	text  []byte
}

// unit is where a unit ends, in messages and in bytes.
type unit struct{ messages, bytes int }

// Array returns the encoded elements of array, with commas between. key tells
// conversations apart, and ways to encode them. The caller must not change what it
// gets, nor array. Errors are those of by.
func (e *Encodings) Array(key string, array []messages.Message, by Encoder) ([]byte, error) {
	if len(array) < encodingsLeast {
		var fresh encoding
		err := fresh.extend(array, by)
		return fresh.text, err
	}
	known := e.take(key)
	known.cut(known.same(array, by))
	if err := known.extend(array, by); err != nil {
		return nil, err
	}
	text := slices.Clip(known.text)
	known.cut(known.lasting())
	e.put(known)
	return text, nil
}

// lasting returns how many units have no file in them: those are filled in for
// one request and too large to keep.
func (c *encoding) lasting() int {
	begin := 0
	for i, u := range c.units {
		for _, m := range c.array[begin:u.messages] {
			if slices.ContainsFunc(m.Blocks, hasData) {
				return i
			}
		}
		begin = u.messages
	}
	return len(c.units)
}

func hasData(b messages.Block) bool {
	a, ok := b.(messages.Attachment)
	return ok && a.Data != ""
}

// same returns how many units are the beginning of array.
func (c *encoding) same(array []messages.Message, by Encoder) int {
	begin := 0
	for i, u := range c.units {
		if u.messages > len(array) || u.messages < len(array) && by.joins(array[u.messages-1], array[u.messages]) {
			return i
		}
		for k := begin; k < u.messages; k++ {
			if array[k].Role != c.array[k].Role || !slices.Equal(array[k].Blocks, c.array[k].Blocks) {
				return i
			}
		}
		begin = u.messages
	}
	return len(c.units)
}

func (e Encoder) joins(before, m messages.Message) bool {
	return e.Joins != nil && e.Joins(before, m)
}

// cut leaves the first n units, in memory of their own: a request may still read
// what is cut off.
func (c *encoding) cut(n int) {
	if n == len(c.units) {
		return
	}
	var end unit
	if n > 0 {
		end = c.units[n-1]
	}
	c.array = slices.Clone(c.array[:end.messages]) // what is cut off may be large
	c.units, c.text = c.units[:n], bytes.Clone(c.text[:end.bytes])
}

// extend encodes what of array is not yet.
func (c *encoding) extend(array []messages.Message, by Encoder) error {
	begin := 0
	if n := len(c.units); n > 0 {
		begin = c.units[n-1].messages
	}
	for begin < len(array) {
		end := begin + 1
		for end < len(array) && by.joins(array[end-1], array[end]) {
			end++
		}
		if len(c.text) > 0 {
			c.text = append(c.text, ',')
		}
		var err error
		if c.text, err = by.Encode(c.text, array[begin:end]); err != nil {
			return err
		}
		c.units = append(c.units, unit{messages: end, bytes: len(c.text)})
		begin = end
	}
	c.array = array
	return nil
}

// take returns what is known under key and leaves nothing there, so that two
// requests never add to the same text.
func (e *Encodings) take(key string) *encoding {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at, ok := e.byKey[key]; ok {
		return e.remove(at)
	}
	return &encoding{key: key}
}

func (e *Encodings) put(c *encoding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at, ok := e.byKey[c.key]; ok {
		e.remove(at)
	}
	if c.bytes() > encodingsLimit {
		return
	}
	if e.byKey == nil {
		e.byKey = make(map[string]*list.Element)
	}
	e.byKey[c.key] = e.order.PushFront(c)
	for e.size += c.bytes(); e.size > encodingsLimit || e.order.Len() > encodingsMost; {
		e.remove(e.order.Back())
	}
}

func (e *Encodings) remove(at *list.Element) *encoding {
	c := e.order.Remove(at).(*encoding)
	delete(e.byKey, c.key)
	e.size -= c.bytes()
	return c
}

func (c *encoding) bytes() int {
	return cap(c.text) + cap(c.units)*int(unsafe.Sizeof(unit{})) + len(c.array)*int(unsafe.Sizeof(messages.Message{}))
}

// smallBody is up to how many bytes the pieces of a body are put together: what the
// transport sees to be in memory goes out with the header, in one packet.
const smallBody = 64 << 10

// SetBody makes pieces, one after the other, the body of a request. They are not
// copied if there is much of them, and must not change any more.
func SetBody(req *http.Request, pieces ...[]byte) {
	req.ContentLength = 0
	for _, p := range pieces {
		req.ContentLength += int64(len(p))
	}
	body := func() io.Reader { // it needs no buffer of its own, as io.MultiReader does
		left := net.Buffers(slices.Clone(pieces))
		return &left
	}
	if req.ContentLength <= smallBody {
		whole := slices.Concat(pieces...)
		body = func() io.Reader { return bytes.NewReader(whole) }
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(body()), nil }
	req.Body = io.NopCloser(body())
}
