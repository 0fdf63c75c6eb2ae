package orchestratortest

import (
	"context"
	"log/slog"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/chat"
	"remote-agent/internal/commit"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// Who is there, if nobody configures it otherwise: two users, one owner, and everybody
// else, who is a stranger.
const (
	Ann      messages.UserID = "ann" // a user, who says what nobody is named for
	Bob      messages.UserID = "bob"
	Olga     messages.UserID = "olga" // the owner
	Stranger messages.UserID = "stan"
)

// build builds the engine of a process, with the chat commands that need no git.
func (w *World) build(p *Process, exclusive bool) (*orchestrator.Orchestrator, error) {
	c := w.config(p, exclusive)
	offered := chat.Config{
		Storage: commandStorage{storage{store: p.Store, life: p.life}}, Adapters: c.Adapters, Assistants: c.Assistants, Log: c.Log,
		Mode: approval.ModeEdit, Version: "1.2.3", Tools: toolPort{w.Tools, p.life},
	}
	if w.Commands != nil {
		w.Commands(&offered, p)
	}
	commands, err := chat.New(offered)
	if err != nil {
		return nil, err
	}
	p.Commands, c.Commands = commands, commands
	if w.Configure != nil {
		w.Configure(&c, p.Store)
	}
	core, err := orchestrator.New(c)
	if err == nil {
		commands.Bind(core)
	}
	return core, err
}

// config is what a process runs with.
func (w *World) config(p *Process, exclusive bool) orchestrator.Config {
	return orchestrator.Config{
		Storage:  storage{store: p.Store, life: p.life, offer: w.offer},
		Takers:   func() []string { return w.takers(p) },
		Queue:    newQueue(w.T),
		Adapters: []platform.Adapter{w.Chat.adapter(p)},
		Assistants: map[assistant.Name]assistant.Assistant{
			ModelName: loop.New(modelPort{w.Model, p.life}, loop.Config{}),
			AgentName: agentPort{w.Agent, p.life},
		},
		Default: ModelName,
		Access: map[messages.Platform]orchestrator.AccessRule{PlatformName: {
			IDs:    map[messages.UserID]bool{Ann: true, Bob: true},
			Owners: map[messages.UserID]bool{Olga: true},
		}},
		Tools:     toolPort{w.Tools, p.life},
		Exclusive: exclusive,
		Log:       slog.New(slog.DiscardHandler),
	}
}

// storage is the database of a process, for as long as it lives.
type storage struct {
	store *store.Store
	life  *life
	offer func(taker string, ids []string)
}

var _ orchestrator.Storage = storage{}

func (s storage) serve() error {
	s.life.serve()
	if err := s.life.fail.Load(); err != nil {
		return *err
	}
	return nil
}

// InTx implements orchestrator.Storage.
func (s storage) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	if err := s.serve(); err != nil {
		return err
	}
	err := s.store.InTx(ctx, func(tx *store.Tx) error { return fn(offeringTx{store.Port{Tx: tx}, s.offer}) })
	s.committed()
	return s.lost(err)
}

// lost is what the caller of a transaction hears of its end.
func (s storage) lost(err error) error {
	if err == nil && s.life.lose.CompareAndSwap(true, false) {
		return &fault.Error{Kind: fault.Unavailable, Uncertain: true}
	}
	return err
}

// committed tells who wants to know that a transaction is over.
func (s storage) committed() {
	if fn := s.life.after.Load(); fn != nil {
		(*fn)()
	}
}

// Commit implements orchestrator.Storage.
func (s storage) Commit(ctx context.Context, l sessions.Lease, c commit.Changes) (commit.News, error) {
	if err := s.serve(); err != nil {
		return commit.News{}, err
	}
	news, err := s.store.Commit(ctx, l, c)
	s.committed()
	return news, s.lost(err)
}

// InRead implements orchestrator.Storage.
func (s storage) InRead(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	if err := s.serve(); err != nil {
		return err
	}
	return s.store.InRead(ctx, func(tx *store.Tx) error { return fn(store.Port{Tx: tx}) })
}

// commandStorage is a storage as the chat commands see it.
type commandStorage struct{ storage }

var _ chat.Storage = commandStorage{}

// InTx implements chat.Storage.
func (s commandStorage) InTx(ctx context.Context, fn func(tx *store.Tx) error) error {
	if err := s.serve(); err != nil {
		return err
	}
	err := s.store.InTx(ctx, fn)
	s.committed()
	return err
}

// InRead implements chat.Storage.
func (s commandStorage) InRead(ctx context.Context, fn func(tx *store.Tx) error) error {
	if err := s.serve(); err != nil {
		return err
	}
	return s.store.InRead(ctx, fn)
}
