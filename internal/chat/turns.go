package chat

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// maxOpen is how many waiting turns are looked at; fewer can wait.
const maxOpen = 1000

func (tu *turns) stopCommand() command.Command {
	return command.Command{
		Name:    "stop",
		Usage:   "stop",
		Summary: "stop the running turn and drop queued messages",
		Example: "stop",
		Rank:    3,
		Details: "With read-only access you can stop only what you asked for.",
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Run:     tu.runStop,
	}
}

func (tu *turns) runStop(ctx context.Context, r command.Request) (command.Reply, error) {
	return tu.stop(ctx, r, r.Entry.Seq)
}

// stop stops what came up to a place in the inbox.
func (tu *turns) stop(ctx context.Context, r command.Request, upTo int64) (command.Reply, error) {
	if r.Role == sessions.Reader {
		if err := tu.onlyOwn(ctx, r, upTo); err != nil {
			return command.Reply{}, err
		}
	}
	stopped, err := tu.engine.Stop(ctx, r.Conv, upTo, r.Actor())
	if err != nil {
		return command.Reply{}, err
	}
	text := map[orchestrator.StopState]string{
		orchestrator.StopNothing: "Nothing is running here.",
		orchestrator.StopAsked:   "⏹ Stopping.",
		orchestrator.StopSlow:    "⏹ Stopping; this may take a moment.",
		orchestrator.StopDone:    "⏹ Stopped. What was said so far is kept.",
	}[stopped.State]
	if n := stopped.Dropped; n > 0 {
		text += fmt.Sprintf(" %s dropped. Resend any you still need.", wording.Count(n, "queued message was", "queued messages were"))
	}
	return command.Reply{Text: text}, nil
}

// onlyOwn refuses to stop turns of other people.
func (tu *turns) onlyOwn(ctx context.Context, r command.Request, upTo int64) error {
	others, err := within(ctx, tu.store.InRead, func(tx *store.Tx) (bool, error) {
		head, ok, err := tx.Inbox().NextEntry(ctx, r.Conv.ID)
		if err != nil || !ok {
			return false, err
		}
		open, err := tx.Inbox().WaitingEntries(ctx, r.Conv.ID, head.Seq, maxOpen)
		return slices.ContainsFunc(append(open, head), func(e sessions.Entry) bool {
			return e.Seq <= upTo && e.In.Actor() != r.Actor()
		}), err
	})
	switch {
	case err != nil:
		return fmt.Errorf("read whose turns would be stopped: %w", err)
	case others:
		return fault.New(fault.Forbidden, "You have read-only access: you cannot stop what other people asked for.")
	}
	return nil
}

// pressedStop answers the button that stops what came up to a place in the inbox.
func (tu *turns) pressedStop(ctx context.Context, r command.Request, upTo int64) (command.Reply, error) {
	if upTo <= 0 || upTo > r.Conv.InboxSeq {
		return command.Reply{}, fault.New(fault.NotFound, "This button no longer works.")
	}
	reply, err := tu.stop(ctx, r, upTo)
	if _, whispers := tu.platforms[r.Conv.Key.Platform].(platform.Whisperer); whispers && err == nil {
		reply = command.Reply{Note: reply.Text} // the turn itself says that it was stopped
	}
	return reply, err
}

func (tu *turns) retryCommand() command.Command {
	return command.Command{
		Name:    "retry",
		Usage:   "retry [note]",
		Summary: "run the last turn again from its start",
		Example: "retry use the other library",
		Details: "A turn that waits to retry, or for a provider's limit to end, continues immediately.",
		Lane:    command.Job,
		Hurries: true,
		Run:     tu.runRetry,
	}
}

