// Package orchestrator is what happens between a message and its answer:
// accept, authorize, command or turn, deliver.
//
// A message walks through its rooms: package inbox makes events durable and says,
// with access, who may; control runs the commands that do not wait; turn runs the
// assistant under the lease of its conversation; and outbox brings out what was
// stored to be sent. Each step begins and ends with one transaction and may run
// twice. This package is the door: New, Accept, Run, and Ring, which has somebody
// look after a conversation.
//
// It names no platform, provider or database.
package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"remote-agent/internal/lists"
	"remote-agent/internal/orchestrator/turn"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/control"
	"remote-agent/internal/orchestrator/inbox"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/platform"
	"remote-agent/internal/queue"
	"remote-agent/internal/spend"
)

// AccessRule is what the configuration says of who may talk to the bot on a platform.
type AccessRule = access.Rule

// Config configures an Orchestrator. The zero value of an optional field means
// its default.
type Config struct {
	Storage    Storage
	Queue      queue.Queue
	Adapters   []platform.Adapter
	Assistants map[assistant.Name]assistant.Assistant
	Default    assistant.Name // of new conversations; a key of Assistants
	Access     map[messages.Platform]AccessRule

	// Placeholder names assistants that only stand in until a real one is
	// configured: their conversations are archived and begun anew.
	Placeholder map[assistant.Name]bool

	// Tools has the tools of assistants that use ours; nil for none.
	Tools Tools

	Mode           approval.Mode // of conversations that chose none; default ModeEdit
	Confined       bool          // programs of assistants cannot write outside of what they work on
	SecondApprover bool          // approvals need somebody else than the one who asked
	MaxRounds      int           // requests to the model in a turn before a person is asked; default 50
	Budget         spend.Budget
	Tiers          map[string]spend.Tier // model tiers by name: fast, smart, cheap

	// Redact removes secrets from text that tools return; nil changes nothing.
	Redact func(string) string

	// RedactPart does the same to a text that is still being written, and leaves
	// out an end that could become a secret. Nil means Redact.
	RedactPart func(string) string

	Commands  Commands  // the chat commands; nil for none
	Worktrees Worktrees // may be nil
	Memory    Memory    // may be nil
	Learner   Learner   // may be nil
	Files     Files     // may be nil: text files only are read

	// Pairing has owners asked about strangers who write in private.
	Pairing bool

	SystemPrompt  string
	ContextTokens int           // budget of the message array; default 100,000
	Slots         int           // conversations worked on at once; default 10
	MaxWaiting    int           // messages of one person that may wait on a platform; default 50
	TurnTimeout   time.Duration // default 60 minutes
	Grace         time.Duration // how long running turns may finish after a stop; default 30 seconds
	MaxAttempts   int           // tries of a turn before its error is final; default 5

	LeaseTTL   time.Duration // default 20 seconds
	RenewEvery time.Duration // also how soon a stop on another replica arrives; default 5 seconds

	// Pages is the address of the pages in the browser, for links; empty if people do not
	// reach them from where they are.
	Pages string

	// Rush, if not nil, is called when so many events come in that accepting them goes
	// before answering, and what it returns when that is over.
	Rush func() (over func())

	// Takers returns the owners of the other processes that take offers; see
	// Orchestrator.Offered. Nil if there can be none.
	Takers func() []string

	// Exclusive is true if no other process works on the database: what is left
	// over at the start belongs to a dead one.
	Exclusive bool

	// Now is the clock of standing tasks; default time.Now.
	Now func() time.Time

	Log     *slog.Logger
	Metrics *metrics.Metrics // may be nil
}

