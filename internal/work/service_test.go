package work_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/work"
)

// bench is a Service over a real git server, a workspace and a database.
type bench struct {
	*work.Service
	t     *testing.T
	db    *store.Store
	git   *gittest.Server
	space *codebase.Workspace
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, db: storetest.SQLite(t)(t), git: gittest.NewServer(t)}
	var err error
	b.space, err = codebase.New(t.Context(), codebase.Config{Root: filepath.Join(b.folder(nil), "ws"), AllowedHosts: []string{b.git.Host()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.space.Close(); err != nil {
			t.Error(err)
		}
	})
	b.Service = work.New(work.Config{Store: b.db, Workspace: b.space, Log: storetest.Log(t)})
	return b
}

// folder makes a folder outside of the workspace, with these files.
func (b *bench) folder(files map[string]string) string {
	b.t.Helper()
	dir, err := filepath.EvalSymlinks(b.t.TempDir())
	if err != nil {
		b.t.Fatal(err)
	}
	b.write(dir, files)
	return dir
}

func (b *bench) write(dir string, files map[string]string) {
	b.t.Helper()
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) tx(do func(tx *store.Tx) error) {
	b.t.Helper()
	if err := b.db.InTx(b.t.Context(), do); err != nil {
		b.t.Fatal(err)
	}
}

// conversation returns the conversation of a name, on this codebase if it has an id.
func (b *bench) conversation(name, codebaseID string, settings ...sessions.Settings) (conv sessions.Conversation) {
	b.t.Helper()
	ctx := b.t.Context()
	b.tx(func(tx *store.Tx) (err error) {
		if conv, _, err = tx.Conversations().GetOrCreateConversation(ctx, messages.ConversationKey{Platform: "hub", ID: name}, "demo"); err != nil {
			return err
		}
		u := sessions.ConversationUpdate{CodebaseID: &codebaseID}
		if len(settings) > 0 {
			u.Settings = &settings[0]
		}
		if err := tx.Conversations().UpdateConversation(ctx, conv.ID, u); err != nil {
			return err
		}
		conv, err = tx.Conversations().Conversation(ctx, conv.ID)
		return err
	})
	return conv
}

// codebase stores a codebase as an import would.
func (b *bench) codebase(c sessions.Codebase) sessions.Codebase {
	b.t.Helper()
	b.tx(func(tx *store.Tx) (err error) {
		c, err = tx.Registry().Create(b.t.Context(), c)
		return err
	})
	return c
}

// codebases returns what is registered, by name.
func (b *bench) codebases() map[string]sessions.Codebase {
	b.t.Helper()
	all := make(map[string]sessions.Codebase)
	b.tx(func(tx *store.Tx) error {
		list, err := tx.Registry().List(b.t.Context())
		for _, c := range list {
			all[c.Name] = c
		}
		return err
	})
	return all
}

// cloned clones a repository with these files and registers it.
func (b *bench) cloned(name string, files map[string]string) sessions.Codebase {
	b.t.Helper()
	c, _, _, err := b.Register(b.t.Context(), b.repo(b.git.Repo(name, files)))
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// repo clones an address, or finds its clone.
func (b *bench) repo(url string) codebase.Repo {
	b.t.Helper()
	repo, err := b.space.Clone(b.t.Context(), url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return repo
}

// prepare prepares the turn of a text, said about a repository on platforms that know it.
func (b *bench) prepare(conv sessions.Conversation, text string, about *messages.Repository) (orchestrator.Prepared, error) {
	b.t.Helper()
	entry := sessions.Entry{ID: uuid.Must(uuid.NewV7()).String(), ConversationID: conv.ID, In: messages.Inbound{
		Conversation: conv.Key, Text: text, Repository: about, Sender: messages.Sender{ID: "ann"},
	}}
	call, _ := command.Parse(text)
	return b.Prepare(b.t.Context(), conv, entry, call)
}

// audited counts entries of the audit log.
func (b *bench) audited(action string) (n int) {
	b.t.Helper()
	b.tx(func(tx *store.Tx) error {
		rows, err := tx.AuditLog().Rows(b.t.Context(), store.AuditFilter{Action: action, Limit: 100})
		n = len(rows)
		return err
	})
	return n
}
