package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"remote-agent/internal/fault"
	"remote-agent/internal/letters"
	"remote-agent/internal/messages"
)

// Hit is a message that a search found.
type Hit struct {
	ID             int64 // grows with time; the cursor of the next page
	SessionID      string
	ConversationID string
	Key            messages.ConversationKey
	Seq            int64
	Role           string
	Content        string
	CreatedAt      time.Time
}

// SearchFilter says what to look for.
type SearchFilter struct {
	Words          string   // all of them have to occur; see Search.Messages
	ConversationID string   // empty: all
	Within         []string // nil: all; else only these conversations, none if it is empty
	Before         int64    // ID of a hit: only older ones; 0: from the newest
	Limit          int      // 1 to 1000; 0 is 50
}

// searched is the condition of the index on PostgreSQL, which uses it only if
// the query repeats it.
const searched = `m.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')`

// Messages returns what people and assistants wrote that has all the
// words, the newest first. A word that ends with * is the beginning of words,
// which takes longer where many begin so. Case does not matter (on PostgreSQL
// with the locale C: that of ASCII only), and neither do accents of Latin letters, see letters.Plain (but on
// PostgreSQL with the encoding SQL_ASCII). What is in a script without
// spaces, such as Chinese, is found anywhere in a text (not with that encoding either). Turns that were taken back are left out. Without a word it is
// fault.Invalid.
func (t *Search) Messages(ctx context.Context, f SearchFilter) ([]Hit, error) {
	f.Limit = page(f.Limit)
	terms := searchTerms(f.Words)
	if len(terms) == 0 {
		return nil, fault.New(fault.Invalid, "Specify at least one word to search for.")
	}
	if f.ConversationID != "" {
		if err := checkID(f.ConversationID, "conversation"); err != nil {
			return nil, err
		}
	}
	if t.tx.pg == nil {
		return t.searchSQLite(ctx, f, terms)
	}
	return t.searchPostgres(ctx, f, terms)
}

const (
	readFirst = 2000 // messages that are read, the newest, before an index is asked
	fewFound  = 1000 // messages that are brought into order at once
)

// searchSQLite reads what the index does not have yet, and then asks it.
func (t *Search) searchSQLite(ctx context.Context, f SearchFilter, terms []searchTerm) ([]Hit, error) {
	var mark int64
	if _, err := t.tx.one(ctx, []any{&mark}, `SELECT `+indexedSQL); err != nil {
		return nil, fmt.Errorf("search messages: %w", err)
	}
	var hits []Hit
	behind := "m.id > $1 AND " + searched
	err := t.searchEach(ctx, SearchFilter{ConversationID: f.ConversationID, Within: f.Within, Before: f.Before, Limit: -1},
		"agent_messages m", "m.id", behind, []any{mark}, func(h Hit) {
			if len(hits) < f.Limit && hasTerms(h.Content, terms) {
				hits = append(hits, h)
			}
		})
	if f.Limit -= len(hits); err != nil || f.Limit == 0 {
		return hits, err
	}
	if f.Before == 0 || f.Before > mark {
		f.Before = mark + 1
	}
	indexed, err := t.searchIndexed(ctx, f, terms)
	return append(hits, indexed...), err
}

// indexedSQL is the number of the last message that the index of SQLite has. It has
// none behind it and all before it; see migration 00028.
const indexedSQL = `COALESCE((SELECT max(d.id) FROM agent_messages_fts_docsize d), 0)`

// unindexedSQL are up to $1 messages that the index of SQLite does not have yet.
const unindexedSQL = `
	SELECT m.id, m.content FROM agent_messages m WHERE m.id > ` + indexedSQL + ` AND ` + searched + `
	ORDER BY m.id LIMIT $1`

// How many messages are brought into the index at once. Fewer are left for later
// while others want to write.
const (
	mostIndexed  = 512
	worthIndexed = 128
)

