package outbox

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// Refusals have a bucket of their own on each platform; what exceeds it, or finds
// the few places before the sender taken, is dropped.
const (
	refuseBurst, refuseEvery = 10, 2 * time.Second
	refusalsWaiting          = 8

	// refusalPatience is how long one waits for the platform's limits, which is more than what
	// was sent just before takes, such as the card about the stranger.
	refusalPatience = 5 * time.Second

	// toldEvery is how often a stranger is told no.
	toldEvery = 24 * time.Hour

	// maxTold bounds the memory of who was told that they could not be checked.
	maxTold = 4096
)

// refusals bounds what it costs on one platform to tell people no.
type refusals struct {
	limit *rate.Limiter
	queue chan refusal
	told  *platform.Recent[messages.UserID, time.Time]

	again *platform.Recent[answered, answer]
}

// answered is a stranger who was answered: because they asked, or by the way.
type answered struct {
	id    messages.UserID
	asked bool
}

// answer is when a stranger was answered, and the event that was.
type answer struct {
	at    time.Time
	event messages.EventID
}

// refusal is a text that tells somebody no.
type refusal struct {
	in   messages.Inbound
	text string
}

func newRefusals() *refusals {
	return &refusals{
		limit: rate.NewLimiter(rate.Every(refuseEvery), refuseBurst),
		queue: make(chan refusal, refusalsWaiting),
		told:  platform.NewRecent[messages.UserID, time.Time](maxTold),
		again: platform.NewRecent[answered, answer](maxTold),
	}
}

// free takes a place among the refusals, if one is left. The bucket decides before
// anything is stored, so that whoever is not told now is told when they write again.
func (r *refusals) free() bool {
	return r != nil && len(r.queue) < cap(r.queue) && r.limit.Allow()
}

// RefusalDue reports whether a stranger is to be told no now, and remembers it.
// With takes it takes a place among the refusals; whoever finds none is told when they
// write again.
func (o *Outbox) RefusalDue(ctx context.Context, tx port.Tx, in messages.Inbound, takes bool) (bool, error) {
	p := in.Conversation.Platform
	who, known, err := tx.People().Identity(ctx, p, in.Sender.ID)
	if err != nil {
		return false, err
	}
	now := time.Now()
	if known && now.Sub(who.RefusedAt) < toldEvery || takes && !o.refusals[p].free() {
		return false, nil
	}
	if !known {
		who = sessions.Identity{Platform: p, UserID: in.Sender.ID, Role: sessions.Stranger}
	}
	who.Name, who.RefusedAt = in.Sender.Name, now // the role stays what it is
	return true, tx.People().SaveIdentity(ctx, who)
}

// AnswerAgain reports whether a stranger can be told something now who was told
// something before, which is remembered in this process: once in every, apart for those
// who asked, and if there is a place among the refusals, which is taken. Of the same
// event it says the same again: the transaction that asks may be repeated.
func (o *Outbox) AnswerAgain(in messages.Inbound, asked bool, every time.Duration) bool {
	r := o.refusals[in.Conversation.Platform]
	if r == nil {
		return false
	}
	now, key := time.Now(), answered{in.Sender.ID, asked}
	last, ok := r.again.Get(key)
	if ok && last.event == in.Event {
		return true
	}
	if ok && now.Sub(last.at) < every || !r.free() {
		return false
	}
	r.again.Put(key, answer{now, in.Event})
	return true
}

// Refuse hands a refusal to the platform's sender. It never waits: where too many
// are on their way it is dropped.
func (o *Outbox) Refuse(in messages.Inbound, text string) {
	r := o.refusals[in.Conversation.Platform]
	if r == nil {
		return
	}
	select {
	case r.queue <- refusal{in, text}:
	default:
	}
}

// TextUnchecked is said when the platform did not answer who may use the bot.
const TextUnchecked = "Could not check your access, so nothing was done. Try again in a few minutes, or tell an operator."

// RefuseUnadmitted tells someone whom the platform does not admit so; why says why
// it did not answer, if it did not.
func (o *Outbox) RefuseUnadmitted(in messages.Inbound, why error) {
	text := "Only people with write access can use the bot here."
	if why != nil {
		text = TextUnchecked
	}
	o.Refuse(in, text)
}

// RefuseBusy tells somebody, once an hour, that it could not be checked who they are.
func (o *Outbox) RefuseBusy(in messages.Inbound) {
	r := o.refusals[in.Conversation.Platform]
	if r == nil || in.Kind != messages.KindMessage {
		return
	}
	now := time.Now()
	if at, ok := r.told.Get(in.Sender.ID); ok && now.Sub(at) < time.Hour || !r.free() {
		return
	}
	r.told.Put(in.Sender.ID, now)
	o.Refuse(in, "Too many new people are writing here, so your access could not be checked. If there is no answer in a few minutes, ask again.")
}

// SendRefusals tells strangers no, one after the other on each platform, until ctx
// is done. A stranger's message is not an accepted one: its refusal has no delivery
// record and is sent at most once, if the platform's limits leave room for it soon.
func (o *Outbox) SendRefusals(ctx context.Context) {
	for p, r := range o.refusals {
		o.Background.Go(func(context.Context) {
			for {
				select {
				case <-ctx.Done():
					return
				case next := <-r.queue:
					o.sendRefusal(ctx, o.Adapters[p], next)
				}
			}
		})
	}
}

func (o *Outbox) sendRefusal(ctx context.Context, adapter platform.Adapter, r refusal) {
	ctx, cancel := context.WithTimeout(ctx, bestEffort)
	defer cancel()
	out := messages.Outbound{Conversation: r.in.Conversation, ReplyTo: r.in.Message, Text: r.text, Optional: true}
	if !r.in.Private {
		out.OnlyFor = r.in.Sender.ID // where they are alone it stays, also when they come back
	}
	until := time.Now().Add(refusalPatience)
	_, err := adapter.Send(ctx, out)
	for fault.Is(err, fault.RateLimited) { // nothing was sent
		after, again := fault.Retry(err)
		if !again || after <= 0 || time.Now().Add(after).After(until) || platform.Sleep(ctx, after) != nil {
			break
		}
		_, err = adapter.Send(ctx, out)
	}
	if err != nil {
		o.Log.InfoContext(ctx, "could not send a refusal", "conversation", r.in.Conversation, "err", err)
	}
}
