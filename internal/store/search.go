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

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// maxPage bounds how many rows a listing returns at once.
const maxPage = 1000

// SessionFilter chooses sessions; empty members choose all.
type SessionFilter struct {
	ConversationID string
	Within         []string // nil: all; else only these conversations, none if it is empty
	Before         string   // id of a session: only those that are listed after it
	Limit          int      // 1 to 1000; 0 is 50
}

// SessionRow is a session in a listing.
type SessionRow struct {
	sessions.Session

	Key       messages.ConversationKey
	Messages  int
	ToolCalls int
}

// ListSessions returns sessions, the newest first. Before is a cursor: with the
// id of the last row of a page it returns the next page, and rows that came in
// between change nothing. An id that is none, or of no session, is an error
// (fault.Invalid, fault.NotFound).
func (t *Tx) ListSessions(ctx context.Context, f SessionFilter) ([]SessionRow, error) {
	var conditions []string
	var args []any
	if f.ConversationID != "" {
		if err := checkID(f.ConversationID, "conversation"); err != nil {
			return nil, err
		}
		args = append(args, f.ConversationID)
		conditions = append(conditions, fmt.Sprintf("s.conversation_id = $%d", len(args)))
	}
	if f.Within != nil {
		conditions = append(conditions, within(f.Within, &args))
	}
	if f.Before != "" {
		if err := checkID(f.Before, "session"); err != nil {
			return nil, err
		}
		if _, err := t.Session(ctx, f.Before); err != nil {
			return nil, err
		}
		args = append(args, f.Before)
		conditions = append(conditions, fmt.Sprintf(
			"(s.started_at, s.id) < (SELECT b.started_at, b.id FROM remote_agent_sessions b WHERE b.id = $%d)", len(args)))
	}
	where := ""
	if len(conditions) > 0 {
		where = " WHERE " + strings.Join(conditions, " AND ")
	}
	args = append(args, page(f.Limit))
	return t.sessionRows(ctx, where+fmt.Sprintf(" ORDER BY s.started_at DESC, s.id DESC LIMIT $%d", len(args)), args...)
}

// SessionRow returns one session with its figures. What is no id is
// fault.Invalid, that of no session fault.NotFound.
func (t *Tx) SessionRow(ctx context.Context, id string) (SessionRow, error) {
	if err := checkID(id, "session"); err != nil {
		return SessionRow{}, err
	}
	rows, err := t.sessionRows(ctx, " WHERE s.id = $1", id)
	if err == nil && len(rows) == 0 {
		err = notFound("session")
	}
	if err != nil {
		return SessionRow{}, err
	}
	return rows[0], nil
}

func (t *Tx) sessionRows(ctx context.Context, rest string, args ...any) ([]SessionRow, error) {
	query := `
		SELECT ` + qualified("s", sessionColumns) + `, c.platform_type, c.platform_conversation_id,
			(SELECT count(DISTINCT m.seq) FROM agent_messages m WHERE m.session_id = s.id),
			(SELECT count(*) FROM agent_tool_calls k WHERE k.session_id = s.id)
		FROM remote_agent_sessions s JOIN remote_agent_conversations c ON c.id = s.conversation_id`
	var list []SessionRow
	err := t.each(ctx, func(scan func(...any) error) error {
		var row sessionRow
		var r SessionRow
		if err := scan(append(row.dest(), &r.Key.Platform, &r.Key.ID, &r.Messages, &r.ToolCalls)...); err != nil {
			return err
		}
		var err error
		r.Session, err = row.decode()
		list = append(list, r)
		return err
	}, query+rest, args...)
	return list, wrap(err, "list sessions")
}

// within is the condition that a session is of one of some conversations; their
// ids are added to args.
func within(ids []string, args *[]any) string {
	places := make([]string, len(ids))
	for i, id := range ids {
		*args = append(*args, id)
		places[i] = fmt.Sprintf("$%d", len(*args))
	}
	if len(places) == 0 {
		return "1 = 0"
	}
	return "s.conversation_id IN (" + strings.Join(places, ", ") + ")"
}

