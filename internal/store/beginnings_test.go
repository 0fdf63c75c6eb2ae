package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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
	letters := []rune("aabbcAB1żäÄßéÉeñếẛŁпривПжщ語文한ıİΣσς½kK\u212asſµμ語語文いー𠀋กฟe\u0301\u0308\u0300\u0315\u0330\u0331\u0323\ufe0f\u20e3किตัبِ\ue000")
	between := []string{" ", "-", "_", "/", "…", "’", "🎉", "\n", "“", "。", "€", "\u00a0"}
	word := func(most int) string {
		var w []rune
		for range 1 + r.IntN(most) {
			w = append(w, letters[r.IntN(len(letters))])
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
	ask := func(words string) (got [][]string) {
		_, hits := b.search(t, store.SearchFilter{Words: words, Limit: 1000})
		for _, h := range hits {
			got = append(got, []string{h.Content})
		}
		return got
	}
	read := make(map[string][][]string) // before anything was indexed
	for range 600 {
		terms := []string{word(2) + []string{"*", ""}[r.IntN(2)]}
		if r.IntN(2) == 0 {
			terms = append(terms, word(1))
		}
		if words := strings.Join(terms, " "); store.MatchSQLite(words) != "" {
			read[words] = ask(words)
		}
	}
	if err := store.IndexMessages(t.Context(), b.Store); err != nil {
		t.Fatal(err)
	}
	found := 0
	for words, before := range read {
		var want [][]string
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			var err error
			want, err = store.Rows(ctx, tx, `SELECT m.content FROM agent_messages_fts f JOIN agent_messages m ON m.id = f.rowid
				WHERE agent_messages_fts MATCH '`+store.MatchSQLite(words)+`' ORDER BY f.rowid DESC`, 1)
			return err
		})
		if diff := cmp.Diff(want, before); diff != "" {
			t.Fatalf("%q (-index +read without it):\n%s", words, diff)
		}
		if diff := cmp.Diff(want, ask(words)); diff != "" {
			t.Fatalf("%q (-index +read):\n%s", words, diff)
		}
		found += len(want)
	}
	if found < 1000 {
		t.Errorf("only %d found in all", found)
	}
}

// What is rare is found behind the messages that are read, on pages too, and in one
// conversation among others that say the same.
func TestWhatIsRareIsFoundHoweverFarBack(t *testing.T) {
	t.Parallel()
	//nolint:thelper // each runs tests, not helpers
	each(t, func(t *testing.T, b bundle) {
		here, there, empty := b.conversation(t, "here"), b.conversation(t, "there"), b.conversation(t, "empty")
		wanted, session := make(map[string][]string), make(map[string]string)
		tell := func(id string, n int) {
			if session[id] == "" {
				session[id] = b.session(t, id).ID
			}
			batch := make([]messages.Message, 0, n)
			for i := range n {
				text := fmt.Sprintf("message %d of many", i)
				if i%200 == 50 {
					text += " with rarity"
					wanted[id], wanted[""] = append(wanted[id], text), append(wanted[""], text)
				}
				batch = append(batch, textOf(messages.RoleUser, text))
			}
			b.say(t, session[id], "", batch...)
		}
		tell(here.ID, 1400)
		tell(there.ID, 900)
		tell(here.ID, 1300)
		for _, in := range []store.SearchFilter{
			{}, {ConversationID: here.ID}, {Within: []string{there.ID}},
			{ConversationID: here.ID, Within: []string{there.ID}}, {ConversationID: here.ID, Within: []string{}}, {Within: []string{here.ID, there.ID}}, {Within: []string{empty.ID}}, {Within: []string{}},
		} {
			var want []string
			switch {
			case in.ConversationID != "" && in.Within != nil:
			case in.ConversationID != "":
				want = slices.Clone(wanted[in.ConversationID])
			case len(in.Within) == 1:
				want = slices.Clone(wanted[in.Within[0]])
			case in.Within == nil || len(in.Within) == 2:
				want = slices.Clone(wanted[""])
			}
			slices.Reverse(want)
			for _, in.Words = range []string{"rar*", "many rar*", "RARITY", "of rarity", "rar* mess*"} {
				for _, in.Limit = range []int{2, 13, 25} {
					if diff := cmp.Diff(want, b.searchPages(t, in)); diff != "" {
						t.Errorf("%+v (-want +got):\n%s", in, diff)
					}
				}
			}
			if in.Words, in.Limit = "common*", 5; len(b.searchPages(t, in)) > 0 {
				t.Errorf("%+v finds what is not there", in)
			}
		}
	})
}

// searchPages returns all that a search finds, page by page.
func (b bundle) searchPages(t *testing.T, f store.SearchFilter) (all []string) {
	t.Helper()
	for {
		page, hits := b.search(t, f)
		if all = append(all, page...); len(page) < f.Limit {
			return all
		}
		f.Before = hits[len(hits)-1].ID
	}
}
