//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// Seed 004's JSONB columns in the views, as its users ask them.
func TestViewsOfTheSeedHaveJSON(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		thread := b.fillPages(t, 1, 6)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			n, err := store.Count(ctx, tx, `SELECT count(*) FROM message WHERE thread_id = '`+thread+`' AND tools->>'name' = 'bash'`)
			if err != nil || n != 2 {
				t.Errorf("calls of bash: %d, %v", n, err)
			}
			return err
		})
		for _, statement := range []string{`DELETE FROM message`, `UPDATE message SET content = 'x'`, `INSERT INTO agent_iterations (id) VALUES (1)`} {
			if err := b.try(t, func(ctx context.Context, tx *store.Tx) error { return store.Exec(ctx, tx, statement) }); err == nil {
				t.Errorf("%s: the view is not read-only", statement)
			}
		}
		if b.Dialect() != "postgres" {
			return
		}
		got, err := b.sql(t, `SELECT table_name || '.' || column_name FROM information_schema.columns
			WHERE table_name IN ('message', 'agent_iterations') AND data_type = 'jsonb' ORDER BY 1`)
		wantText(t, "JSONB columns", "(agent_iterations.data)\n(message.metadata)\n(message.plan)\n(message.tools)", got, err)
		for stored, want := range map[string]string{
			`{"output":"a\u0000b"}`:  `{"output": "a` + "\uFFFD" + `b"}`, // JSON, but not JSONB
			`{"output":"a\\u0000b"}`: `{"output": "a\\u0000b"}`,          // no NUL but a backslash
			`{"output":`:             `"{\"output\":"`,                   // no JSON at all
			`{"id":"\ud83d"}`:        `"{\"id\":\"\\ud83d\"}"`,           // half a character
		} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				if err := store.Exec(ctx, tx, `UPDATE agent_messages SET data_json = $1 WHERE kind = 'tool_call'`, stored); err != nil {
					return err
				}
				got, err := store.String(ctx, tx, `SELECT CAST(tools AS text) FROM message WHERE tools IS NOT NULL LIMIT 1`)
				if got != want {
					t.Errorf("%s is %s, want %s", stored, got, want)
				}
				return err
			})
		}
	})
}

// The composite types of seed 004, either way.
func TestTypesOfTheSeed(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.Postgres(t)(t)}
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		for _, statement := range []string{
			`INSERT INTO agents (name, memory, rag) VALUES ('one', ROW(true, 10, 20)::memory, ROW(false, 'small')::rag)`,
			`INSERT INTO models_config (fast, smart, cheap) VALUES (ROW('openai', 'gpt-5-mini', 'quick')::model, ROW('anthropic', 'opus', '')::model, ROW('a', 'b', 'c')::model)`,
		} {
			if err := store.Exec(ctx, tx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	got, err := b.sql(t, `SELECT (memory::memory).short_term_memory_size, (rag::rag).enabled, memory->>'memory_size', rag->>'embedding_model' FROM agents`)
	wantText(t, "an agent", "(10,f,20,small)", got, err)
	got, err = b.sql(t, `SELECT (fast::model).model_name, smart->>'provider' FROM models_config ORDER BY id DESC LIMIT 1`)
	wantText(t, "models", "(gpt-5-mini,anthropic)", got, err)
}

// An episode without a time expires after 30 days, on both databases.
func TestEpisodesExpireAfterThirtyDaysByDefault(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for _, statement := range []string{
				`INSERT INTO memory_people (user_id, seq) VALUES ('test/ann', 1)`,
				`INSERT INTO episodic_memories (user_id, run_id, content, seq, content_hash) VALUES ('test/ann', '` + someRun + `', 'x', 1, 'h')`,
			} {
				if err := store.Exec(ctx, tx, statement); err != nil {
					return err
				}
			}
			return nil
		})
		m := b.all(t, annsID)[0]
		if d := m.ExpiresAt.Sub(m.CreatedAt); d.Round(1e9) != memory.EpisodeLife {
			t.Errorf("it expires after %s", d)
		}
	})
}

