package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"remote-agent/internal/fault"
)

// Sessions in which something was said, for the web pages.

const (
	readFew    = 40     // sessions that are read at once
	readMany   = 100    // that are chosen first, where that is not done by conversations
	readInAll  = 400    // that are read for a page
	readMost   = 5_000  // messages of them after which no further ones are
	rareMost   = 2_000  // messages that have a word that is looked for by the index
	commonFrom = 20_000 // messages that have a word for which the index of PostgreSQL is not asked
)

// Find returns a page of the sessions that f chooses in which something has all
// words (see Search.Messages), the newest first, and SessionFilter.Before of the next page,
// empty if there is nothing more. A page may be short, or empty, and not the last one: then
// it would have taken long to look at all that was not found.
//
// The newest sessions are read, for what is common is found there at once. Then the index is
// asked, if few messages have the words. What is neither common nor rare is looked for by
// reading on.
func (t *Lists) Find(ctx context.Context, f SessionFilter, words string) (list []SessionRow, before string, err error) {
	terms := searchTerms(words)
	if len(terms) == 0 {
		return nil, "", fault.New(fault.Invalid, "Specify at least one word to search for.")
	}
	if f, err = t.checkFilter(ctx, f); err != nil {
		return nil, "", err
	}
	f.Limit = page(f.Limit)
	steps := []int{readMany, readInAll - readMany}
	if few, narrow, err := t.narrowed(ctx, f); err != nil {
		return nil, "", err
	} else if narrow {
		f, steps = few, []int{readInAll} // all of these are brought into order for any
	}
	ids, before, err := t.findSessions(ctx, f, terms, steps)
	if err != nil {
		return nil, "", err
	}
	list, err = t.sessionRows(ctx, ids...)
	return list, before, err
}

func (t *Lists) findSessions(ctx context.Context, f SessionFilter, terms []searchTerm, steps []int) (ids []string, before string, err error) {
	most, read, asked := f.Limit, 0, false
	for _, f.Limit = range steps {
		among, err := t.chooseSessions(ctx, f)
		if err != nil {
			return nil, "", err
		}
		for some := range slices.Chunk(among, readFew) {
			have, n, err := t.haveTerms(ctx, some, terms)
			if err != nil {
				return nil, "", err
			}
			f.Before = some[len(some)-1]
			for _, id := range some {
				if slices.Contains(have, id) {
					ids = append(ids, id)
				}
			}
			if len(ids) > most {
				return ids[:most], ids[most-1], nil
			}
			if read += n; read > readMost {
				return ids, f.Before, nil
			}
			if asked {
				continue
			}
			asked = true
			if f.Sessions, err = t.sessionsWith(ctx, terms); err != nil {
				return nil, "", err
			}
			if f.Sessions != nil {
				f.Limit = most - len(ids) + 1
				more, err := t.chooseSessions(ctx, f)
				if ids = append(ids, more...); len(ids) > most {
					ids, before = ids[:most], ids[most-1]
				}
				return ids, before, err
			}
		}
		if len(among) < f.Limit {
			return ids, "", nil
		}
	}
	return ids, f.Before, nil
}

// haveTerms returns which of some sessions have all terms in a message, and about how many
// messages were looked at for it.
func (t *Lists) haveTerms(ctx context.Context, ids []string, terms []searchTerm) (have []string, read int, err error) {
	if t.tx.pg == nil {
		return t.readTerms(ctx, ids, terms)
	}
	those, arg, err := t.tx.Care().oneOf(ids, "UUID", 1)
	if err != nil {
		return nil, 0, err
	}
	args := []any{arg}
	match := textMatch(terms, &args)
	// A subquery with an offset is worked out for each session: nobody asks the index for
	// all that have the words.
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var id string
		var last int
		var has bool
		err := scan(text{&id}, &last, &has)
		if read += last; has {
			have = append(have, id)
		}
		return err
	}, `SELECT s.id, s.last_seq, EXISTS (
			SELECT 1 FROM (SELECT m.content FROM agent_messages m WHERE m.session_id = s.id AND NOT m.undone AND `+searched+` OFFSET 0) m WHERE `+match+`)
		FROM remote_agent_sessions s WHERE s.id`+those, args...)
	return have, read, wrap(err, "search sessions")
}

var errEnough = errors.New("that is enough")

