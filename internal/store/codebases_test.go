//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestCodebaseWithConversationsCannotBeDeleted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		var code sessions.Codebase
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			if code, err = tx.Registry().Create(ctx, sessions.Codebase{Name: "app", DefaultCwd: "/w"}); err != nil {
				return err
			}
			if code.Assistant != "claude" || code.CreatedAt.IsZero() {
				t.Errorf("defaults of a codebase: %+v", code)
			}
			if _, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, CodebaseID: code.ID, Assistant: "demo"}); err != nil {
				return err
			}
			return tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{CodebaseID: &code.ID})
		})
		remove := func(ctx context.Context, tx *store.Tx) error { return tx.Registry().Delete(ctx, code.ID) }
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.Registry().CodebaseUse(ctx, code.ID)
			if n != 1 {
				t.Errorf("%d conversations use it, want 1", n)
			}
			return err
		})
		wantKind(t, b.try(t, remove), fault.Conflict)
		raw := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `DELETE FROM remote_agent_codebases WHERE id = $1`, code.ID)
		})
		if raw == nil {
			t.Error("the database itself let the codebase go")
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{CodebaseID: new("")})
		})
		b.do(t, remove)
		wantKind(t, b.try(t, remove), fault.NotFound)
	})
}

func TestCommandRegistry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		var code sessions.Codebase
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			code, err = tx.Registry().Create(ctx, sessions.Codebase{Name: "app", DefaultCwd: "/w", RepositoryURL: "https://x/y"})
			return err
		})
		names := []string{"prime", "plan-feature", "execute", "review", "commit"}
		errs := together(len(names), func(i int) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Registry().RegisterCommand(ctx, code.ID, names[i], sessions.CommandDef{Path: names[i] + ".md", Description: "does"})
			})
		})
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Registry().CodebaseCommands(ctx, code.ID)
			if err != nil {
				return err
			}
			if len(got) != len(names) || got["prime"].Path != "prime.md" {
				t.Errorf("registry %v, want the five commands", got)
			}
			if err := tx.Registry().UpdateCodebaseCommands(ctx, code.ID, nil); err != nil {
				return err
			}
			if got, err = tx.Registry().CodebaseCommands(ctx, code.ID); len(got) != 0 {
				t.Errorf("registry after clearing: %v", got)
			}
			return err
		})
	})
}

// The program of seed 002 writes names with "-".
func TestCommandsAreFoundHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		code := b.codebase(t, "app", "")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := store.Exec(ctx, tx, `UPDATE remote_agent_codebases SET commands =
				'{"Plan-Feature": {"path": "theirs.md"}, "plan-feature": {"path": "also.md"}, "plan_feature": {"path": "ours.md"}, "new-command": {"path": "new.md"}, "ä": {"path": "odd.md"}}'`); err != nil {
				return err
			}
			if err := tx.Registry().RegisterCommand(ctx, code.ID, "new-command", sessions.CommandDef{Path: "newer.md"}); err != nil {
				return err
			}
			got, err := tx.Registry().CodebaseCommands(ctx, code.ID)
			want := map[string]sessions.CommandDef{"plan_feature": {Path: "ours.md"}, "new_command": {Path: "newer.md"}, "ä": {Path: "odd.md"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			return err
		})
	})
}

func TestCommandsKeepStrangeText(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		code := b.codebase(t, "app", "")
		// A backslash before "u0000" in the text is no NUL.
		given := map[string]sessions.CommandDef{"a": {Path: "a.md", Description: "nul \x00, text \\u0000, \xff, é \u2028"}}
		want := map[string]sessions.CommandDef{"a": {Path: "a.md", Description: "nul \ufffd, text \\u0000, \ufffd, é \u2028"}}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Registry().UpdateCodebaseCommands(ctx, code.ID, given); err != nil {
				return err
			}
			got, err := tx.Registry().CodebaseCommands(ctx, code.ID)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			return err
		})
	})
}

func (b bundle) codebase(tb testing.TB, name, url string) sessions.Codebase {
	tb.Helper()
	var c sessions.Codebase
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		c, err = tx.Registry().Create(ctx, sessions.Codebase{Name: name, DefaultCwd: "/w/" + name, RepositoryURL: url})
		return err
	})
	return c
}

