//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// notExported are tables and columns that are not in a portable export, with the
// reason. What a migration adds has to be here, or in a portable of this package:
// nothing gets lost in a move because nobody thought of it.
var notExported = map[string]string{
	"goose_db_version":                 "the schema's own version; the target has its own",
	"owner_codes":                      "one-time codes, valid for minutes",
	"named_leases":                     "who does what at this moment",
	"files":                            "bytes of what people attached; a backup has them",
	"replicas":                         "which processes live at this moment",
	"call_limits":                      "how many calls to a platform are left at this moment",
	"platform_cursors":                 "up to where this bot has read; another one reads from now on",
	"buttons":                          "what is open is ended, and a button of the past does nothing",
	"inbound_events.checkpoint_seq":    "the state of files in the repositories of this machine; a backup has both",
	"inbound_events.checkpoint_ref":    "see checkpoint_seq",
	"inbound_events.checkpoint_undone": "see checkpoint_seq",
	"plans":                            "numbered by the database, and people name them by that number; a backup has them",
	"inbound_events.preparation":       "good for minutes, and only for a turn that is about to begin",
	"plan_numbers":                     "see plans",
	"web_messages.event":               "what the engine has not taken yet; nothing waits in a copy",
	"approvals":                        "see plans; what was asked and said is in a backup",
	"allow_rules":                      "permissions of this machine: whoever moves decides anew",
	"audit_head":                       "see audit_log",
	"service_state":                    "whether this bot is halted says nothing of another one",
	"audit_log":                        "append-only and numbered; a backup has it",
	"models_config":                    "configuration, see MODEL_FAST and its like",
	"agent_runs.waiting":               "nothing waits in a copy",
	"inbound_events.sender":            "made from the event",

	"pairings":        "who waits for an owner for a day; they ask the other bot again",
	"link_codes":      "one-time codes, valid for minutes",
	"sign_in_links":   "one-time links, valid for minutes",
	"web_sessions":    "credentials for this bot, see api_keys",
	"link_tries":      "wrong codes of the last hour",
	"usage_days":      "made from the usage",
	"usage_day_parts": "made from the usage",
	"usage_spread":    "made from the usage",
	"memory_lessons":  "what is to be learned from open messages, which are settled",

	"memory_accounts.conversation_id":     "where an account is told of its links; whoever moves is told nothing of old ones",
	"semantic_vectors":                    "made from the embeddings, where PostgreSQL has pgvector",
	"episodic_vectors":                    "as semantic_vectors",
	"memory_people.embeddings_version":    "tells processes that embeddings changed",
	"semantic_memories.embedding_version": "see memory_people.embeddings_version",
	"episodic_memories.embedding_version": "see memory_people.embeddings_version",
	"semantic_memories.nearness":          "a figure for bot memory status",
	"episodic_memories.nearness":          "a figure for bot memory status",

	"api_keys":        "credentials for this bot; another one has its own",
	"agents":          "written by people, who move them with bot agent export and import",
	"agent_schedules": "standing tasks of agents; whoever moves begins them anew",

	"remote_agent_conversations.agent_id":    "the id of a profile, see agents",
	"remote_agent_sessions.agent_id":         "as remote_agent_conversations.agent_id; agent_name has its name",
	"remote_agent_conversations.lease_owner": "who works on it at this moment",
	"remote_agent_conversations.lease_until": "as lease_owner",
	"remote_agent_conversations.lease_epoch": "as lease_owner",
	"agent_messages.id":                      "given out by the database; order and references are by session, seq and part",
	"agent_tool_calls.id":                    "as agent_messages.id",
	"agent_tool_calls.message_id":            "as message_seq and message_part",
	"inbound_events.next_ms":                 "when an open one is tried again; none is",
	"deliveries.next_ms":                     "as inbound_events.next_ms",
	"usage_records.id":                       "given out by the database",
	"semantic_memories.id":                   "given out by the database; people name a memory by seq",
	"semantic_memories.content_hash":         "follows from the text",
	"semantic_memories.terms":                "follows from the text",
	"semantic_memories.words":                "follows from terms",
	"episodic_memories.id":                   "as semantic_memories",
	"episodic_memories.content_hash":         "as semantic_memories",
	"episodic_memories.terms":                "as semantic_memories",
	"episodic_memories.words":                "as semantic_memories",
}