// indexMessages brings the oldest messages that the index of SQLite does not have into
// it, and returns how many. If there are fewer than least it leaves them.
func (t *Search) indexMessages(ctx context.Context, least int) (n int64, err error) {
	if least > 1 {
		if _, err := t.tx.one(ctx, []any{&n}, `SELECT count(*) FROM (`+unindexedSQL+`) few`, least); err != nil || n < int64(least) {
			return 0, wrap(err, "look for messages to index")
		}
	}
	var ids []int64
	var bodies []string
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var id int64
		var said string
		err := scan(&id, &said)
		ids, bodies = append(ids, id), append(bodies, letters.Spell(spread(indexed(said)))) // the view is slow
		return err
	}, unindexedSQL, mostIndexed)
	for i := 0; err == nil && i < len(ids); i++ {
		_, err = t.tx.exec(ctx, `INSERT INTO agent_messages_fts(rowid, body) VALUES ($1, $2)`, ids[i], bodies[i])
	}
	return int64(len(ids)), wrap(err, "index messages")
}

// searchIndexed asks the index at once, which tells the newest first, but in two
// cases it reads the newest messages before. All places of all words with a
// beginning are brought together before the first is told: much, where many words
// begin so, and then the newest are soon found by reading. And the index does not
// know who said something where.
func (t *Search) searchIndexed(ctx context.Context, f SearchFilter, terms []searchTerm) ([]Hit, error) {
	whole := wholeWords(terms)
	if !readable(terms) || !f.somewhere() && len(whole) == len(terms) {
		return t.searchRange(ctx, f, terms, 0)
	}
	steps := []int{100, 400, readFirst - 500} // what is common is found among few
	if f.somewhere() {
		steps = []int{readFirst} // all of them are brought into order anyway
	}
	var hits []Hit
	limit := f.Limit
	for _, n := range steps {
		read := 0
		visit := func(h Hit) {
			read, f.Before = read+1, h.ID
			if len(hits) < limit && hasTerms(h.Content, terms) {
				hits = append(hits, h)
			}
		}
		var err error
		if f.somewhere() || len(whole) == 0 {
			var args []any
			source := newest(f, n, &args)
			err = t.searchEach(ctx, SearchFilter{Limit: n}, source, "m.id", "1 = 1", args, visit)
		} else {
			f.Limit = n
			err = t.searchEach(ctx, f, wordsSource, wordsID, wordsMatch, []any{matchSQLite(whole)}, visit)
		}
		if err != nil || read < n || len(hits) == limit {
			return hits, err
		}
	}
	f.Limit = limit - len(hits)
	more, err := t.searchRange(ctx, f, terms, 0)
	return append(hits, more...), err
}

// How the index of SQLite is asked, for $1.
const (
	wordsSource = "agent_messages_fts f JOIN agent_messages m ON m.id = f.rowid"
	wordsID     = "f.rowid"
	wordsMatch  = "agent_messages_fts MATCH $1"
)

// searchPostgres reads the newest messages first. The index knows no order: it
// would fetch every message that has a common word to find the newest. So it is
// asked after them, and if it finds many, it looks among newer ones and ever more.
func (t *Search) searchPostgres(ctx context.Context, f SearchFilter, terms []searchTerm) ([]Hit, error) {
	if err := t.tx.alone(ctx); err != nil {
		return nil, err
	}
	hits, err := t.searchNewest(ctx, f, terms)
	if err != nil || len(hits) == f.Limit {
		return hits, err
	}
	var n int
	if f.somewhere() {
		var args []any
		query := `SELECT count(*) FROM ` + newest(f, readFirst+1, &args)
		if _, err := t.tx.one(ctx, []any{&n}, query, args...); err != nil || n <= readFirst {
			return hits, wrap(err, "search messages")
		}
	}
	few := terms
	if whole := wholeWords(terms); len(whole) > 0 {
		few = whole // a beginning has the places of many words
	}
	query := `WITH ` + foundByIndex("m.id", "") + ` SELECT count(*) FROM (SELECT 1 FROM found LIMIT $2) few`
	if _, err := t.tx.one(ctx, []any{&n}, query, matchPostgres(few), fewFound+1); err != nil {
		return nil, fmt.Errorf("search messages: %w", err)
	}
	if n <= fewFound {
		args := []any{matchPostgres(few)}
		return t.searchIn(ctx, f, foundSource(""), "m.id", foundMatch(terms, len(few), &args), args)
	}
	end := f.Before
	if end == 0 {
		if _, err := t.tx.one(ctx, []any{&end}, `SELECT COALESCE(max(id), 0) + 1 FROM agent_messages`); err != nil {
			return nil, fmt.Errorf("search messages: %w", err)
		}
	}
	for window := int64(5_000); ; window *= 10 {
		hits, err := t.searchRange(ctx, f, terms, max(0, end-window))
		if err != nil || len(hits) == f.Limit || window >= end {
			return hits, err
		}
	}
}