// ConversationsAt returns the ids of the conversation at a place of a platform
// and of those that were there before and were put aside, as a hand-off does: a
// "~" follows the place's id in theirs. No other place's are among them.
func (t *Tx) ConversationsAt(ctx context.Context, key messages.ConversationKey) ([]string, error) {
	ids := []string{}
	aside := key.ID + "~"
	err := t.each(ctx, func(scan func(...any) error) error {
		var id string
		err := scan(text{&id})
		ids = append(ids, id)
		return err
	}, `
		SELECT id FROM remote_agent_conversations
		WHERE platform_type = $1 AND (platform_conversation_id = $2 OR substr(platform_conversation_id, 1, $3) = $4)
		ORDER BY id`, string(key.Platform), key.ID, utf8.RuneCountInString(aside), aside)
	return ids, wrap(err, "find the conversations of a place")
}

// SessionIDs returns the ids of the sessions of conversations, the oldest first:
// the place of one in the list is a number that people can call it by.
func (t *Tx) SessionIDs(ctx context.Context, conversations []string) ([]string, error) {
	var args []any
	query := `SELECT s.id FROM remote_agent_sessions s WHERE ` + within(conversations, &args) + ` ORDER BY s.started_at, s.id`
	var list []string
	err := t.each(ctx, func(scan func(...any) error) error {
		var id string
		err := scan(text{&id})
		list = append(list, id)
		return err
	}, query, args...)
	return list, wrap(err, "number sessions")
}

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
		return t.searchBeginnings(ctx, f, terms)
	}
	// The index of PostgreSQL knows no order: it would fetch every message that
	// has a common word to find the newest. So the newest are read first, without
	// it, and then it looks among them and ever more.
	hits, err := t.searchNewest(ctx, f, terms)
	if err != nil || len(hits) == f.Limit {
		return hits, err
	}
	newest := f.Before
	if newest == 0 {
		if _, err := t.one(ctx, []any{&newest}, `SELECT COALESCE(max(id), 0) + 1 FROM agent_messages`); err != nil {
			return nil, fmt.Errorf("search messages: %w", err)
		}
	}
	for window := int64(5_000); ; window *= 10 {
		hits, err := t.searchRange(ctx, f, matchPostgres(terms), max(0, newest-window))
		if err != nil || len(hits) == f.Limit || window >= newest {
			return hits, err
		}
	}
}