func TestEveryTableIsExportedOrNamed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		exported := store.Portables()
		var actual map[string][]string
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			actual, err = store.Tables(ctx, tx)
			return err
		})
		if len(actual) < 15 {
			t.Fatalf("only %d tables: %v", len(actual), actual)
		}
		for table, columns := range actual {
			have, ok := exported[table]
			switch {
			case strings.HasPrefix(table, "river_"): // jobs: wake-ups that the sweep makes again
			case !ok && notExported[table] == "":
				t.Errorf("the table %s is neither exported (see portable.go) nor named in notExported with the reason", table)
			case ok && notExported[table] != "":
				t.Errorf("the table %s is exported and named in notExported", table)
			case ok:
				for _, c := range columns {
					if slices.Contains(have, c) == (notExported[table+"."+c] != "") {
						t.Errorf("the column %s.%s has to be either exported or named in notExported", table, c)
					}
				}
			}
		}
		for table, columns := range exported {
			for _, c := range columns {
				if !slices.Contains(actual[table], c) {
					t.Errorf("%s.%s is exported and is not there", table, c)
				}
			}
		}
	})
}

// What may be much is read in the order of an index: SQLite would bring it into order
// in memory, with all its texts.
func TestAnExportIsNotCollectedInMemory(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.SQLite(t)(t)}
	queries := store.PortableQueries()
	for _, kind := range []string{"message", "tool_call", "entry", "delivery", "semantic_memory", "episodic_memory", "web_message"} {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			plan, err := store.Plan(ctx, tx, queries[kind], "id")
			if strings.Contains(plan, "TEMP B-TREE") || plan == "" {
				t.Errorf("%s is sorted:\n%s", kind, plan)
			}
			return err
		})
	}
}

// TestAnImportedConversationIsSeenByWhoWroteInIt brings a conversation back as it was exported.
func TestAnImportedConversationIsSeenByWhoWroteInIt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1", func(e *sessions.Entry) { e.In.Sender.ID = "42" })
		type row struct {
			kind   string
			fields map[string]json.RawMessage
		}
		var rows []row
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Portable().ExportConversation(ctx, e.ConversationID, func(kind string, fields []store.Field) error {
				r := row{kind, make(map[string]json.RawMessage)}
				for _, f := range fields {
					value, err := json.Marshal(f.Value)
					if err != nil {
						return err
					}
					r.fields[f.Name] = value
				}
				rows = append(rows, r)
				return nil
			})
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for _, table := range []string{"inbound_events", "remote_agent_conversations"} {
				if err := store.Exec(ctx, tx, `DELETE FROM `+table); err != nil {
					return err
				}
			}
			for _, r := range rows {
				if err := tx.Portable().ImportRow(ctx, r.kind, r.fields); err != nil {
					return fmt.Errorf("%s: %w", r.kind, err)
				}
			}
			for id, want := range map[messages.UserID]bool{"42": true, "43": false} {
				sees, err := tx.Pages().Sees(ctx, store.Viewer{Platform: e.In.Conversation.Platform, ID: id}, e.ConversationID)
				if err != nil || sees != want {
					t.Errorf("%s sees it: %v, %v", id, sees, err)
				}
			}
			return nil
		})
		for _, r := range rows { // each is here now, and stays its own
			err := b.InTx(t.Context(), func(tx *store.Tx) error { return tx.Portable().ImportRow(t.Context(), r.kind, r.fields) })
			if !fault.Is(err, fault.Conflict) {
				t.Errorf("%s again: %v, want a conflict", r.kind, err)
			}
		}
	})
}

// A version that does not look at the other columns reads an exported event.
func TestAnExportedEventIsWhole(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		var got messages.Inbound
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Portable().ExportConversation(ctx, e.ConversationID, func(kind string, row []store.Field) error {
				for _, f := range row {
					if kind != "entry" || f.Name != "data" {
						continue
					}
					if err := json.Unmarshal([]byte(f.Value.(string)), &got); err != nil {
						return err
					}
				}
				return nil
			})
		})
		want := e.In
		want.Raw = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the event (-want +got):\n%s", diff)
		}
	})
}