// The tables of seed 004 take its own rows, with its columns alone.
func TestRowsOfTheSeedAreTaken(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.Postgres(t)(t)}
	b.learn(t, told("likes cats"))
	v := memorytest.Vector("uses tabs")
	insert := func(table, columns, values string) error {
		return b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `INSERT INTO `+table+` (user_id, run_id, `+columns+`) VALUES ('`+annsID+`', '`+someRun+`', `+values+`)`)
		})
	}
	if err := insert("semantic_memories", "fact, embedding, category", `'Uses  tabs', `+literal(v)+`, 'preference'`); err != nil {
		t.Fatal(err)
	}
	if err := insert("episodic_memories", "content", `'Deployed on Friday'`); err != nil {
		t.Fatal(err)
	}
	list := b.all(t, annsID)
	if len(list) != 3 || list[0].Number != 3 || list[1].Number != 2 || list[1].Text != "Uses tabs" || list[1].Hash != memory.Hash("uses tabs") || list[1].Confidence != 0.5 {
		t.Errorf("stored: %+v", list)
	}
	q := memory.Query{Scope: memory.Scope{Person: annsID}, Embedding: memory.Embedding{Vector: v, Model: memorytest.Model}}
	if diff := cmp.Diff([]string{"Uses tabs"}, recalled(b.recall(t, q))); diff != "" {
		t.Errorf("recalled (-want +got):\n%s", diff)
	}
	for name, row := range map[string][2]string{
		"the same text": {"fact", `'uses tabs.'`},
		"no text":       {"fact", `' '`},
		"short":         {"fact, embedding", `'x', '[1,2,3]'`},
		"no vector":     {"fact, embedding", `'x', 'abc'`},
	} {
		if err := insert("semantic_memories", row[0], row[1]); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SetMemoryOn(ctx, annsID, false) })
	if err := insert("semantic_memories", "fact", `'lives in Berlin'`); err == nil || !strings.Contains(err.Error(), "memory is off") {
		t.Errorf("memory is off: %v", err)
	}
}

// Pages behind many sessions, and the default of 100 rows.
func TestSQLGetMessagesOfManySessions(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.Postgres(t)(t)}
	thread := b.fillPages(t, 405, 2) // more than are counted at once, twice
	all, err := b.sql(t, `SELECT m.id FROM agent_messages m JOIN remote_agent_sessions s ON s.id = m.session_id ORDER BY s.started_at, s.id, m.seq`)
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Fields(all)
	backward := make([]string, len(ids))
	for i, id := range ids {
		backward[len(ids)-1-i] = id
	}
	for more, want := range map[string][]string{
		"": ids[:100], ", TRUE": backward[:100], ", FALSE, 3, 2": ids[2:5], ", FALSE, 3, 399": ids[399:402], ", FALSE, 3, 400": ids[400:403],
		", TRUE, 3, 401": backward[401:404], ", FALSE, 100, 800": ids[800:], ", FALSE, 5, 810": nil, ", FALSE, 5, 9999": nil, ", FALSE, NULL": ids,
	} {
		got, err := b.sql(t, `SELECT id FROM get_messages_optimized(NULL, '`+thread+`'`+more+`)`)
		wantText(t, fmt.Sprintf("%q", more), strings.Join(want, "\n"), got, err)
	}
}

// The rule that tells a paraphrase from an opposite is one, in Go and in SQL.
func TestSQLRelatesAsTheProgramDoes(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	raw, err := os.ReadFile("../memory/testdata/pairs.tsv")
	if err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for line := range strings.Lines(string(raw) + "любит кофе\tне любит кофе\ngosta de café\tnão gosta de café\n" +
		"喜欢喝咖啡\t不喜欢喝咖啡\n肉を食べます\t肉を食べません\nชอบกาแฟ\tไม่ชอบกาแฟ\n" +
		"sabah kahve seviyor\tsabah kahve sevmiyor\n커피를 좋아해요\t커피를 안좋아해요\nأحب القهوة\tما أحب القهوة\n") {
		before, after, ok := strings.Cut(line, "\t")
		if strings.HasPrefix(line, "#") || !ok {
			continue
		}
		pairs++
		after, _, _ = strings.Cut(strings.TrimSpace(after), "\t")
		for _, p := range [][2]string{{before, after}, {after, before}} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, err := store.String(ctx, tx, `SELECT memory_relation('`+strings.ReplaceAll(p[0], "'", "''")+`', '`+strings.ReplaceAll(p[1], "'", "''")+`')`)
				if want := memory.Relate(p[0], p[1]); got != string(want) {
					t.Errorf("%q, then %q: %s in SQL, %s in Go", p[0], p[1], got, want)
				}
				return err
			})
		}
	}
	if pairs != 208 {
		t.Errorf("%d pairs", pairs)
	}
}

