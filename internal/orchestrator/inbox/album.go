package inbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

const (
	// albumPause is how long the first message of an album waits for the others, which
	// come within a moment.
	albumPause = 700 * time.Millisecond

	// albumMost is how many files one message may come to have.
	albumMost = 100

	// albumLate is how long a message that came by itself waits for the one of its album
	// that is for the bot, which another process may receive; it is looked for every
	// albumLook.
	albumLate = 300 * time.Millisecond
	albumLook = 50 * time.Millisecond
)

// claimAlbum notes, for all processes, that the album of in is for the bot.
func claimAlbum(ctx context.Context, tx port.Tx, in messages.Inbound) error {
	if in.Album == "" || in.Private || in.OnlyAlbum {
		return nil
	}
	_, err := claim(ctx, tx, in, albumName(in))
	return err
}

// albumName is what claims an album, in place of an event's id.
func albumName(in messages.Inbound) messages.EventID { return messages.EventID("album/" + in.Album) }

// withAlbums leaves out messages of albums that are not for the bot. They are not stored
// anywhere: until it is known, the platform waits for the acknowledgment, and delivers
// them again if this process ends. What came together came in order; what came by itself
// may have overtaken the message that addresses the bot.
func (i *Inbox) withAlbums(ctx context.Context, events []messages.Inbound) ([]messages.Inbound, error) {
	if !slices.ContainsFunc(events, func(in messages.Inbound) bool { return in.OnlyAlbum }) {
		return events, nil
	}
	for until := time.Now().Add(albumLate); ; {
		ours, err := i.ofOurAlbums(ctx, events)
		if err != nil || len(events) > 1 || len(ours) == 1 || !time.Now().Before(until) {
			return ours, err
		}
		if err := platform.Sleep(ctx, albumLook); err != nil {
			return nil, err
		}
	}
}

// ofOurAlbums returns the events that are for the bot by themselves or with their album.
func (i *Inbox) ofOurAlbums(ctx context.Context, events []messages.Inbound) (ours []messages.Inbound, err error) {
	err = i.Storage.InRead(ctx, func(tx port.Tx) error {
		ours = ours[:0]
		for _, in := range events {
			known := !in.OnlyAlbum || slices.ContainsFunc(events, func(other messages.Inbound) bool {
				return !other.OnlyAlbum && other.Album == in.Album && other.Conversation == in.Conversation && other.Sender.ID == in.Sender.ID
			})
			if !known {
				name := in
				name.Event = albumName(in)
				if known, err = tx.Inbox().HasEntry(ctx, name); err != nil {
					return err
				}
			}
			if known {
				ours = append(ours, in)
			}
		}
		return nil
	})
	return ours, err
}

// acceptAlbum puts a message of an album into the inbox of its conversation: into the
// one of the same album that waits, if there is one, else as one that waits for the
// others.
func (i *Inbox) acceptAlbum(ctx context.Context, tx port.Tx, conv sessions.Conversation, a accepted) (accepted, error) {
	first, ok, err := waitingAlbum(ctx, tx, conv.ID, a.entry.In)
	if err != nil {
		return a, err
	}
	if ok {
		whole := joined(first.In, a.entry.In)
		withoutText(&a.entry.In)
		a.entry.State = sessions.EntryIgnored
		if a, err = i.store(ctx, tx, a); err != nil || !a.fresh {
			return a, err
		}
		_, err = tx.Inbox().ReplaceWaiting(ctx, conv.ID, first.In.Message, whole)
		return a, err
	}
	if a, err = i.crowd(ctx, tx, a); err != nil || a.overflow {
		return a, err
	}
	a.entry.NextAt = time.Now().Add(albumPause)
	if a, err = i.store(ctx, tx, a); err != nil || !a.fresh || conv.Leased {
		return a, err // its holder looks into the inbox before it leaves
	}
	return a, i.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: conv.ID, At: a.entry.NextAt})
}

// waitingAlbum returns the message of the same album and sender whose turn has not
// begun.
func waitingAlbum(ctx context.Context, tx port.Tx, conversationID string, in messages.Inbound) (sessions.Entry, bool, error) {
	waiting, err := tx.Inbox().WaitingEntries(ctx, conversationID, 0, albumMost)
	for _, e := range waiting {
		if e.In.Album == in.Album && e.In.Sender.ID == in.Sender.ID && e.Attempts == 0 {
			return e, true, nil
		}
	}
	return sessions.Entry{}, false, err
}

// editAlbum changes what is said with an album whose turn has not begun: in.Text takes the
// place of its caption, of which people see one, and the files of all its messages stay.
func editAlbum(ctx context.Context, tx port.Tx, conversationID string, in messages.Inbound) error {
	first, ok, err := waitingAlbum(ctx, tx, conversationID, in)
	if err != nil || !ok || in.Text == "" && in.Message != first.In.Message {
		return err // a message without the caption was changed
	}
	whole := first.In
	whole.Text, whole.Cited = in.Text, in.Cited
	_, err = tx.Inbox().ReplaceWaiting(ctx, conversationID, whole.Message, whole)
	return err
}

// joined is a message with what another one of its album has. What they reply to comes with each
// of them.
func joined(first, more messages.Inbound) messages.Inbound {
	first.Text = strings.Trim(first.Text+"\n"+more.Text, "\n")
	first.Cited = append(first.Cited, more.Cited...)
	for _, a := range more.Attachments {
		if a.Author == "" || !slices.Contains(first.Attachments, a) {
			first.Attachments = append(first.Attachments, a)
		}
	}
	first.Attachments = first.Attachments[:min(len(first.Attachments), albumMost)]
	if len(first.Quotes) == 0 {
		first.Quotes = more.Quotes
	}
	return first
}
