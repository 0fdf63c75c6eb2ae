package store

import (
	"context"
	_ "embed" // the SQL below
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"remote-agent/internal/memory"
)

//go:embed pgvector.sql
var pgvectorSQL string

// pgvectorVersion is written beside what pgvectorSQL makes; a database with a
// higher one was set up by a newer binary and is left as it is. Raise it with every
// change of the file.
const pgvectorVersion = 6

// VectorState says what pgvector is used for.
type VectorState struct {
	Available string // version that the server could install; empty: none
	Installed string // version in this database; empty: not there
	Ready     bool   // the vectors of memories and seed 004's functions are there

	// Todo is what an operator has to do so that they are; may be empty.
	Todo string

	Indexes []VectorIndex // cosine indexes; made when there are many vectors
}

// VectorIndex is an index of vectors.
type VectorIndex struct {
	Name  string
	Valid bool // false while it is made, or if that failed
}

// vectorTables have the vectors of memories, in the type of pgvector.
var vectorTables = []struct{ memories, vectors, index string }{
	{"semantic_memories", "semantic_vectors", "semantic_embedding_idx"},
	{"episodic_memories", "episodic_vectors", "episodic_embedding_idx"},
}

// madeForVectors are the names of what pgvectorSQL makes.
var madeForVectors = sync.OnceValue(func() (names []string) {
	made := regexp.MustCompile(`(?m)^CREATE (?:OR REPLACE )?(?:TABLE IF NOT EXISTS|FUNCTION|TRIGGER) (\w+)`)
	for _, m := range made.FindAllStringSubmatch(pgvectorSQL, -1) {
		names = append(names, m[1])
	}
	return names
})

// OfVectors reports whether a table, function, trigger or index with this name is
// there for pgvector only: a copy of the database is whole without it, and Migrate
// makes it again where the server has pgvector.
func OfVectors(name string) bool {
	for _, t := range vectorTables {
		if name == t.index {
			return true
		}
	}
	return slices.Contains(madeForVectors(), name)
}

// setUpVectors makes the extension and what pgvectorSQL says, if the server has
// pgvector. Nothing of it is needed by the program's own work, so what cannot be
// done is told and is no error.
func (s *Store) setUpVectors(ctx context.Context) {
	state, err := s.installVectors(ctx)
	if isState(err, pgPrivilege) {
		s.log.WarnContext(ctx, "pgvector is available and not used", "fix", todoExtension)
		return
	}
	if err == nil && state.Installed != "" {
		err = s.applyVectors(ctx)
	}
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "pgvector is not used", "err", classifyPostgres(err))
	}
}

// installVectors makes the extension if the server has pgvector.
func (s *Store) installVectors(ctx context.Context) (VectorState, error) {
	state, err := s.Vectors(ctx)
	if err != nil || state.Installed != "" || state.Available == "" {
		return state, err
	}
	if _, err := s.pg.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS vector`); err != nil {
		return state, err
	}
	return s.Vectors(ctx)
}

// todoExtension is for the operator.
const todoExtension = "run CREATE EXTENSION vector; as a superuser in this database, then start the bot again"

// applyVectors runs pgvectorSQL unless it was run already.
func (s *Store) applyVectors(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pg, func(tx pgx.Tx) error {
		var tables, extension string
		err := tx.QueryRow(ctx, `
			SELECT quote_ident(current_schema()), quote_ident(n.nspname)
			FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'`).Scan(&tables, &extension)
		if err != nil {
			return err
		}
		var version int
		var whole bool
		if err := tx.QueryRow(ctx, vectorVersionSQL).Scan(&version, &whole); err != nil {
			return err
		}
		if whole && version >= pgvectorVersion {
			return nil
		}
		path := tables + ", pg_temp"
		if extension != tables {
			path = tables + ", " + extension + ", pg_temp"
		}
		statements := []string{`SET LOCAL search_path = ` + path}
		if !whole { // pgvector was taken away and has come back
			statements = append(statements, `DROP TABLE IF EXISTS semantic_vectors, episodic_vectors CASCADE`)
		}
		lexicon, err := memory.Lexicon()
		if err != nil {
			return err
		}
		made := strings.Replace(pgvectorSQL, "{{lexicon}}", "'"+strings.ReplaceAll(string(lexicon), "'", "''")+"'", 1)
		statements = append(statements, made, fmt.Sprintf(`COMMENT ON TABLE semantic_vectors IS '%s%d'`, vectorComment, pgvectorVersion))
		for _, statement := range append(statements, castVectorsSQL) {
			if _, err := tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return nil
	})
}

