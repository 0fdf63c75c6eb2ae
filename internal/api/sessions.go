package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

type conversationBody struct {
	ID                     string               `json:"id"`
	Platform               string               `json:"platform"`
	PlatformConversationID string               `json:"platform_conversation_id"`
	Assistant              string               `json:"assistant"`
	AgentID                *string              `json:"agent_id"`
	CodebaseID             *string              `json:"codebase_id"`
	Cwd                    *string              `json:"cwd"`
	Settings               conversationSettings `json:"settings"`
	Working                bool                 `json:"working"`
	CreatedAt              time.Time            `json:"created_at"`
	UpdatedAt              time.Time            `json:"updated_at"`
}

type conversationSettings struct {
	Mode    *string `json:"mode"`
	Model   *string `json:"model"`
	Verbose *int    `json:"verbose"`
}

func showConversation(c sessions.Conversation) conversationBody {
	return conversationBody{
		ID: c.ID, Platform: string(c.Key.Platform), PlatformConversationID: c.Key.ID, Assistant: c.Assistant,
		AgentID: maybe(c.AgentID), CodebaseID: maybe(c.CodebaseID), Cwd: maybe(c.Cwd), Working: c.Leased, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
		Settings: conversationSettings{Mode: maybe(c.Settings.Mode), Model: maybe(c.Settings.Model), Verbose: c.Settings.Verbose},
	}
}

const conversationList = "c"

func (a *API) listConversations(ctx context.Context, c call) (any, error) {
	after, err := readCursor(conversationList, c.args.text("cursor"), 1)
	if err != nil {
		return nil, err
	}
	last := ""
	if after != nil {
		if last = after[0]; !isID(last) {
			return nil, badParameter("cursor", "It is not a cursor of this list.")
		}
	}
	limit := int(c.args.number("limit"))
	rows, err := store.Within(ctx, a.config.Store.InRead, func(tx *store.Tx) ([]sessions.Conversation, error) {
		return tx.Pages().BrowseConversations(ctx, messages.Platform(c.args.text("platform")), last, limit+1)
	})
	return cut(len(rows), limit, func(i int) any { return showConversation(rows[i]) }, func(i int) *string { return newCursor(conversationList, rows[i].ID) }), err
}

func (a *API) getConversation(ctx context.Context, c call) (any, error) {
	row, err := store.Within(ctx, a.config.Store.InRead, func(tx *store.Tx) (sessions.Conversation, error) {
		return tx.Conversations().Conversation(ctx, c.args.text("conversation_id"))
	})
	return showConversation(row), err
}

// conversationID returns the id of the conversation that a parameter names, and
// whether there is one.
func conversationID(ctx context.Context, tx *store.Tx, named string) (id string, ok bool, err error) {
	platform, onPlatform, isKey := strings.Cut(named, "/")
	if !isKey {
		return named, true, nil
	}
	c, err := tx.Conversations().FindConversation(ctx, messages.ConversationKey{Platform: messages.Platform(platform), ID: onPlatform})
	if gone(err) {
		return "", false, nil
	}
	return c.ID, err == nil, err
}

// sessionSummary is a session in a list.
type sessionSummary struct {
	ID                     string     `json:"id"`
	ConversationID         string     `json:"conversation_id"`
	Platform               string     `json:"platform"`
	PlatformConversationID string     `json:"platform_conversation_id"`
	CodebaseID             *string    `json:"codebase_id"`
	ParentSessionID        *string    `json:"parent_session_id"`
	Assistant              string     `json:"assistant"`
	AssistantSessionID     *string    `json:"assistant_session_id"`
	Agent                  *string    `json:"agent"`
	AgentID                *string    `json:"agent_id"`
	Model                  *string    `json:"model"`
	Status                 string     `json:"status"`
	Active                 bool       `json:"active"`
	Title                  string     `json:"title"`
	LastSeq                int64      `json:"last_seq"`
	InputTokens            int64      `json:"input_tokens"`
	OutputTokens           int64      `json:"output_tokens"`
	StartedAt              time.Time  `json:"started_at"`
	EndedAt                *time.Time `json:"ended_at"`
}

// sessionBody is a session with what a list leaves out.
type sessionBody struct {
	sessionSummary

	SystemPrompt  *string         `json:"system_prompt"`
	UserPrompt    string          `json:"user_prompt"`
	Config        json.RawMessage `json:"config"`
	Metadata      map[string]any  `json:"metadata"`
	Result        *string         `json:"result"`
	Error         *string         `json:"error"`
	MessageCount  int64           `json:"message_count"`
	ToolCallCount int64           `json:"tool_call_count"`
}

// titleRunes is how much of the first request is the title of a session.
const titleRunes = 120

func title(prompt string) string {
	line := strings.Join(strings.Fields(prompt[:min(len(prompt), 16*titleRunes)]), " ")
	if utf8.RuneCountInString(line) <= titleRunes {
		return strings.ToValidUTF8(line, "")
	}
	return string([]rune(line)[:titleRunes-1]) + "…"
}

func summarize(s sessions.Session, key messages.ConversationKey) sessionSummary {
	return sessionSummary{
		ID: s.ID, ConversationID: s.ConversationID, Platform: string(key.Platform), PlatformConversationID: key.ID,
		CodebaseID: maybe(s.CodebaseID), ParentSessionID: maybe(s.ParentID),
		Assistant: s.Assistant, AssistantSessionID: maybe(s.AssistantSessionID), Agent: maybe(s.AgentName), AgentID: maybe(s.AgentID), Model: maybe(s.Model),
		Status: string(s.Status), Active: s.Active, Title: title(s.UserPrompt), LastSeq: s.LastSeq,
		InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, StartedAt: s.StartedAt, EndedAt: when(s.EndedAt),
	}
}