func (c *Config) defaults() {
	set := func(d *time.Duration, v time.Duration) {
		*d = cmp.Or(*d, v)
	}
	set(&c.TurnTimeout, time.Hour)
	set(&c.Grace, 30*time.Second)
	set(&c.LeaseTTL, 20*time.Second)
	set(&c.RenewEvery, 5*time.Second)
	c.Mode = cmp.Or(c.Mode, approval.ModeEdit)
	if c.Commands == nil {
		c.Commands = noCommands{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	for _, n := range []struct {
		v *int
		d int
	}{{&c.ContextTokens, 100_000}, {&c.Slots, 10}, {&c.MaxWaiting, 50}, {&c.MaxAttempts, 5}, {&c.MaxRounds, 50}} {
		*n.v = cmp.Or(*n.v, n.d)
	}
}

// Orchestrator moves messages from adapters to assistants and back. It
// implements platform.Sink. All methods are safe for concurrent use.
type Orchestrator struct {
	config   Config
	settings atomic.Pointer[Live]
	adapters map[messages.Platform]platform.Adapter
	watched  watched

	background *background.Group
	rush       background.Rush
	access     *access.Access
	inbox      *inbox.Inbox
	control    *control.Control
	outbox     *outbox.Outbox

	*turn.Turns // what others ask of turns, they ask of these
}

// New returns an Orchestrator. It starts nothing.
func New(config Config) (*Orchestrator, error) {
	config.defaults()
	if _, ok := config.Assistants[config.Default]; !ok {
		return nil, fault.Newf(fault.Invalid, "the default assistant %q is not configured", config.Default)
	}
	o := &Orchestrator{
		config:     config,
		adapters:   make(map[messages.Platform]platform.Adapter, len(config.Adapters)),
		background: new(background.Group),
		rush:       background.Rush{During: config.Rush},
	}
	o.settings.Store(new(config.live()))
	o.watched.look = make(chan struct{}, 1)
	for _, a := range config.Adapters {
		if _, twice := o.adapters[a.Platform()]; twice {
			return nil, fmt.Errorf("platform %q is configured twice", a.Platform())
		}
		o.adapters[a.Platform()] = a
	}
	o.connect()
	return o, nil
}

// connect builds the rooms that a message walks through.
func (o *Orchestrator) connect() {
	c := &o.config
	o.access = &access.Access{
		Storage: c.Storage, Rules: func(p messages.Platform) access.Rule { return o.live().Access[p] }, Adapters: o.adapters, Log: c.Log,
	}
	o.outbox = outbox.New(outbox.Config{
		Storage: c.Storage, Adapters: o.adapters, Background: o.background, Rush: &o.rush, Owners: o.access.OwnerChats, Pages: c.Pages, Log: c.Log, Metrics: c.Metrics,
	})
	o.control = control.New(control.Config{
		Storage: c.Storage, Queue: c.Queue, Access: o.access, Outbox: o.outbox, Commands: c.Commands, Background: o.background,
		Ring:    func(ctx context.Context, id string) error { return o.Ring(ctx, id) }, // the turns are made next
		Default: string(c.Default), Log: c.Log,
	})
	o.Turns = turn.New(turn.Config{
		Storage: c.Storage, Queue: c.Queue, Access: o.access, Outbox: o.outbox, Background: o.background, Commands: o.control, Live: o.turnSettings,
		Assistants: c.Assistants, Tools: c.Tools, Worktrees: c.Worktrees, Memory: c.Memory, Learner: c.Learner, Files: c.Files,
		Mode: c.Mode, Confined: c.Confined, SecondApprover: c.SecondApprover, Redact: c.Redact, RedactPart: c.RedactPart,
		Takers: c.Takers, Slots: c.Slots, MaxAttempts: c.MaxAttempts, LeaseTTL: c.LeaseTTL, RenewEvery: c.RenewEvery, Now: c.Now, Log: c.Log, Metrics: c.Metrics,
	})
	o.inbox = inbox.New(inbox.Config{
		Storage: c.Storage, Queue: c.Queue, Access: o.access, Outbox: o.outbox, Control: o.control, Turns: o.Turns, Background: o.background, Rush: &o.rush,
		Commands: c.Commands, Halted: func() bool { return o.Halted().Halted() }, Now: c.Now,
		Assistants: c.Assistants, Default: c.Default, Placeholder: c.Placeholder, MaxWaiting: func() int { return o.live().MaxWaiting }, Pairing: c.Pairing,
		Log: c.Log, Metrics: c.Metrics,
	})
}

var _ platform.Sink = (*Orchestrator)(nil)

// Accept implements platform.Sink; see inbox.Inbox.
func (o *Orchestrator) Accept(ctx context.Context, events ...messages.Inbound) error {
	return o.inbox.Accept(ctx, events...)
}

// Keep implements platform.Sink.
func (o *Orchestrator) Keep(ctx context.Context, raw messages.RawEvent) error {
	return o.inbox.Keep(ctx, raw)
}

// OfferOwnership stores code as the one-time owner code of a platform, if the
// platform has no owner and no other way in. It reports whether the code is to
// be shown. The code works once, for 15 minutes.
func (o *Orchestrator) OfferOwnership(ctx context.Context, p messages.Platform, code string) (bool, error) {
	return o.access.OfferOwnership(ctx, p, code)
}

// Run works until ctx is done. Then it starts nothing new, lets running turns
// finish for Config.Grace, puts the rest back without counting an attempt, and
// returns when none is running. Accept goes on storing meanwhile and afterwards,
// for another replica or the next process. It returns an error only if the queue
// fails.
func (o *Orchestrator) Run(ctx context.Context) error {
	cancel := o.background.Open(ctx)
	defer cancel(nil)
	o.outbox.SendRefusals(ctx)

	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	defer func() { // after the last turn has ended
		unwatch()
		watch.Wait()
	}()
	o.look(ctx)
	watch.Go(func() { o.watch(watching) })
	if err := o.firstSweep(ctx); err != nil {
		o.config.Log.WarnContext(ctx, "first sweep failed", "err", err)
	}
	defer context.AfterFunc(ctx, o.CloseSlots)()
	err := o.config.Queue.Run(ctx, map[queue.Kind]queue.Handler{
		queue.KindTurn: func(ctx context.Context, job queue.Job) error {
			o.rush.Wait(ctx)
			return o.Ring(ctx, job.Key)
		},
		queue.KindSweep: o.sweep,
	})
	o.CloseSlots()
	o.background.Close(cancel, o.live().Grace)
	return err
}

// Idle reports whether this process has nothing to do for a conversation: no
// entry waits or runs and no delivery is open, or all of it waits for people to
// decide on questions, which are then named.
func (o *Orchestrator) Idle(ctx context.Context, key messages.ConversationKey) (idle bool, questions []string, err error) {
	err = o.config.Storage.InRead(ctx, func(tx Tx) error {
		idle, questions = false, nil
		conv, err := tx.Conversations().FindConversation(ctx, key)
		if fault.Is(err, fault.NotFound) {
			idle = true
			return nil
		}
		if err != nil {
			return err
		}
		open, err := tx.Conversations().OpenWork(ctx, conv.ID)
		if idle = err == nil && open.IsNone(); err != nil || idle || o.control.Busy() {
			return err
		}
		questions, err = openQuestions(ctx, tx, conv.ID)
		idle = len(questions) > 0
		return err
	})
	if err != nil {
		return false, nil, fmt.Errorf("look for open work: %w", err)
	}
	return idle, questions, nil
}

// openQuestions names what the turn at the head of a conversation waits for, once
// people can see all of it.
func openQuestions(ctx context.Context, tx Tx, conversationID string) ([]string, error) {
	head, ok, err := tx.Inbox().NextEntry(ctx, conversationID)
	if err != nil || !ok {
		return nil, err
	}
	open, err := tx.Deliveries().AllOpenDeliveries(ctx, conversationID)
	if err != nil || slices.ContainsFunc(open, func(d messages.Delivery) bool { return d.Control }) {
		return nil, err
	}
	waits, err := tx.Questions().EntryApprovals(ctx, head.ID)
	return lists.Map(waits, approval.Approval.Name), err
}

// Ready returns an error unless the workers take work.
func (o *Orchestrator) Ready() error {
	if !o.background.Running() {
		return fault.New(fault.Unavailable, "the workers do not run")
	}
	return nil
}
