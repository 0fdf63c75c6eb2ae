package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"remote-agent/internal/lists"
)

const (
	maxBreakpoints = 4
	lookback       = 20 // blocks before a breakpoint in which a prefix is looked for
	maxPrefixes    = 10_000
	blockTokens    = 4 // what a block costs besides its content
)

// point is a place in a prompt where a prefix can end: after a tool, a block of
// the system prompt or a block of a message.
type point struct {
	key    [sha256.Size]byte // of everything up to here
	tokens int               // of everything up to here
	mark   *CacheControl
}

// cache is the provider's prompt cache. It is safe for concurrent use.
type cache struct {
	mu       sync.Mutex
	prefixes map[[sha256.Size]byte]prefix
}

type prefix struct {
	until time.Time
	ttl   time.Duration
}

// account returns what the input of a request costs, and remembers its prefixes.
func (c *cache) account(points []point, now time.Time) Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	total, read, written := 0, 0, 0
	if n := len(points); n > 0 {
		total = points[n-1].tokens
	}
	for i, p := range slices.Backward(points) {
		if p.mark == nil {
			continue
		}
		written = max(written, p.tokens)
		if read == 0 {
			read = c.longest(points[max(0, i-lookback):i+1], now)
		}
	}
	for _, p := range points {
		if p.mark != nil {
			c.keep(p, now)
		}
	}
	written = max(written, read)
	return Usage{Input: total - written, CacheWrite: written - read, CacheRead: read}
}

// longest returns the tokens of the longest of the prefixes that is cached.
func (c *cache) longest(points []point, now time.Time) int {
	for _, p := range slices.Backward(points) {
		known, ok := c.prefixes[p.key]
		if ok && now.Before(known.until) {
			known.until = now.Add(known.ttl) // reading keeps it alive
			c.prefixes[p.key] = known
			return p.tokens
		}
	}
	return 0
}

func (c *cache) keep(p point, now time.Time) {
	if c.prefixes == nil || len(c.prefixes) >= maxPrefixes {
		c.prefixes = map[[sha256.Size]byte]prefix{}
	}
	ttl := 5 * time.Minute
	if p.mark.TTL == "1h" {
		ttl = time.Hour
	}
	c.prefixes[p.key] = prefix{until: now.Add(ttl), ttl: ttl}
}

// points returns the places of a request in the order in which the model reads
// them: tools, system, messages.
func (r *Request) points() []point {
	var list []point
	var key [sha256.Size]byte
	tokens := 0
	add := func(raw []byte, mark *CacheControl) {
		content := unmarked(raw)
		key = sha256.Sum256(append(key[:], content...))
		tokens += blockTokens + len(content)/4
		list = append(list, point{key: key, tokens: tokens, mark: mark})
	}
	key = sha256.Sum256([]byte(r.Model))
	for _, t := range r.Tools {
		add(t.Raw, t.CacheControl)
	}
	for _, b := range r.system {
		add(b.Raw, b.CacheControl)
	}
	// These options change how the model reads the messages.
	options, err := json.Marshal([]any{r.ToolChoice, r.Thinking})
	if err == nil {
		key = sha256.Sum256(append(key[:], options...))
	}
	for _, m := range r.Messages {
		key = sha256.Sum256(append(key[:], m.Role...))
		for _, b := range m.Blocks {
			add(b.Raw, b.CacheControl)
		}
	}
	if r.CacheControl != nil && len(list) > 0 {
		list[len(list)-1].mark = r.CacheControl
	}
	return list
}

// unmarked returns a block without its cache marks and without the order of its
// own keys; what is inside them stays as it was sent.
func unmarked(raw []byte) []byte {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return raw
	}
	delete(object, "cache_control")
	for name, value := range object {
		if string(value) == "null" {
			delete(object, name)
		}
	}
	if content := object["content"]; len(content) > 0 && content[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(content, &list) == nil {
			for i := range list {
				list[i] = unmarked(list[i])
			}
			object["content"] = append(append([]byte("["), bytes.Join(list2bytes(list), []byte(","))...), ']')
		}
	}
	sorted, err := json.Marshal(object)
	if err != nil {
		return raw
	}
	return sorted
}

func list2bytes(list []json.RawMessage) [][]byte {
	return lists.Map(list, func(raw json.RawMessage) []byte { return raw })
}

// checkCacheControl checks the marks of a request.
func checkCacheControl(r *Request, _ ruleset) *APIError {
	var marks []*CacheControl
	add := func(mark *CacheControl) {
		if mark != nil {
			marks = append(marks, mark)
		}
	}
	for _, t := range r.Tools {
		add(t.CacheControl)
	}
	for _, b := range r.system {
		add(b.CacheControl)
	}
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			add(b.CacheControl)
			if b.Type == "tool_result" {
				inner, _ := blocks(b.Content)
				for _, c := range inner {
					add(c.CacheControl)
				}
			}
		}
	}
	add(r.CacheControl)
	if len(marks) > maxBreakpoints {
		return invalid("A maximum of %d blocks with cache_control may be provided. Found %d.", maxBreakpoints, len(marks))
	}
	short := false
	for _, mark := range marks {
		switch {
		case mark.Type != "ephemeral":
			return invalid("cache_control.type: Input should be 'ephemeral'")
		case mark.TTL != "" && mark.TTL != "5m" && mark.TTL != "1h":
			return invalid("cache_control.ttl: Input should be '5m' or '1h'")
		case mark.TTL == "1h" && short:
			return invalid("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")
		}
		short = short || mark.TTL != "1h"
	}
	return nil
}
