package turn

import (
	"container/list"
	"context"
	"encoding/json"
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
	tokens, before := 0, int64(1)<<62
	err := r.w.o.config.Storage.InRead(ctx, func(tx port.Tx) error {
		recent, met, tokens, before = nil, false, 0, int64(1)<<62
		limit := page
		if len(known) > 0 {
			limit = 4 // usually only the request is new
		}
		for tokens <= budget {
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

// windowCache remembers the windows of the sessions that were worked on last.
// It is only a cache: an entry is used if its newest message is still there
// under its number, and messages never change once stored. What it returns stays as
// it is while a window grows behind it.
type windowCache struct {
	mu    sync.Mutex // guards all below
	limit int
	order *list.List // of *window, most recently used first
	byID  map[string]*list.Element
}

type window struct {
	session string
	msgs    []messages.Message
}

func newWindowCache(limit int) *windowCache {
	return &windowCache{limit: limit, order: list.New(), byID: make(map[string]*list.Element)}
}

func (c *windowCache) get(session string) []messages.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[session]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return slices.Clip(e.Value.(*window).msgs)
}

// put replaces a window. One that ends as the remembered one does keeps the room that
// this has to grow.
func (c *windowCache) put(session string, msgs []messages.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[session]
	if !ok {
		c.byID[session] = c.order.PushFront(&window{session: session, msgs: slices.Clip(msgs)})
		if c.order.Len() > c.limit {
			oldest := c.order.Back()
			delete(c.byID, oldest.Value.(*window).session)
			c.order.Remove(oldest)
		}
		return
	}
	c.order.MoveToFront(e)
	w := e.Value.(*window)
	if n, cut := len(w.msgs), len(w.msgs)-len(msgs); cut >= 0 && len(msgs) > 0 && &w.msgs[n-1] == &msgs[len(msgs)-1] {
		w.msgs = w.msgs[cut:]
		return
	}
	w.msgs = slices.Clip(msgs)
}

// extend adds messages that were just stored, the last one under the number last. A
// window that they do not follow is forgotten: calls and results were stored in between.
func (c *windowCache) extend(session string, msgs []messages.Message, last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[session]
	if !ok || len(msgs) == 0 {
		return
	}
	w := e.Value.(*window)
	first := last - int64(len(msgs)) + 1
	if len(w.msgs) == 0 || first != newest(w.msgs)+1 {
		w.msgs = nil
		return
	}
	for i, m := range msgs {
		m.Seq = first + int64(i)
		w.msgs = append(w.msgs, m) // behind what was returned, which is clipped
	}
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
	e, ok := c.byID[session]
	if !ok || newest(e.Value.(*window).msgs) != before {
		return nil
	}
	w := e.Value.(*window)
	w.msgs = append(w.msgs, request...) // as above
	return slices.Clip(w.msgs)
}

func (c *windowCache) forget(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byID[session]; ok {
		e.Value.(*window).msgs = nil
	}
}

// jsonText returns text as a JSON document: itself if it is one, else as a
// string.
func jsonText(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(quoted)
}
