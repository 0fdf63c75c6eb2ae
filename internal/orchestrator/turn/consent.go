package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// NeedsClone is an error of Worktrees.Prepare: a repository has to be cloned
// before anything can run here, and a person has to allow that. It is asked in
// the chat, the message waits for the answer, and once it is cloned nobody is
// asked again.
type NeedsClone struct {
	Codebase string // its name
	URL      string
	Why      string // what is missing, as a sentence
}

// Error implements error.
func (n *NeedsClone) Error() string { return "not cloned: " + n.URL }

// mayClone asks whether a repository may be cloned, and has it done once
// somebody has said so. Nothing of the entry's turn has begun. Repeating it is
// safe: the question is found again, and so is the clone.
func (b beginning) mayClone(ctx context.Context, need *NeedsClone) (decision, error) {
	asked, err := (&run{w: b.worker, d: decision{entry: b.entry}}).consult(ctx, b.tx, approval.Approval{
		CallID: approval.ToolClone, Tool: approval.ToolClone, Arguments: need.URL, Kind: assistant.KindNetwork,
		Title:  "Clone " + need.URL,
		Detail: need.Why + " It is cloned once, for everyone who works on " + need.Codebase + ", and then your message is answered.",
	}, 0)
	switch {
	case err != nil:
		return decision{}, err
	case asked.waits:
		at := asked.approval.ExpiresAt
		if err := b.tx.Inbox().UpdateEntry(ctx, b.entry.ID, sessions.EntryUpdate{NextAt: &at}); err != nil {
			return decision{}, err
		}
		delete(b.ready, b.entry.ID) // by then it may be there
		err := b.o.config.Queue.Enqueue(ctx, b.tx, queue.Job{Kind: queue.KindTurn, Key: b.conv.ID, At: at})
		return decision{what: settled}, err // the next step brings the question
	case !asked.verdict.Allow:
		return b.settle(ctx, sessions.EntryFailed, need.Error(),
			"✖ "+need.Codebase+" was not cloned, so your message was not answered. `"+b.o.outbox.Prefix(b.conv.Key)+"clone "+need.URL+"` clones it later.")
	}
	delete(b.ready, b.entry.ID)
	b.mayGet = need
	return decision{what: prepare, entry: b.entry}, nil
}

// needsClone returns what has to be cloned first, nil if err is something else.
func needsClone(err error) *NeedsClone {
	need, _ := errors.AsType[*NeedsClone](err)
	return need
}

// getRepository clones what a person has allowed, once, and reports whether there
// was something.
func (pr preparation) getRepository(ctx context.Context) (cloned bool, err error) {
	need := pr.mayGet
	if pr.mayGet = nil; need == nil {
		return false, nil
	}
	begin := time.Now()
	if err := pr.o.config.Worktrees.Clone(ctx, need.URL); err != nil {
		return false, err
	}
	err = pr.o.config.Storage.InRead(ctx, func(tx port.Tx) error { // its folder may be written otherwise now
		var err error
		pr.conv, err = tx.Conversations().Conversation(ctx, pr.conv.ID)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read the conversation: %w", err)
	}
	pr.o.config.Log.InfoContext(ctx, "cloned a missing repository", "url", need.URL, "duration_ms", time.Since(begin).Milliseconds())
	return true, nil
}
