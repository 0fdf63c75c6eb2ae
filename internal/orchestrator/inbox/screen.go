package inbox

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// What strangers may cost on one platform. Within the first rate a message of
// theirs is recorded, in a transaction; beyond it, who they are is read and the
// message is counted.
const (
	recordBurst, recordEvery = 100, time.Second / 5

	// dropsEvery is how often it is logged how many messages were only counted.
	dropsEvery = 30 * time.Second
)

// strangers bounds what people without access cost on one platform. It is safe
// for concurrent use.
type strangers struct {
	records *rate.Limiter

	mu      sync.Mutex // guards what follows
	dropped int        // since it was logged
	logged  time.Time
}

func newStrangers() *strangers {
	return &strangers{records: rate.NewLimiter(rate.Every(recordEvery), recordBurst)}
}

// flooded reports whether more of them write than is recorded.
func (s *strangers) flooded() bool { return s.records.Tokens() < 1 }

// recorded takes what one record costs, also below zero: those that were on their
// way at the same moment are paid back before others are recorded.
func (s *strangers) recorded() { s.records.Reserve() }

// drop counts a message of which nothing is kept. It returns how many there were
// since the last time that was logged, or 0 if it is not to be logged now.
func (s *strangers) drop(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped++
	if now.Sub(s.logged) < dropsEvery {
		return 0
	}
	n := s.dropped
	s.dropped, s.logged = 0, now
	return n
}

// screen returns the events that are worth a transaction. While more strangers
// write than is recorded, it takes out what comes from them: it is acknowledged
// and counted, and nothing depends on it. Who is a stranger is read from the
// database each time, so that whoever was let in, on any replica, is served at once.
func (i *Inbox) screen(ctx context.Context, events []messages.Inbound) ([]messages.Inbound, error) {
	keep := make([]messages.Inbound, 0, len(events))
	var unsure []int // places in keep
	for _, in := range events {
		switch i.worth(in) {
		case platform.ScreenDenied:
			i.dropStranger(ctx, in)
			continue
		case platform.ScreenBusy:
			i.dropStranger(ctx, in)
			i.Outbox.RefuseBusy(in)
			continue
		case platform.ScreenAsk:
		}
		if s := i.strangers[in.Conversation.Platform]; s != nil && s.flooded() && byPerson(in) && access.OwnerCode(in) == "" {
			unsure = append(unsure, len(keep))
		}
		keep = append(keep, in)
	}
	if len(unsure) == 0 {
		return keep, nil
	}
	var out map[int]bool
	err := i.Storage.InRead(ctx, func(tx port.Tx) error {
		out = make(map[int]bool)
		for _, at := range unsure {
			v, err := i.Access.Authorize(ctx, tx, keep[at]) // without a code it only reads
			if err != nil {
				return err
			}
			out[at] = v.Role == sessions.Stranger
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rest := keep[:0]
	for at, in := range keep {
		if out[at] {
			i.dropStranger(ctx, in)
			continue
		}
		rest = append(rest, in)
	}
	return rest, nil
}

// worth asks a platform that knows who may write whether it can be asked about the
// sender of in.
func (i *Inbox) worth(in messages.Inbound) platform.Screening {
	if s, ok := i.Outbox.Adapters[in.Conversation.Platform].(platform.Screener); ok && byPerson(in) {
		return s.Screen(in)
	}
	return platform.ScreenAsk
}

// byPerson reports whether in is something that somebody of the platform did and that
// needs a right: what else a platform tells is never screened, and who comes from outside
// has an account elsewhere, which the platform does not know.
func byPerson(in messages.Inbound) bool {
	return !in.Outside() && (in.Kind == messages.KindMessage || in.Kind == messages.KindEdit || in.Kind == messages.KindAction)
}

func (i *Inbox) dropStranger(ctx context.Context, in messages.Inbound) {
	p := in.Conversation.Platform
	i.Metrics.Refused(string(p))
	s := i.strangers[p]
	if s == nil {
		return
	}
	if n := s.drop(time.Now()); n > 0 {
		i.Log.WarnContext(ctx, "many strangers write: their messages are counted and not recorded one by one", "platform", p, "messages", n)
	}
}
