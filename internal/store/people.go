package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
)

// personPrefix begins the ids of people with several accounts. It is no platform.
const personPrefix = "person/"

const personOfSQL = `SELECT user_id FROM memory_accounts WHERE account = $1`

// personOf returns the id under which the memories of an account are kept: that
// of the person it was linked to, else its own name.
func (t *Persons) personOf(ctx context.Context, account string) (string, error) {
	person := account
	_, err := t.tx.one(ctx, []any{&person}, personOfSQL, account)
	return person, wrap(err, "look for the person of an account")
}

const accountColumns = `account, conversation_id, whispered, last_key, linked_ms`

func (t *Persons) accountsOf(ctx context.Context, person string) (list []memory.Account, err error) {
	return rowsOf(ctx, t.tx, "list the accounts of a person", func(a *memory.Account) []any {
		return []any{&a.Name, text{&a.ConversationID}, &a.Whispered, &a.Key, msTime{&a.LinkedAt}}
	}, `SELECT `+accountColumns+` FROM memory_accounts WHERE user_id = $1 ORDER BY account`, person)
}

// Accounts returns all accounts of the person of an account, sorted by name, or
// none if it was not linked to another one.
func (t *Persons) Accounts(ctx context.Context, account string) ([]memory.Account, error) {
	person, err := t.personOf(ctx, account)
	if err != nil || person == account {
		return nil, err
	}
	list, err := t.accountsOf(ctx, person)
	if len(list) < 2 {
		return nil, err // the others have left
	}
	return list, err
}

// SaveLinkCode stores the hash of a code, in place of an earlier one of the same
// account.
func (t *Persons) SaveLinkCode(ctx context.Context, c memory.LinkCode) error {
	return t.tx.run(ctx, "save a link code", `
		INSERT INTO link_codes (account, code_hash, conversation_id, whispered, expires_ms) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (account) DO UPDATE SET code_hash = excluded.code_hash, conversation_id = excluded.conversation_id,
			whispered = excluded.whispered, expires_ms = excluded.expires_ms`,
		c.Name, c.Hash, orNull(c.ConversationID), c.Whispered, millis(c.Expires))
}

// TakeLinkCode uses a code up, by its hash. ok is false if there is none that is
// still good at now. Of two callers at once one gets it.
func (t *Persons) TakeLinkCode(ctx context.Context, hash string, now time.Time) (c memory.LinkCode, ok bool, err error) {
	ok, err = t.tx.one(ctx, []any{&c.Name, &c.Hash, text{&c.ConversationID}, &c.Whispered, msTime{&c.Expires}}, `
		DELETE FROM link_codes WHERE code_hash = $1 RETURNING account, code_hash, conversation_id, whispered, expires_ms`, hash)
	return c, ok && c.Expires.After(now), wrap(err, "use a link code")
}

// SweepLinkCodes deletes codes that have expired by now, and counts of wrong ones
// from before since.
func (t *Persons) SweepLinkCodes(ctx context.Context, now, since time.Time) error {
	if _, err := t.tx.exec(ctx, `DELETE FROM link_codes WHERE expires_ms <= $1`, millis(now)); err != nil {
		return fmt.Errorf("sweep link codes: %w", err)
	}
	return t.tx.run(ctx, "sweep wrong link codes", `DELETE FROM link_tries WHERE since_ms <= $1`, millis(since))
}

// LinkTries returns how many wrong codes an account has sent since a time.
func (t *Persons) LinkTries(ctx context.Context, account string, since time.Time) (n int64, err error) {
	_, err = t.tx.one(ctx, []any{&n}, `SELECT tries FROM link_tries WHERE account = $1 AND since_ms > $2`, account, millis(since))
	return n, wrap(err, "count wrong link codes")
}