// castVectorsSQL has the embeddings of the tables taken for vectors, so that operators
// and functions of pgvector work on them as seed 004's users write them. Only a
// superuser may make casts between types that are not their own; without them people
// join the tables of vectors.
const castVectorsSQL = `
	DO $$
	BEGIN
		IF NOT EXISTS (SELECT FROM pg_cast WHERE castsource = 'bytea'::regtype AND casttarget = 'vector'::regtype) THEN
			CREATE CAST (bytea AS vector) WITH FUNCTION memory_vector(bytea) AS IMPLICIT;
		END IF;
		IF NOT EXISTS (SELECT FROM pg_cast WHERE castsource = 'vector'::regtype AND casttarget = 'bytea'::regtype) THEN
			CREATE CAST (vector AS bytea) WITH FUNCTION memory_bytes(vector) AS ASSIGNMENT;
		END IF;
	EXCEPTION WHEN insufficient_privilege THEN
		NULL;
	END
	$$`

const vectorComment = "vectors for pgvector, made by the bot; version "

// vectorVersionSQL tells which version of pgvectorSQL was run, and whether both
// tables still have their vectors: dropping the extension takes the columns.
var vectorVersionSQL = `
	SELECT COALESCE((SELECT NULLIF(replace(obj_description(to_regclass('semantic_vectors')), '` + vectorComment + `', ''), '')::int), 0),
		(SELECT count(*) FROM pg_attribute a WHERE a.attname = 'embedding' AND NOT a.attisdropped
			AND a.attrelid IN (to_regclass('semantic_vectors'), to_regclass('episodic_vectors'))) = 2
		AND EXISTS (SELECT 1 FROM pg_proc WHERE proname = 'retrieve_similar_categorized_memories')`

// Vectors tells what pgvector is used for. On SQLite it is the zero VectorState.
func (s *Store) Vectors(ctx context.Context) (state VectorState, err error) {
	if s.pg == nil {
		return state, nil
	}
	err = s.pg.QueryRow(ctx, `
		SELECT COALESCE((SELECT default_version FROM pg_available_extensions WHERE name = 'vector'), ''),
			COALESCE((SELECT extversion FROM pg_extension WHERE extname = 'vector'), '')`).Scan(&state.Available, &state.Installed)
	if err != nil {
		return state, fmt.Errorf("ask for pgvector: %w", classifyPostgres(err))
	}
	if state.Installed == "" || state.Available == "" {
		switch {
		case state.Available != "":
			state.Todo = todoExtension
		case state.Installed != "":
			state.Todo = "this database has pgvector and the server's files of it are gone: install it, or DROP EXTENSION vector CASCADE"
		}
		return state, nil
	}
	var version int
	if err := s.pg.QueryRow(ctx, vectorVersionSQL).Scan(&version, &state.Ready); err != nil {
		return state, fmt.Errorf("ask for vectors: %w", classifyPostgres(err))
	}
	if state.Ready = state.Ready && version > 0; !state.Ready {
		state.Todo = "start the bot again: it makes the vectors"
		return state, nil
	}
	for _, t := range vectorTables {
		var index VectorIndex
		err := s.pg.QueryRow(ctx, `SELECT indexrelid::regclass::text, indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)`, t.index).Scan(&index.Name, &index.Valid)
		if err == nil {
			state.Indexes = append(state.Indexes, index)
		} else if !errors.Is(err, pgx.ErrNoRows) {
			return state, fmt.Errorf("look for an index: %w", classifyPostgres(err))
		}
	}
	return state, nil
}

// MissingVectors counts the memories whose vectors KeepVectors has to copy. It
// reads whole tables.
func (s *Store) MissingVectors(ctx context.Context) (n int64, err error) {
	for _, t := range vectorTables {
		var some int64
		if err := s.pg.QueryRow(ctx, `SELECT count(*) `+missingVectors(t.memories, t.vectors)).Scan(&some); err != nil {
			return 0, fmt.Errorf("count vectors: %w", classifyPostgres(err))
		}
		n += some
	}
	return n, nil
}

func missingVectors(memories, vectors string) string {
	return `FROM ` + memories + ` m WHERE m.embedding IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ` + vectors + ` v WHERE v.id = m.id)`
}

const (
	// VectorIndexFrom is from how many vectors on an index helps: fewer are compared
	// faster than one can be kept.
	VectorIndexFrom = 20_000

	vectorBatch = 500

	// vectorLock keeps other replicas from the same work.
	vectorLock = 0x626f7476 // "botv"
)

// KeepVectors copies embeddings that pgvector does not have yet, which were stored
// while it was away, and makes its indexes when there are vectors enough, without
// stopping those who write. One process at a time does so; others return at once.
// It does nothing without pgvector. It may take minutes and can be stopped any time.
func (s *Store) KeepVectors(ctx context.Context) error { return s.keepVectors(ctx, VectorIndexFrom) }

