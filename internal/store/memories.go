package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/order"
)

// memoryTable is one of the two tables of memories, whose columns have seed 004's
// names.
type memoryTable struct {
	kind    memory.Kind
	name    string
	words   string // SQLite's index of words
	text    string // the column of the text
	columns string // as scanMemory reads them
	alive   string // condition on $2, the time now in RFC 3339; true if nothing expires
}

var memoryTables = map[memory.Kind]memoryTable{
	memory.Semantic: {
		kind: memory.Semantic, name: "semantic_memories", words: "semantic_words", text: "fact",
		columns: `m.id, m.user_id, m.codebase_id, m.seq, m.run_id, m.fact, m.category, m.origin, m.confidence, m.access_count,
			m.source_events, '[]', m.history, m.created_at, m.updated_at, NULL, m.content_hash, m.last_key`,
		alive: `CAST($2 AS TEXT) <> ''`,
	},
	memory.Episodic: {
		kind: memory.Episodic, name: "episodic_memories", words: "episodic_words", text: "content",
		columns: `m.id, m.user_id, m.codebase_id, m.seq, m.run_id, m.content, NULL, m.origin, m.confidence, m.access_count,
			'[]', m.sources, '[]', m.created_at, m.updated_at, m.expires_at, m.content_hash, m.last_key`,
		alive: `m.expires_at > $2`,
	},
}

// bothMemoryTables returns the tables in an order that does not change.
func bothMemoryTables() []memoryTable {
	return []memoryTable{memoryTables[memory.Semantic], memoryTables[memory.Episodic]}
}