// NoteLinkTry counts a wrong code of an account; key is the message that had it,
// which counts once. A count from before since begins anew at now.
func (t *Persons) NoteLinkTry(ctx context.Context, account, key string, since, now time.Time) error {
	return t.tx.run(ctx, "count a wrong link code", `
		INSERT INTO link_tries (account, tries, since_ms, last_key) VALUES ($1, 1, $4, $2)
		ON CONFLICT (account) DO UPDATE SET
			tries = CASE WHEN link_tries.since_ms > $3 THEN link_tries.tries + 1 ELSE 1 END,
			since_ms = CASE WHEN link_tries.since_ms > $3 THEN link_tries.since_ms ELSE $4 END,
			last_key = $2
		WHERE link_tries.last_key <> $2`, account, key, millis(since), millis(now))
}

// JoinPeople makes one person of those of two accounts, with all their other
// accounts. The memories of host keep their numbers; those of guest get numbers
// behind all that either of them had. Two with the same text in the same place
// become one. Memory is off if it was for one of them. Two accounts of one person
// are a fault.Conflict.
func (t *Persons) JoinPeople(ctx context.Context, host, guest memory.Account) (j memory.Joined, err error) {
	from, to, err := t.holdBoth(ctx, guest.Name, host.Name)
	if err != nil {
		return j, err
	}
	joined, into := from.person != guest.Name, to.person
	if into == host.Name {
		if into, err = t.newPerson(ctx, to); err != nil {
			return j, err
		}
		if err := t.moveMemories(ctx, to.person, into, 0); err != nil {
			return j, err
		}
		if err := t.saveAccount(ctx, host, into); err != nil {
			return j, err
		}
	}
	offset := max(from.seq, to.seq)
	j = memory.Joined{FirstMoved: offset, Off: !from.on || !to.on}
	if j.Same, err = t.mergeSame(ctx, from.person, into); err != nil {
		return j, err
	}
	for _, table := range bothMemoryTables() {
		var n int64
		if _, err := t.tx.one(ctx, []any{&n}, `SELECT count(*) FROM `+table.name+` WHERE user_id = $1`, from.person); err != nil {
			return j, fmt.Errorf("count memories: %w", err)
		}
		j.Moved += n
	}
	if err := t.moveMemories(ctx, from.person, into, offset); err != nil {
		return j, err
	}
	if _, err := t.tx.exec(ctx, `UPDATE memory_people SET seq = $2, enabled = $3 WHERE user_id = $1`, into, offset+from.seq, !j.Off); err != nil {
		return j, fmt.Errorf("join people: %w", err)
	}
	if joined {
		if _, err := t.tx.exec(ctx, `UPDATE memory_accounts SET user_id = $2 WHERE user_id = $1`, from.person, into); err != nil {
			return j, fmt.Errorf("join people: %w", err)
		}
		if _, err := t.tx.exec(ctx, `DELETE FROM memory_people WHERE user_id = $1`, from.person); err != nil {
			return j, fmt.Errorf("join people: %w", err)
		}
	}
	return j, t.saveAccount(ctx, guest, into)
}

func (t *Persons) newPerson(ctx context.Context, like held) (string, error) {
	id, err := newID()
	if err != nil {
		return "", err
	}
	id = personPrefix + id
	_, err = t.tx.exec(ctx, `INSERT INTO memory_people (user_id, seq, enabled) VALUES ($1, $2, $3)`, id, like.seq, like.on)
	return id, wrap(err, "make a person")
}

func (t *Persons) saveAccount(ctx context.Context, a memory.Account, person string) error {
	return t.tx.run(ctx, "link an account", `
		INSERT INTO memory_accounts (account, user_id, conversation_id, whispered, last_key, linked_ms) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (account) DO UPDATE SET user_id = excluded.user_id, conversation_id = excluded.conversation_id,
			whispered = excluded.whispered, last_key = excluded.last_key, linked_ms = excluded.linked_ms`,
		a.Name, person, orNull(a.ConversationID), a.Whispered, a.Key, millis(a.LinkedAt))
}

