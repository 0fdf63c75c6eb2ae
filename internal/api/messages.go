package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
)

type messageBody struct {
	SessionID        string          `json:"session_id"`
	ConversationID   string          `json:"conversation_id"`
	Seq              int64           `json:"seq"`
	Role             string          `json:"role"`
	Agent            *string         `json:"agent"`
	RunID            *string         `json:"run_id"`
	Undone           bool            `json:"undone"`
	CreatedAt        time.Time       `json:"created_at"`
	Text             string          `json:"text"`
	Blocks           []blockBody     `json:"blocks"`
	ProviderMetadata json.RawMessage `json:"provider_metadata"`
}

// blockBody is a part of a message; Type says which members there are.
type blockBody struct {
	Type       string  `json:"type"`
	Text       *string `json:"text,omitempty"`
	ToolCallID *string `json:"tool_call_id,omitempty"`
	Name       *string `json:"name,omitempty"`
	Arguments  *string `json:"arguments,omitempty"`
	Output     *string `json:"output,omitempty"`
	Success    *bool   `json:"success,omitempty"`
	MediaType  *string `json:"media_type,omitempty"`
	Size       *int64  `json:"size,omitempty"`
	Summary    *string `json:"summary,omitempty"`
}

func showBlock(b messages.Block) blockBody {
	switch b := b.(type) {
	case messages.Text:
		return blockBody{Type: "text", Text: &b.Text}
	case messages.ToolCall:
		return blockBody{Type: "tool_call", ToolCallID: &b.ID, Name: &b.Name, Arguments: &b.Arguments}
	case messages.ToolResult:
		return blockBody{Type: "tool_result", ToolCallID: &b.CallID, Name: &b.Name, Output: &b.Content, Success: new(!b.IsError), Summary: maybe(b.Summary)}
	case messages.Thinking:
		return blockBody{Type: "thinking", Text: &b.Text}
	case messages.Attachment:
		return blockBody{Type: "attachment", Name: &b.Name, MediaType: &b.MediaType, Size: &b.Size, Text: &b.Text}
	}
	return blockBody{}
}

func showMessage(m store.ListedMessage) messageBody {
	body := messageBody{
		SessionID: m.SessionID, ConversationID: m.ConversationID, Seq: m.Seq, Role: string(m.Role), Agent: maybe(m.Agent),
		RunID: maybe(m.RunID), Undone: m.Undone, CreatedAt: m.At, Text: m.PlainText(), Blocks: make([]blockBody, 0, len(m.Blocks)),
		ProviderMetadata: object(m.ProviderMetadata),
	}
	for _, b := range m.Blocks {
		body.Blocks = append(body.Blocks, showBlock(b))
	}
	return body
}

// Cursors of the two ways to list messages differ: a place, and the number that
// a search goes on below. That of a place has the order in it.
const (
	messageList = "m"
	searchList  = "q"
)

func (a *API) listMessages(ctx context.Context, c call) (any, error) {
	if c.args.has("q") {
		return a.searchMessages(ctx, c)
	}
	if !c.args.has("session") && !c.args.has("conversation") {
		return nil, badParameter("session", "Specify a session or a conversation, or search with q.")
	}
	order := c.args.text("order")
	f := store.MessageFilter{
		SessionID: c.args.text("session"), Agent: c.args.text("agent"), Desc: order == "desc", Offset: int(c.args.number("offset")),
	}
	after, err := readCursor(messageList, c.args.text("cursor"), 2)
	switch {
	case err != nil:
		return nil, err
	case after != nil && c.args.has("offset"):
		return nil, badParameter("offset", "Use offset or cursor, not both.")
	case after != nil && (after[0] == "desc") != f.Desc:
		return nil, badParameter("order", "The order differs from that of the page the cursor came from.")
	case after != nil:
		f.After = after[1]
	}
	rows, more, err := a.messagePage(ctx, f, c)
	if err != nil {
		return nil, err
	}
	p := cut(len(rows), len(rows), func(i int) any { return showMessage(rows[i]) }, nil)
	if more {
		p.NextCursor = newCursor(messageList, order, rows[len(rows)-1].Cursor())
	}
	return p, nil
}

// A page is read in steps, and ends early when it has much text.
const (
	pageStep  = 20
	pageBytes = 4 << 20
)

