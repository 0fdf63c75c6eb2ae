package turn

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// ready is what was prepared for the turn of an entry, outside of transactions.
type ready struct {
	attachments []messages.Attachment // first those that came with the entry, then those of what was said before
	came        int                   // how many came with the entry
	unreadable  string                // all that came is files that cannot be read: what to say of them
	earlier     []messages.Quote      // what was said before the bot was called
	work        Prepared
	refused     bool  // the platform does not admit the sender
	gateErr     error // why that is not known
	err         error // why the turn cannot run
}

// preparation reads what the turn of a worker's next entry needs, outside of transactions.
type preparation struct{ *worker }

// needsPreparing reports whether something has to be read before the turn of an
// entry can begin.
func (w *worker) needsPreparing(entry sessions.Entry) bool {
	if r, done := w.ready[entry.ID]; done && (r.attachments == nil || r.came == len(entry.In.Attachments)) {
		return false // else more of its album came meanwhile
	}
	if w.o.access.Gated(w.conv.Key.Platform) {
		return true
	}
	if w.o.config.Worktrees != nil && (w.conv.CodebaseID != "" || entry.In.Repository != nil) {
		return true
	}
	if entry.State == sessions.EntryRunning {
		return false // the request is stored
	}
	if _, ok := w.adapter().(platform.Contexter); ok && (entry.Seq == 1 || w.caps().SessionContext) {
		return true
	}
	return w.readsAny(entry.In.Attachments)
}

// prepare reads what the turn needs, in steps that are kept one by one: after a crash
// it goes on behind the last one. It can be stopped like the turn itself: then the
// turn begins and ends at once.
func (pr preparation) prepare(ctx context.Context, handle *turnHandle, d decision) {
	entry := d.entry
	pr.o.running.begin(handle, entry, "", d.access)
	var r ready
	defer func() {
		if pr.ready == nil {
			pr.ready = make(map[string]ready)
		}
		pr.ready[entry.ID] = r
	}()
	if ok, err := pr.admitted(ctx, &entry); !ok {
		r.refused, r.gateErr = true, err
		return
	}
	call, _ := command.Parse(entry.In.Text)
	if entry.State != sessions.EntryRunning {
		pr.attachments(ctx, &entry, &r)
		var using string
		r.earlier, using = pr.context(ctx, &entry, call)
		pr.filesBefore(ctx, &entry, &r)
		r.work.Notice = joinNotices(r.work.Notice, using)
	}
	if r.err = pr.located(ctx, &entry); r.err != nil {
		return
	}
	if pr.o.config.Worktrees != nil && (pr.conv.CodebaseID != "" || entry.In.Repository != nil) {
		cloned, err := pr.getRepository(ctx)
		if r.err = err; err != nil {
			return
		}
		notice := r.work.Notice
		r.work, r.err = pr.o.config.Worktrees.Prepare(ctx, pr.conv, entry, call)
		if need := needsClone(r.err); need != nil && cloned {
			r.err = fault.Newf(fault.Invalid, "%s was cloned, but %s still cannot use it. An operator can check it with `bot repo list`.", need.URL, need.Codebase)
		}
		if _, passes := fault.Retry(r.err); r.err != nil && !passes && pr.o.laneOf(call.Name) == command.Job {
			r.err = nil // it says so itself; and /clone is the way out of it
		}
		r.work.Notice = joinNotices(notice, r.work.Notice)
	}
}

// locate completes what the event says of the repository.
func (pr preparation) locate(ctx context.Context, entry *sessions.Entry) error {
	l, ok := pr.adapter().(platform.Locator)
	if !ok || entry.In.Repository == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	found, err := l.Locate(ctx, entry.In)
	if err != nil {
		return fmt.Errorf("find the branch: %w", err)
	}
	entry.In.Repository = &found
	return nil
}

// readContext reads what was said before the bot was called into a conversation,
// and returns it with what to tell the person about it, also if it could not be read.
func (pr preparation) readContext(ctx context.Context, reader platform.Contexter, entry sessions.Entry) ([]messages.Quote, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	quotes, err := reader.Context(ctx, entry.In)
	switch {
	case err != nil:
		pr.o.config.Log.InfoContext(ctx, "could not read what was said before", "conversation", pr.conv.Key, "err", err)
		return nil, "⚠ Could not read the earlier messages here. " + fault.Public(err), err
	case len(quotes) > 0 && pr.caps().SessionContext:
		return quotes, "", nil // what the conversation is about; nobody has to be told
	case len(quotes) > 0:
		return quotes, fmt.Sprintf("Using %s as context.", wording.Count(len(quotes), "earlier message", "earlier messages")), nil
	}
	return nil, "", nil
}

// beginsSession reports whether the turn of a call starts a session on a platform
// where what a conversation is about has to be read again then.
func (pr preparation) beginsSession(ctx context.Context, call command.Call) bool {
	if !pr.caps().SessionContext {
		return false
	}
	if p, ok := pr.o.builtinPrompt(call); ok && p.Meta.Consumes == sessions.Plan {
		return true
	}
	active := false
	err := pr.o.config.Storage.InRead(ctx, func(tx port.Tx) (err error) {
		_, active, err = tx.Sessions().ActiveSession(ctx, pr.conv.ID)
		return err
	})
	return err == nil && !active
}