// moveMemories gives the memories of one person to another, with numbers that are
// higher by offset. None of them may be there already. What has no terms yet gets
// them from IndexWords.
func (t *Persons) moveMemories(ctx context.Context, from, to string, offset int64) error {
	for _, table := range bothMemoryTables() {
		_, err := t.tx.exec(ctx, `
			UPDATE `+table.name+` SET user_id = $2, seq = seq + $3,
				terms = CASE terms WHEN '' THEN '' ELSE $4 || substr(terms, CAST($5 AS INTEGER)) END WHERE user_id = $1`,
			from, to, offset, memory.PersonTerm(to), len(memory.PersonTerm(from))+1)
		if err != nil {
			return fmt.Errorf("move memories: %w", err)
		}
	}
	return nil
}

// mergeSame makes one of each two memories that two people have with the same
// text in the same place, and returns how many there were. The number of the one
// in to stays.
func (t *Persons) mergeSame(ctx context.Context, from, to string) (n int64, err error) {
	for _, table := range bothMemoryTables() {
		alive := ""
		if table.kind == memory.Episodic {
			alive = ` AND m.expires_at > {stamp}`
		}
		twice, err := t.tx.Memories().memories(ctx, table, `WHERE m.user_id = $1`+alive+`
			AND m.content_hash IN (SELECT content_hash FROM `+table.name+` WHERE user_id = $2) ORDER BY m.seq`, from, to)
		if err != nil {
			return n, err
		}
		for _, m := range twice {
			there, err := t.tx.Memories().memories(ctx, table, sameText+alive+` ORDER BY m.seq LIMIT 1`, to, orNull(m.Codebase), m.Hash)
			if err != nil {
				return n, err
			}
			if len(there) == 0 { // in another place, or expired
				continue
			}
			if err := t.saveMerged(ctx, table, there[0].Merge(m)); err != nil {
				return n, err
			}
			if _, err := t.tx.exec(ctx, `DELETE FROM `+table.name+` WHERE id = $1`, m.ID); err != nil {
				return n, fmt.Errorf("merge memories: %w", err)
			}
			n++
		}
	}
	return n, nil
}

func (t *Persons) saveMerged(ctx context.Context, table memoryTable, m memory.Memory) error {
	lists := []any{m.Events, m.History}
	own := `source_events = $7, history = $8, category = $9`
	more := []any{orNull(string(m.Category))}
	if table.kind == memory.Episodic {
		lists = []any{m.Sources}
		own, more = `sources = $7, expires_at = $8`, []any{rfc3339(m.ExpiresAt)}
	}
	args := []any{m.ID, m.Confidence, m.AccessCount, string(m.Origin), rfc3339(m.CreatedAt), rfc3339(m.UpdatedAt)}
	for _, list := range lists {
		encoded, err := encodeJSON(list, fault.Internal, "a memory")
		if err != nil {
			return err
		}
		if encoded == "null" {
			encoded = "[]"
		}
		args = append(args, encoded)
	}
	return t.tx.run(ctx, "merge memories", `UPDATE `+table.name+` SET confidence = $2, access_count = $3, origin = $4, created_at = $5, updated_at = $6, `+own+` WHERE id = $1`,
		append(args, more...)...)
}

// LeavePerson takes an account away from its person, whose memories all stay
// with the other accounts. The account begins with none, with numbers that it has
// not seen, and with memory on or off as it was. fault.NotFound is an account
// that is not linked.
func (t *Persons) LeavePerson(ctx context.Context, account string) error {
	h, err := t.holdPerson(ctx, account)
	if err != nil {
		return err
	}
	if h.person == account {
		return fault.Newf(fault.NotFound, "%s is not linked.", account)
	}
	if _, err := t.tx.exec(ctx, `DELETE FROM memory_accounts WHERE account = $1`, account); err != nil {
		return fmt.Errorf("unlink an account: %w", err)
	}
	return t.tx.run(ctx, "unlink an account", `
		INSERT INTO memory_people (user_id, seq, enabled) SELECT $2, seq, $3 FROM memory_people WHERE user_id = $1
		ON CONFLICT (user_id) DO UPDATE SET seq = excluded.seq, enabled = excluded.enabled`, h.person, account, h.on)
}

