package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"remote-agent/internal/chaos/ledger"
	"remote-agent/internal/emulator"
)

// talk is what people say. In each chat somebody waits until a message was accepted
// before the next one, so that the order is certain, and at most three are open.
type talk struct {
	run    *run
	rnd    *rand.Rand
	faults atomic.Bool // calls may fail
	away   atomic.Bool // the platform answers nothing but 503

	coming int  // of the crowd, not accepted yet
	worked Work // before it came

	chats  []chat
	open   []sent // whose acknowledgement is still to come
	looked time.Time
}

// chat is where somebody talks: in one conversation after the other.
type chat struct{ conversation, said int }

// sent is a message on its way.
type sent struct {
	conversation, n int
	accepted        receipt
	crowd           bool
}

const mostOpen = 3

func newTalk(r *run) *talk {
	t := &talk{run: r, rnd: rand.New(rand.NewPCG(r.opts.Seed, 2)), chats: make([]chat, r.opts.Chats)} //nolint:gosec // to be repeated, not to be secret
	t.faults.Store(!r.opts.Calm)
	for i := range t.chats {
		t.chats[i].conversation = t.begin()
	}
	return t
}

func (t *talk) begin() int {
	return t.run.book.Open()
}

// share is the share of calls that fail now.
func (t *talk) share() float64 {
	if !t.faults.Load() {
		return 0
	}
	return t.run.opts.Faults
}

// crowdAfter is when the crowd comes: people were there before.
const crowdAfter = 10 * time.Second

// crowd has many people say something at once.
func (t *talk) crowd() {
	t.coming = t.run.opts.Burst
	t.worked, _ = t.run.bots[0].worked() // zero where the system does not tell
	for i := range t.run.opts.Burst {
		t.say(t.run.book.OpenInCrowd(), ledger.Short)
		t.open[len(t.open)-1].crowd = true
		if i%100 == 0 {
			t.look()
		}
	}
}

// people lets people talk until ctx ends.
func (t *talk) people(ctx context.Context) {
	crowd := sync.OnceFunc(t.crowd)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	begin, said, told := time.Now(), 0, time.Now()
	for ctx.Err() == nil {
		<-tick.C
		t.look()
		for due := int(time.Since(begin).Seconds() * t.run.opts.Rate); said < due; said++ {
			t.one()
		}
		if time.Since(begin) > crowdAfter {
			crowd()
		}
		if time.Since(told) > 15*time.Second {
			told = time.Now()
			t.run.progress()
		}
	}
}

// one lets somebody say something, if there is anybody who would.
func (t *talk) one() {
	first := t.rnd.IntN(len(t.chats))
	kind := ledger.Short
	switch x := t.rnd.IntN(10); {
	case x < 2:
		kind = ledger.Slow
	case x < 3 && !t.run.opts.Calm: // a soak says how much an ordinary turn stores
		kind = ledger.Long
	}
	for i := range t.chats {
		c := &t.chats[(first+i)%len(t.chats)]
		unanswered, unaccepted := t.run.book.Waiting(c.conversation)
		if unanswered >= mostOpen || unaccepted > 0 {
			continue
		}
		if c.said >= t.run.platform.lifetime() {
			*c = chat{conversation: t.begin()}
		}
		c.said++
		t.say(c.conversation, kind)
		return
	}
}

func (t *talk) say(conversation int, kind ledger.Kind) {
	n, text := t.run.book.Say(conversation, kind, time.Now())
	accepted := t.run.platform.say(conversation, text)
	time.AfterFunc(time.Millisecond, func() { t.run.moments.come(delivered) }) // a poll waits for it
	t.open = append(t.open, sent{conversation: conversation, n: n, accepted: accepted})
}

// look notes what was accepted meanwhile.
func (t *talk) look() {
	now := time.Now()
	if now.Sub(t.looked) < time.Duration(len(t.open))*10*time.Microsecond {
		return // with a crowd, looking would take what the program needs
	}
	t.looked = now
	left, coming := t.open[:0], t.coming
	for _, s := range t.open {
		if s.accepted() {
			t.run.book.Accept(s.conversation, s.n, now)
			if s.crowd {
				t.coming--
			}
		} else {
			left = append(left, s)
		}
	}
	t.open = left
	if coming > 0 && t.coming == 0 {
		t.came()
	}
}

// came notes what it took to accept the crowd.
func (t *talk) came() {
	work, err := t.run.bots[0].worked()
	if err != nil || t.worked.Bot == 0 {
		return
	}
	n := time.Duration(t.run.opts.Burst)
	t.run.report.CrowdWork = &Work{Bot: (work.Bot - t.worked.Bot) / n, Emulators: (work.Emulators - t.worked.Emulators) / n}
}

// settle waits until everything is accepted and answered, or ctx ends.
func (t *talk) settle(ctx context.Context) {
	for emulator.Sleep(ctx, 20*time.Millisecond) == nil {
		t.look()
		if len(t.open) == 0 && len(t.run.book.Unanswered(time.Now())) == 0 {
			return
		}
	}
}
