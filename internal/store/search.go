package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/fault"
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
	Words          string   // all of them have to occur; see SearchMessages
	ConversationID string   // empty: all
	Within         []string // nil: all; else only these conversations, none if it is empty
	Before         int64    // ID of a hit: only older ones; 0: from the newest
	Limit          int      // 1 to 1000; 0 is 50
}

// searched is the condition of the index on PostgreSQL, which uses it only if
// the query repeats it.
const searched = `m.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')`

// SearchMessages returns what people and assistants wrote that has all the
// words, the newest first. A word that ends with * is the beginning of words,
// which takes longer where many begin so. Case does not matter (on PostgreSQL
// with the locale C: that of ASCII only), accents do. Turns that were taken back
// are left out. Without a word it is fault.Invalid.
func (t *Tx) SearchMessages(ctx context.Context, f SearchFilter) ([]Hit, error) {
	f.Limit = page(f.Limit)
	terms := searchTerms(f.Words)
	if len(terms) == 0 {
		return nil, fault.New(fault.Invalid, "Say at least one word to look for.")
	}
	if f.ConversationID != "" {
		if err := checkID(f.ConversationID, "conversation"); err != nil {
			return nil, err
		}
	}
	if t.pg == nil {
		return t.searchSQLite(ctx, f, terms)
	}
	return t.searchPostgres(ctx, f, terms)
}

const (
	readFirst = 2000 // messages that are read, the newest, before an index is asked
	fewFound  = 1000 // messages that are brought into order at once
)

// searchSQLite asks the index at once, which tells the newest first, but in two
// cases it reads the newest messages before. All places of all words with a
// beginning are brought together before the first is told: much, where many words
// begin so, and then the newest are soon found by reading. And the index does not
// know who said something where.
func (t *Tx) searchSQLite(ctx context.Context, f SearchFilter, terms []searchTerm) ([]Hit, error) {
	whole := wholeWords(terms)
	if !f.somewhere() && len(whole) == len(terms) {
		return t.searchRange(ctx, f, matchSQLite(terms), 0)
	}
	steps := []int{100, 400, readFirst - 500} // what is common is found among few
	if f.somewhere() {
		steps = []int{readFirst} // all of them are brought into order anyway
	}
	var hits []Hit
	left := f.Limit
	for _, n := range steps {
		f.Limit = n
		var some []Hit
		var err error
		if f.somewhere() || len(whole) == 0 {
			var args []any
			source := newest(f, n, &args)
			some, err = t.searchIn(ctx, SearchFilter{Limit: n}, source, "m.id", "1 = 1", args)
		} else {
			some, err = t.searchRange(ctx, f, matchSQLite(whole), 0)
		}
		if err != nil {
			return nil, err
		}
		for _, h := range some {
			if f.Before = h.ID; hasTerms(h.Content, terms) {
				hits = append(hits, h)
				if left--; left == 0 {
					return hits, nil
				}
			}
		}
		if len(some) < n {
			return hits, nil
		}
	}
	f.Limit = left
	more, err := t.searchRange(ctx, f, matchSQLite(terms), 0)
	return append(hits, more...), err
}