// rfc3339 is a time as the seeds' timestamp columns keep it on SQLite, where
// times are compared as text; PostgreSQL reads it as well.
func rfc3339(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// scanMemory is for memories of a kind.
func scanMemory(kind memory.Kind) func(m *memory.Memory) []any {
	return func(m *memory.Memory) []any {
		m.Kind = kind
		return []any{
			&m.ID, &m.Person, text{&m.Codebase}, &m.Number, text{&m.RunID}, &m.Text, text{(*string)(&m.Category)}, &m.Origin, &m.Confidence,
			&m.AccessCount, jsonList{&m.Events, "a memory"}, jsonList{&m.Sources, "a memory"}, jsonList{&m.History, "a memory"},
			stamp{&m.CreatedAt}, stamp{&m.UpdatedAt}, stamp{&m.ExpiresAt}, &m.Hash, &m.Key,
		}
	}
}

func (t *Memories) memories(ctx context.Context, table memoryTable, rest string, args ...any) ([]memory.Memory, error) {
	return rowsOf(ctx, t.tx, "read memories", scanMemory(table.kind), `SELECT `+table.columns+` FROM `+table.name+` m `+rest, args...)
}

// lockPerson locks the row of the person of an account, which is made if it is
// not there, and returns who it is. All that changes the memories of one person
// does so first: the database cannot see that two texts are the same, so two who
// learn a fact at once would both insert it. One who switched memory off is
// fault.Forbidden.
func (t *Memories) lockPerson(ctx context.Context, account string) (string, error) {
	h, err := t.tx.Persons().holdPerson(ctx, account)
	if err == nil && !h.on {
		return "", fault.New(fault.Forbidden, "Memory is off for you, so nothing is saved. `/memory on` turns it on.")
	}
	return h.person, err
}

const memoryOnSQL = `SELECT enabled FROM memory_people WHERE user_id = $1`

// MemoryOn reports whether something may be remembered of a person: yes, until
// they switch it off.
func (t *Memories) MemoryOn(ctx context.Context, account string) (bool, error) {
	person, err := t.tx.Persons().personOf(ctx, account)
	if err != nil {
		return false, err
	}
	on := false
	ok, err := t.tx.one(ctx, []any{&on}, memoryOnSQL, person)
	return on || !ok, wrap(err, "read a memory setting")
}

// SetMemoryOn switches the memory of a person on or off, for all their accounts.
// Off, nothing is learned and nothing recalled, and what was still to be learned
// is dropped; what is stored stays, to be listed and forgotten.
func (t *Memories) SetMemoryOn(ctx context.Context, account string, on bool) error {
	h, err := t.tx.Persons().holdPerson(ctx, account)
	if err != nil {
		return err
	}
	if _, err := t.tx.exec(ctx, `UPDATE memory_people SET enabled = $2 WHERE user_id = $1`, h.person, on); err != nil {
		return fmt.Errorf("store a memory setting: %w", err)
	}
	if on {
		return nil
	}
	_, err = t.tx.Lessons().dropLessons(ctx, h.person)
	return err
}

// UpsertFact is seed 004's upsert_semantic_memory_smart: a fact like one that is
// there, for the same person and codebase, takes its place (UPDATE_SIMILAR), any
// other is new (INSERT_NEW). The rules are memory.Fact's. Texts are compared by
// embedding where both have one of the same model, else by their words.
//
// It locks the person's row. Two at once behave as one after the other.
func (t *Memories) UpsertFact(ctx context.Context, f memory.Fact) (memory.Outcome, error) {
	f, err := f.Prepare()
	if err != nil {
		return memory.Outcome{}, err
	}
	if f.Person, err = t.lockPerson(ctx, f.Person); err != nil {
		return memory.Outcome{}, err
	}
	table := memoryTables[memory.Semantic]
	near, err := t.candidates(ctx, table, f.Scope, f.Text, f.Embedding, f.Threshold, f.Now)
	if err != nil {
		return memory.Outcome{}, err
	}
	if old, ok := memory.Nearest(near, f.Threshold); ok && !f.Separate(old.Memory) {
		out := f.Update(old)
		return out, t.saveFact(ctx, out, f.Embedding)
	}
	m := f.NewMemory()
	if err := t.insertMemory(ctx, table, &m, f.Embedding, near); err != nil {
		return memory.Outcome{}, err
	}
	return memory.Outcome{Operation: memory.InsertNew, Memory: m}, nil
}

// NearFact returns the fact whose place UpsertFact would take now; ok is false if
// there is none, it says the same text, or memory is off for the person. It changes
// and locks nothing, so it belongs into a snapshot.
func (t *Memories) NearFact(ctx context.Context, f memory.Fact) (old memory.Memory, ok bool, err error) {
	if f, err = f.Prepare(); err != nil {
		return memory.Memory{}, false, err
	}
	on, err := t.MemoryOn(ctx, f.Person)
	if err != nil || !on {
		return memory.Memory{}, false, err
	}
	if f.Person, err = t.tx.Persons().personOf(ctx, f.Person); err != nil {
		return memory.Memory{}, false, err
	}
	near, err := t.candidates(ctx, memoryTables[memory.Semantic], f.Scope, f.Text, f.Embedding, f.Threshold, f.Now)
	if err != nil {
		return memory.Memory{}, false, err
	}
	best, ok := memory.Nearest(near, f.Threshold)
	return best.Memory, ok && best.Hash != memory.Hash(f.Text), nil
}

// InsertEpisode is seed 004's insert_episodic_memory_smart: an episode like one
// that is there and has not expired confirms it (SKIP_DUPLICATE), any other is
// new and expires (INSERT_NEW). It locks the person's row.
func (t *Memories) InsertEpisode(ctx context.Context, e memory.Episode) (memory.Outcome, error) {
	e, err := e.Prepare()
	if err != nil {
		return memory.Outcome{}, err
	}
	if e.Person, err = t.lockPerson(ctx, e.Person); err != nil {
		return memory.Outcome{}, err
	}
	table := memoryTables[memory.Episodic]
	near, err := t.candidates(ctx, table, e.Scope, e.Text, e.Embedding, e.Threshold, e.Now)
	if err != nil {
		return memory.Outcome{}, err
	}
	if old, ok := memory.Nearest(near, e.Threshold); ok {
		out := e.Confirm(old)
		if out.Repeated {
			return out, nil
		}
		m := out.Memory
		_, err := t.tx.exec(ctx, `
			UPDATE episodic_memories SET confidence = $2, access_count = $3, updated_at = $4, last_key = $5, nearness = $6 WHERE id = $1`,
			m.ID, m.Confidence, m.AccessCount, rfc3339(m.UpdatedAt), m.Key, memory.Nearness(out.Similarity))
		return out, wrap(err, "confirm an episode")
	}
	m := e.NewMemory()
	if err := t.insertMemory(ctx, table, &m, e.Embedding, near); err != nil {
		return memory.Outcome{}, err
	}
	return memory.Outcome{Operation: memory.InsertNew, Memory: m}, nil
}

// CorrectFact gives a fact another text, by its number. fault.NotFound is a number
// that the person does not have, fault.Unsupported an episode, and fault.Conflict
// a text that another of their facts has. Embedding may be zero.
func (t *Memories) CorrectFact(ctx context.Context, number int64, f memory.Fact) (memory.Outcome, error) {
	f.Correct = true
	f, err := f.Prepare()
	if err != nil {
		return memory.Outcome{}, err
	}
	if f.Person, err = t.lockPerson(ctx, f.Person); err != nil {
		return memory.Outcome{}, err
	}
	old, err := t.Memory(ctx, f.Person, number)
	switch {
	case err != nil:
		return memory.Outcome{}, err
	case old.Kind != memory.Semantic:
		return memory.Outcome{}, fault.Newf(fault.Unsupported, "Memory %d is of an event and cannot be edited; delete it with `/forget` and save a new one.", number)
	}
	same, err := t.memories(ctx, memoryTables[memory.Semantic], sameText+` AND m.id <> $4`, old.Person, orNull(old.Codebase), memory.Hash(f.Text), old.ID)
	if err != nil {
		return memory.Outcome{}, err
	}
	if len(same) > 0 {
		return memory.Outcome{}, fault.Newf(fault.Conflict, "Memory %d already says that; `/forget %d` deletes the other one.", same[0].Number, number)
	}
	out := f.Update(memory.Candidate{Memory: old, Similarity: 1})
	return out, t.saveFact(ctx, out, f.Embedding)
}

// saveFact stores what a fact has become. An embedding of the old text does not
// fit a new one.
func (t *Memories) saveFact(ctx context.Context, out memory.Outcome, e memory.Embedding) error {
	if out.Repeated {
		return nil
	}
	m := out.Memory
	events, err := encodeList(m.Events)
	if err != nil {
		return err
	}
	history, err := encodeList(m.History)
	if err != nil {
		return err
	}
	if err := t.tx.run(ctx, "update a fact", `
		UPDATE semantic_memories SET
			fact = $2, category = $3, confidence = $4, access_count = $5, source_events = $6, history = $7, updated_at = $8,
			content_hash = $9, terms = $10, last_key = $11, run_id = $12, origin = $13, nearness = $14
		WHERE id = $1`,
		m.ID, m.Text, orNull(string(m.Category)), m.Confidence, m.AccessCount, events, history, rfc3339(m.UpdatedAt),
		m.Hash, storedTerms(m.Person, m.Text), m.Key, m.RunID, string(m.Origin), memory.Nearness(out.Similarity)); err != nil {
		return err
	}
	if e.IsZero() && out.Matched == m.Text {
		return nil
	}
	return t.tx.run(ctx, "update the embedding of a fact", `UPDATE semantic_memories SET embedding = $2, embedding_model = $3 WHERE id = $1`,
		m.ID, bytesOrNull(e.Vector.Encode()), modelOf(e))
}

func modelOf(e memory.Embedding) string {
	if e.IsZero() {
		return ""
	}
	return e.Model
}

func encodeList[T any](list []T) (string, error) {
	if len(list) == 0 {
		return "[]", nil
	}
	return encodeJSON(list, fault.Invalid, "a memory")
}

// insertMemory stores a new memory, which was compared with others. It assigns ID and
// Number.
func (t *Memories) insertMemory(ctx context.Context, table memoryTable, m *memory.Memory, e memory.Embedding, others []memory.Candidate) error {
	if _, err := t.tx.one(ctx, []any{&m.Number}, `UPDATE memory_people SET seq = seq + 1 WHERE user_id = $1 RETURNING seq`, m.Person); err != nil {
		return fmt.Errorf("number a memory: %w", err)
	}
	events, err := encodeList(m.Events)
	if err != nil {
		return err
	}
	sources, err := encodeList(m.Sources)
	if err != nil {
		return err
	}
	own, values := "category, source_events", []any{orNull(string(m.Category)), events}
	if table.kind == memory.Episodic {
		own, values = "expires_at, sources", []any{rfc3339(m.ExpiresAt), sources}
	}
	args := append([]any{
		m.Person, m.RunID, m.Text, bytesOrNull(e.Vector.Encode()), modelOf(e), m.Confidence, m.AccessCount,
		rfc3339(m.CreatedAt), m.Number, orNull(m.Codebase), string(m.Origin), m.Hash, storedTerms(m.Person, m.Text), m.Key,
	}, append(values, nearnessOf(others))...)
	_, err = t.tx.one(ctx, []any{&m.ID}, `
		INSERT INTO `+table.name+` (
			user_id, run_id, `+table.text+`, embedding, embedding_model, confidence, access_count,
			created_at, updated_at, seq, codebase_id, origin, content_hash, terms, last_key, `+own+`, nearness)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
		RETURNING id`, args...)
	return wrap(err, "store a memory")
}

// Memory returns a memory of a person by its number; fault.NotFound if they have
// none with it. It may have expired.
func (t *Memories) Memory(ctx context.Context, account string, number int64) (memory.Memory, error) {
	person, err := t.tx.Persons().personOf(ctx, account)
	if err != nil {
		return memory.Memory{}, err
	}
	for _, table := range bothMemoryTables() {
		list, err := t.memories(ctx, table, `WHERE m.user_id = $1 AND m.seq = $2`, person, number)
		if err != nil {
			return memory.Memory{}, err
		}
		if len(list) > 0 {
			return list[0], nil
		}
	}
	return memory.Memory{}, fault.Newf(fault.NotFound, "You have no memory %d. `/memory` lists them.", number)
}

// List returns what is remembered of a person, the newest number first: at
// most limit with numbers below before, or the newest if it is 0. What has
// expired by now is left out. Numbers do not change, so pages do not overlap.
func (t *Memories) List(ctx context.Context, account string, before int64, limit int, now time.Time) ([]memory.Memory, error) {
	person, err := t.tx.Persons().personOf(ctx, account)
	if err != nil {
		return nil, err
	}
	before = cmp.Or(before, 1<<62)
	var all []memory.Memory
	for _, table := range bothMemoryTables() {
		list, err := t.memories(ctx, table, `
			WHERE m.user_id = $1 AND `+table.alive+` AND m.seq < $3 ORDER BY m.seq DESC LIMIT $4`, person, rfc3339(now), before, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	order.By(all, func(a, b memory.Memory) int { return int(b.Number - a.Number) })
	return all[:min(limit, len(all))], nil
}

// Count returns how many memories of a person there are that have not
// expired by now.
func (t *Memories) Count(ctx context.Context, account string, now time.Time) (n int64, err error) {
	person, err := t.tx.Persons().personOf(ctx, account)
	if err != nil {
		return 0, err
	}
	for _, table := range bothMemoryTables() {
		var some int64
		_, err := t.tx.one(ctx, []any{&some}, `SELECT count(*) FROM `+table.name+` m WHERE m.user_id = $1 AND `+table.alive, person, rfc3339(now))
		if err != nil {
			return 0, fmt.Errorf("count memories: %w", err)
		}
		n += some
	}
	return n, nil
}

// ForgetMemory deletes a memory of a person by its number, and returns it;
// fault.NotFound if they have none with it.
func (t *Memories) ForgetMemory(ctx context.Context, account string, number int64) (memory.Memory, error) {
	m, err := t.Memory(ctx, account, number)
	if err != nil {
		return m, err
	}
	t.tx.erases()
	t.tx.vectors.forget(m.Person)
	if err := t.tx.Persons().emptyCommands(ctx, m.Person); err != nil {
		return m, err
	}
	n, err := t.tx.exec(ctx, `DELETE FROM `+memoryTables[m.Kind].name+` WHERE user_id = $1 AND seq = $2`, m.Person, number)
	return found(m, n > 0, err, "memory")
}

// ForgetMemories deletes all memories of a person, expired ones included, and
// returns how many there were. What was still to be learned is dropped, also what
// is being learned now. Their setting stays.
func (t *Memories) ForgetMemories(ctx context.Context, account string) (n int64, err error) {
	h, err := t.tx.Persons().holdPerson(ctx, account) // nobody may learn something in between
	if err != nil {
		return 0, err
	}
	person := h.person
	t.tx.erases()
	if err := t.tx.Persons().emptyCommands(ctx, person); err != nil {
		return 0, err
	}
	if _, err := t.tx.Lessons().dropLessons(ctx, person); err != nil {
		return 0, err
	}
	t.tx.vectors.forget(person)
	for _, table := range bothMemoryTables() {
		some, err := t.tx.exec(ctx, `DELETE FROM `+table.name+` WHERE user_id = $1`, person)
		if err != nil {
			return 0, fmt.Errorf("forget memories: %w", err)
		}
		n += some
	}
	return n, nil
}

const sweepMemoriesSQL = `
	DELETE FROM episodic_memories WHERE id IN (SELECT id FROM episodic_memories WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`

// SweepMemories deletes at most limit episodes that have expired by now, and
// returns how many.
func (t *Memories) SweepMemories(ctx context.Context, now time.Time, limit int) (int64, error) {
	n, err := t.tx.exec(ctx, sweepMemoriesSQL, rfc3339(now), limit)
	if n > 0 {
		t.tx.erases()
	}
	return n, wrap(err, "sweep expired episodes")
}
