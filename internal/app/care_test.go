package app

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/messages"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// TestOneReplicaPrunesAtATime lets two replicas ask, of which one has the lease.
func TestOneReplicaPrunesAtATime(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Options{DataDir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Exclusive: true})
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	in := func(fn func(ctx context.Context, tx *store.Tx) error) {
		t.Helper()
		if err := s.InTx(t.Context(), func(tx *store.Tx) error { return fn(t.Context(), tx) }); err != nil {
			t.Fatal(err)
		}
	}
	const month = 30 * 24 * time.Hour
	const events = 2*pruneBatch + 1
	in(func(ctx context.Context, tx *store.Tx) error {
		for i := range events {
			key := messages.ConversationKey{Platform: "test", ID: "1"}
			e := sessions.Entry{
				In:    messages.Inbound{Event: messages.EventID(rune('a' + i)), Kind: messages.KindMessage, Conversation: key, Text: "said"},
				State: sessions.EntryDone, AcceptedAt: time.Now().Add(-month - time.Hour),
			}
			if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
				return err
			}
		}
		return nil
	})
	left := func() (n int64) {
		in(func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.Care().CountExpired(ctx, store.ExpiringBodies, time.Now().Add(-month))
			return err
		})
		return n
	}
	log := slog.New(slog.DiscardHandler)
	care := caretaker{store: s, leases: leases{s, log, "me"}, retention: config.Retention{Raw: month}, log: log}
	in(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Leases().AcquireNamed(ctx, pruneLease, "another", time.Minute)
		return err
	})
	if care.pruneAlone(t.Context()); left() != events {
		t.Errorf("%d of %d bodies are left although another replica has the lease", left(), events)
	}
	in(func(ctx context.Context, tx *store.Tx) error {
		return tx.Leases().ReleaseNamed(ctx, pruneLease, "another")
	})
	if care.pruneAlone(t.Context()); left() != 0 {
		t.Errorf("%d bodies are left", left())
	}
	in(func(ctx context.Context, tx *store.Tx) error {
		free, err := tx.Leases().AcquireNamed(ctx, pruneLease, "another", time.Minute)
		if !free {
			t.Error("the lease was not given back")
		}
		return err
	})
}

// A command that deletes does not make a database where it finds none: it would say that
// nothing is left, and what was to be deleted lies elsewhere.
func TestNothingIsDeletedWhereThereIsNoDatabase(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(ctx context.Context, cfg config.Config, env Env) error{
		"retention": func(ctx context.Context, cfg config.Config, env Env) error { return Retention(ctx, cfg, env, false) },
		"scrub":     Scrub,
		"forget": func(ctx context.Context, cfg config.Config, env Env) error {
			return ForgetPerson(ctx, cfg, env, "telegram/42")
		},
		"session": func(ctx context.Context, cfg config.Config, env Env) error {
			return RemoveSession(ctx, cfg, env, "0198c2d1-7a3b-7c4d-8e5f-0123456789ab", true)
		},
		"conversation": func(ctx context.Context, cfg config.Config, env Env) error {
			return RemoveConversation(ctx, cfg, env, "telegram/42", true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			cfg := config.Config{DataDir: dir, Database: config.Database{Driver: config.DriverSQLite, Path: filepath.Join(dir, "bot.db")}}
			err := run(t.Context(), cfg, Env{Stdout: io.Discard, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler)})
			if !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Public(err), "There is no database") {
				t.Errorf("it ended with %v", err)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("it made %s: %v", dir, err)
			}
		})
	}
}

// One of something is not several.
func TestCounted(t *testing.T) {
	t.Parallel()
	for removed, want := range map[store.Removed]string{
		{Sessions: 1, Messages: 1, ToolCalls: 1, Deliveries: 1, Inbox: 1, Plans: 1, Approvals: 1}: "1 session: 1 message, 1 tool call, 1 answer, 1 inbox text, 1 plan, 1 approval",
		{Sessions: 0, Messages: 2, ToolCalls: 3, Deliveries: 4, Inbox: 5, Plans: 6, Approvals: 7}: "0 sessions: 2 messages, 3 tool calls, 4 answers, 5 inbox texts, 6 plans, 7 approvals",
	} {
		if got := counted(removed); got != want {
			t.Errorf("%v is %q, want %q", removed, got, want)
		}
	}
}

func TestProfileFacts(t *testing.T) {
	t.Parallel()
	servers := map[string]mcpserver.Server{"jira": {}}
	if got := profileFacts(profile.Profile{Version: 1, Plugins: []string{"search"}, MCPServers: servers}); got != "v1, 1 tool, 1 MCP server" {
		t.Errorf("of a profile it says %q", got)
	}
}

func TestAged(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]int64{
		"0 bodies of events, 0 deliveries, 0 checkpoints, 0 buttons": 0,
		"1 body of an event, 1 delivery, 1 checkpoint, 1 button":     1,
		"2 bodies of events, 2 deliveries, 2 checkpoints, 2 buttons": 2,
	} {
		var p pruned
		for kind := range p.expired {
			p.expired[kind] = n
		}
		if got := p.aged(); got != want {
			t.Errorf("%d of each: %q, want %q", n, got, want)
		}
	}
}