// searchPostgres reads the newest messages first. The index knows no order: it
// would fetch every message that has a common word to find the newest. So it is
// asked after them, and if it finds many, it looks among newer ones and ever more.
func (t *Tx) searchPostgres(ctx context.Context, f SearchFilter, terms []searchTerm) ([]Hit, error) {
	hits, err := t.searchNewest(ctx, f, terms)
	if err != nil || len(hits) == f.Limit {
		return hits, err
	}
	var n int
	if f.somewhere() {
		var args []any
		query := `SELECT count(*) FROM ` + newest(f, readFirst+1, &args)
		if _, err := t.one(ctx, []any{&n}, query, args...); err != nil || n <= readFirst {
			return hits, wrap(err, "search messages")
		}
	}
	few := terms
	if whole := wholeWords(terms); len(whole) > 0 {
		few = whole // a beginning has the places of many words
	}
	query := `WITH ` + foundByIndex("m.id", "") + ` SELECT count(*) FROM (SELECT 1 FROM found LIMIT $2) few`
	if _, err := t.one(ctx, []any{&n}, query, matchPostgres(few), fewFound+1); err != nil {
		return nil, fmt.Errorf("search messages: %w", err)
	}
	if n <= fewFound {
		args := []any{matchPostgres(few)}
		return t.searchIn(ctx, f, foundSource(""), "m.id", textMatch(terms, &args), args)
	}
	end := f.Before
	if end == 0 {
		if _, err := t.one(ctx, []any{&end}, `SELECT COALESCE(max(id), 0) + 1 FROM agent_messages`); err != nil {
			return nil, fmt.Errorf("search messages: %w", err)
		}
	}
	for window := int64(5_000); ; window *= 10 {
		hits, err := t.searchRange(ctx, f, matchPostgres(terms), max(0, end-window))
		if err != nil || len(hits) == f.Limit || window >= end {
			return hits, err
		}
	}
}

// searchNewest searches the newest messages on PostgreSQL by reading them.
func (t *Tx) searchNewest(ctx context.Context, f SearchFilter, terms []searchTerm) ([]Hit, error) {
	var args []any
	match := textMatch(terms, &args)
	source := newest(f, readFirst, &args)
	return t.searchIn(ctx, SearchFilter{Limit: f.Limit}, source, "m.id", match, args)
}

// textMatch is the condition that a text has all terms, on PostgreSQL and without
// its index. Words of common letters are first looked for in the text as it is,
// which costs a hundredth of taking it apart.
func textMatch(terms []searchTerm, args *[]any) string {
	*args = append(*args, matchPostgres(terms))
	match := []string{fmt.Sprintf("agent_message_words(m.content) @@ to_tsquery('pg_catalog.simple', $%d)", len(*args))}
	for _, term := range terms {
		if strings.IndexFunc(term.word, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
			*args = append(*args, term.word)
			match = append(match, fmt.Sprintf("position(lower($%d) IN lower(m.content)) > 0", len(*args)))
		}
	}
	return strings.Join(match, " AND ")
}

// somewhere reports whether only some conversations are searched.
func (f SearchFilter) somewhere() bool { return f.ConversationID != "" || f.Within != nil }

// newest is a table m of the newest n messages that a search may find; what it
// needs is added to args.
func newest(f SearchFilter, n int, args *[]any) string {
	where := searched + " AND NOT m.undone"
	if f.Before > 0 {
		*args = append(*args, f.Before)
		where += fmt.Sprintf(" AND m.id < $%d", len(*args))
	}
	if !f.somewhere() {
		return fmt.Sprintf("(SELECT m.* FROM agent_messages m WHERE %s ORDER BY m.id DESC LIMIT %d) m", where, n)
	}
	some := f.Within
	if f.ConversationID != "" {
		some = []string{f.ConversationID}
	}
	where += " AND m.session_id = s.id AND " + within(some, args)
	// By itself, so that nobody goes through everybody's messages, the newest first.
	own := `WITH own AS MATERIALIZED (SELECT m.id FROM remote_agent_sessions s CROSS JOIN agent_messages m WHERE ` + where + `)
		SELECT id FROM own ORDER BY id DESC LIMIT `
	return fmt.Sprintf("(SELECT m.* FROM (%s%d) o CROSS JOIN agent_messages m WHERE m.id = o.id ORDER BY m.id DESC LIMIT %d) m", own, n, n)
}