// Holdings counts what is kept of the person of an account.
func (t *Persons) Holdings(ctx context.Context, account string) (h memory.Holdings, err error) {
	if h.Person, err = t.personOf(ctx, account); err != nil {
		return h, err
	}
	if h.On, err = t.tx.Memories().MemoryOn(ctx, account); err != nil {
		return h, err
	}
	if h.Accounts, err = t.accountsOf(ctx, h.Person); err != nil {
		return h, err
	}
	if len(h.Accounts) == 0 {
		h.Accounts = []memory.Account{{Name: account}}
	}
	count := func(to *int64, query, of string) {
		var n int64
		if err == nil {
			_, err = t.tx.one(ctx, []any{&n}, query, of)
			*to += n
		}
	}
	count(&h.Facts, `SELECT count(*) FROM semantic_memories WHERE user_id = $1`, h.Person)
	count(&h.Episodes, `SELECT count(*) FROM episodic_memories WHERE user_id = $1`, h.Person)
	for _, a := range h.Accounts {
		count(&h.Lessons, `SELECT count(*) FROM memory_lessons WHERE account = $1`, a.Name)
		count(&h.Codes, `SELECT count(*) FROM link_codes WHERE account = $1`, a.Name)
		if err == nil {
			var chats []string
			chats, err = t.tx.Board().allChats(ctx, a.Name)
			h.Chats = append(h.Chats, chats...)
		}
	}
	return h, wrap(err, "count what is kept of a person")
}

// ForgetPerson deletes what Holdings counts besides chats, with the settings: memories, links,
// codes, what was still to be learned. It returns what there was. Nothing that is
// being learned at the moment is stored afterwards. Conversations, usage and the
// audit log stay.
func (t *Persons) ForgetPerson(ctx context.Context, account string) (h memory.Holdings, err error) {
	held, err := t.holdPerson(ctx, account)
	if err != nil {
		return h, err
	}
	person := held.person
	if h, err = t.Holdings(ctx, account); err != nil {
		return h, err
	}
	t.tx.erases()
	if err := t.emptyCommands(ctx, person); err != nil {
		return h, err
	}
	if _, err := t.tx.Lessons().dropLessons(ctx, person); err != nil {
		return h, err
	}
	for _, a := range h.Accounts {
		if err := t.tx.runAll(ctx, "forget a person", []string{
			`DELETE FROM link_codes WHERE account = $1`, `DELETE FROM link_tries WHERE account = $1`, `DELETE FROM memory_people WHERE user_id = $1`,
		}, a.Name); err != nil {
			return h, err
		}
	}
	return h, t.tx.run(ctx, "forget a person", `DELETE FROM memory_people WHERE user_id = $1`, person)
}

// emptyCommands takes the text out of what the commands of a person's accounts
// were answered with: a list of memories says them all. Of the commands themselves
// nothing is kept that could say them once they are done.
func (t *Persons) emptyCommands(ctx context.Context, person string) error {
	accounts, err := t.accountsOf(ctx, person)
	if err != nil {
		return err
	}
	if len(accounts) == 0 {
		accounts = []memory.Account{{Name: person}}
	}
	for _, a := range accounts {
		platform, id, _ := strings.Cut(a.Name, "/")
		_, err := t.tx.exec(ctx, `
			UPDATE deliveries SET body = '', placeholder = '', file = NULL, file_name = '', error = ''
			WHERE state IN ('sent', 'failed') AND event_id IN (
				SELECT id FROM inbound_events WHERE lane = 'control' AND (platform_type = $1 AND sender = $2 OR sender = $3))`,
			platform, id, outsideKey(messages.Platform(platform), messages.UserID(id)))
		if err != nil {
			return fmt.Errorf("empty the answers to commands: %w", err)
		}
	}
	return nil
}