// searchNewest searches the newest messages on PostgreSQL by reading them.
func (t *Search) searchNewest(ctx context.Context, f SearchFilter, terms []searchTerm) ([]Hit, error) {
	var args []any
	match := textMatch(terms, &args)
	source := newest(f, readFirst, &args)
	return t.searchIn(ctx, SearchFilter{Limit: f.Limit}, source, "m.id", match, args)
}

// textMatch is the condition that a text has all terms, on PostgreSQL and without
// its index. Words of common letters are first looked for in the text as it is, with
// any accents, which costs a hundredth of taking it apart.
func textMatch(terms []searchTerm, args *[]any) string {
	match := []string{"1 = 1"}
	var apart []searchTerm
	for _, term := range terms {
		if term.unspaced() {
			*args = append(*args, term.typed, cmp.Or(term.apart, term.typed))
			match = append(match, fmt.Sprintf("(position(lower($%d) IN lower(m.content)) > 0 OR position(lower($%d) IN lower(m.content)) > 0)", len(*args)-1, len(*args)))
			continue
		}
		apart = append(apart, term)
		if strings.IndexFunc(term.word, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
			*args = append(*args, accented(term.word))
			match = append(match, fmt.Sprintf("m.content ~* $%d", len(*args)))
		}
	}
	if len(apart) > 0 {
		*args = append(*args, matchPostgres(apart))
		match = append(match, fmt.Sprintf("agent_message_words(m.content) @@ to_tsquery('pg_catalog.simple', $%d)", len(*args)))
	}
	return strings.Join(match, " AND ")
}

// foundMatch is the condition that a text has all terms, where the index of PostgreSQL
// has found so many of them. It does not know whether pairs follow each other.
func foundMatch(terms []searchTerm, found int, args *[]any) string {
	if found == len(terms) {
		terms = slices.DeleteFunc(slices.Clone(terms), func(t searchTerm) bool { return !strings.Contains(t.word, " ") })
	}
	return textMatch(terms, args)
}

// somewhere reports whether only some conversations are searched.
func (f SearchFilter) somewhere() bool { return f.ConversationID != "" || f.Within != nil }

// newest is a table m of the newest n messages that a search may find; what it
// needs is added to args. In some conversations, all their messages are gone through
// for it, but for the texts.
func newest(f SearchFilter, n int, args *[]any) string {
	where := searched + " AND NOT m.undone"
	if f.Before > 0 {
		*args = append(*args, f.Before)
		where += fmt.Sprintf(" AND m.id < $%d", len(*args))
	}
	if !f.somewhere() {
		return fmt.Sprintf("(SELECT m.* FROM agent_messages m WHERE %s ORDER BY m.id DESC LIMIT %d) m", where, n)
	}
	where += " AND m.session_id = s.id"
	if f.ConversationID != "" {
		where += " AND " + within("s.conversation_id", []string{f.ConversationID}, args)
	}
	if f.Within != nil {
		where += " AND " + within("s.conversation_id", f.Within, args)
	}
	// By itself, so that nobody goes through everybody's messages, the newest first.
	own := `WITH own AS MATERIALIZED (SELECT m.id FROM remote_agent_sessions s CROSS JOIN agent_messages m WHERE ` + where + `)
		SELECT id FROM own ORDER BY id DESC LIMIT `
	return fmt.Sprintf("(SELECT m.* FROM (%s%d) o CROSS JOIN agent_messages m WHERE m.id = o.id ORDER BY m.id DESC LIMIT %d) m", own, n, n)
}