// searchBeginnings searches on SQLite. Its index brings together all places of all
// words with a beginning before it tells the newest: much, where many words begin
// so, and then the newest are soon found by reading. Where few do it is quick.
func (t *Tx) searchBeginnings(ctx context.Context, f SearchFilter, terms []searchTerm) ([]Hit, error) {
	whole := slices.DeleteFunc(slices.Clone(terms), func(t searchTerm) bool { return t.begins })
	if len(whole) == len(terms) {
		return t.searchRange(ctx, f, matchSQLite(terms), 0)
	}
	var hits []Hit
	left := f.Limit
	for _, n := range []int{100, 400, 1500} { // read at once, so that a common beginning is found with few
		f.Limit = n
		var some []Hit
		var err error
		if len(whole) > 0 {
			some, err = t.searchRange(ctx, f, matchSQLite(whole), 0)
		} else {
			some, err = t.searchIn(ctx, f, "agent_messages m", "m.id", searched, nil)
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

// searchNewest searches the newest 2,000 messages on PostgreSQL by reading them.
// Words of common letters are first looked for in the text as it is, which costs a
// hundredth of taking it apart.
func (t *Tx) searchNewest(ctx context.Context, f SearchFilter, terms []searchTerm) ([]Hit, error) {
	args := []any{matchPostgres(terms)}
	match := []string{wordsMatch}
	for _, term := range terms {
		if strings.IndexFunc(term.word, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
			args = append(args, term.word)
			match = append(match, fmt.Sprintf("position(lower($%d) IN lower(m.content)) > 0", len(args)))
		}
	}
	before := ""
	if f.Before > 0 {
		args = append(args, f.Before)
		before = fmt.Sprintf(" WHERE id < $%d", len(args))
	}
	return t.searchIn(ctx, f, "(SELECT * FROM agent_messages"+before+" ORDER BY id DESC LIMIT 2000) m", "m.id", strings.Join(match, " AND "), args)
}

const wordsMatch = `agent_message_words(m.content) @@ to_tsquery('pg_catalog.simple', $1) AND ` + searched

// searchRange searches the messages with numbers from a first one on.
func (t *Tx) searchRange(ctx context.Context, f SearchFilter, expression string, first int64) ([]Hit, error) {
	source, id, match := "agent_messages m", "m.id", wordsMatch
	if t.pg == nil {
		source, id, match = "agent_messages_fts f JOIN agent_messages m ON m.id = f.rowid", "f.rowid", "agent_messages_fts MATCH $1"
	}
	args := []any{expression}
	if first > 0 {
		args = append(args, first)
		match += fmt.Sprintf(" AND "+id+" >= $%d", len(args))
	}
	return t.searchIn(ctx, f, source, id, match, args)
}

// searchIn searches a source of messages, the newest first.
func (t *Tx) searchIn(ctx context.Context, f SearchFilter, source, id, match string, args []any) ([]Hit, error) {
	query := `
		SELECT m.id, m.session_id, s.conversation_id, c.platform_type, c.platform_conversation_id, m.seq, m.role, m.content, m.created_at
		FROM ` + source + `
		JOIN remote_agent_sessions s ON s.id = m.session_id
		JOIN remote_agent_conversations c ON c.id = s.conversation_id
		WHERE ` + match + ` AND NOT m.undone`
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
	if r < unicode.MaxASCII {
		return unicode.ToLower(r)
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
	var missing []searchTerm
	for _, term := range terms {
		missing = append(missing, searchTerm{strings.Map(folded, term.word), term.begins})
	}
	for word := range wordsOf(strings.Map(folded, text)) {
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

// TranscriptMessage is a message with when it was stored and whether its turn
// was taken back.
type TranscriptMessage struct {
	messages.Message

	At     time.Time
	Undone bool
}

// Transcript calls visit for the messages of a session in order, without
// reading them all into memory. visit may not use t.
func (t *Tx) Transcript(ctx context.Context, sessionID string, visit func(TranscriptMessage) error) error {
	var held *TranscriptMessage
	err := t.each(ctx, func(scan func(...any) error) error {
		var r messages.Record
		var m TranscriptMessage
		var created int64
		if err := scan(&r.Seq, &r.Role, &r.Kind, &r.Content, text{&r.DataJSON}, &created, &m.Undone); err != nil {
			return err
		}
		decoded, ok, err := messages.FromRecord(r)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "decode message")
		}
		if !ok {
			return nil
		}
		if held != nil && held.Seq == decoded.Seq {
			held.Blocks = append(held.Blocks, decoded.Blocks...)
			return nil
		}
		ready := held
		m.Message, m.At = decoded, time.Unix(created, 0).UTC()
		held = &m
		if ready == nil {
			return nil
		}
		return visit(*ready)
	}, `
		SELECT seq, role, kind, content, data_json, created_at, undone
		FROM agent_messages WHERE session_id = $1 ORDER BY seq, part`, sessionID)
	if err == nil && held != nil {
		err = visit(*held)
	}
	return wrap(err, "read transcript")
}

func page(limit int) int {
	if limit <= 0 {
		return 50
	}
	return min(limit, maxPage)
}

// checkID refuses what is no id before PostgreSQL does, with words for people.
func checkID(id, what string) error {
	if err := uuid.Validate(id); err != nil || len(id) != 36 {
		return fault.Newf(fault.Invalid, "%q is not the id of a %s; ids look like 0198c2d1-7a3b-7c4d-8e5f-0123456789ab.", id, what)
	}
	return nil
}

// qualified puts the name of a table before each column of a list.
func qualified(table, columns string) string {
	list := strings.Split(columns, ",")
	for i, c := range list {
		list[i] = table + "." + strings.TrimSpace(c)
	}
	return strings.Join(list, ", ")
}
