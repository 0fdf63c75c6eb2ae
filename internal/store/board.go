package store

import (
	"cmp"
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"remote-agent/internal/fault"
	"remote-agent/internal/live"
	"remote-agent/internal/messages"
)

// Conversations in the browser. What stands in them is kept here as platforms keep theirs.

const postedColumns = `m.chat_id, m.id, m.seq, COALESCE(m.delivery_id, ''), m.author, m.body, m.buttons, m.mark, m.created_ms`

func scanPosted(p *messages.Posted) []any {
	return []any{&p.Chat, &p.ID, &p.Seq, &p.Delivery, &p.Author, &p.Text, buttonList{&p.Buttons}, &p.Mark, msTime{&p.At}}
}

// Say stores what a person says in their conversation, which begins with it, and what the
// engine is to be told of it. A second time it changes nothing. A conversation of
// somebody else is fault.NotFound.
func (s *Store) Say(ctx context.Context, p messages.Posted, event []byte) error {
	return s.InTx(ctx, func(t *Tx) error {
		if _, err := t.exec(ctx, `INSERT INTO web_chats (id, account, changed_ms) VALUES ($1, $2, {now}) ON CONFLICT (id) DO NOTHING`, p.Chat, p.Author); err != nil {
			return fmt.Errorf("begin a conversation: %w", err)
		}
		account := ""
		if _, err := t.one(ctx, []any{&account}, `SELECT account FROM web_chats WHERE id = $1 {lock}`, p.Chat); err != nil {
			return fmt.Errorf("find a conversation: %w", err)
		}
		if account != p.Author {
			return notFound("conversation")
		}
		_, err := t.Board().post(ctx, p, event)
		return err
	})
}

// Post implements web.Board. A conversation that is not there is fault.Gone.
func (s *Store) Post(ctx context.Context, p messages.Posted) (id messages.MessageID, err error) {
	err = s.InTx(ctx, func(t *Tx) error {
		there, err := t.exists(ctx, `SELECT 1 FROM web_chats WHERE id = $1 {lock}`, p.Chat)
		if err == nil && !there {
			err = fault.New(fault.Gone, "The conversation was deleted.")
		}
		if err != nil {
			return err
		}
		if p.Delivery != "" {
			before, err := t.one(ctx, []any{&id}, `SELECT id FROM web_messages WHERE delivery_id = $1 AND chat_id = $2`, string(p.Delivery), p.Chat)
			if before || err != nil {
				return wrap(err, "look for a message")
			}
		}
		id, err = t.Board().post(ctx, p, nil)
		return err
	})
	return id, err
}

// post stores a message with its files at the end of its conversation, whose row is
// locked.
func (t *Board) post(ctx context.Context, p messages.Posted, event []byte) (messages.MessageID, error) {
	if p.ID == "" {
		id, err := newID()
		if err != nil {
			return "", err
		}
		p.ID = messages.MessageID(id)
	}
	buttons, err := encodeButtons(p.Buttons)
	if err != nil {
		return "", err
	}
	n, err := t.tx.exec(ctx, `
		INSERT INTO web_messages (id, chat_id, seq, delivery_id, author, body, buttons, event, created_ms)
		VALUES ($1, $2, (SELECT last_seq + 1 FROM web_chats WHERE id = $8), $3, $4, $5, $6, $7, {now})
		ON CONFLICT (id) DO NOTHING`,
		string(p.ID), p.Chat, orNull(string(p.Delivery)), p.Author, p.Text, buttons, orNull(string(event)), p.Chat)
	if err != nil || n == 0 {
		return p.ID, wrap(err, "store a message")
	}
	for i, f := range p.Files {
		if f.ID == "" {
			f.ID = fmt.Sprintf("%s-%d", p.ID, i)
		}
		if f.Data == nil {
			f.Data = []byte{}
		}
		if _, err := t.tx.exec(ctx, `INSERT INTO web_files (id, message_id, name, media_type, size, data) VALUES ($1, $2, $3, $4, $5, $6)`,
			f.ID, string(p.ID), f.Name, f.MediaType, len(f.Data), f.Data); err != nil {
			return "", fmt.Errorf("store a file of a message: %w", err)
		}
	}
	_, err = t.tx.exec(ctx, `UPDATE web_chats SET last_seq = last_seq + 1, changed_ms = {now} WHERE id = $1`, p.Chat)
	t.tx.touch(live.Chat(p.Chat))
	return p.ID, wrap(err, "store a message")
}

// Repost replaces text and buttons of a message of the program; fault.NotFound if it is
// not there.
func (s *Store) Repost(ctx context.Context, p messages.Posted) error {
	buttons, err := encodeButtons(p.Buttons)
	if err != nil {
		return err
	}
	return s.InTx(ctx, func(t *Tx) error {
		t.touch(live.Chat(p.Chat))
		return t.change(ctx, "change a message", "message", `UPDATE web_messages SET body = $3, buttons = $4 WHERE id = $1 AND chat_id = $2 AND delivery_id IS NOT NULL`,
			string(p.ID), p.Chat, p.Text, buttons)
	})
}