// searchRange searches the messages with numbers from a first one on by the index.
func (t *Tx) searchRange(ctx context.Context, f SearchFilter, expression string, first int64) ([]Hit, error) {
	args := []any{expression}
	if t.pg == nil {
		return t.searchIn(ctx, f, "agent_messages_fts f JOIN agent_messages m ON m.id = f.rowid", "f.rowid", "agent_messages_fts MATCH $1", args)
	}
	condition := ""
	if first > 0 {
		args = append(args, first)
		condition = " AND m.id >= $2"
	}
	return t.searchIn(ctx, f, foundSource(condition), "m.id", "1 = 1", args)
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
func (t *Tx) searchIn(ctx context.Context, f SearchFilter, source, id, match string, args []any) ([]Hit, error) {
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
		query += " AND " + within(f.Within, &args)
	}
	args = append(args, f.Limit)
	query += fmt.Sprintf(" ORDER BY %s DESC LIMIT $%d", id, len(args))

	var hits []Hit
	err := t.each(ctx, func(scan func(...any) error) error {
		var h Hit
		var created int64
		err := scan(&h.ID, text{&h.SessionID}, text{&h.ConversationID}, &h.Key.Platform, &h.Key.ID, &h.Seq, &h.Role, &h.Content, &created)
		h.CreatedAt = time.Unix(created, 0).UTC()
		hits = append(hits, h)
		return err
	}, query, args...)
	return hits, wrap(err, "search messages")
}

// searchTerm is a word of a search, or the beginning of words.
type searchTerm struct {
	word   string
	begins bool
}

// wholeWords returns the terms that are no beginnings.
func wholeWords(terms []searchTerm) []searchTerm {
	return slices.DeleteFunc(slices.Clone(terms), func(t searchTerm) bool { return t.begins })
}

func matchSQLite(terms []searchTerm) string {
	list := make([]string, len(terms))
	for i, t := range terms {
		if list[i] = `"` + t.word + `"`; t.begins {
			list[i] += "*"
		}
	}
	return strings.Join(list, " AND ")
}

func matchPostgres(terms []searchTerm) string {
	list := make([]string, len(terms))
	for i, t := range terms {
		if list[i] = t.word; t.begins {
			list[i] += ":*"
		}
	}
	return strings.Join(list, " & ")
}

const (
	maxWords = 16      // of a search: more only make it slower
	indexed  = 100_000 // characters of a message
)

// searchTerms reads what a person typed. Words hold letters, marks and digits
// only, so that nothing in them means anything in the language of a database.
func searchTerms(typed string) []searchTerm {
	var terms []searchTerm
	for word, next := range wordsOf(typed) {
		if terms = append(terms, searchTerm{word, next == '*'}); len(terms) == maxWords {
			break
		}
	}
	return terms
}

// wordsOf yields the words of a text, each with what follows it; 0 is nothing.
func wordsOf(text string) iter.Seq2[string, rune] {
	return func(yield func(word string, next rune) bool) {
		start := -1
		for i, r := range text {
			in := unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
			switch {
			case in && start < 0:
				start = i
			case !in && start >= 0:
				if !yield(text[start:i], r) {
					return
				}
				start = -1
			}
		}
		if start >= 0 {
			yield(text[start:], 0)
		}
	}
}

// folded is one letter for all that differ by case only, as the index of SQLite
// takes them.
func folded(r rune) rune {
	switch {
	case 'A' <= r && r <= 'Z':
		return r + 'a' - 'A'
	case r <= unicode.MaxASCII:
		return r
	}
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return unicode.ToLower(least)
}

// hasTerms reports whether what is indexed of a text has all terms.
func hasTerms(text string, terms []searchTerm) bool {
	if len(text) > indexed {
		text = string([]rune(text)[:min(indexed, utf8.RuneCountInString(text))])
	}
	text = strings.Map(folded, text)
	missing := make([]searchTerm, len(terms))
	for i, term := range terms {
		missing[i] = searchTerm{strings.Map(folded, term.word), term.begins}
		if !strings.Contains(text, missing[i].word) {
			return false // as most do not; taking them apart takes longer
		}
	}
	for word := range wordsOf(text) {
		missing = slices.DeleteFunc(missing, func(t searchTerm) bool {
			return word == t.word || t.begins && strings.HasPrefix(word, t.word)
		})
		if len(missing) == 0 {
			return true
		}
	}
	return false
}

// Words returns the words of a search, for showing where they are in a text.
func Words(typed string) []string {
	var words []string
	for _, t := range searchTerms(typed) {
		words = append(words, t.word)
	}
	return words
}
