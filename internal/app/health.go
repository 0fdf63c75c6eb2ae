package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"remote-agent/internal/backup"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/resource"
	"remote-agent/internal/store"
	"remote-agent/internal/web"
)

// planResources compares what the configuration asks for with what this machine
// gives, lowers what does not fit, and warns.
func planResources(ctx context.Context, cfg config.Config, log *slog.Logger) resource.Plan {
	limits := resource.Read(os.DirFS("/"))
	_, asks := modelOf(cfg)
	want := resource.Want{Conversations: cfg.MaxConversations, Agents: !asks && cfg.Assistant != config.AssistantDemo}
	for _, k := range kindsOf(cfg) {
		if k.On() {
			want.Platforms++
		}
	}
	if cfg.Database.Driver == config.DriverPostgres {
		want.Database = 20
	}
	plan := resource.Make(limits, want)
	for _, warning := range plan.Warnings {
		log.WarnContext(ctx, "configuration", "warning", warning)
	}
	log.DebugContext(ctx, "planned resources", "descriptors", limits.Descriptors, "memory_bytes", limits.Memory,
		"conversations", plan.Conversations, "connections_in", plan.Web, "connections_per_platform", plan.PerPlatform)
	return plan
}

// LimitMemory has the garbage collector work harder before the memory limit of the
// control group is reached, and not after the kernel has ended the process. Agents
// and tools share that limit, so half of it is this process's. It is called once, by
// main, unless the operator chose a limit.
func LimitMemory() {
	if limit := resource.Read(os.DirFS("/")).Memory; limit > 0 {
		debug.SetMemoryLimit(limit / 2)
	}
}

// pingTimeout leaves time of a request for the other checks to say more.
const pingTimeout = time.Second

// ready implements /readyz: whether what comes in can be stored and worked on. A
// platform that is away does not make the service unready.
func (d *daemon) ready(ctx context.Context) []web.Check {
	checks := []web.Check{pingCheck(ctx, d.store)}
	if checks[0].Err == nil { // otherwise they would only say the same
		checks = append(checks,
			web.Check{Name: "schema", Err: d.store.CheckSchema(ctx)},
			web.Check{Name: "writes", Err: d.store.CheckWrites(ctx)},
			web.Check{Name: "integrity", Err: explainDamage(d.config, d.store.CheckIntegrity(ctx))},
		)
	}
	checks = append(checks,
		web.Check{Name: "disk", Err: diskCheck(d.config)},
		web.Check{Name: "descriptors", Err: resource.CheckDescriptors()},
		web.Check{Name: "workers", Err: d.core.Ready()},
	)
	if checks[0].Err == nil {
		checks = append(checks, haltCheck(ctx, d.store))
	}
	return append(checks, d.memory.check()...)
}

func pingCheck(ctx context.Context, s *store.Store) web.Check {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := s.Explain(s.Ping(ctx))
	if _, why, refused := strings.Cut(fault.Public(err), " does not accept the connection"); refused {
		err = fault.New(fault.Unavailable, "The database does not accept the connection"+why) // anybody can ask, and need not know its address
	} else if ctx.Err() != nil {
		err = fault.New(fault.Unavailable, "The database does not answer.")
	}
	return web.Check{Name: "database", Err: err}
}

// diskCheck looks where the database is, on SQLite, and where everything else is.
func diskCheck(cfg config.Config) error {
	if err := resource.CheckDisk(cfg.DataDir); err != nil {
		return err
	}
	return databaseDisk(cfg)
}

// databaseDisk looks where SQLite's file is. PostgreSQL looks after its own disk.
func databaseDisk(cfg config.Config) error {
	if cfg.Database.Driver != config.DriverSQLite {
		return nil
	}
	return resource.CheckDisk(filepath.Dir(cfg.Database.Path))
}

// explainDamage adds to a fault.Damaged of the database what an operator can do: put
// the newest backup in its place, or salvage what can be read.
func explainDamage(cfg config.Config, err error) error {
	if !fault.Is(err, fault.Damaged) {
		return err
	}
	name := "NAME"
	if newest, ok := newestBackup(cfg.BackupDir); ok {
		name = filepath.Base(newest.Dir)
	}
	what, next := "the database is damaged", "restore the newest backup with `bot backup restore "+name+"`"
	if cfg.Database.Driver == config.DriverSQLite {
		what = "the database " + cfg.Database.Path + " is damaged"
		next += " after moving that file away, or salvage with `bot salvage`, which copies what can be read"
	}
	return &fault.Error{Kind: fault.Damaged, Public: strings.TrimSuffix(what, ".") + "; " + next, Err: err}
}

// newestBackup returns the newest backup in a folder that can be used.
func newestBackup(folder string) (newest backup.Listed, ok bool) {
	list, err := backup.List(folder)
	if err != nil {
		return newest, false
	}
	for _, l := range list { // the newest first
		if l.Err == nil {
			return l, true
		}
	}
	return newest, false
}