func (a *API) messagePage(ctx context.Context, f store.MessageFilter, c call) (rows []store.ListedMessage, more bool, err error) {
	limit := int(c.args.number("limit"))
	err = a.config.Store.InRead(ctx, func(tx *store.Tx) error {
		var ok bool
		if f.ConversationID, ok, err = conversationID(ctx, tx, c.args.text("conversation")); err != nil || !ok {
			return err // of a conversation that is not there, there are none
		}
		for size := 0; ; {
			f.Limit = min(pageStep, limit+1-len(rows))
			step, err := tx.Search().ListMessages(ctx, f)
			switch {
			case f.After != "" && (gone(err) || fault.Is(err, fault.Invalid)):
				return badParameter("cursor", "The cursor is no longer valid for this list; start again without it.")
			case gone(err):
				return nil
			case err != nil:
				return err
			}
			for _, m := range step {
				size += sizeOf(m)
			}
			rows = append(rows, step...)
			switch {
			case len(rows) > limit:
				rows, more = rows[:limit], true
				return nil
			case len(step) < f.Limit:
				return nil
			case size > pageBytes:
				more = true // perhaps the next page is empty
				return nil
			}
			f.After, f.Offset = rows[len(rows)-1].Cursor(), 0
		}
	})
	return rows, more, err
}

func sizeOf(m store.ListedMessage) (n int) {
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case messages.Text:
			n += len(b.Text)
		case messages.ToolCall:
			n += len(b.Arguments)
		case messages.ToolResult:
			n += len(b.Content)
		case messages.Thinking:
			n += len(b.Text)
		case messages.Attachment:
			n += len(b.Text)
		}
	}
	return n + len(m.ProviderMetadata)
}

// searchMessages lists messages that have all the words, the newest first.
func (a *API) searchMessages(ctx context.Context, c call) (any, error) {
	for _, name := range []string{"session", "agent", "order", "offset"} {
		if c.args.has(name) {
			return nil, badParameter(name, "A search covers all sessions, newest message first; narrow it with conversation.")
		}
	}
	before, err := readNumberCursor(searchList, c.args.text("cursor"))
	if err != nil {
		return nil, err
	}
	if !store.HasWords(c.args.text("q")) {
		return nil, badParameter("q", "The query contains no words.")
	}
	limit := int(c.args.number("limit"))
	f := store.SearchFilter{Words: c.args.text("q"), Before: before, Limit: limit + 1}
	var p page
	err = a.config.Store.InRead(ctx, func(tx *store.Tx) error {
		p = page{Items: []any{}}
		there := make(map[string]bool)
		var ok bool
		if f.ConversationID, ok, err = conversationID(ctx, tx, c.args.text("conversation")); err != nil || !ok {
			return err
		}
		hits, err := tx.Search().Messages(ctx, f)
		if err != nil {
			return err
		}
		if len(hits) > limit {
			hits = hits[:limit]
			p.NextCursor = newCursor(searchList, fmt.Sprint(hits[limit-1].ID))
		}
		for size, i := 0, 0; i < len(hits); i++ {
			if size > pageBytes {
				p.NextCursor = newCursor(searchList, fmt.Sprint(hits[i-1].ID))
				break
			}
			m, ok, err := messageOf(ctx, tx, hits[i])
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			size += sizeOf(m)
			// Words may stand in several blocks of a message, which follow each other.
			if at := fmt.Sprint(m.SessionID, " ", m.Seq); !there[at] {
				there[at] = true
				p.Items = append(p.Items, showMessage(m))
			}
		}
		return nil
	})
	return p, err
}

// messageOf returns the message of a hit. ok is false for a row that is part of
// none, as somebody may have written by hand.
func messageOf(ctx context.Context, tx *store.Tx, h store.Hit) (m store.ListedMessage, ok bool, err error) {
	m.SessionID, m.Seq = h.SessionID, h.Seq-1
	list, err := tx.Search().ListMessages(ctx, store.MessageFilter{SessionID: h.SessionID, After: m.Cursor(), Limit: 1})
	if err != nil || len(list) == 0 {
		return m, false, err
	}
	return list[0], list[0].Seq == h.Seq, nil
}