// runRetry takes the last turn back and runs its request again, with a note if
// there is one.
func (tu *turns) runRetry(ctx context.Context, r command.Request) (command.Reply, error) {
	if r.Entry.Lane == sessions.LaneControl {
		return tu.retryNow(ctx, r, 0)
	}
	t, err := tu.takeBack(ctx, r, true)
	if err != nil {
		return command.Reply{}, err
	}
	if t.entry == "" {
		return command.Reply{Text: "There is nothing to retry here."}, nil
	}
	before, err := within(ctx, tu.store.InRead, func(tx *store.Tx) (sessions.Entry, error) { return tx.Inbox().Entry(ctx, t.entry) })
	if err != nil {
		return command.Reply{}, fmt.Errorf("read the last request: %w", err)
	}
	if before.In.Kind != messages.KindMessage {
		return command.Reply{}, fault.New(fault.Unsupported, "The last turn did not start with a message, so it cannot be retried. It was undone.")
	}
	again := before.In
	if note := strings.TrimSpace(r.Call.Rest); note != "" {
		again.Text += "\n\n" + note
	}
	return command.Reply{Text: "↻ Retrying from the start of the last turn." + keptText(t.kept), Again: &again}, nil
}

// retryNow has the turn that waits for its next try run now; seq is the number of its
// entry, 0 is any.
func (tu *turns) retryNow(ctx context.Context, r command.Request, seq int64) (command.Reply, error) {
	waited, err := tu.engine.RetryNow(ctx, r.Conv, seq)
	switch {
	case err != nil:
		return command.Reply{}, err
	case !waited:
		return command.Reply{}, fault.New(fault.NotFound, "No turn is waiting to retry here.")
	}
	return command.Reply{Text: "↻ Trying again now."}, nil
}

// pressedTurn answers the buttons of a turn that failed, or whose answer was abridged.
func (tu *turns) pressedTurn(ctx context.Context, r command.Request, seq int64, what command.TurnAction) (command.Reply, error) {
	if seq <= 0 || seq > r.Conv.InboxSeq {
		return command.Reply{}, fault.New(fault.NotFound, "This button no longer works.")
	}
	switch what {
	case command.RetryNow:
		reply, err := tu.retryNow(ctx, r, seq)
		if _, whispers := tu.platforms[r.Conv.Key.Platform].(platform.Whisperer); whispers && err == nil {
			reply = command.Reply{Note: reply.Text} // the turn shows itself
		}
		return reply, err
	case command.OtherModel:
		return command.Reply{Text: tu.listModels(r) + fmt.Sprintf(" Then `%sretry` retries with it immediately.", tu.prefix(r.Conv.Key))}, nil
	case command.Retry:
		return tu.pressedRetry(ctx, r, seq)
	case command.Full:
		return command.Reply{
			Then: fmt.Sprintf("/full %d", seq), Once: fmt.Sprintf("full-%s-%d", r.Conv.ID, seq),
			Twice: "The whole answer was already requested; see below.",
		}, nil
	}
	return command.Reply{}, fault.New(fault.NotFound, "This button no longer works.")
}

