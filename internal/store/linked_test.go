//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
)

func (b bundle) retrieveSQL(tb testing.TB, person string, v memory.Vector, more string) (string, error) {
	tb.Helper()
	return b.sql(tb, fmt.Sprintf(`SELECT content FROM retrieve_similar_categorized_memories('%s', '%s', %s%s)`, person, someRun, literal(v), more))
}

// numberFrom lets the memories of somebody new have numbers above n.
func (b bundle) numberFrom(tb testing.TB, person string, n int) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `INSERT INTO memory_people (user_id, seq) VALUES ($1, $2)`, person, n)
	})
}

// One person with two accounts is one person for the functions too: what either
// way stores for one account, the other way finds for the other.
func TestSQLFunctionsKnowLinkedAccounts(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	tea, dog, deploy := memorytest.Vector("likes green tea"), memorytest.Vector("has a dog"), memorytest.Vector("deployed")
	b.learn(t, told("likes green tea"))
	b.join(t, annsID, annsSlack)
	got, err := b.upsertSQL(t, annsSlack, "has a dog", dog, "")
	wantText(t, "new for the guest", "(INSERT_NEW,,)", got, err)
	got, err = b.upsertSQL(t, annsSlack, "Likes green tea.", tea, "")
	wantText(t, "what the host said", `(UPDATE_SIMILAR,1.00,"likes green tea")`, got, err)
	got, err = b.insertSQL(t, annsSlack, "deployed", deploy, "")
	wantText(t, "an episode", "(INSERT_NEW,,)", got, err)
	got, err = b.insertSQL(t, annsID, "deployed", deploy, "")
	wantText(t, "the same episode", "(SKIP_DUPLICATE,1.00,deployed)", got, err)

	want := []string{"1 Likes green tea.", "2 has a dog", "3 deployed"}
	for _, account := range []string{annsID, annsSlack} {
		if got := b.known(t, account); !slices.Equal(want, got) {
			t.Errorf("%s knows %v", account, got)
		}
		for text, v := range map[string]memory.Vector{`("has a dog")`: dog, "(deployed)": deploy, `("Likes green tea.")`: tea} {
			got, err := b.retrieveSQL(t, account, v, ", 0.9")
			wantText(t, account, text, got, err)
		}
		q := memory.Query{Scope: memory.Scope{Person: account}, Embedding: memorytest.Embedding("has a dog"), Threshold: 0.9}
		if got := recalled(b.recall(t, q)); !slices.Equal(got, []string{"has a dog"}) {
			t.Errorf("%s recalls %v", account, got)
		}
	}
	if out := b.learn(t, told("has a dog", of(annsID))); out.Operation != memory.UpdateSimilar || out.Memory.Number != 2 {
		t.Errorf("the program learns it again: %+v", out)
	}
	got, err = b.sql(t, `SELECT (SELECT count(*) FROM semantic_memories WHERE user_id NOT LIKE 'person/%'), (SELECT count(*) FROM episodic_memories)`)
	wantText(t, "memories beside the person's", "(0,1)", got, err)

	b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Persons().LeavePerson(ctx, annsSlack) })
	got, err = b.retrieveSQL(t, annsSlack, dog, ", 0.9")
	wantText(t, "who left", "", got, err)
	got, err = b.upsertSQL(t, annsSlack, "has a dog", dog, "")
	wantText(t, "who left learns", "(INSERT_NEW,,)", got, err)
}

// Memory that is off for one account of a person is off for all, and says so.
func TestSQLFunctionsObeyTheSwitch(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	v := memorytest.Vector("likes green tea")
	b.learn(t, told("likes green tea"))
	b.join(t, annsID, annsSlack)
	b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SetMemoryOn(ctx, annsID, false) })
	for _, account := range []string{annsID, annsSlack} {
		for name, call := range map[string]func() (string, error){
			"upsert": func() (string, error) { return b.upsertSQL(t, account, "x", v, "") },
			"insert": func() (string, error) { return b.insertSQL(t, account, "x", v, "") },
		} {
			if got, err := call(); err == nil || !strings.Contains(err.Error(), "memory is off for "+account) || !strings.Contains(err.Error(), "55000") {
				t.Errorf("%s for %s: %q, %v", name, account, got, err)
			}
		}
		got, err := b.retrieveSQL(t, account, v, "")
		wantText(t, "recalled while it is off", "", got, err)
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SetMemoryOn(ctx, annsSlack, true) })
	got, err := b.retrieveSQL(t, annsID, v, "")
	wantText(t, "on again", `("likes green tea")`, got, err)
	if got, err := b.upsertSQL(t, "person/0", "x", v, ""); err == nil || !strings.Contains(err.Error(), "22023") {
		t.Errorf("a person that is not there: %q, %v", got, err)
	}
}

// The functions that an earlier version made are replaced at the next start.
func TestVectorsOfVersion1AreBroughtUpToDate(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		for _, query := range []string{
			`DROP FUNCTION memory_person(VARCHAR)`,
			`CREATE FUNCTION memory_person(p_user_id VARCHAR) RETURNS void LANGUAGE sql AS ''`,
			`COMMENT ON TABLE semantic_vectors IS 'vectors for pgvector, made by the bot; version 1'`,
		} {
			if err := store.Exec(ctx, tx, query); err != nil {
				return err
			}
		}
		return nil
	})
	if _, err := b.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.join(t, annsID, annsSlack)
	got, err := b.upsertSQL(t, annsSlack, "has a dog", memorytest.Vector("has a dog"), "")
	wantText(t, "after the upgrade", "(INSERT_NEW,,)", got, err)
	if got := b.known(t, annsID); !slices.Equal(got, []string{"1 has a dog"}) {
		t.Errorf("the other account knows %v", got)
	}
}