func TestCodebasesByNameAndByRepository(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		if list := b.codebases(t); len(list) != 0 {
			t.Errorf("before the first: %v", list)
		}
		// Each database alone would sort these in its own way.
		for _, name := range []string{"b/x", "B/x", "a_x", "a-x", "é"} {
			b.codebase(t, name, "")
		}
		want := b.codebase(t, "own/repo", "https://example.com/own/repo")
		if diff := cmp.Diff([]string{"B/x", "a-x", "a_x", "b/x", "own/repo", "é"}, b.codebases(t)); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		for url, wantOK := range map[string]bool{
			"https://example.com/own/repo": true, "https://example.com/own/repo2": false, "": false,
		} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, ok, err := tx.Registry().FindCodebase(ctx, url)
				if ok != wantOK || ok && !cmp.Equal(got, want) {
					t.Errorf("%q: found %v, %+v", url, ok, got)
				}
				return err
			})
		}
	})
}

func (b bundle) codebases(tb testing.TB) (names []string) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.Registry().List(ctx)
		names = nil
		for _, c := range list {
			names = append(names, c.Name)
		}
		return err
	})
	return names
}

func TestCodebaseIsRegisteredOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		var created atomic.Int64
		errs := together(20, func(i int) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				c := sessions.Codebase{Name: "app", DefaultCwd: "/w", RepositoryURL: fmt.Sprint("https://x/", i)}
				if i%2 == 0 {
					c.Name, c.RepositoryURL = fmt.Sprint("name-", i), "https://x/same"
				}
				_, err := tx.Registry().Create(ctx, c)
				if fault.Is(err, fault.Conflict) {
					_, err = tx.Registry().List(ctx) // the transaction goes on
					return err
				}
				if err == nil {
					created.Add(1)
				}
				return err
			})
		})
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		if got := b.codebases(t); len(got) != 2 || created.Load() != 2 {
			t.Errorf("%d created, stored %v; want one by name and one by repository", created.Load(), got)
		}
	})
}

func TestCodebasesAtWork(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		code, rests := b.codebase(t, "app", ""), b.codebase(t, "rests", "")
		at := func(want ...string) {
			t.Helper()
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, err := tx.Registry().CodebasesAtWork(ctx)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("at work (-want +got):\n%s", diff)
				}
				return err
			})
		}
		work := func(chat string, codebase *string, ttl time.Duration) {
			id := b.conversation(t, chat).ID
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.Conversations().UpdateConversation(ctx, id, sessions.ConversationUpdate{CodebaseID: codebase}); err != nil {
					return err
				}
				_, _, _, err := tx.Leases().ClaimLease(ctx, id, "me", ttl)
				return err
			})
		}
		work("frozen", &rests.ID, -time.Minute)
		work("talk", nil, time.Minute)
		at()
		work("one", &code.ID, time.Minute)
		work("two", &code.ID, time.Minute)
		at(code.ID)
	})
}

