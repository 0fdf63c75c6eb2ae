//nolint:thelper // each runs tests, not helpers
package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// findAll follows pages until there are no more, and returns the ids on them.
func findAll(t *testing.T, b bundle, f store.SessionFilter, words string) (ids []string) {
	t.Helper()
	for {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			list, before, err := tx.Lists().Find(ctx, f, words)
			for _, row := range list {
				ids = append(ids, row.ID)
			}
			if len(list) > f.Limit {
				t.Errorf("%d sessions on a page of %d", len(list), f.Limit)
			}
			f.Before = before
			return err
		})
		if f.Before == "" {
			return ids
		}
	}
}

// listAll returns the ids of all sessions that f chooses.
func listAll(t *testing.T, b bundle, f store.SessionFilter) (ids []string) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		for f.Limit = 1000; ; {
			list, err := tx.Lists().Sessions(ctx, f)
			for _, row := range list {
				ids, f.Before = append(ids, row.ID), row.ID
			}
			if err != nil || len(list) < f.Limit {
				return err
			}
		}
	})
	return ids
}

// saidIn returns the sessions in which one message has all words, found by reading
// everything. A word that ends with * is a beginning.
func saidIn(said [][2]string, words string) map[string]bool {
	in := make(map[string]bool)
	for _, m := range said {
		parts := strings.FieldsFunc(strings.ToLower(m[1]), func(r rune) bool { return strings.ContainsRune(" ,.?*", r) })
		all := true
		for word := range strings.FieldsSeq(words) {
			begin, begins := strings.CutSuffix(word, "*")
			all = all && slices.ContainsFunc(parts, func(w string) bool { return w == word || begins && strings.HasPrefix(w, begin) })
		}
		if all {
			in[m[0]] = true
		}
	}
	return in
}

// Whatever is looked for, and whoever does, all of it is found, page by page.
func TestSessionsAreFoundByWords(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"SQLite", "Postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := bundle{storetest.Used(t, kind, 600)}
			late := b.session(t, b.conversation(t, "late").ID)
			b.say(t, late.ID, "", textOf(messages.RoleUser, "test number xylophone"), textOf(messages.RoleAssistant, "a zeppelin taken back"))
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				for _, change := range []string{
					`UPDATE agent_messages SET undone = true WHERE content LIKE '%zeppelin%' OR content LIKE '%number 4001 %'`,
					`UPDATE inbound_events SET state = 'refused' WHERE sender = '43' AND conversation_id = '` + storetest.UsedID(1, 2) + `'`,
				} {
					if err := store.Exec(ctx, tx, change); err != nil {
						return err
					}
				}
				return nil
			})
			var said [][2]string
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				rows, err := store.Rows(ctx, tx, `SELECT CAST(session_id AS TEXT), content FROM agent_messages WHERE NOT undone AND kind IN ('user', 'assistant')`, 2)
				for _, row := range rows {
					said = append(said, [2]string(row))
				}
				return err
			})
			in := make(map[string]map[string]bool) // of the words that are looked for
			for _, words := range []string{"test", "tenth", "tenth late", "4001", "number 4001", "module77", "nothing", "xylophone", "zeppelin", "modul*", "module7* tenth", "xyl*", "long", "other nothing"} {
				in[words] = saidIn(said, words)
			}
			few, many, nobody := store.Viewer{Platform: "github", ID: "9"}, store.Viewer{Platform: "telegram", ID: "43"}, store.Viewer{Platform: "slack", ID: "nobody"}
			for name, f := range map[string]store.SessionFilter{
				"all": {}, "few": {Viewer: few}, "many": {Viewer: many}, "nobody": {Viewer: nobody}, "person": {Person: many}, "both": {Viewer: few, Person: few},
				"failed": {Status: sessions.Failed}, "platform": {Platform: "slack"}, "seen of an assistant": {Viewer: many, Assistant: "openai"},
				"some": {Within: []string{storetest.UsedID(1, 3), storetest.UsedID(1, 4)}}, "none": {Within: []string{}}, "one": {ConversationID: storetest.UsedID(1, 2)},
				"repository": {CodebaseID: storetest.UsedID(4, 7)}, "behind": {Before: storetest.UsedID(2, 400)},
			} {
				listed := listAll(t, b, f)
				f.Limit = 50
				for words, in := range in {
					want := slices.DeleteFunc(slices.Clone(listed), func(id string) bool { return !in[id] })
					if diff := cmp.Diff(want, findAll(t, b, f, words), cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("%s, %q (-want +got):\n%s", name, words, diff)
					}
				}
			}
			for _, empty := range []string{"", " . "} {
				err := b.InRead(t.Context(), func(tx *store.Tx) error {
					_, _, err := tx.Lists().Find(t.Context(), store.SessionFilter{}, empty)
					return err
				})
				wantKind(t, err, fault.Invalid)
			}
		})
	}
}

// Who has written in a conversation is who sees it: there or from elsewhere, and not by
// what was refused or is of somebody of the same name on another platform.
func TestWhoHasWrittenSees(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		senders := []string{"42", "test 42", "web 42", "43"}
		states := []string{"done", "refused", "raw", "waiting", "failed"}
		var convs []sessions.Conversation
		for i, sender := range append(senders, "") {
			for j, state := range append(states, "") {
				conv := b.conversation(t, fmt.Sprint("c", i, "-", j))
				b.session(t, conv.ID)
				convs = append(convs, conv)
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					insert := func(seq int, sender, state string) error {
						return store.Exec(ctx, tx, `INSERT INTO inbound_events (id, platform_type, event_id, conversation_id, seq, state, accepted_ms, sender) VALUES ($1, $2, $3, $4, $5, $6, 1, $7)`,
							fmt.Sprintf("01900000-0000-7000-80%02d-0000000000%02d", seq, i*10+j), string(conv.Key.Platform), fmt.Sprint(i, "-", j, "-", seq), conv.ID, seq, state, sender)
					}
					if err := insert(1, "44", "done"); err != nil || state == "" || sender == "" {
						return err
					}
					return insert(2, sender, state)
				})
			}
		}
		for _, v := range []store.Viewer{{Platform: "test", ID: "42"}, {Platform: "web", ID: "42"}, {Platform: "test", ID: "43"}, {Platform: "web", ID: "43"}, {Platform: "test", ID: "44"}} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.Lists().Sessions(ctx, store.SessionFilter{Viewer: v, Limit: 1000})
				for i, conv := range convs {
					sender, state := append(senders, "")[i/6], append(states, "")[i%6]
					wrote := sender == string(v.Platform)+" "+string(v.ID) || v.Platform == "test" && sender == string(v.ID)
					want := wrote && !slices.Contains([]string{"refused", "raw", ""}, state) || v.Platform == "test" && v.ID == "44"
					sees, err := tx.Pages().Sees(ctx, v, conv.ID)
					any, err2 := tx.Pages().SeesAny(ctx, v, []string{conv.ID})
					listed := slices.ContainsFunc(list, func(s store.SessionRow) bool { return s.ConversationID == conv.ID })
					if err != nil || err2 != nil || sees != want || any != want || listed != want {
						t.Errorf("%v where %q has %q: sees %v, %v, listed %v, want %v (%v, %v)", v, sender, state, sees, any, listed, want, err, err2)
					}
				}
				return err
			})
		}
	})
}