// What the issue of synonyms was: other words make the bot surer, in SQL as well.
func TestSQLUpsertTakesASynonymForOne(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	v := memorytest.Vector("prefers short answers")
	for _, text := range []string{"Prefers short answers", "prefers short answers", "Prefers short answers", "prefers short answers", "Prefers brief answers"} {
		if got, err := b.upsertSQL(t, annsID, text, v, ""); err != nil {
			t.Fatal(got, err)
		}
	}
	if m := b.all(t, annsID)[0]; m.Confidence != 0.9 || m.History[len(m.History)-1].Why != "rephrased" {
		t.Errorf("a synonym: %+v", m)
	}
	for text, want := range map[string]float64{"Prefers pithy answers": 0.99, "Prefers long answers": 0.5} {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE semantic_memories SET confidence = 0.9, fact = 'Prefers brief answers', content_hash = 'x'`)
		})
		if got, err := b.upsertSQL(t, annsID, text, v, ""); err != nil {
			t.Fatal(got, err)
		}
		if m := b.all(t, annsID)[0]; m.Confidence != want {
			t.Errorf("%s: %+v", text, m)
		}
	}
}

// The operators of pgvector work on the tables' own columns, as in the seed, and
// vectors go into them.
func TestSQLTakesEmbeddingsForVectors(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	near, far := memorytest.Vector("uses tabs"), memorytest.Vector("lives in Berlin")
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `INSERT INTO semantic_memories (user_id, run_id, fact, embedding) VALUES
			('test/ann', '`+someRun+`', 'uses tabs', `+literal(near)+`::vector), ('test/ann', '`+someRun+`', 'lives in Berlin', `+literal(far)+`)`)
	})
	for _, query := range []string{literal(near), literal(near) + `::vector`, literal(near) + `::vector(384)`} {
		got, err := b.sql(t, `SELECT fact, round((1 - (embedding <=> `+query+`))::numeric, 2) FROM semantic_memories ORDER BY embedding <=> `+query+` LIMIT 1`)
		wantText(t, query[len(query)-12:], `("uses tabs",1.00)`, got, err)
	}
	got, err := b.sql(t, `SELECT count(*) FROM semantic_vectors`)
	wantText(t, "vectors", "(2)", got, err)
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `UPDATE semantic_memories SET embedding = `+literal(far)+`::vector WHERE fact = 'uses tabs'`)
	})
	q := memory.Query{Scope: memory.Scope{Person: annsID}, Embedding: memory.Embedding{Vector: far, Model: "sql"}}
	if got := recalled(b.recall(t, q)); len(got) != 2 {
		t.Errorf("recalled %q", got)
	}
}

// A database keeps the functions of the version that it has: who changes them, or the
// lexicon in them, raises pgvectorVersion, or old databases keep the old rules.
func TestAChangeOfTheFunctionsRaisesTheirVersion(t *testing.T) {
	t.Parallel()
	text, version := store.VectorsSQL()
	lexicon, err := memory.Lexicon()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%d %x", version, sha256.Sum256(append([]byte(text), lexicon...)))[:12]
	if want := "6 972d9f94bb"; got != want {
		t.Errorf("the functions are %q, want %q: raise pgvectorVersion with the change, then put this here", got, want)
	}
}

// TestTheDatabaseOfThisProgramIsNoSeed has the three tables, but more that belongs to them.
func TestTheDatabaseOfThisProgramIsNoSeed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		if rows, err := b.ReadSeed(t.Context()); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "bot export") {
			t.Errorf("read %d tables, %v", len(rows), err)
		}
	})
}