// pressedRetry runs a turn again that failed, if it is the last one and nothing else is
// under way.
func (tu *turns) pressedRetry(ctx context.Context, r command.Request, seq int64) (command.Reply, error) {
	last, ok, err := tu.lastTurn(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	var failed sessions.Entry
	busy := false
	err = tu.store.InRead(ctx, func(tx *store.Tx) error {
		if !ok {
			return nil
		}
		if failed, err = tx.Inbox().Entry(ctx, last.EntryID); err != nil {
			return err
		}
		_, busy, err = tx.Inbox().NextEntry(ctx, r.Conv.ID)
		return err
	})
	switch {
	case err != nil:
		return command.Reply{}, err
	case failed.Seq != seq || failed.State != sessions.EntryFailed:
		return command.Reply{}, fault.New(fault.NotFound, "This is no longer the last turn, so nothing was done.")
	case busy:
		return command.Reply{}, fault.New(fault.Conflict, "Something else is running or queued here. Press again afterwards.")
	}
	return command.Reply{Then: "/retry", Once: "retry-" + failed.ID}, nil
}

func (tu *turns) undoCommand() command.Command {
	return command.Command{
		Name:    "undo",
		Usage:   "undo",
		Summary: "undo the last turn (files and messages)",
		Example: "undo",
		Rank:    10,
		Menu:    true,
		Lane:    command.Job,
		Needs:   command.Repositories,
		Run:     tu.runUndo,
	}
}

// undid begins the note on an entry whose turn has been taken back.
const undid = "undid "

// taken is a turn that was taken back.
type taken struct {
	entry    string   // the turn; empty if there was none
	messages int      // that left the array
	kept     []string // what could not be taken back
	before   bool     // by this very command, before a crash
}

// runUndo goes back to before the last turn: its files and its talk, together.
// What cannot be taken back is listed. It is safe to repeat after a crash: the
// transaction that takes the turn back notes so on the entry, and a second run
// does not take another one.
func (tu *turns) runUndo(ctx context.Context, r command.Request) (command.Reply, error) {
	t, err := tu.takeBack(ctx, r, false)
	switch {
	case err != nil:
		return command.Reply{}, err
	case t.entry == "":
		return command.Reply{Text: "There is nothing to undo here."}, nil
	case t.before:
		return command.Reply{Text: "↩ Undid the last turn."}, nil
	}
	return command.Reply{Text: fmt.Sprintf("↩ Undid the last turn: %s; the files are as they were before it.%s",
		wording.Count(t.messages, "message", "messages"), keptText(t.kept))}, nil
}

func keptText(kept []string) string {
	if len(kept) == 0 {
		return ""
	}
	return "\n\nNot undone:\n\n- " + strings.Join(kept, "\n- ")
}

// lastTurn returns the state before the last turn of a conversation. Turns before a
// fork belong to the session that it goes on from, which stays as it is: if there
// are only those, it is a fault.Invalid that says so.
func (tu *turns) lastTurn(ctx context.Context, conv sessions.Conversation) (last sessions.Checkpoint, ok bool, err error) {
	var (
		fork   sessions.Session
		forked bool
	)
	err = tu.store.InRead(ctx, func(tx *store.Tx) error {
		if last, ok, err = tx.Messages().LastCheckpoint(ctx, conv.ID); err != nil {
			return err
		}
		fork, forked, err = tx.Sessions().ForkAfter(ctx, conv.ID, last.SessionID)
		return err
	})
	switch {
	case err != nil:
		return last, false, fmt.Errorf("find the last turn: %w", err)
	case forked:
		return last, false, fault.Newf(fault.Invalid, "Nothing was undone: there is no turn since the fork. "+
			"The first %s belong to the previous session, which is unchanged, as are the files. "+
			"To continue from an earlier message, use `/fork <n>`.", wording.Count(fork.Metadata.Forked(), "message", "messages"))
	}
	return last, ok, nil
}

// takeBack undoes the last turn of a conversation, once for a request. An agent's own
// session still has the turn, so it is given up; only where the same is asked again, and
// nothing had come of it, the agent keeps what it knows.
func (tu *turns) takeBack(ctx context.Context, r command.Request, again bool) (taken, error) {
	if entry, ok := strings.CutPrefix(r.Entry.Error, undid); ok {
		return taken{entry: entry, before: true}, nil
	}
	var t taken
	last, ok, err := tu.lastTurn(ctx, r.Conv)
	if err != nil || !ok {
		return t, err
	}
	t.entry = last.EntryID
	if last.Ref != "" {
		_, tree, err := tu.work.Worktree(ctx, r.Conv)
		if err != nil {
			return t, err
		}
		restored, err := tu.space.Restore(ctx, tree, last.Ref)
		if err != nil {
			return t, fmt.Errorf("restore the files: %w", err)
		}
		t.kept = restored.NotUndone
	}
	err = tu.store.InTx(ctx, func(tx *store.Tx) (err error) {
		if t.messages, err = tx.Messages().UndoTurn(ctx, last); err != nil {
			return err
		}
		if last.SessionID != "" && (!again || t.messages > 1) {
			if err := tx.Sessions().UpdateSession(ctx, last.SessionID, sessions.SessionUpdate{AssistantSessionID: new("")}); err != nil {
				return err
			}
		}
		done := undid + last.EntryID
		if err := tx.Inbox().UpdateEntry(ctx, r.Entry.ID, sessions.EntryUpdate{Error: &done}); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "turn.undo", ConversationID: r.Conv.ID, Target: last.EntryID})
	})
	if err != nil {
		return t, fmt.Errorf("take the turn back: %w", err)
	}
	tu.engine.ForgetSession(last.SessionID)
	return t, nil
}

