package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// aside is a fork in a conversation of its own.
//
// It comes into being in three steps, each of which can be repeated after a crash:
// its row and session, under a key that no platform knows, so that nobody can write
// there yet; its worktree; and its place on the platform, whose key it is given in the
// transaction that stores the first message there.
type aside struct {
	conv  sessions.Conversation
	done  sessions.Forked
	title string
	again bool     // an earlier run may have opened its place
	open  bool     // its place is open
	left  []string // files that did not come along
	note  string   // what is to be known of those that were copied
}

// forkAside forks into a thread or topic of its own, where the platform has them.
func (ns *newSessions) forkAside(ctx context.Context, r command.Request, n int) (command.Reply, error) {
	adapter := ns.platforms[r.Conv.Key.Platform]
	opener, ok := adapter.(platform.Opener)
	if !ok {
		place := "this place"
		if adapter != nil {
			place = adapter.Capabilities().Place
		}
		return command.Reply{}, fault.Newf(fault.Unsupported, "Cannot open a thread or topic from %s, so nothing was forked. `%sfork` continues here, in a new session.",
			place, ns.prefix(r.Conv.Key))
	}
	a, err := ns.beginAside(ctx, r, n)
	if errors.Is(err, sessions.ErrBusy) {
		err = busy(ns.prefix(r.Conv.Key), "fork")
	}
	if err != nil {
		return command.Reply{}, err
	}
	if !a.open {
		failpoint.Hit(failpoint.ForkStored)
		if err := ns.openAside(ctx, r, opener, &a); err != nil {
			return command.Reply{}, ns.dropAside(ctx, r, a, err)
		}
		failpoint.Hit(failpoint.ForkPlaced)
	}
	ns.engine.Wake(a.conv.ID) // brings the first message there
	place := "A new thread"
	if link := opener.Link(ctx, a.conv.Key); link != "" {
		place = "[" + place + "](" + link + ")"
	}
	text := "🍴 " + place + " continues with " + takenText(a.done)
	if a.conv.CodebaseID != "" {
		text += " and a copy of the files as they are now"
	}
	text += ". Nothing changes here."
	if len(a.left) > 0 {
		text += "\n\nNot copied:\n\n- " + strings.Join(a.left, "\n- ")
	}
	return command.Reply{Text: a.note + text}, nil
}

// asideKey is under which a fork is kept until it has its place.
func asideKey(r command.Request) messages.ConversationKey {
	return messages.ConversationKey{Platform: r.Conv.Key.Platform, ID: "fork~" + r.Entry.ID}
}

// beginAside stores the conversation of a fork and its session, once for a command.
func (ns *newSessions) beginAside(ctx context.Context, r command.Request, n int) (a aside, err error) {
	err = whenIdle(ctx, ns.store, func(tx *store.Tx) error {
		a = aside{}
		from, err := forkable(ctx, tx, r)
		if opened, found, findErr := openedAside(ctx, tx, r); findErr != nil || found {
			a = opened
			return findErr
		}
		if err != nil {
			return err
		}
		a.title = "🍴 Fork"
		if said := wording.OneLine(from.UserPrompt); said != "" {
			a.title += ": " + wording.Head(said, 80)
		}
		var created bool
		if a.conv, created, err = tx.Conversations().GetOrCreateConversation(ctx, asideKey(r), r.Conv.Assistant); err != nil {
			return err
		}
		if !created {
			a.again = true
			s, _, err := tx.Sessions().ActiveSession(ctx, a.conv.ID)
			a.done = sessions.Forked{Session: s, Taken: s.Metadata.Forked()}
			return err
		}
		settings := r.Conv.Settings
		settings.Worktree, settings.Home = "", r.Conv.HomeKey()
		a.conv.Settings, a.conv.CodebaseID, a.conv.Cwd, a.conv.AgentID = settings, r.Conv.CodebaseID, r.Conv.Cwd, r.Conv.AgentID
		err = tx.Conversations().UpdateConversation(ctx, a.conv.ID, sessions.ConversationUpdate{
			Settings: &settings, CodebaseID: &a.conv.CodebaseID, Cwd: &a.conv.Cwd, AgentID: &a.conv.AgentID,
		})
		if err != nil {
			return err
		}
		if a.done, err = tx.Sessions().ForkSession(ctx, sessions.Fork{From: from.ID, N: n, Into: a.conv.ID, Before: r.Entry.Seq}); err != nil {
			return err
		}
		return tx.Audit(ctx, forkAudit(r, from, a.done))
	})
	return a, err
}

