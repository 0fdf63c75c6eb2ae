//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/letters"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// unspacedTexts are texts in scripts without spaces, mixed with others, with their ends at
// the places at which the schema of SQLite takes a text apart.
func unspacedTexts() []string {
	texts := []string{
		"plain", "语", "我不喜欢喝咖啡，但是用Docker部署Go语言很好", "コーヒー・スーパー", "ดื่มกาแฟ 2 แก้ว", "ကော်ဖီ", "កាហ្វេ", "ກາເຟ",
		"𠀋𠀌x𠀋", "語\ufe0f語", "a語1語é", strings.Repeat("语言学", 2_000),
	}
	for _, n := range []int{98, 99, 100, 101, 199, 200, 201} {
		texts = append(texts, strings.Repeat("语", n)+"言", strings.Repeat("b", n)+"语言", strings.Repeat("b", n-1)+"语言")
	}
	for _, n := range []int{99_998, 99_999, 100_000} {
		texts = append(texts, strings.Repeat("b ", n/2+1)[:n]+"语言学")
	}
	return texts
}

// What the schema makes of a text for its index is what the program makes of it.
func TestTheSchemaSpreadsATextAsTheProgramDoes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "scripts").ID)
		pairs := func(text string) (words []string) {
			for word := range strings.FieldsSeq(text) {
				if strings.HasPrefix(word, "u") {
					words = append(words, word)
				}
			}
			slices.Sort(words)
			return slices.Compact(words)
		}
		for _, text := range unspacedTexts() {
			b.say(t, s.ID, "", textOf(messages.RoleUser, text))
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, err := store.SpreadInSQL(ctx, tx)
				if diff := cmp.Diff(pairs(store.Spread(text)), pairs(got)); diff != "" {
					t.Errorf("%d bytes, %.30q (-program +schema):\n%s", len(text), text, diff)
				}
				return err
			})
		}
	})
}

// Messages of earlier versions are found by what is inside of them, and without accents.
func TestEarlierMessagesAreFound(t *testing.T) {
	t.Parallel()
	const chinese, french, polish, english = "我喜欢喝咖啡", "un résumé", "jest Łódź", "I like coffee"
	for from, found := range map[int64]map[string]string{
		42: {"咖啡": chinese, "coffee": english}, 43: {"resume": french, "résumé": french, "coffee": english},
		44: {"lodz": polish, "coffee": english},
	} {
		t.Run(fmt.Sprint("from ", from), func(t *testing.T) {
			t.Parallel()
			eachEmpty(t, func(t *testing.T, b bundle) {
				ctx := t.Context()
				if err := store.MigrateTo(ctx, b.Store, from); err != nil {
					t.Fatal(err)
				}
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					id := func(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012d", n) }
					err := store.Exec(ctx, tx, `INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, inbox_seq) VALUES ($1, 'test', '1', 9)`, id(1))
					if err == nil {
						err = store.Exec(ctx, tx, `INSERT INTO remote_agent_sessions (id, conversation_id, ai_assistant_type, active, last_seq) VALUES ($1, $2, 'demo', false, 2)`, id(2), id(1))
					}
					for i, text := range slices.Compact(slices.Sorted(maps.Values(found))) {
						if err == nil {
							err = store.Exec(ctx, tx, `INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind, run_id) VALUES ($1, 'user', $2, 24, $3, 'text', 'r')`, id(2), text, i+1)
						}
					}
					return err
				})
				if err := store.IndexAsBefore(ctx, b.Store); err != nil {
					t.Fatal(err)
				}
				if _, err := b.Migrate(ctx); err != nil {
					t.Fatal(err)
				}
				if stale, err := store.SearchIsStale(ctx, b.Store); err != nil || stale != (b.Dialect() == "postgres") {
					t.Errorf("the index is to be made anew: %v, %v", stale, err)
				}
				if err := b.KeepSearch(ctx); err != nil {
					t.Fatal(err)
				}
				if stale, err := store.SearchIsStale(ctx, b.Store); err != nil || stale {
					t.Errorf("the index is still to be made anew: %v, %v", stale, err)
				}
				if b.Dialect() == "postgres" { // which reads so few messages rather than to ask its index
					b.do(t, func(ctx context.Context, tx *store.Tx) error {
						err := store.Exec(ctx, tx, `SET LOCAL enable_seqscan = off`)
						for words := range found {
							n, failed := store.Count(ctx, tx, `SELECT count(*) FROM agent_messages m WHERE agent_message_words(m.content) @@ to_tsquery('pg_catalog.simple', '`+
								store.MatchPostgres(words)+`') AND m.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')`)
							if err = errors.Join(err, failed); n != 1 {
								t.Errorf("%q is %d times in the index", words, n)
							}
						}
						return err
					})
				}
				for _, stage := range []string{"after the migration", "when all is indexed"} {
					for words, want := range found {
						got, _ := b.search(t, store.SearchFilter{Words: words})
						if !slices.Equal(got, []string{want}) {
							t.Errorf("%s: %q finds %q", stage, words, got)
						}
					}
					if err := store.IndexMessages(ctx, b.Store); err != nil {
						t.Fatal(err)
					}
				}
				b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Search().CheckSearchIndex(ctx) })
			})
		})
	}
}

// A database whose encoding knows bytes only has no letters to take apart, and keeps the
// blanks between words.
func TestADatabaseOfBytesIsSearched(t *testing.T) {
	t.Parallel()
	b := bundle{openURL(t, storetest.PostgresURLIn(t, "SQL_ASCII"))}
	if _, err := b.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := b.session(t, b.conversation(t, "bytes").ID)
	b.say(t, s.ID, "", textOf(messages.RoleUser, "coffee（咖啡）with milk"), textOf(messages.RoleUser, "un résumé du café đẹp"))
	for words, want := range map[string]int{"milk": 1, "with": 1, "coff*": 1, "tea": 0, "café": 1, "résumé": 1, "résum*": 1, "du re\u0301sume\u0301": 1} {
		if got, _ := b.search(t, store.SearchFilter{Words: words}); len(got) != want {
			t.Errorf("%q is found %d times", words, len(got))
		}
	}
}

// What the schema spells in ASCII is what the program does.
func TestTheSchemaSpellsLettersAsTheProgramDoes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "spelling").ID)
		var all []string
		for r := rune(0x80); r < 0x2000; r++ {
			if word := "x" + string(r); letters.Spell(word) != word {
				all = append(all, word)
			}
		}
		b.say(t, s.ID, "", textOf(messages.RoleUser, strings.Join(all, " ")))
		want := make(map[string]bool)
		for _, word := range all {
			want[letters.Spell(word)] = true
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := store.SpreadInSQL(ctx, tx)
			have := make(map[string]bool)
			for word := range strings.FieldsSeq(got) {
				have[word] = true
			}
			if diff := cmp.Diff(want, have); diff != "" || len(all) < 20 {
				t.Errorf("%d letters (-program +schema):\n%s", len(all), diff)
			}
			return err
		})
	})
}
