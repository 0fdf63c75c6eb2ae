package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

const conversationColumns = `
	id, platform_type, platform_conversation_id, codebase_id, cwd, ai_assistant_type, created_at, updated_at,
	inbox_seq, stop_seq, delivery_seq, settings, agent_id, lease_owner, lease_epoch, lease_owner IS NOT NULL AND lease_until > {now}`

func scanConversation(c *sessions.Conversation) []any {
	return []any{
		text{&c.ID}, &c.Key.Platform, &c.Key.ID, text{&c.CodebaseID}, text{&c.Cwd}, &c.Assistant,
		noted{&c.CreatedAt}, noted{&c.UpdatedAt},
		&c.InboxSeq, &c.StopSeq, &c.DeliverySeq, settings{&c.Settings}, text{&c.AgentID}, text{&c.Owner}, &c.Epoch, &c.Leased,
	}
}

// GetOrCreateConversation implements sessions.ConversationStore. An empty assistant type
// is the default.
func (t *Conversations) GetOrCreateConversation(
	ctx context.Context, key messages.ConversationKey, assistant string,
) (c sessions.Conversation, created bool, err error) {
	c, ok, err := t.lockConversation(ctx, key)
	if err != nil || ok {
		return c, false, err
	}
	id, err := newID()
	if err != nil {
		return c, false, err
	}
	assistant = cmp.Or(assistant, defaultAssistant)
	created, err = t.tx.one(ctx, scanConversation(&c), `
		INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, ai_assistant_type)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (platform_type, platform_conversation_id) DO NOTHING
		RETURNING `+conversationColumns,
		id, string(key.Platform), key.ID, assistant)
	if err != nil || created {
		return c, created, wrap(err, "create conversation")
	}
	// Whoever lost the race sees the winner's row: the insert has waited for its
	// commit.
	c, ok, err = t.lockConversation(ctx, key)
	if err == nil && !ok {
		err = fault.New(fault.Conflict, "")
	}
	return c, false, err
}

func (t *Conversations) lockConversation(ctx context.Context, key messages.ConversationKey) (c sessions.Conversation, ok bool, err error) {
	ok, err = t.tx.one(ctx, scanConversation(&c), `
		SELECT `+conversationColumns+` FROM remote_agent_conversations
		WHERE platform_type = $1 AND platform_conversation_id = $2 {lock}`,
		string(key.Platform), key.ID)
	if err != nil {
		err = fmt.Errorf("read conversation: %w", err)
	}
	return c, ok, err
}

// FindConversation implements sessions.ConversationStore.
func (t *Conversations) FindConversation(ctx context.Context, key messages.ConversationKey) (sessions.Conversation, error) {
	return rowOf(ctx, t.tx, "conversation", scanConversation, `
		SELECT `+conversationColumns+` FROM remote_agent_conversations
		WHERE platform_type = $1 AND platform_conversation_id = $2`,
		string(key.Platform), key.ID)
}

// Conversation implements sessions.ConversationStore.
func (t *Conversations) Conversation(ctx context.Context, id string) (sessions.Conversation, error) {
	return rowOf(ctx, t.tx, "conversation", scanConversation, `
		SELECT `+conversationColumns+` FROM remote_agent_conversations WHERE id = $1`, id)
}

// ConversationsBelow implements sessions.ConversationStore.
func (t *Conversations) ConversationsBelow(ctx context.Context, platform messages.Platform, begin string) (list []sessions.Conversation, err error) {
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var c sessions.Conversation
		err := scan(scanConversation(&c)...)
		list = append(list, c)
		return err
	}, `
		SELECT `+conversationColumns+` FROM remote_agent_conversations c
		WHERE platform_type = $1 AND substr(platform_conversation_id, 1, $2) = $3 AND (
			EXISTS (SELECT 1 FROM inbound_events e WHERE e.conversation_id = c.id AND e.state IN ('waiting', 'running'))
			OR EXISTS (SELECT 1 FROM agent_schedules s WHERE s.conversation_id = c.id))
		ORDER BY platform_conversation_id`, string(platform), utf8.RuneCountInString(begin), begin)
	return list, wrap(err, "find the conversations within one")
}