// openedAside returns the fork of a command whose place is open already.
func openedAside(ctx context.Context, tx *store.Tx, r command.Request) (a aside, found bool, err error) {
	all, err := tx.Deliveries().EntryDeliveries(ctx, r.Entry.ID)
	if err != nil {
		return a, false, err
	}
	for _, d := range all {
		if d.ConversationID == r.Conv.ID {
			continue
		}
		if a.conv, err = tx.Conversations().Conversation(ctx, d.ConversationID); err != nil {
			return a, false, err
		}
		s, _, err := tx.Sessions().ForkAfter(ctx, a.conv.ID, "")
		a.done, a.open = sessions.Forked{Session: s, Taken: s.Metadata.Forked()}, true
		return a, true, err
	}
	return a, false, nil
}

// openAside copies the files, opens the place, and moves the fork there.
func (ns *newSessions) openAside(ctx context.Context, r command.Request, opener platform.Opener, a *aside) error {
	if ns.work != nil && a.conv.CodebaseID != "" {
		tree, left, err := ns.work.Fork(ctx, r.Conv, a.conv)
		if err != nil {
			return err
		}
		a.left, a.note = left, noted(tree)
	}
	key, err := openPlace(ctx, opener, platform.Opening{
		Delivery: messages.DeliveryID(r.Entry.ID), Beside: r.Conv.Key, Title: a.title,
		Again: a.again || r.Entry.Attempts > 1, // a turn that is tried again has taken back its fork, and not its place
	})
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.ForkOpened)
	return ns.store.InTx(ctx, func(tx *store.Tx) error {
		if _, err := forkable(ctx, tx, r); err != nil && !fault.Is(err, fault.Invalid) { // locks the row
			return err
		}
		if opened, found, err := openedAside(ctx, tx, r); err != nil || found {
			a.conv = opened.conv // another process was faster
			return err
		}
		if err := tx.Conversations().UpdateConversation(ctx, a.conv.ID, sessions.ConversationUpdate{Key: &key}); err != nil {
			return err
		}
		a.conv.Key = key
		text := "🍴 This fork continues with " + takenText(a.done) + "."
		if a.conv.CodebaseID != "" {
			text += " Its files are a copy, on a separate branch."
		}
		return addNotice(ctx, tx, a.conv.ID, r.Entry.ID, text+" Changes here do not affect the original.")
	})
}

// openPlace opens a place, again if the reason why it failed may pass soon: the
// platform does not answer, or wants to be asked later.
func openPlace(ctx context.Context, opener platform.Opener, place platform.Opening) (key messages.ConversationKey, err error) {
	policy := fault.Policy{Longest: 30 * time.Second, Tries: 3, Uncertain: true}
	err = policy.Do(ctx, func() error {
		key, err = opener.Open(ctx, place)
		place.Again = true
		return err
	})
	return key, err
}

// dropAside takes back a fork that could not get its place, and returns why. If the
// process stops, the fork stays as it is: the command runs again, unless a person stopped it.
func (ns *newSessions) dropAside(ctx context.Context, r command.Request, a aside, why error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), command.ErrStopped) {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := ns.store.InTx(ctx, func(tx *store.Tx) error {
		conv, err := tx.Conversations().FindConversation(ctx, asideKey(r))
		switch {
		case fault.Is(err, fault.NotFound):
			return nil
		case err != nil:
			return err
		}
		if err := tx.Conversations().DeleteConversation(ctx, conv.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: r.Actor(), Action: "session.fork_failed", ConversationID: r.Conv.ID, Target: a.done.Session.ID,
		})
	})
	if err != nil {
		return errors.Join(why, fmt.Errorf("take a fork back: %w", err))
	}
	return why
}
