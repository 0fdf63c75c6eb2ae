package slack

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// keepEvery is how often open streams are looked after.
const keepEvery = time.Second

// lastCalls is how long streams may take to be closed when Run ends.
const lastCalls = 5 * time.Second

// keep looks after what calls of the orchestrator leave behind until ctx is done:
// open streams, and statuses that could not be taken away yet. While it runs
// streams are opened, and when it ends those that are open are closed, so that
// Slack does not show them as broken.
func (a *Adapter) keep(ctx context.Context) {
	a.streams.keep(true)
	defer a.closeStreams(ctx)
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, st := range a.streams.all() {
			a.keepStream(ctx, st)
		}
		a.clearLeft(ctx)
	}
}

// keepStream keeps one stream alive, or closes it when its time has come. One
// that an edit is working on needs nothing.
func (a *Adapter) keepStream(ctx context.Context, st *stream) {
	if !st.mu.TryLock() {
		return
	}
	defer st.mu.Unlock()
	idle := time.Since(st.touched)
	var err error
	switch {
	case st.over:
	case st.broken || idle >= deadAfter || time.Since(st.opened) >= streamFor || st.length >= maxStreamed:
		err = a.closeStream(ctx, st, platform.Edit{Text: st.text, Progress: true})
	case idle >= aliveEvery:
		// A character without width, which the final text replaces.
		err = a.appendTo(ctx, st, gap)
	}
	if err != nil && ctx.Err() == nil {
		a.log.DebugContext(ctx, "could not look after a stream", "conversation", st.key, "err", err)
	}
}

// closeStreams ends all streams; nothing more is appended to one.
func (a *Adapter) closeStreams(ctx context.Context) {
	a.streams.keep(false)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCalls)
	defer cancel()
	for _, st := range a.streams.all() {
		if !st.mu.TryLock() {
			continue // an edit works on it and closes it
		}
		if !st.over {
			if err := a.closeStream(ctx, st, platform.Edit{Text: st.text, Progress: true}); err != nil {
				a.log.InfoContext(ctx, "could not close a stream; whoever goes on with the answer does", "conversation", st.key, "err", err)
			}
		}
		st.mu.Unlock()
	}
}

// stoppedByPerson asks for a stop in the name of whoever the stream was for: that
// it takes no more text is a sign that a person pressed Slack's own Stop. Slack
// tells of that in an event, too, which is then the same gesture.
func (a *Adapter) stoppedByPerson(st *stream) {
	who := st.asker
	if !isID(who) {
		return // the event says who it was
	}
	in := messages.Inbound{
		Account:      st.to.account,
		Event:        eventID("halt", st.to.channel, st.ts),
		Aliases:      []messages.EventID{haltOf(st.to.channel, st.ts)},
		Kind:         messages.KindMessage,
		Conversation: st.key,
		Sender:       messages.Sender{ID: messages.UserID(who), Name: a.nameOf(who)},
		Private:      strings.HasPrefix(st.to.channel, "D"),
		Text:         "/stop",
		SentAt:       time.Now().UTC(),
	}
	select {
	case a.stops <- in:
	default:
	}
}

// haltOf is what all signs of the same stop have in common.
func haltOf(channel, ts string) messages.EventID { return eventID("halted", channel, ts) }

// tellStops passes stops on until ctx is done.
func (a *Adapter) tellStops(ctx context.Context, sink platform.Sink) {
	for {
		select {
		case <-ctx.Done():
			return
		case in := <-a.stops:
			wait := platform.NewBackoff(50*time.Millisecond, 2*time.Second)
			for ctx.Err() == nil {
				err := sink.Accept(ctx, in)
				if err == nil {
					break
				}
				a.observe("sink_error")
				a.log.WarnContext(ctx, "could not stop a turn whose stream was stopped, trying again", "err", err)
				_ = wait.Sleep(ctx, 0)
			}
		}
	}
}

// claimed says which delivery a message belongs to, and whether the message's
// metadata says so, too.
type claimed struct {
	delivery messages.DeliveryID
	attached bool
}

// claims remembers that of the newest messages.
type claims struct {
	*platform.Recent[string, claimed]
}

// noDelivery is written where a message has to be claimed for a delivery that
// only another process knew.
const noDelivery = messages.DeliveryID("-")

// metadata returns the metadata for a message.
func (c claims) metadata(id string) slack.MsgOption {
	known, _ := c.Get(id)
	if known.delivery == "" {
		known.delivery = noDelivery
	}
	return metadata(known.delivery)
}

// attached notes that a message has its metadata.
func (c claims) attached(id string) {
	known, _ := c.Get(id)
	known.attached = true
	c.Put(id, known)
}

// leftovers are statuses that could not be taken away when their turn ended.
type leftovers struct {
	mu    sync.Mutex // guards keys
	keyed map[string]messages.ConversationKey
}

// add remembers one. Beyond maxKept of them, what is left stands until Slack
// takes it away.
func (l *leftovers) add(key messages.ConversationKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keyed == nil {
		l.keyed = make(map[string]messages.ConversationKey)
	}
	if len(l.keyed) < maxKept {
		l.keyed[key.ID] = key
	}
}

// done forgets one that was taken away, or that a new turn needs again.
func (l *leftovers) done(key messages.ConversationKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.keyed, key.ID)
}

// one returns any of them.
func (l *leftovers) one() (messages.ConversationKey, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range l.keyed {
		return key, true
	}
	return messages.ConversationKey{}, false
}