func TestIdleConversations(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		code := b.codebase(t, "app", "")
		old, cut := time.Now().Add(-30*24*time.Hour), time.Now().Add(-14*24*time.Hour)
		ids := map[string]string{}
		// chat makes a conversation that was quiet for long, apart from what change does.
		chat := func(name string, change func(ctx context.Context, tx *store.Tx, e sessions.Entry) error) {
			e := b.accept(t, name, name, func(e *sessions.Entry) { e.AcceptedAt, e.State = old, sessions.EntryDone })
			ids[e.ConversationID] = name
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.Conversations().UpdateConversation(ctx, e.ConversationID, sessions.ConversationUpdate{CodebaseID: &code.ID}); err != nil {
					return err
				}
				d := delivery(e, "said")
				d.State, d.CreatedAt = messages.DeliverySent, old
				if err := tx.Deliveries().AddDelivery(ctx, d); err != nil {
					return err
				}
				if change == nil {
					return nil
				}
				return change(ctx, tx, e)
			})
		}
		enter := func(ctx context.Context, tx *store.Tx, e sessions.Entry, next sessions.Entry) error {
			next.ConversationID, next.In = e.ConversationID, inbound(e.In.Conversation.ID, "next to "+e.ID)
			_, err := tx.Inbox().InsertEntry(ctx, &next)
			return err
		}
		add := func(ctx context.Context, tx *store.Tx, e sessions.Entry, state messages.DeliveryState, at time.Time) error {
			d := delivery(e, "more")
			d.State, d.CreatedAt = state, at
			return tx.Deliveries().AddDelivery(ctx, d)
		}
		chat("first", nil)
		chat("second", nil)
		chat("spoken to", func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			return enter(ctx, tx, e, sessions.Entry{State: sessions.EntryDone})
		})
		chat("waiting", func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			return enter(ctx, tx, e, sessions.Entry{AcceptedAt: old})
		})
		chat("command", func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			return enter(ctx, tx, e, sessions.Entry{AcceptedAt: old, Lane: sessions.LaneControl})
		})
		chat("open delivery", func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			return add(ctx, tx, e, messages.DeliveryPlaced, old)
		})
		chat("spoke", func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			return add(ctx, tx, e, messages.DeliverySent, time.Now())
		})
		chat("leased", func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			_, _, _, err := tx.Leases().ClaimLease(ctx, e.ConversationID, "w", time.Hour)
			return err
		})
		chat("without a codebase", func(ctx context.Context, tx *store.Tx, e sessions.Entry) error {
			return tx.Conversations().UpdateConversation(ctx, e.ConversationID, sessions.ConversationUpdate{CodebaseID: new("")})
		})
		chat("changed", nil)
		idle := func(before time.Time, limit int) (names []string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, err := tx.Registry().IdleConversations(ctx, before, limit)
				names = nil
				for _, id := range got {
					names = append(names, ids[id])
				}
				return err
			})
			return names
		}
		if got := idle(cut, 10); len(got) != 0 {
			t.Errorf("rows that were changed today: %v", got)
		}
		for id, name := range ids {
			at := "2026-01-02T03:04:05.000Z"
			if name == "second" {
				at = "2026-01-03T03:04:05.000Z"
			}
			if name == "changed" {
				continue
			}
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return store.Exec(ctx, tx, `UPDATE remote_agent_conversations SET updated_at = $2 WHERE id = $1`, id, at)
			})
		}
		if diff := cmp.Diff([]string{"first", "second"}, idle(cut, 10), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("idle (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"first"}, idle(cut, 1)); diff != "" {
			t.Errorf("with limit 1 (-want +got):\n%s", diff)
		}
		first := slices.Collect(func(yield func(string) bool) {
			for id, name := range ids {
				if name == "first" && !yield(id) {
					return
				}
			}
		})[0]
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Conversations().UpdateConversation(ctx, first, sessions.ConversationUpdate{})
		})
		if diff := cmp.Diff([]string{"second"}, idle(cut, 10)); diff != "" {
			t.Errorf("after the first was dealt with (-want +got):\n%s", diff)
		}
	})
}

// fillCodebases stores 200 codebases, the first with 2,000 commands.
func (b bundle) fillCodebases(tb testing.TB) (first string) {
	tb.Helper()
	commands := map[string]sessions.CommandDef{}
	for i := range 2000 {
		commands[fmt.Sprint("command-", i)] = sessions.CommandDef{
			Path: fmt.Sprintf(".claude/commands/some/folder/command-%d.md", i), Description: "Does what its file says, at some length.",
		}
	}
	ctx := context.WithoutCancel(tb.Context())
	if err := b.InTx(ctx, func(tx *store.Tx) error {
		first = ""
		for i := range 200 {
			c, err := tx.Registry().Create(ctx, sessions.Codebase{
				Name: fmt.Sprint("owner/repo-", i), DefaultCwd: "/w", RepositoryURL: fmt.Sprint("https://example.com/owner/repo-", i),
			})
			if err != nil {
				return err
			}
			if first == "" {
				first = c.ID
			}
		}
		return tx.Registry().UpdateCodebaseCommands(ctx, first, commands)
	}); err != nil {
		tb.Fatal(err)
	}
	return first
}

