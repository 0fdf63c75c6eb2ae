package app

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/localsocket"
	"remote-agent/internal/platform"
	"remote-agent/internal/store"
)

// run runs all parts until ctx is done. What fetches work ends with it; what is sent
// to us is taken until the running turns have ended or SHUTDOWN_GRACE is over, and is
// then left to the next process or to another replica. The database is closed by close.
func (d *daemon) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	doors, closeDoors := context.WithCancel(context.WithoutCancel(ctx))
	defer closeDoors()
	endChores := d.chores.Open(ctx)
	defer d.chores.Close(endChores, 0)
	var intake errgroup.Group
	if err := d.beginLife(ctx, doors, &intake); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.core.Run(ctx) })
	intake.Go(func() error {
		err := d.web.Run(doors)
		if err != nil {
			stop()
		}
		return err
	})
	if l := d.listenLocally(ctx); l != nil {
		intake.Go(func() error { return localsocket.Serve(doors, l, d.local()) })
	}
	d.banner(ctx)
	d.sayAccess(ctx)
	d.offerOwnership(ctx)
	for _, a := range d.platforms.adapters {
		if d.platforms.intakeOf(a) != platform.Polled { // a webhook, or a socket: the platform would not keep what it sends
			intake.Go(func() error {
				d.receive(doors, a)
				return nil
			})
			continue
		}
		group.Go(func() error {
			d.receive(ctx, a)
			return nil
		})
	}
	d.runHelpers(ctx, group, stop)
	if d.env.Started != nil {
		d.env.Started(Info{Addr: d.web.Addr()})
	}
	<-ctx.Done()
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.current().ShutdownGrace)
	defer cancel()
	d.web.Drain()
	d.changes.Close()
	d.log.InfoContext(ctx, "stopping", "running_turns", d.core.RunningTurns())
	err := group.Wait()
	d.web.AwaitWatchers(over)
	closeDoors()
	if last := intake.Wait(); err == nil || errors.Is(err, context.Canceled) {
		err = last
	}
	return err
}

// beginLife has other replicas know that this one lives, until doors ends, and takes
// over from those that die.
func (d *daemon) beginLife(ctx, doors context.Context, group *errgroup.Group) error {
	aside := func(work func()) { // the life goes on meanwhile
		group.Go(func() error {
			work()
			return nil
		})
	}
	life, err := d.store.BeginLife(ctx, store.LifeConfig{
		Owner: d.core.Owner(), Log: d.log, Lost: d.core.LeasesLost,
		Died:    func(ctx context.Context, _ []string) { aside(func() { d.core.TakeOver(ctx) }) },
		Offered: func(ctx context.Context, ids []string) { aside(func() { d.core.Offered(ctx, ids) }) },
	})
	if err != nil {
		return d.store.Explain(err)
	}
	group.Go(func() error {
		life.Run(doors)
		return nil
	})
	return nil
}

// runHelpers runs what works beside the conversations.
func (d *daemon) runHelpers(ctx context.Context, group *errgroup.Group, stop context.CancelFunc) {
	helper := func(wanted bool, run func(context.Context)) {
		if wanted {
			group.Go(func() error {
				run(ctx)
				return nil
			})
		}
	}
	care := caretaker{d.store, d.files, d.work, d.tools, d.leases, d.config.Retention, d.log}
	helper(d.space != nil, care.sweepWorktrees)
	helper(d.space != nil, care.maintainRepositories)
	if d.memory.service != nil {
		helper(true, d.memory.service.Run)
	}
	helper(true, care.keepIndexes)
	if d.memory.learner != nil {
		helper(true, d.memory.learner.Run)
	}
	helper(true, care.tidyFiles)
	helper(true, d.relay.Run)
	trouble := &incidents{backups: d.config.BackupDir, limits: d.budget, store: d.store, people: d.people, platforms: &d.platforms, core: d.core, leases: d.leases, log: d.log,
		room: func() error { return databaseDisk(d.config) }}
	helper(true, trouble.watch)
	helper(true, care.sumUsage)
	helper(d.config.Retention != (config.Retention{}), care.sweepRetention)
	helper(d.env.Beside != nil, d.env.Beside)
	helper(d.env.Reload != nil, func(ctx context.Context) { d.awaitReload(ctx, stop) })
	helper(d.env.Console, func(ctx context.Context) { d.endWithConsole(ctx, stop) })
}

// receive runs an adapter until ctx ends. One that needs an operator is logged
// and the others go on.
func (d *daemon) receive(ctx context.Context, a platform.Adapter) {
	log := d.log.With("platform", a.Platform())
	run := func(ctx context.Context) error {
		d.metrics.Connected(string(a.Platform()), true)
		defer d.metrics.Connected(string(a.Platform()), false)
		d.platforms.links.connected(a.Platform(), time.Now())
		defer d.platforms.links.connected(a.Platform(), time.Time{})
		return a.Run(ctx, d.core)
	}
	name, err := d.platforms.singleton(ctx, a)
	switch {
	case err != nil:
	case name != "":
		err = d.leases.run(ctx, name, run)
	default:
		err = run(ctx)
	}
	if err != nil && ctx.Err() == nil {
		d.platforms.links.failed(a.Platform(), err, time.Now())
		log.ErrorContext(ctx, "a platform is off until the bot is restarted", "reason", fault.Public(err), "err", err)
	}
}

// ownPlatforms are the console and the browser, which are always there.
const ownPlatforms = 2

// endWithConsole stops the daemon when the console has ended and no other platform
// is connected, or nothing else was wanted.
func (d *daemon) endWithConsole(ctx context.Context, stop context.CancelFunc) {
	select {
	case <-ctx.Done():
	case <-d.platforms.console.Ended():
		if len(d.platforms.adapters) == ownPlatforms || d.env.Chat != nil {
			stop()
			return
		}
		if d.piped != nil {
			d.log.WarnContext(ctx, "the console has ended; the bot keeps running", "reason", fault.Public(d.piped), "err", d.piped)
			d.piped = nil
		}
		if d.env.Terminal {
			d.notices.say("This chat has ended; the bot keeps running. Press Ctrl-C to stop it.\n")
		}
	}
}