// readTerms is haveTerms on SQLite.
func (t *Lists) readTerms(ctx context.Context, ids []string, terms []searchTerm) (have []string, read int, err error) {
	for _, id := range ids {
		err := t.tx.each(ctx, func(scan func(...any) error) error {
			var said string
			if err := scan(&said); err != nil {
				return err
			}
			if read++; hasTerms(said, terms) {
				have = append(have, id)
				return errEnough
			}
			return nil
		}, `SELECT m.content FROM agent_messages m WHERE m.session_id = $1 AND NOT m.undone AND `+searched+` ORDER BY m.seq DESC`, id)
		if err != nil && !errors.Is(err, errEnough) {
			return nil, 0, wrap(err, "search sessions")
		}
	}
	return have, read, nil
}

// sessionsWith returns the sessions that have all terms in a message, by the index; nil if
// it would have to look at many messages.
func (t *Lists) sessionsWith(ctx context.Context, terms []searchTerm) (ids []string, err error) {
	whole := wholeWords(terms)
	if len(whole) == 0 {
		return nil, nil
	}
	if t.tx.pg == nil {
		ids, err = t.sessionsByWords(ctx, whole, terms)
	} else {
		ids, err = t.sessionsByVectors(ctx, whole, terms)
	}
	if len(ids) > rareMost {
		ids = nil
	}
	return ids, wrap(err, "search sessions")
}

// sessionsByWords returns more than rareMost ids if there are many messages.
func (t *Lists) sessionsByWords(ctx context.Context, whole, terms []searchTerm) ([]string, error) {
	ids, err := t.tx.ids(ctx, `
		SELECT m.session_id FROM agent_messages_fts f CROSS JOIN agent_messages m
		WHERE m.id = f.rowid AND agent_messages_fts MATCH $1 ORDER BY f.rowid DESC LIMIT $2`, matchSQLite(whole), rareMost+1)
	if err != nil || len(ids) > rareMost {
		return ids, err
	}
	ids = []string{}
	read := 0
	having := func(terms []searchTerm) func(scan func(...any) error) error {
		return func(scan func(...any) error) error {
			var id, said string
			if err := scan(&id, &said); err != nil {
				return err
			}
			if read++; len(terms) == 0 || hasTerms(said, terms) {
				ids = append(ids, id)
			}
			return nil
		}
	}
	said, composed := `''`, composedOf(terms)
	if len(composed) > 0 {
		said = `m.content`
	}
	err = t.tx.each(ctx, having(composed), `
		SELECT m.session_id, `+said+` FROM agent_messages_fts f CROSS JOIN agent_messages m
		WHERE m.id = f.rowid AND agent_messages_fts MATCH $1 AND NOT m.undone`, matchSQLite(terms))
	if err != nil {
		return nil, err
	}
	// What the index does not have yet is read.
	read = 0
	err = t.tx.each(ctx, having(terms), `SELECT m.session_id, m.content FROM agent_messages m WHERE m.id > `+indexedSQL+` AND NOT m.undone AND `+searched+` LIMIT $1`, rareMost)
	if read == rareMost {
		return nil, err
	}
	return ids, err
}

// sessionsByVectors is sessionsByWords on PostgreSQL.
func (t *Lists) sessionsByVectors(ctx context.Context, whole, terms []searchTerm) ([]string, error) {
	var words []string
	for _, w := range whole {
		words = append(words, strings.Fields(strings.ToLower(w.word))...)
	}
	those, arg, err := t.tx.Care().oneOf(words, "TEXT", 1)
	if err != nil {
		return nil, err
	}
	common := 0
	if _, err := t.tx.one(ctx, []any{&common}, commonWordsSQL+those, arg, commonFrom); err != nil || common == len(words) {
		return nil, err
	}
	ids, err := t.tx.ids(ctx, `WITH `+foundByIndex("m.session_id", "")+` SELECT f.session_id FROM found f LIMIT $2`, matchPostgres(whole), rareMost+1)
	if err != nil || len(ids) > rareMost {
		return ids, err
	}
	args := []any{matchPostgres(whole)}
	match := foundMatch(terms, len(whole), &args)
	ids, err = t.tx.ids(ctx, `SELECT DISTINCT m.session_id FROM `+foundSource("")+` WHERE NOT m.undone AND `+match, args...)
	return append([]string{}, ids...), err
}

// commonWordsSQL counts those of some words that more messages have than $2, as PostgreSQL
// has noted it. Its index would bring all of them together before it tells the first.
const commonWordsSQL = `
	SELECT count(*) FROM (
		SELECT unnest(CAST(CAST(p.most_common_elems AS TEXT) AS TEXT[])) AS word, unnest(p.most_common_elem_freqs) AS part
		FROM pg_stats p WHERE p.tablename = 'idx_agent_messages_words' AND p.schemaname = current_schema()) w
	WHERE w.part * (SELECT reltuples FROM pg_class WHERE oid = to_regclass('idx_agent_messages_words')) > $2 AND w.word`
