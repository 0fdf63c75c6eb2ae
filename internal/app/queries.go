package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/profile"
	"remote-agent/internal/store"
	"remote-agent/internal/transcript"
)

// maxListed is the longest page of a listing.
const maxListed = 1000

// pageSize checks how many rows somebody asked for.
func pageSize(limit int) error {
	if limit < 1 || limit > maxListed {
		return fault.Newf(fault.Invalid, "--limit %d is not between 1 and %d; use --before or --after to continue from a page.", limit, maxListed)
	}
	return nil
}

// MessageQuery says which messages to list.
type MessageQuery struct {
	Conversation string // an id, or the platform's name and its id as "telegram/123"
	Session      string
	Agent        string // name of a profile
	Desc         bool
	Limit        int
	Offset       int
	After        string // the cursor that the last page ended with
	JSON         bool   // a JSON object a line, with everything that is stored
}

// ListMessages prints messages, a line each, in the order in which they were
// said or with Desc the newest first.
func ListMessages(ctx context.Context, cfg config.Config, env Env, q MessageQuery) error {
	if err := pageSize(q.Limit); err != nil {
		return err
	}
	list, err := readStored(ctx, cfg, env, func(tx *store.Tx) ([]store.ListedMessage, error) {
		conversation, err := conversationID(ctx, tx, q.Conversation)
		if err != nil {
			return nil, err
		}
		list, err := tx.Search().ListMessages(ctx, store.MessageFilter{
			SessionID: q.Session, ConversationID: conversation, Agent: q.Agent,
			Desc: q.Desc, Limit: q.Limit, Offset: q.Offset, After: q.After,
		})
		if err == nil && len(list) == 0 && q.Agent != "" && q.Agent != profile.Default {
			_, err = findAgent(ctx, tx, q.Agent) // sessions keep the name of a profile that was removed
		}
		return list, err
	})
	if err != nil {
		return err
	}
	if q.JSON {
		return sayMessages(env, list)
	}
	if len(list) == 0 {
		say(env.Stderr, "nothing found\n")
	}
	session := ""
	for _, m := range list {
		if m.SessionID != session {
			session = m.SessionID
			say(env.Stdout, "%s  %s/%s  %s\n", session, m.Key.Platform, m.Key.ID, m.Agent)
		}
		say(env.Stdout, "  %d  %s  %s: %s\n", m.Seq, m.At.Format("2006-01-02 15:04Z"), m.Role, messageLine(m))
	}
	if len(list) == q.Limit {
		say(env.Stdout, "more: --after %s\n", list[len(list)-1].Cursor())
	}
	return nil
}

// messageLine is a message on one line.
func messageLine(m store.ListedMessage) string {
	parts := make([]string, 0, len(m.Blocks)+1)
	if m.Undone {
		parts = append(parts, "(undone)")
	}
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case messages.Text:
			parts = append(parts, transcript.Line(b.Text, 120))
		case messages.Thinking:
			parts = append(parts, "(thinking)")
		case messages.Attachment:
			parts = append(parts, "(file "+b.Name+")")
		case messages.ToolCall:
			parts = append(parts, "(calls "+b.Name+" "+transcript.Line(b.Arguments, 60)+")")
		case messages.ToolResult:
			verdict := "result"
			if b.IsError {
				verdict = "error"
			}
			parts = append(parts, "("+verdict+" of "+b.Name+" "+transcript.Line(b.Content, 60)+")")
		}
	}
	return strings.Join(parts, " ")
}

// messageJSON is a message for programs. Blocks are in seed 001's form.
type messageJSON struct {
	Cursor         string          `json:"cursor"`
	SessionID      string          `json:"session_id"`
	ConversationID string          `json:"conversation_id"`
	Platform       string          `json:"platform_type"`
	PlatformID     string          `json:"platform_conversation_id"`
	Agent          string          `json:"agent_name"`
	RunID          string          `json:"run_id"`
	Seq            int64           `json:"seq"`
	Role           string          `json:"role"`
	At             string          `json:"at"`
	Undone         bool            `json:"undone"`
	Blocks         []messageRecord `json:"blocks"`
}

type messageRecord struct {
	Kind    string          `json:"kind"`
	Content string          `json:"content"`
	Data    json.RawMessage `json:"data_json,omitempty"`
}

func sayMessages(env Env, list []store.ListedMessage) error {
	out := json.NewEncoder(env.Stdout)
	out.SetEscapeHTML(false)
	for _, m := range list {
		records, err := messages.ToRecords(m.Message)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "encode a message")
		}
		encoded := messageJSON{
			Cursor: m.Cursor(), SessionID: m.SessionID, ConversationID: m.ConversationID, Platform: string(m.Key.Platform), PlatformID: m.Key.ID,
			Agent: m.Agent, RunID: m.RunID, Seq: m.Seq, Role: string(m.Role), At: m.At.Format(time.RFC3339), Undone: m.Undone,
		}
		for _, r := range records {
			encoded.Blocks = append(encoded.Blocks, messageRecord{r.Kind, r.Content, json.RawMessage(r.DataJSON)})
		}
		if err := out.Encode(encoded); err != nil {
			return fmt.Errorf("write a message: %w", err)
		}
	}
	return nil
}