func (b bundle) listCodebases(ctx context.Context, id string) error {
	return b.InRead(ctx, func(tx *store.Tx) error {
		list, err := tx.Registry().List(ctx)
		if err != nil {
			return err
		}
		commands, err := tx.Registry().CodebaseCommands(ctx, id)
		if err == nil && (len(list) != 200 || len(commands) != 2000) {
			err = fmt.Errorf("%d codebases and %d commands", len(list), len(commands))
		}
		return err
	})
}

// BenchmarkListCodebases lists 200 codebases and 2,000 commands.
func BenchmarkListCodebases(b *testing.B) {
	for name, open := range map[string]func(testing.TB) func(testing.TB) *store.Store{
		"SQLite": storetest.SQLite, "Postgres": storetest.Postgres,
	} {
		b.Run(name, func(b *testing.B) {
			w := bundle{open(b)(b)}
			first := w.fillCodebases(b)
			for b.Loop() {
				if err := w.listCodebases(b.Context(), first); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestUpgradeMakesNamesUnique brings rows that a person made by hand into a
// schema that refuses them.
func TestUpgradeMakesNamesUnique(t *testing.T) {
	t.Parallel()
	upgrade := func(t *testing.T, options store.Options) {
		options.Log, options.Exclusive = storetest.Log(t), true
		s, err := store.Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := store.MigrateTo(t.Context(), s, 5); err != nil {
			t.Fatal(err)
		}
		b := bundle{s}
		id := func(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-00000000000%d", n) }
		rows := []struct{ name, url, want, wantURL string }{
			{"app", "https://x/app", "app", "https://x/app"},
			{"app", "https://x/app", "app-" + id(1), ""},
			{"lib", "https://x/app", "lib", ""},
			{strings.Repeat("é", 255), "", strings.Repeat("é", 255), ""},
			{strings.Repeat("é", 255), "", strings.Repeat("é", 218) + "-" + id(4), ""},
		}
		for i, r := range rows {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return store.Exec(ctx, tx, `
					INSERT INTO remote_agent_codebases (id, name, repository_url, default_cwd) VALUES ($1, $2, $3, '/w')`,
					id(i), r.name, r.url)
			})
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE remote_agent_codebases SET repository_url = NULL WHERE repository_url = ''`)
		})
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, r := range rows {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				got, err := tx.Registry().Codebase(ctx, id(i))
				if got.Name != r.want || got.RepositoryURL != r.wantURL {
					t.Errorf("row %d is %q of %q, want %q of %q", i, got.Name, got.RepositoryURL, r.want, r.wantURL)
				}
				return err
			})
		}
	}
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		upgrade(t, store.Options{DataDir: t.TempDir()})
	})
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		upgrade(t, store.Options{URL: storetest.PostgresURL(t)})
	})
}

func TestMovingACodebaseKeepsTheFoldersOfItsConversations(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			c, err := tx.Registry().Create(ctx, sessions.Codebase{Name: "büro", DefaultCwd: "/w/büro"})
			if err != nil {
				return err
			}
			folders := map[string]string{"/w/büro": "", "/w/büro/src": "src", "/w/büro2/src": "/w/büro2/src", "src": "src", "": ""}
			for cwd := range folders {
				conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, messages.ConversationKey{Platform: "test", ID: "at " + cwd}, "")
				if err == nil {
					err = tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{CodebaseID: &c.ID, Cwd: &cwd})
				}
				if err != nil {
					return err
				}
			}
			if err := tx.Registry().Move(ctx, c.ID, "/elsewhere"); err != nil {
				return err
			}
			if c, err = tx.Registry().Codebase(ctx, c.ID); err != nil || c.DefaultCwd != "/elsewhere" {
				t.Errorf("it is in %s, %v", c.DefaultCwd, err)
			}
			for cwd, want := range folders {
				conv, err := tx.Conversations().FindConversation(ctx, messages.ConversationKey{Platform: "test", ID: "at " + cwd})
				if err != nil || conv.Cwd != want {
					t.Errorf("from %q it works in %q, %v; want %q", cwd, conv.Cwd, err, want)
				}
			}
			wantKind(t, tx.Registry().Move(ctx, "00000000-0000-4000-8000-000000000000", "/x"), fault.NotFound)
			return nil
		})
	})
}
