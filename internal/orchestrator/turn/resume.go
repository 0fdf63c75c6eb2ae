package turn

import (
	"context"
	"errors"
	"reflect"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

const (
	// trustAdmission is how old a platform's word that somebody may use the bot can
	// be at most when the turn begins for which it was asked: a minute. A turn that
	// is begun again after a crash within it asks nobody a second time.
	trustAdmission = time.Minute

	// trustReading is how long what was read for a turn is good for it.
	trustReading = 10 * time.Minute
)

// within reports whether something is younger than a limit. What is in the future,
// by a clock that was wrong, is not.
func within(at, now time.Time, limit time.Duration) bool {
	return !at.IsZero() && !at.After(now) && now.Sub(at) < limit
}

// admitted reports whether the platform admits the sender of an entry, and why that
// is not known. A yes is kept with the entry.
func (pr preparation) admitted(ctx context.Context, entry *sessions.Entry) (bool, error) {
	asked := time.Now()
	if !pr.o.access.Gated(pr.conv.Key.Platform) || within(entry.Preparation.AdmittedAt, asked, trustAdmission) {
		return true, nil
	}
	ok, err := pr.o.access.Admitted(ctx, entry.In)
	if ok && err == nil {
		entry.Preparation.AdmittedAt = asked
		pr.keep(ctx, *entry)
	}
	return ok, err
}

// context returns what was said before the bot was called, and what to tell the
// person about it. It is read once for an entry.
func (pr preparation) context(ctx context.Context, entry *sessions.Entry, call command.Call) ([]messages.Quote, string) {
	p, at := &entry.Preparation, time.Now()
	if within(p.EarlierAt, at, trustReading) {
		return p.Earlier, p.Notice
	}
	reader, ok := pr.adapter().(platform.Contexter)
	if !ok || entry.Seq != 1 && !pr.beginsSession(ctx, call) {
		return nil, ""
	}
	earlier, notice, err := pr.readContext(ctx, reader, *entry)
	if err == nil {
		p.EarlierAt, p.Earlier, p.Notice = at, earlier, notice
		pr.keep(ctx, *entry)
	}
	return earlier, notice
}

// located completes what the event says of the repository, asking once for an entry.
func (pr preparation) located(ctx context.Context, entry *sessions.Entry) error {
	p := &entry.Preparation
	if entry.In.Repository != nil && p.Repository != nil && within(p.LocatedAt, time.Now(), trustReading) {
		entry.In.Repository = p.Repository
		return nil
	}
	at, told := time.Now(), entry.In.Repository
	if err := pr.locate(ctx, entry); err != nil {
		return err
	}
	if !reflect.DeepEqual(told, entry.In.Repository) {
		p.LocatedAt, p.Repository = at, entry.In.Repository
		pr.keep(ctx, *entry)
	}
	return nil
}

// keep stores what was prepared so far. If that fails the turn goes on: a process that
// dies then begins with the step again.
func (pr preparation) keep(ctx context.Context, entry sessions.Entry) {
	err := pr.hold(ctx, func(tx port.Tx) error {
		return tx.Inbox().UpdateEntry(ctx, entry.ID, sessions.EntryUpdate{Preparation: &entry.Preparation})
	})
	if err != nil && !errors.Is(err, sessions.ErrLeaseLost) && ctx.Err() == nil {
		pr.o.config.Log.WarnContext(ctx, "could not keep what was prepared", "entry", entry.ID, "err", err)
	}
}

// begunWith is what of a preparation a turn needs that has begun, if it has to begin
// again: its request has the rest. Nil if that changes nothing.
func begunWith(p sessions.Preparation) *sessions.Preparation {
	if p.EarlierAt.IsZero() && p.FilesAt.IsZero() {
		return nil
	}
	p.EarlierAt, p.Earlier, p.Notice = time.Time{}, nil, ""
	p.FilesAt, p.Files = time.Time{}, nil
	return &p
}
