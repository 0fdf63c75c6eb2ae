package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/messages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// Reading messages finds what the index of SQLite finds, in any script.
func TestBeginningsAreThoseOfTheIndex(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.SQLite(t)(t)}
	r := rand.New(rand.NewPCG(41, 42))
	letters := []rune("aabbcAB1żäÄßéÉeñпривПжщ語文한ıİΣσς½kK\u212asſµμe\u0301")
	between := []string{" ", "-", "_", "/", "…", "’", "🎉", "\n", "“", "。", "€", "\u00a0"}
	word := func(most int) string {
		var w []rune
		for range 1 + r.IntN(most) {
			w = append(w, letters[r.IntN(len(letters)-1)])
		}
		return string(w)
	}
	session := b.session(t, b.conversation(t, "scripts").ID).ID
	for range 400 {
		var text strings.Builder
		for range 1 + r.IntN(12) {
			text.WriteString(word(4) + between[r.IntN(len(between))])
		}
		b.say(t, session, "", textOf(messages.RoleUser, text.String()))
	}
	found := 0
	for range 500 {
		terms := []string{word(2) + "*"}
		if r.IntN(2) == 0 {
			terms = append(terms, word(1))
		}
		words := strings.Join(terms, " ")
		_, hits := b.search(t, store.SearchFilter{Words: words, Limit: 1000})
		var got [][]string
		for _, h := range hits {
			got = append(got, []string{h.Content})
		}
		var want [][]string
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			var err error
			want, err = store.Rows(ctx, tx, `SELECT m.content FROM agent_messages_fts f JOIN agent_messages m ON m.id = f.rowid
				WHERE agent_messages_fts MATCH '`+store.MatchSQLite(words)+`' ORDER BY f.rowid DESC`, 1)
			return err
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-index +read):\n%s", words, diff)
		}
		found += len(want)
	}
	if found < 1000 {
		t.Errorf("only %d found in all", found)
	}
}

// What is rare is found behind the messages that are read, on pages too.
func TestABeginningIsFoundHoweverFarBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		session := b.session(t, b.conversation(t, "long").ID).ID
		var batch []messages.Message
		var want []string
		for i := range 2600 {
			text := fmt.Sprintf("message %d of many", i)
			if i%200 == 50 {
				text += fmt.Sprint(" with rarity", i)
				want = append([]string{text}, want...)
			}
			batch = append(batch, textOf(messages.RoleUser, text))
		}
		b.say(t, session, "", batch...)
		for _, words := range []string{"rar*", "many rar*", "rar* mess*"} {
			for _, limit := range []int{2, 5, 13, 20} {
				var got []string
				for before := int64(0); ; {
					page, hits := b.search(t, store.SearchFilter{Words: words, Limit: limit, Before: before})
					if got = append(got, page...); len(page) < limit {
						break
					}
					before = hits[len(hits)-1].ID
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%q by %d (-want +got):\n%s", words, limit, diff)
				}
			}
		}
	})
}