// Facts come in through the functions while accounts are linked: they end with
// the person.
func TestSQLUpsertsWhileAccountsAreLinked(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	const facts = 12
	vectors := around(rand.New(rand.NewPCG(31, 32)), facts, 0, 0)
	errs := together(facts+1, func(i int) error {
		if i == facts {
			b.join(t, annsID, annsSlack)
			return nil
		}
		_, err := b.upsertSQL(t, []string{annsID, annsSlack}[i%2], fmt.Sprint("subject", i), vectors[i], "")
		return err
	})
	if a, s := b.known(t, annsID), b.known(t, annsSlack); len(errs) > 0 || len(a) != facts || !slices.Equal(a, s) {
		t.Errorf("%v; %d and %d of %d facts:\n%v\n%v", errs, len(a), len(s), facts, a, s)
	}
}

// What came in without words is indexed later, also if it has changed hands.
func TestWordsAreIndexedAfterLinking(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.learn(t, told("has a dog", of(annsSlack)))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE semantic_memories SET terms = ''`) // as the functions of SQL leave it
		})
		b.join(t, annsID, annsSlack)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Memories().IndexWords(ctx, 10)
			return err
		})
		if got := recalled(b.recall(t, memory.Query{Scope: memory.Scope{Person: annsID}, Text: "dog"})); !slices.Equal(got, []string{"has a dog"}) {
			t.Errorf("recalled %q", got)
		}
	})
}

// The vectors of two people follow them when they are linked, when one leaves and
// when they are forgotten.
func TestVectorsInMemoryFollowPeople(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		vectors := around(rand.New(rand.NewPCG(33, 34)), 80, 0, 0)
		b.numberFrom(t, annsSlack, 10_000) // so that no text is both's
		facts := b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors[:40])
		facts = append(facts, b.importVectors(t, "semantic_memories", annsSlack, "", memorytest.Model, vectors[40:])...)
		b.importVectors(t, "episodic_memories", annsSlack, "", memorytest.Model, vectors[:30])
		b.importVectors(t, "semantic_memories", bobsID, "", memorytest.Model, vectors[:30])
		finds := func(when, account string, i int, want bool) {
			t.Helper()
			q := memory.Query{Scope: memory.Scope{Person: account}, Embedding: memory.Embedding{Vector: vectors[i], Model: memorytest.Model}, Threshold: 0.99}
			got := recalled(b.recall(t, q))
			if slices.Contains(got, facts[i].text) != want || len(got) > 2 {
				t.Errorf("%s: %s recalls %q of number %d", when, account, got, i)
			}
		}
		finds("before", annsID, 39, true)
		finds("before", annsID, 40, false)
		finds("before", annsSlack, 40, true)
		b.join(t, annsID, annsSlack)
		for _, account := range []string{annsID, annsSlack} {
			for _, i := range []int{0, 20, 39, 40, 60, 79} {
				finds("linked", account, i, true)
			}
		}
		finds("linked", bobsID, 40, false)
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Persons().LeavePerson(ctx, annsSlack) })
		finds("left", annsSlack, 60, false)
		finds("left", annsID, 60, true)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Persons().ForgetPerson(ctx, annsID)
			return err
		})
		finds("forgotten", annsID, 0, false)
	})
}

// The vectors of pgvector go with their memories, whoever has them.
func TestVectorsFollowPeople(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	vectors := around(rand.New(rand.NewPCG(35, 36)), 600, 0, 0)
	b.numberFrom(t, annsSlack, 10_000)
	facts := b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors[:300])
	facts = append(facts, b.importVectors(t, "semantic_memories", annsSlack, "", memorytest.Model, vectors[300:])...)
	b.join(t, annsID, annsSlack)
	finds := func(account string, i int, want string) {
		t.Helper()
		got, err := b.retrieveSQL(t, account, vectors[i], ", 0.9")
		wantText(t, account, want, got, err)
	}
	for _, i := range []int{0, 299, 300, 599} {
		finds(annsID, i, `("`+facts[i].text+`")`)
		finds(annsSlack, i, `("`+facts[i].text+`")`)
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Persons().LeavePerson(ctx, annsID) })
	finds(annsID, 0, "")
	finds(annsSlack, 0, `("`+facts[0].text+`")`)
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Persons().ForgetPerson(ctx, annsSlack)
		return err
	})
	got, err := b.sql(t, `SELECT count(*) FROM semantic_vectors`)
	wantText(t, "vectors of nobody", "(0)", got, err)
}

// Each conversation in the browser is named, however many there are: what is not named
// nobody deletes.
func TestAllConversationsInTheBrowserAreNamed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const many = 1100 // more than a page of any list
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for i := range many {
				if err := store.Exec(ctx, tx, `INSERT INTO web_chats (id, account, last_seq, changed_ms) VALUES ($1, $2, 1, $3)`, fmt.Sprint("chat", i), annsID, i); err != nil {
					return err
				}
				if err := store.Exec(ctx, tx, `INSERT INTO web_messages (id, chat_id, seq, author, body, created_ms) VALUES ($1, $2, 1, $3, 'hello', $4)`,
					fmt.Sprint("m", i), fmt.Sprint("chat", i), annsID, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err := b.Say(t.Context(), messages.Posted{Chat: "another's", ID: "m", Author: eve, Text: "hello"}, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		var h memory.Holdings
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			h, err = tx.Persons().ForgetPerson(ctx, annsID)
			return err
		})
		if len(h.Chats) != many || h.Chats[0] != "chat1099" || h.Chats[many-1] != "chat0" {
			t.Errorf("%d of %d conversations are named", len(h.Chats), many)
		}
	})
}