// searchRange searches the messages with numbers from a first one on by the index.
func (t *Search) searchRange(ctx context.Context, f SearchFilter, terms []searchTerm, first int64) ([]Hit, error) {
	if t.tx.pg == nil {
		return t.searchWords(ctx, f, terms)
	}
	args := []any{matchPostgres(terms)}
	condition := ""
	bound := func(text string, id int64) {
		if id > 0 {
			args = append(args, id)
			condition += fmt.Sprintf(text, len(args))
		}
	}
	bound(" AND m.id >= $%d", first)
	bound(" AND m.id < $%d", f.Before)
	return t.searchIn(ctx, f, foundSource(condition), "m.id", foundMatch(terms, len(terms), &args), args)
}

// searchWords asks the index of SQLite. Of what it finds too much it is asked again, page by
// page.
func (t *Search) searchWords(ctx context.Context, f SearchFilter, terms []searchTerm) (hits []Hit, err error) {
	composed := composedOf(terms)
	most := f.Limit
	if len(composed) > 0 {
		f.Limit = readFirst
	}
	for {
		found, err := t.searchIn(ctx, f, wordsSource, wordsID, wordsMatch, []any{matchSQLite(terms)})
		for _, h := range found {
			f.Before = h.ID
			if len(hits) < most && (len(composed) == 0 || hasTerms(h.Content, composed)) {
				hits = append(hits, h)
			}
		}
		if err != nil || len(hits) == most || len(found) < f.Limit {
			return hits, err
		}
	}
}

// foundSource is a table m of what the index of PostgreSQL finds.
func foundSource(condition string) string {
	return "(WITH " + foundByIndex("m.*", condition) + " SELECT * FROM found) m"
}

// foundByIndex is a table found of what the index of PostgreSQL finds for $1. It is worked
// out by itself, so that what is asked of it does not let the planner hope to find
// enough by reading: taking a text apart costs a thousand times the index.
func foundByIndex(columns, condition string) string {
	return `found AS MATERIALIZED (SELECT ` + columns + ` FROM agent_messages m
		WHERE agent_message_words(m.content) @@ to_tsquery('pg_catalog.simple', $1) AND ` + searched + condition + `)`
}

// searchIn searches a source of messages, the newest first. SQLite takes the tables
// of a cross join in the order in which they are written.
func (t *Search) searchIn(ctx context.Context, f SearchFilter, source, id, match string, args []any) (hits []Hit, err error) {
	err = t.searchEach(ctx, f, source, id, match, args, func(h Hit) { hits = append(hits, h) })
	return hits, err
}

func (t *Search) searchEach(ctx context.Context, f SearchFilter, source, id, match string, args []any, visit func(Hit)) error {
	query := `
		SELECT m.id, m.session_id, s.conversation_id, c.platform_type, c.platform_conversation_id, m.seq, m.role, m.content, m.created_at
		FROM ` + source + ` CROSS JOIN remote_agent_sessions s CROSS JOIN remote_agent_conversations c
		WHERE s.id = m.session_id AND c.id = s.conversation_id AND ` + match + ` AND NOT m.undone`
	condition := func(text string, arg any) {
		args = append(args, arg)
		query += fmt.Sprintf(" AND "+text, len(args))
	}
	if f.Before > 0 {
		condition(id+" < $%d", f.Before)
	}
	if f.ConversationID != "" {
		condition("s.conversation_id = $%d", f.ConversationID)
	}
	if f.Within != nil {
		query += " AND " + within("s.conversation_id", f.Within, &args)
	}
	args = append(args, f.Limit)
	query += fmt.Sprintf(" ORDER BY %s DESC LIMIT $%d", id, len(args))

	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var h Hit
		err := scan(&h.ID, text{&h.SessionID}, text{&h.ConversationID}, &h.Key.Platform, &h.Key.ID, &h.Seq, &h.Role, &h.Content, secTime{&h.CreatedAt})
		if err == nil {
			visit(h)
		}
		return err
	}, query, args...)
	return wrap(err, "search messages")
}
