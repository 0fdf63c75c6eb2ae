package chaos

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/emulator"
)

// trouble is what goes wrong besides calls, in the order of the seed.
type trouble string

// The troubles.
const (
	kill      trouble = "kill"
	catchUp   trouble = "catch up" // all that was said before is answered first
	orderly   trouble = "an orderly restart"
	frozen    trouble = "a process stands still"
	fullDisk  trouble = "the disk is full"
	slowDisk  trouble = "the disk is slow"
	awayNow   trouble = "the platform answers nothing but 503"
	databases trouble = "database"
	clockJump trouble = "the platform's clock jumps"
)

// clockJumps is how far the platform's clock may be from that of the bots, which is how a
// bot sees that its own was set. Slack's signatures hold for five minutes.
const clockJumps = 4 * time.Minute

// clock is the platform's.
func (r *run) clock() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }

// next returns the i-th trouble. Of ten, six are kills.
func (r *run) next(i int) trouble {
	switch x := r.rnd.IntN(20); {
	case i%7 == 6:
		return catchUp // a message that is begun fifteen times is given up
	case r.opts.JustKill || x < 12:
		return kill
	case x < 14:
		return clockJump
	case x == 14:
		return orderly
	case x == 15:
		return frozen
	case x == 16:
		return fullDisk
	case x == 17:
		return slowDisk
	case x == 18:
		return awayNow
	default:
		return databases
	}
}

// trouble makes trouble until ctx ends or enough were killed.
func (r *run) trouble(ctx context.Context) error {
	if r.opts.Calm {
		return r.soak(ctx)
	}
	for i := 0; ctx.Err() == nil && (r.opts.Kills == 0 || r.report.Kills < r.opts.Kills); i++ {
		what := r.next(i)
		// All that is drawn is drawn here, so that the plan does not depend on what
		// happens.
		d := draw{
			victim: r.bots[r.rnd.IntN(len(r.bots))], moment: allMoments[r.rnd.IntN(len(allMoments))], n: 1 + r.rnd.IntN(6),
			long: time.Duration(r.rnd.Int64N(int64(1750 * time.Millisecond))), short: time.Duration(r.rnd.Int64N(int64(8 * time.Millisecond))), x: r.rnd.Float64(),
		}
		if r.opts.JustKill {
			d.moment = anytime
		}
		err := r.happen(ctx, what, d)
		for _, b := range r.bots {
			if b.ended() {
				return fmt.Errorf("%s, after %q: %w", b.name, what, b.process.Early())
			}
		}
		if err != nil {
			return err
		}
		r.platform.again(d.x)
	}
	return nil
}

// draw is what is left to chance of a trouble.
type draw struct {
	victim      *bot
	moment      moment
	n           int
	long, short time.Duration
	x           float64
}

func (r *run) happen(ctx context.Context, what trouble, d draw) error {
	span := 300*time.Millisecond + d.long
	switch what {
	case kill:
		return r.kill(ctx, d)
	case catchUp:
		r.catchUp(ctx)
		return nil
	case orderly:
		if err := d.victim.ready(ctx); err != nil {
			return r.unlessOver(ctx, err)
		}
		r.count(string(what))
		if err := d.victim.stop(); err != nil {
			return err
		}
		return d.victim.start() //nolint:contextcheck // a process outlives the context
	case frozen:
		return r.during(ctx, what, span, d.victim.freeze, d.victim.thaw)
	case fullDisk:
		if r.db.url != "" {
			r.skip(what, "the disk of a PostgreSQL server cannot be filled without root")
			return nil
		}
		if err := d.victim.ready(ctx); err != nil { // it does not start on a full disk, and says so
			return r.unlessOver(ctx, err)
		}
		return r.during(ctx, what, span, func() error { return d.victim.limitFiles(1) }, func() error { return d.victim.limitFiles(unlimited) })
	case slowDisk:
		back := context.WithoutCancel(ctx)
		return r.during(ctx, what, span, func() error { return r.db.delay(ctx, 100*time.Millisecond) }, func() error { return r.db.delay(back, 0) })
	case clockJump:
		r.ahead.Store(int64((2*d.x - 1) * float64(clockJumps)))
		r.count(string(what))
		return nil
	case awayNow:
		return r.during(ctx, what, span, func() error { r.talk.away.Store(true); return nil }, func() error { r.talk.away.Store(false); return nil })
	default:
		if r.db.url == "" {
			return nil // SQLite is in the process, and dies with it
		}
		for _, b := range r.bots { // none starts without its database
			if err := b.ready(ctx); err != nil {
				return r.unlessOver(ctx, err)
			}
		}
		begin := time.Now()
		name, err := r.db.restart(context.WithoutCancel(ctx))
		r.count(name)
		r.doubt(begin)
		return err
	}
}

// unlessOver returns an error, or nil if the time is over and that is why.
func (*run) unlessOver(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// during does something, and takes it back after a while. What cannot be done here is
// said in the report.
func (r *run) during(ctx context.Context, what trouble, span time.Duration, do, back func() error) error {
	if err := do(); err != nil {
		r.skip(what, err.Error())
		return nil //nolint:nilerr // it is in the report
	}
	r.count(string(what))
	begin := time.Now()
	_ = emulator.Sleep(ctx, span) // or the end
	err := back()
	if what != awayNow {
		r.doubt(begin)
	}
	return err
}

// kill ends a process with SIGKILL at a moment, and starts another one at once.
func (r *run) kill(ctx context.Context, d draw) error {
	wait := 50*time.Millisecond + d.long - time.Since(d.victim.started)
	if r.opts.KillEach > 0 {
		wait = r.opts.KillEach - time.Since(d.victim.started)
		if len(r.bots) > 1 {
			wait = r.opts.KillEach - time.Since(r.lastKill)
		}
	}
	where := d.moment
	switch where {
	case starting:
		if r.opts.KillEach > 0 {
			_ = emulator.Sleep(ctx, wait)
		}
		d.victim.kill()
		if err := d.victim.start(); err != nil { //nolint:contextcheck // a process outlives the context
			return err
		}
		_ = emulator.Sleep(ctx, d.short*10)
	case anytime:
		_ = emulator.Sleep(ctx, wait)
	default:
		_ = emulator.Sleep(ctx, wait/2)
		where = r.await(ctx, d)
	}
	if ctx.Err() != nil && !d.victim.ended() {
		return nil
	}
	if err := d.victim.prepare(r.opts.OnKill); err != nil {
		return err
	}
	d.victim.kill()
	r.killed(where)
	return d.victim.start() //nolint:contextcheck // a process outlives the context
}

// await waits for a moment and kills in it, if it comes.
func (r *run) await(ctx context.Context, d draw) moment {
	there := make(chan struct{})
	r.moments.arm(d.moment, d.n, func() {
		if d.moment == called { // nobody may hear what became of the call
			d.victim.kill()
		}
		close(there)
	})
	late := time.NewTimer(3 * time.Second)
	defer late.Stop()
	select {
	case <-there:
	case <-late.C:
	case <-ctx.Done():
	}
	if !r.moments.disarm() {
		return anytime
	}
	<-there // a kill that has begun is not taken for an end of the bot's own
	_ = emulator.Sleep(ctx, d.short)
	return d.moment
}

// catchUp waits until all that was said is answered, if that is soon.
func (r *run) catchUp(ctx context.Context) {
	before := time.Now()
	for range 500 {
		if len(r.book.Unanswered(before)) == 0 || emulator.Sleep(ctx, 20*time.Millisecond) != nil {
			return
		}
	}
	r.count("not caught up within 10 s")
}