// Unpost takes a message of the program back; one that is not there is success.
func (s *Store) Unpost(ctx context.Context, chat string, id messages.MessageID) error {
	return s.InTx(ctx, func(t *Tx) error {
		_, err := t.exec(ctx, `DELETE FROM web_messages WHERE id = $1 AND chat_id = $2 AND delivery_id IS NOT NULL`, string(id), chat)
		t.touch(live.Chat(chat))
		return wrap(err, "take a message back")
	})
}

// MarkPosted puts a mark on what a person said.
func (s *Store) MarkPosted(ctx context.Context, chat string, id messages.MessageID, mark string) error {
	return s.InTx(ctx, func(t *Tx) error {
		_, err := t.exec(ctx, `UPDATE web_messages SET mark = $3 WHERE id = $1 AND chat_id = $2 AND delivery_id IS NULL`, string(id), chat, mark)
		t.touch(live.Chat(chat))
		return wrap(err, "mark a message")
	})
}

// deleteChat deletes what stands in the browser of a conversation, if it is one of there.
func (t *Board) deleteChat(ctx context.Context, conversation string) error {
	var chat string
	there, err := t.tx.one(ctx, []any{&chat}, `DELETE FROM web_chats WHERE id = (
		SELECT platform_conversation_id FROM remote_agent_conversations WHERE id = $1 AND platform_type = 'web') RETURNING id`, conversation)
	if there {
		t.tx.touch(live.Chat(chat))
	}
	return wrap(err, "delete a conversation in the browser")
}

// RemoveChat deletes a conversation in the browser, and what a handoff has put aside of it,
// as RemoveConversation does. One of another account is fault.NotFound. It is a
// fault.Conflict while something in it waits or runs, or was said and not taken: that would
// be answered afterwards.
func (t *Board) RemoveChat(ctx context.Context, account, id string) (total Removed, err error) {
	parts, err := t.tx.ids(ctx, `SELECT id FROM remote_agent_conversations
		WHERE platform_type = 'web' AND (platform_conversation_id = $1 OR substr(platform_conversation_id, 1, $2) = $3) ORDER BY id {lock}`,
		id, utf8.RuneCountInString(id)+1, id+"~")
	if err != nil {
		return total, fmt.Errorf("find a conversation in the browser: %w", err)
	}
	mine, err := t.tx.exists(ctx, `SELECT 1 FROM web_chats WHERE id = $1 AND account = $2 {lock}`, id, account)
	if err == nil && !mine {
		err = notFound("conversation")
	}
	if err != nil {
		return total, err
	}
	untaken, err := t.tx.exists(ctx, `SELECT 1 FROM web_messages WHERE chat_id = $1 AND event IS NOT NULL LIMIT 1`, id)
	if err == nil && untaken {
		err = fault.New(fault.Conflict, "What was said last is being taken; try again in a moment.")
	}
	if err != nil {
		return total, err
	}
	for _, part := range parts {
		r, err := t.tx.Care().RemoveConversation(ctx, part)
		if err != nil {
			return total, err
		}
		total.Add(r)
	}
	t.tx.erases()
	if _, err := t.tx.exec(ctx, `DELETE FROM web_chats WHERE id = $1`, id); err != nil { // nothing in it was taken
		return total, fmt.Errorf("delete a conversation in the browser: %w", err)
	}
	t.tx.touch(live.Chat(id))
	return total, nil
}

// Untaken implements web.Board.
func (s *Store) Untaken(ctx context.Context, chat, behind string, limit int, visit func(chat string, id messages.MessageID, event []byte)) error {
	return s.InRead(ctx, func(t *Tx) error {
		return t.each(ctx, func(scan func(...any) error) error {
			var of, event string
			var id messages.MessageID
			if err := scan(&of, &id, &event); err != nil {
				return err
			}
			visit(of, id, []byte(event))
			return nil
		}, `SELECT chat_id, id, event FROM web_messages WHERE event IS NOT NULL AND (chat_id = $1 OR $1 = '') AND chat_id > $2
			ORDER BY chat_id, seq LIMIT $3`, chat, behind, limit)
	})
}

// Took notes that the engine has taken what was said.
func (s *Store) Took(ctx context.Context, ids ...messages.MessageID) error {
	return s.InTx(ctx, func(t *Tx) error {
		for _, id := range ids {
			if _, err := t.exec(ctx, `UPDATE web_messages SET event = NULL WHERE id = $1`, string(id)); err != nil {
				return fmt.Errorf("note what was taken: %w", err)
			}
		}
		return nil
	})
}

const chatsSQL = `SELECT c.id, c.account, c.changed_ms, COALESCE((
		SELECT substr(m.body, 1, 200) FROM web_messages m WHERE m.chat_id = c.id AND m.delivery_id IS NULL ORDER BY m.seq LIMIT 1), '')
	FROM web_chats c WHERE `