const sessionList = "s"

func (a *API) listSessions(ctx context.Context, c call) (any, error) {
	after, err := readCursor(sessionList, c.args.text("cursor"), 2)
	if err != nil {
		return nil, err
	}
	limit := int(c.args.number("limit"))
	q := store.BrowseSessionsQuery{
		Agent: c.args.text("agent"), Status: sessions.Status(c.args.text("status")), Active: c.args.flag("active"),
		Since: c.args.time("since"), Until: c.args.time("until"), Limit: limit + 1,
	}
	if after != nil {
		q.After = store.SessionPlace{Started: after[0], ID: after[1]}
	}
	var rows []store.BrowsedSession
	err = a.config.Store.InRead(ctx, func(tx *store.Tx) error {
		var ok bool
		if q.ConversationID, ok, err = conversationID(ctx, tx, c.args.text("conversation")); err != nil || !ok {
			return err // of a conversation that is not there, there are none
		}
		rows, err = tx.Pages().BrowseSessions(ctx, q)
		return err
	})
	if fault.Is(err, fault.Invalid) {
		return nil, badParameter("cursor", "It is not a cursor of this list.")
	}
	show := func(i int) any { return summarize(rows[i].Session, rows[i].Key) }
	return cut(len(rows), limit, show, func(i int) *string { return newCursor(sessionList, rows[i].Place.Started, rows[i].Place.ID) }), err
}

func (a *API) getSession(ctx context.Context, c call) (any, error) {
	var body sessionBody
	err := a.config.Store.InRead(ctx, func(tx *store.Tx) error {
		s, err := tx.Sessions().Session(ctx, c.args.text("session_id"))
		if err != nil {
			return err
		}
		conversation, err := tx.Conversations().Conversation(ctx, s.ConversationID)
		if err != nil {
			return err
		}
		body = sessionBody{
			sessionSummary: summarize(s, conversation.Key), SystemPrompt: maybe(s.SystemPrompt), UserPrompt: s.UserPrompt,
			Config: object(s.Config), Metadata: s.Metadata, Result: maybe(s.Result), Error: maybe(s.Error),
		}
		body.MessageCount, body.ToolCallCount, err = tx.Pages().CountSession(ctx, s.ID)
		return err
	})
	return body, err
}

// object is JSON that is stored as text: null if it is none.
func object(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage("null")
	}
	return raw
}

// deleted says what a deletion took away.
type deleted[T any] struct {
	Deleted T `json:"deleted"`
}

// removedCounts is store.Removed.
type removedCounts struct {
	Sessions   int64 `json:"sessions"`
	Messages   int64 `json:"messages"`
	ToolCalls  int64 `json:"tool_calls"`
	Deliveries int64 `json:"deliveries"`
	Inbox      int64 `json:"inbox_texts"`
	Plans      int64 `json:"plans"`
	Approvals  int64 `json:"approvals"`
}

// deleteSession deletes a session that is not at work. Deleting it again is 404
// and changes nothing, so that a client may repeat what it got no answer to.
func (a *API) deleteSession(ctx context.Context, c call) (any, error) {
	id := c.args.text("session_id")
	var r store.Removed
	err := a.config.Store.InTx(ctx, func(tx *store.Tx) error {
		s, err := tx.Sessions().Session(ctx, id)
		if err != nil {
			return err
		}
		if r, err = tx.Care().RemoveSession(ctx, id); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: c.actor(), Action: "session.remove", ConversationID: s.ConversationID, Target: id, Detail: c.detail()})
	})
	return deleted[removedCounts]{removedCounts(r)}, err
}

// deleteConversation deletes a conversation that is not at work, with all its
// sessions and whatever else holds its text. Deleting it again is 404.
func (a *API) deleteConversation(ctx context.Context, c call) (any, error) {
	id := c.args.text("conversation_id")
	var r store.Removed
	err := a.config.Store.InTx(ctx, func(tx *store.Tx) (err error) {
		if r, err = tx.Care().RemoveConversation(ctx, id); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: c.actor(), Action: "conversation.remove", Target: id, Detail: c.detail()})
	})
	return deleted[removedCounts]{removedCounts(r)}, err
}

type forkBody struct {
	Session  sessionSummary `json:"session"`
	Messages int            `json:"messages"`
	Of       int            `json:"of"`
}

// forkSession begins a session that goes on from the first n messages of another
// one, in its conversation. A fork in which nothing was said yet is answered as it
// is, so that a client may repeat what it got no answer to.
func (a *API) forkSession(ctx context.Context, c call) (any, error) {
	var (
		done sessions.Forked
		body forkBody
	)
	err := a.config.Store.InTx(ctx, func(tx *store.Tx) (err error) {
		from := c.args.text("session_id")
		if done, err = tx.Sessions().ForkSession(ctx, sessions.Fork{From: from, N: int(c.args.number("n"))}); err != nil {
			return err
		}
		conversation, err := tx.Conversations().Conversation(ctx, done.Session.ConversationID)
		if err != nil {
			return err
		}
		body = forkBody{summarize(done.Session, conversation.Key), done.Taken, done.Of}
		if done.Again {
			return nil
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: c.actor(), Action: "session.fork", ConversationID: conversation.ID, Target: done.Session.ID,
			Detail: fmt.Sprintf(`{"key":%q,"from":%q,"messages":%d,"of":%d}`, c.key.ID, from, done.Taken, done.Of),
		})
	})
	switch {
	case fault.Is(err, fault.Invalid):
		return nil, badParameter("n", fault.Public(err))
	case done.Again:
		return body, err
	}
	return created{body}, err
}

// detail is what the audit log has besides the name of the key, which a later
// key may have as well.
func (c call) detail() string { return `{"key":"` + c.key.ID + `"}` }