func (s *Store) keepVectors(ctx context.Context, indexFrom int64) (err error) {
	if s.pg == nil {
		return nil
	}
	state, err := s.Vectors(ctx)
	if err != nil || !state.Ready {
		return err
	}
	conn, err := s.pg.Acquire(ctx)
	if err != nil {
		return classifyPostgres(err)
	}
	defer conn.Release()
	unlock, mine, err := s.lockAlone(ctx, conn, vectorLock)
	if err != nil || !mine {
		return classifyPostgres(err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for _, t := range vectorTables {
		if err := copyVectors(ctx, conn.Conn(), t.memories, t.vectors); err != nil {
			return fmt.Errorf("copy vectors: %w", classifyPostgres(err))
		}
		if err := indexVectors(ctx, conn.Conn(), state.Installed, t.memories, t.vectors, t.index, indexFrom); err != nil {
			return fmt.Errorf("index vectors: %w", classifyPostgres(err))
		}
	}
	return nil
}

// lockAlone takes a lock that one process at a time has. Without an error and not mine,
// another one has it.
func (s *Store) lockAlone(ctx context.Context, conn *pgxpool.Conn, key int64) (unlock func() error, mine bool, err error) {
	if s.pooled {
		free, mine, err := s.lockTx(ctx, key)
		return func() error { free(); return nil }, mine, err
	}
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, key).Scan(&mine)
	return func() error {
		ctx, cancel := cleanup(ctx)
		defer cancel()
		if _, err := conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, key); err != nil {
			return conn.Conn().Close(ctx) // the lock ends with the connection
		}
		return nil
	}, mine, err
}

// copyVectors copies what is missing, a batch at a time and each row once: one
// that has no vector, because it cannot be compared, is passed over.
func copyVectors(ctx context.Context, conn *pgx.Conn, memories, vectors string) error {
	for after := int64(0); ; {
		var last *int64
		err := conn.QueryRow(ctx, `
			WITH batch AS MATERIALIZED (SELECT m.id, m.embedding `+missingVectors(memories, vectors)+` AND m.id > $1 ORDER BY m.id LIMIT $2 FOR UPDATE OF m),
			copied AS (
				INSERT INTO `+vectors+` (id, embedding)
				SELECT b.id, v FROM batch b, LATERAL (SELECT memory_vector(b.embedding) AS v) d WHERE v IS NOT NULL
				ON CONFLICT (id) DO NOTHING)
			SELECT max(id) FROM batch`, after, vectorBatch).Scan(&last)
		if err != nil || last == nil {
			return err
		}
		after = *last
	}
}

// indexVectors makes the index if there are enough vectors for it.
func indexVectors(ctx context.Context, conn *pgx.Conn, version, memories, vectors, index string, from int64) error {
	var rows int64
	var valid *bool
	err := conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM `+vectors+`), (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1))`, index).Scan(&rows, &valid)
	if err != nil || rows < from || valid != nil && *valid {
		return err
	}
	if valid != nil { // left over by one who was stopped
		if _, err := conn.Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+index); err != nil {
			return err
		}
	}
	method := ` USING hnsw (embedding vector_cosine_ops)`
	if older(version, 0, 5) {
		method = fmt.Sprintf(` USING ivfflat (embedding vector_cosine_ops) WITH (lists = %d)`, max(100, rows/1000))
	}
	if _, err := conn.Exec(ctx, `CREATE INDEX CONCURRENTLY IF NOT EXISTS `+index+` ON `+vectors+method); err != nil {
		return err
	}
	// The index is used where it is known that most memories are one person's.
	_, err = conn.Exec(ctx, `ANALYZE `+vectors+`, `+memories)
	return err
}

// older reports whether a version like "0.4.2" is before another. What cannot be
// read is.
func older(version string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &a, &b); err != nil {
		return true
	}
	return a < major || a == major && b < minor
}

// MemoryCounts says how many memories there are.
type MemoryCounts struct {
	People   int64
	Facts    int64
	Episodes int64
	Models   map[string]int64 // by embedding model; "" has none
}

// CountAll counts the memories of everybody.
func (t *Memories) CountAll(ctx context.Context) (c MemoryCounts, err error) {
	c.Models = make(map[string]int64)
	if _, err := t.tx.one(ctx, []any{&c.People}, `SELECT count(*) FROM memory_people`); err != nil {
		return c, fmt.Errorf("count people: %w", err)
	}
	for name, to := range map[string]*int64{"semantic_memories": &c.Facts, "episodic_memories": &c.Episodes} {
		err := t.tx.each(ctx, func(scan func(...any) error) error {
			var model string
			var n int64
			if err := scan(&model, &n); err != nil {
				return err
			}
			c.Models[model] += n
			*to += n
			return nil
		}, `SELECT embedding_model, count(*) FROM `+name+` GROUP BY embedding_model`)
		if err != nil {
			return c, fmt.Errorf("count memories: %w", err)
		}
	}
	return c, nil
}