func scanChat(c *messages.Chat) []any {
	return []any{&c.ID, &c.Account, msTime{&c.ChangedAt}, &c.Title}
}

// Chat returns a conversation.
func (t *Board) Chat(ctx context.Context, id string) (messages.Chat, error) {
	return rowOf(ctx, t.tx, "conversation in the browser", scanChat, chatsSQL+`c.id = $1`, id)
}

// Chats returns up to limit conversations of an account in which anything stands, the
// last that changed first: those that changed until a moment in milliseconds (0: all).
func (t *Board) Chats(ctx context.Context, account string, until int64, limit int) (list []messages.Chat, err error) {
	return rowsOf(ctx, t.tx, "list conversations in the browser", scanChat,
		chatsSQL+`c.account = $1 AND c.changed_ms <= $2 AND EXISTS (SELECT 1 FROM web_messages m WHERE m.chat_id = c.id) ORDER BY c.changed_ms DESC, c.id LIMIT $3`,
		account, cmp.Or(until, 1<<62), limit)
}

// allChats returns the ids of the conversations of an account, however many, the last that
// changed first: whoever is to be forgotten is to read of each.
func (t *Board) allChats(ctx context.Context, account string) ([]string, error) {
	ids, err := t.tx.ids(ctx, `SELECT id FROM web_chats WHERE account = $1 ORDER BY changed_ms DESC, id`, account)
	return ids, wrap(err, "list conversations in the browser")
}

// ChatOf reports whether there is a conversation of an account with an id.
func (t *Board) ChatOf(ctx context.Context, account, id string) (bool, error) {
	ok, err := t.tx.exists(ctx, `SELECT 1 FROM web_chats WHERE id = $1 AND account = $2`, id, account)
	return ok, wrap(err, "find a conversation in the browser")
}

// HasPosted reports whether a message of the program stands in a conversation.
func (t *Board) HasPosted(ctx context.Context, chat string, id messages.MessageID) (bool, error) {
	ok, err := t.tx.exists(ctx, `SELECT 1 FROM web_messages WHERE id = $1 AND chat_id = $2 AND delivery_id IS NOT NULL`, string(id), chat)
	return ok, wrap(err, "find a message in the browser")
}

// Posted returns the last messages of a conversation, up to limit, in their order.
func (t *Board) Posted(ctx context.Context, chat string, limit int) (list []messages.Posted, err error) {
	list, err = rowsOf(ctx, t.tx, "read a conversation in the browser", scanPosted, `SELECT `+postedColumns+` FROM (
			SELECT * FROM web_messages WHERE chat_id = $1 ORDER BY seq DESC LIMIT $2) AS m ORDER BY m.seq`, chat, limit)
	if err != nil || len(list) == 0 {
		return list, err
	}
	at := make(map[messages.MessageID]int)
	for i, p := range list {
		at[p.ID] = i
	}
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var f messages.PostedFile
		var of messages.MessageID
		left := 0
		err := scan(&f.ID, &of, &f.Name, &f.MediaType, &f.Size, &left)
		f.Gone = left == 0 && f.Size > 0
		if i, shown := at[of]; shown {
			list[i].Files = append(list[i].Files, f)
		}
		return err
	}, `SELECT f.id, f.message_id, f.name, f.media_type, f.size, length(f.data) FROM web_files f JOIN web_messages m ON m.id = f.message_id
		WHERE m.chat_id = $1 ORDER BY f.id`, chat)
	return list, wrap(err, "read the files of a conversation in the browser")
}

// PostedFile returns a file of a conversation; fault.NotFound if there is none, or none of
// its bytes.
func (t *Board) PostedFile(ctx context.Context, chat, id string) (f messages.PostedFile, err error) {
	ok, err := t.tx.one(ctx, []any{&f.ID, &f.Name, &f.MediaType, &f.Size, &f.Data}, `
		SELECT f.id, f.name, f.media_type, f.size, f.data FROM web_files f JOIN web_messages m ON m.id = f.message_id
		WHERE f.id = $1 AND m.chat_id = $2`, id, chat)
	return found(f, ok && (f.Size == 0 || len(f.Data) > 0), err, "file")
}

// EmptyPosted deletes the bytes of files that were sent before a time; their names stay.
func (t *Board) EmptyPosted(ctx context.Context, before time.Time) error {
	n, err := t.tx.exec(ctx, `UPDATE web_files SET data = $1 WHERE length(data) > 0 AND message_id IN (
		SELECT m.id FROM web_files f JOIN web_messages m ON m.id = f.message_id WHERE length(f.data) > 0 AND m.created_ms < $2)`, []byte{}, millis(before))
	if n > 0 {
		t.tx.erases()
	}
	return wrap(err, "delete what was sent in the browser")
}

// OpenPosted returns a file as Board.PostedFile does.
func (s *Store) OpenPosted(ctx context.Context, chat, id string) (messages.PostedFile, error) {
	return Within(ctx, s.InRead, func(t *Tx) (messages.PostedFile, error) { return t.Board().PostedFile(ctx, chat, id) })
}
