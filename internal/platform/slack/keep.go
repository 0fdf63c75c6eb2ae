package slack

import (
	"context"
	"strings"
	"time"

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
func (s *streams) keep(ctx context.Context) {
	s.set.keep(true)
	defer s.closeStreams(ctx)
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, st := range s.set.all() {
			s.keepStream(ctx, st)
		}
		s.statuses.clearLeft(ctx)
	}
}

// keepStream keeps one stream alive, or closes it when its time has come. One
// that an edit is working on needs nothing.
func (s *streams) keepStream(ctx context.Context, st *stream) {
	if !st.mu.TryLock() {
		return
	}
	defer st.mu.Unlock()
	idle := time.Since(st.touched)
	var err error
	switch {
	case st.over:
	case st.broken || idle >= deadAfter || time.Since(st.opened) >= streamFor || st.length >= maxStreamed:
		err = s.closeStream(ctx, st, platform.Edit{Text: st.text, Progress: true})
	case idle >= aliveEvery:
		// A character without width, which the final text replaces.
		err = s.appendTo(ctx, st, gap)
	}
	if err != nil && ctx.Err() == nil {
		s.log.DebugContext(ctx, "could not look after a stream", "conversation", st.key, "err", err)
	}
}

// closeStreams ends all streams; nothing more is appended to one.
func (s *streams) closeStreams(ctx context.Context) {
	s.set.keep(false)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCalls)
	defer cancel()
	for _, st := range s.set.all() {
		if !st.mu.TryLock() {
			continue // an edit works on it and closes it
		}
		if !st.over {
			if err := s.closeStream(ctx, st, platform.Edit{Text: st.text, Progress: true}); err != nil {
				s.log.InfoContext(ctx, "could not close a stream; whoever goes on with the answer does", "conversation", st.key, "err", err)
			}
		}
		st.mu.Unlock()
	}
}

// stoppedByPerson asks for a stop in the name of whoever the stream was for: that
// it takes no more text is a sign that a person pressed Slack's own Stop. Slack
// tells of that in an event, too, which is then the same gesture.
func (s *streams) stoppedByPerson(st *stream) {
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
		Sender:       messages.Sender{ID: messages.UserID(who), Name: s.people.nameOf(who)},
		Private:      strings.HasPrefix(st.to.channel, "D"),
		Text:         "/stop",
		SentAt:       time.Now().UTC(),
	}
	select {
	case s.stops <- in:
	default:
	}
}

// haltOf is what all signs of the same stop have in common.
func haltOf(channel, ts string) messages.EventID { return eventID("halted", channel, ts) }

// tellStops passes stops on until ctx is done.
func (s *streams) tellStops(ctx context.Context, sink platform.Sink) {
	for {
		select {
		case <-ctx.Done():
			return
		case in := <-s.stops:
			wait := platform.NewBackoff(50*time.Millisecond, 2*time.Second)
			for ctx.Err() == nil {
				err := sink.Accept(ctx, in)
				if err == nil {
					break
				}
				s.observe("sink_error")
				s.log.WarnContext(ctx, "could not stop a turn whose stream was stopped, trying again", "err", err)
				_ = wait.Sleep(ctx, 0)
			}
		}
	}
}