// UpdateConversation implements sessions.ConversationStore. The assistant type cannot be
// changed: move the conversation to an archive key and create another under the old key.
func (t *Conversations) UpdateConversation(ctx context.Context, id string, u sessions.ConversationUpdate) error {
	if u.Key != nil {
		other, err := t.FindConversation(ctx, *u.Key)
		if err == nil && other.ID != id {
			return fault.New(fault.Conflict, "Another conversation is there already.")
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	var platform, platformID, codebase, cwd, chosen, agent any
	if u.Key != nil {
		platform, platformID = string(u.Key.Platform), u.Key.ID
	}
	if u.CodebaseID != nil {
		codebase = orNull(*u.CodebaseID)
	}
	if u.Cwd != nil {
		cwd = orNull(*u.Cwd)
	}
	if u.AgentID != nil {
		agent = orNull(*u.AgentID)
	}
	if u.Settings != nil {
		encoded, err := encodeJSON(*u.Settings, fault.Invalid, "settings")
		if err != nil {
			return err
		}
		chosen = encoded
	}
	if err := t.tx.change(ctx, "update conversation", "conversation", `
		UPDATE remote_agent_conversations SET
			platform_type = COALESCE($2, platform_type),
			platform_conversation_id = COALESCE($3, platform_conversation_id),
			codebase_id = CASE WHEN $4 THEN $5 ELSE codebase_id END,
			cwd = CASE WHEN $6 THEN $7 ELSE cwd END,
			settings = COALESCE($8, settings),
			agent_id = CASE WHEN $9 THEN $10 ELSE agent_id END,
			updated_at = {stamp}
		WHERE id = $1`,
		id, platform, platformID, u.CodebaseID != nil, codebase, u.Cwd != nil, cwd, chosen, u.AgentID != nil, agent); err != nil {
		return err
	}
	t.tx.touches(id)
	return nil
}

// MoveHome gives what was forked from the conversation at a key its new one, so that one
// process goes on working on all of them.
func (t *Conversations) MoveHome(ctx context.Context, from, to messages.ConversationKey) error {
	home := `json_set(settings, '$.home', $2)`
	if t.tx.pg != nil {
		home = `jsonb_set(settings, '{home}', to_jsonb(CAST($2 AS TEXT)))`
	}
	_, err := t.tx.exec(ctx, `UPDATE remote_agent_conversations SET settings = `+home+` WHERE settings ->> 'home' = $1`, from.String(), to.String())
	return wrap(err, "move what was forked")
}

// DeleteConversation deletes a conversation with its sessions, their messages
// and tool calls, its plans, buttons and checkpoints, and its deliveries. Of its
// inbound events only the fact stays that they were received, so that a
// redelivery is still a duplicate. One in the browser leaves nothing there.
func (t *Conversations) DeleteConversation(ctx context.Context, id string) error {
	t.tx.erases()
	if _, err := t.tx.exec(ctx, `
		UPDATE inbound_events SET
			data = NULL, raw = NULL, error = NULL, preparation = NULL, checkpoint_seq = NULL, checkpoint_ref = NULL,
			state = CASE WHEN state IN ('waiting', 'running') THEN 'stopped' ELSE state END
		WHERE conversation_id = $1`, id); err != nil {
		return fmt.Errorf("delete conversation: %w", err)
	}
	if err := t.tx.Board().deleteChat(ctx, id); err != nil {
		return err
	}
	if err := t.tx.change(ctx, "delete conversation", "conversation", `DELETE FROM remote_agent_conversations WHERE id = $1`, id); err != nil {
		return err
	}
	t.tx.touches(id)
	return nil
}

// settings scans the JSON of a conversation's settings. What cannot be read is
// treated as not set, so that a conversation is not lost to it.
type settings struct{ to *sessions.Settings }

// Scan implements sql.Scanner.
func (s settings) Scan(value any) error {
	var encoded string
	if err := (text{&encoded}).Scan(value); err != nil {
		return err
	}
	*s.to = sessions.Settings{}
	if encoded != "" && encoded != "{}" {
		_ = json.Unmarshal([]byte(encoded), s.to) // see above
	}
	return nil
}

// lockConversationID locks the row of a conversation, which is what orders all
// that happens to its plans.
func (t *Conversations) lockConversationID(ctx context.Context, id string) error {
	return t.tx.require(ctx, "conversation", `SELECT 1 FROM remote_agent_conversations WHERE id = $1 {lock}`, id)
}
