package store

import (
	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/commit"
	"remote-agent/internal/plan"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

// What a transaction is to those who need one kind of rows only. They are all parts of
// the same transaction.

// Conversations keeps conversations.
func (t *Tx) Conversations() sessions.ConversationStore { return t }

// Leases gives leases and makes changes under them.
func (t *Tx) Leases() commit.LeaseStore { return t }

// Inbox keeps what came in.
func (t *Tx) Inbox() sessions.InboxStore { return t }

// Sessions keeps sessions and their runs.
func (t *Tx) Sessions() sessions.SessionStore { return t }

// Messages keeps the message array of sessions.
func (t *Tx) Messages() sessions.MessageStore { return t }

// Deliveries keeps what goes out.
func (t *Tx) Deliveries() sessions.DeliveryStore { return t }

// Questions keeps what people are asked.
func (t *Tx) Questions() approval.Store { return t }

// Proposals keeps plans.
func (t *Tx) Proposals() plan.Store { return t }

// Spending keeps what turns used.
func (t *Tx) Spending() spend.Store { return t }

// Profiles reads agent profiles.
func (t *Tx) Profiles() profile.Store { return t }

// Tasks keeps standing tasks.
func (t *Tx) Tasks() sessions.TaskStore { return t }

// People keeps who may use the bot.
func (t *Tx) People() sessions.PeopleStore { return t }

// Registry reads codebases.
func (t *Tx) Registry() sessions.CodebaseStore { return t }

// Calls keeps the record of tool calls.
func (t *Tx) Calls() sessions.CallStore { return t }

// Buttons keeps what pressing a button means.
func (t *Tx) Buttons() command.ButtonStore { return t }
