package turn

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
)

// page is how many messages one read of the history takes.
const page = 128

// assemble returns the message array of a turn: the newest messages of the
// session that fit the budget, ending with the request, repaired. It reads only
// the window, by index, and of that only what this process does not remember.
// Calls that have not begun yet stay open for an assistant that can go on.
func (r *run) assemble(ctx context.Context, a assistant.Assistant, budget int) ([]messages.Message, error) {
	session := r.d.begun.session.ID
	if b := r.d.begun; b.request != nil {
		if recent := r.w.o.windows.follow(session, b.before, b.request); recent != nil {
			return r.arrange(a, recent, budget), nil
		}
	}
	known := r.w.o.windows.get(session)
	var recent []messages.Message // newest first, without those that are known
	met := false                  // recent goes back to the newest known message
	asked := false                // recent has what somebody said, as every window does
	tokens, before := 0, int64(1)<<62
	err := r.w.o.config.Storage.InRead(ctx, func(tx port.Tx) error {
		recent, met, asked, tokens, before = nil, false, false, 0, int64(1)<<62
		limit := page
		if len(known) > 0 {
			limit = 4 // usually only the request is new
		}
		for tokens <= budget || !asked {
			batch, err := tx.Messages().MessagesBefore(ctx, session, before, limit)
			if err != nil {
				return err
			}
			for _, m := range batch {
				if i := len(known) - 1; i >= 0 && m.Seq == known[i].Seq {
					met = true
					return nil
				}
				recent = append(recent, m)
				asked = asked || m.Role == messages.RoleUser
				tokens += messages.EstimateTokens(m)
			}
			if len(batch) < limit {
				return nil
			}
			before, limit = batch[len(batch)-1].Seq, page
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	slices.Reverse(recent)
	if met {
		recent = slices.Concat(known, recent)
	}
	return r.arrange(a, recent, budget), nil
}

// newest returns the number of the last message of a window; 0 of an empty one.
func newest(window []messages.Message) int64 {
	if len(window) == 0 {
		return 0
	}
	return window[len(window)-1].Seq
}

// arrange remembers the window of a session's messages that fits the budget, and
// makes the array of a turn from it.
func (r *run) arrange(a assistant.Assistant, recent []messages.Message, budget int) []messages.Message {
	array := messages.Window(recent, budget)
	r.w.o.windows.put(r.d.begun.session.ID, array)
	array = shortTerm(array, r.d.begun.profile)
	array = messages.Elide(array, budget)
	if _, uses := a.(assistant.ToolUser); !uses || len(messages.OpenCalls(array)) == 0 {
		return messages.Repair(array)
	}
	last := len(array) - 1
	for array[last].Role != messages.RoleAssistant {
		last--
	}
	return append(messages.Repair(array[:last]), array[last:]...)
}

// windowsMost bounds what all remembered windows take, in bytes. The longest talks that a
// budget of 100,000 tokens allows are read again from the database when there are more
// than about twenty of them.
const windowsMost = 8 << 20

// windowCache remembers the windows of the sessions that were worked on last.
// It is only a cache: an entry is used if its newest message is still there
// under its number, and messages never change once stored. What it returns stays as
// it is while a window grows behind it.
type windowCache struct {
	limit int // of windows
	most  int // of bytes, but for the window that was used last

	mu    sync.Mutex // guards all below
	held  int        // bytes
	order *list.List // of *window, most recently used first
	byID  map[string]*list.Element
}

type window struct {
	session string
	msgs    []messages.Message
	bytes   int
}

func newWindowCache(limit, most int) *windowCache {
	return &windowCache{limit: limit, most: most, order: list.New(), byID: make(map[string]*list.Element)}
}

// weight is about what messages take in memory.
func weight(msgs []messages.Message) (bytes int) {
	const each = 200 // without words
	for _, m := range msgs {
		bytes += each + 4*messages.EstimateTokens(m)
	}
	return bytes
}

// set gives a window, which was just used, what it has now, and forgets those that were
// not used for the longest time and are too many. The lock must be held.
func (c *windowCache) set(w *window, msgs []messages.Message, bytes int) {
	c.held += bytes - w.bytes
	w.msgs, w.bytes = msgs, bytes
	for c.order.Len() > c.limit || c.held > c.most && c.order.Len() > 1 {
		oldest := c.order.Remove(c.order.Back()).(*window)
		c.held -= oldest.bytes
		delete(c.byID, oldest.session)
	}
}

// use returns the window of a session, as the one that was used last; nil if it is not
// remembered. The lock must be held.
func (c *windowCache) use(session string) *window {
	e, ok := c.byID[session]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*window)
}

func (c *windowCache) get(session string) []messages.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.use(session)
	if w == nil {
		return nil
	}
	return slices.Clip(w.msgs)
}

// put replaces a window. One that ends as the remembered one does keeps the room that
// this has to grow.
func (c *windowCache) put(session string, msgs []messages.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.use(session)
	if w == nil {
		w = &window{session: session}
		c.byID[session] = c.order.PushFront(w)
	}
	n, cut := len(w.msgs), len(w.msgs)-len(msgs)
	if cut >= 0 && len(msgs) > 0 && &w.msgs[n-1] == &msgs[len(msgs)-1] {
		c.set(w, w.msgs[cut:], w.bytes-weight(w.msgs[:cut]))
		return
	}
	c.set(w, slices.Clip(msgs), weight(msgs))
}

// extend adds messages that were just stored, the last one under the number last. A
// window that they do not follow is forgotten: calls and results were stored in between.
func (c *windowCache) extend(session string, msgs []messages.Message, last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.use(session)
	if w == nil || len(msgs) == 0 {
		return
	}
	first := last - int64(len(msgs)) + 1
	if len(w.msgs) == 0 || first != newest(w.msgs)+1 {
		c.set(w, nil, 0)
		return
	}
	all := w.msgs
	for i, m := range msgs {
		m.Seq = first + int64(i)
		all = append(all, m) // behind what was returned, which is clipped
	}
	c.set(w, all, w.bytes+weight(msgs))
}

// follow adds a numbered request to a window that ends with the message before it, and
// returns both; nil if that is not remembered. Before the first message of a session
// there is nothing to remember.
func (c *windowCache) follow(session string, before int64, request []messages.Message) []messages.Message {
	if before == 0 {
		return request
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.use(session)
	if w == nil || newest(w.msgs) != before {
		return nil
	}
	c.set(w, append(w.msgs, request...), w.bytes+weight(request)) // as above
	return slices.Clip(w.msgs)
}

func (c *windowCache) forget(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.use(session); w != nil {
		c.set(w, nil, 0)
	}
}