func (tu *turns) fullCommand() command.Command {
	return command.Command{
		Name:    "full",
		Usage:   "full",
		Summary: "show all of the last answer where only its beginning and end were posted",
		Example: "full",
		Lane:    command.Job, // behind what is being answered, and in as many messages as it takes
		Reading: command.ReadingAnywhere,
		Run:     tu.runFull,
	}
}

// lookBack is how many messages are read at a time to find the last answer.
const lookBack = 50

// runFull shows the last answer again, all of it; or, for the button under one, the
// answer to the entry with a number of the inbox.
func (tu *turns) runFull(ctx context.Context, r command.Request) (command.Reply, error) {
	seq, err := answerNumber(r.Call.Args)
	if err != nil {
		return command.Reply{}, err
	}
	text, err := within(ctx, tu.store.InRead, func(tx *store.Tx) (string, error) {
		if seq > 0 {
			return answerTo(ctx, tx, r.Conv.ID, seq)
		}
		session, ok, err := tx.Sessions().ActiveSession(ctx, r.Conv.ID)
		if err != nil || !ok {
			return "", err
		}
		return lastAnswer(ctx, tx, session.ID)
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("read the last answer: %w", err)
	}
	switch {
	case text == "" && seq > 0:
		return command.Reply{Text: "That answer is no longer kept."}, nil
	case text == "":
		return command.Reply{Text: "There is no answer in this session yet."}, nil
	}
	return command.Reply{Text: text, Whole: true}, nil
}

// answerNumber returns the number that a button has put behind the command; 0 for none.
func answerNumber(args []string) (int64, error) {
	if len(args) == 0 {
		return 0, nil
	}
	seq, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || seq <= 0 || len(args) > 1 {
		return 0, fault.New(fault.Invalid, "This command takes no arguments; it shows all of the last answer.")
	}
	return seq, nil
}

// answerTo returns the text of what the assistant answered to an entry last; empty if
// nothing of it is kept.
func answerTo(ctx context.Context, tx *store.Tx, conversationID string, seq int64) (string, error) {
	entry, err := tx.Inbox().EntryNumbered(ctx, conversationID, seq)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	said, err := tx.Messages().RunMessages(ctx, entry.ID)
	if err != nil {
		return "", err
	}
	for _, m := range slices.Backward(said) {
		if text := m.PlainText(); m.Role == messages.RoleAssistant && text != "" {
			return text, nil
		}
	}
	return "", nil
}

// lastAnswer returns the text of the newest message of the assistant that says
// something; empty if there is none.
func lastAnswer(ctx context.Context, tx *store.Tx, session string) (string, error) {
	for before := int64(math.MaxInt64); ; {
		page, err := tx.Messages().MessagesBefore(ctx, session, before, lookBack)
		if err != nil || len(page) == 0 {
			return "", err
		}
		for _, m := range page { // newest first
			if text := m.PlainText(); m.Role == messages.RoleAssistant && text != "" {
				return text, nil
			}
		}
		before = page[len(page)-1].Seq
	}
}