// An event that is damaged does not keep all else from an export: what cannot be read of it is
// said, and empty.
func TestAnExportGoesOnBehindADamagedEvent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		first, second := b.accept(t, "chat", "1"), b.accept(t, "chat", "2")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE inbound_events SET data = '{"text":"hel' WHERE id = $1`, first.ID)
		})
		got := make(map[string]store.Field)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Portable().ExportConversation(ctx, first.ConversationID, func(kind string, row []store.Field) error {
				for _, f := range row {
					if kind == "entry" && f.Name == "data" {
						got[row[0].Value.(string)] = f
					}
				}
				return nil
			})
		})
		if f := got[first.ID]; !f.Damaged || f.Value != nil {
			t.Errorf("of the damaged event is exported %+v", f)
		}
		if f := got[second.ID]; f.Damaged || f.Value == nil {
			t.Errorf("of the other one is exported %+v", f)
		}
	})
}

// importShared imports a row, and returns what ImportShared does.
func (b bundle) importShared(t *testing.T, kind, row string, codebases map[string]string) (stored bool) {
	t.Helper()
	var columns map[string]json.RawMessage
	if err := json.Unmarshal([]byte(row), &columns); err != nil {
		t.Fatal(err)
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		stored, err = tx.Portable().ImportShared(ctx, kind, columns, codebases)
		return err
	})
	return stored
}

// Whoever has switched memory off here is not taught by an import, and their account is
// not made one of somebody's whose memory is on.
func TestAnImportLeavesAloneWhoSwitchedMemoryOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SetMemoryOn(ctx, annsID, false) })
		if b.importShared(t, "memory_person", `{"user_id":"`+annsID+`","enabled":true,"seq":3}`, nil) {
			t.Error("a person with memory off was replaced")
		}
		if !b.importShared(t, "memory_person", `{"user_id":"person/p","enabled":true,"seq":3}`, nil) {
			t.Error("a person who is not known was not stored")
		}
		for account, want := range map[string]bool{annsID: false, bobsID: true} {
			row := `{"user_id":"person/p","account":"` + account + `","whispered":false,"last_key":"","linked_ms":1}`
			if stored := b.importShared(t, "memory_account", row, nil); stored != want {
				t.Errorf("%s was linked: %v", account, stored)
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			on, err := tx.Memories().MemoryOn(ctx, annsID)
			if on {
				t.Error("memory is on again")
			}
			return err
		})
	})
}

// A codebase of an export is that of the same repository here, before one that only has its
// name. One of the same name and another repository is another one, and so are two that the
// export has of one repository.
func TestAnImportedCodebaseIsKnownByItsRepository(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		web, other := "https://github.com/acme/web", "https://github.com/acme/other"
		b.codebase(t, "a", other)
		same := b.codebase(t, "b", web)
		folder := b.codebase(t, "c", "")
		ids := []string{"10000000-0000-4000-8000-000000000001", "10000000-0000-4000-8000-000000000002", "10000000-0000-4000-8000-000000000003",
			"10000000-0000-4000-8000-000000000004", "10000000-0000-4000-8000-000000000005", "10000000-0000-4000-8000-000000000006"}
		want := map[string]string{ids[0]: same.ID, ids[1]: ids[1], ids[2]: ids[2], ids[3]: same.ID, ids[4]: folder.ID, ids[5]: ids[5]}
		got, names := map[string]string{}, map[string]string{ids[1]: "a-2", ids[2]: "d", ids[5]: "e"}
		for i, c := range []struct{ name, url string }{
			{"a", web}, {"a", "https://github.com/foreign/web"}, {"d", "https://github.com/foreign/web"}, {"f", web}, {"c", ""}, {"e", ""},
		} {
			stored := b.importShared(t, "codebase", `{"id":"`+ids[i]+`","name":"`+c.name+`","repository_url":"`+c.url+`","default_cwd":"/srv/web",
				"ai_assistant_type":"demo","commands":{},"created_at":"2026-11-21T12:00:00.000Z","updated_at":"2026-11-21T12:00:00.000Z"}`, got)
			if stored != (names[ids[i]] != "") {
				t.Errorf("%s of %s: stored %v", c.name, c.url, stored)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the codebases (-want +got):\n%s", diff)
		}
		for id, name := range names {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				c, err := tx.Registry().Codebase(ctx, id)
				if c.Name != name {
					t.Errorf("%s is called %s, want %s", id, c.Name, name)
				}
				return err
			})
		}
	})
}
