package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/importer"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/store"
)

// SeedImport says how to take over the tables of seed 002.
type SeedImport struct {
	From  string   // a PostgreSQL address, or an SQLite file
	Maps  []string // OLD=NEW, folders
	Dry   bool     // say what would happen, and write nothing
	Merge bool     // one codebase for each repository
	Skip  bool     // leave rows out that cannot be taken
	Clone bool     // clone what is missing, now
}

// ImportSeed stores the three tables of seed 002 from another database and
// prints what became of them; see package importer.
func ImportSeed(ctx context.Context, cfg config.Config, env Env, q SeedImport) error {
	if !q.Dry {
		sent := q
		sent.From, sent.Maps = absolute(q.From), absoluteMaps(q.Maps)
		if done, err := inDaemon(ctx, cfg, env, callImportSeed, sent); done {
			return err
		}
	}
	o, err := importOptions(cfg, env, q)
	if err != nil {
		return err
	}
	rows, err := readSeed(ctx, env, q.From)
	if err != nil {
		return err
	}
	if q.Dry {
		return dryRun(ctx, cfg, env, rows, o, q.Clone)
	}
	return withStore(ctx, cfg, env, true, func(s *store.Store) error {
		report, err := importer.Import(ctx, s, rows, o)
		if err != nil {
			return err
		}
		if err := report.Write(env.Stdout, true, q.Clone); err != nil {
			return fmt.Errorf("print the report: %w", err)
		}
		if !q.Clone {
			return nil
		}
		return cloneMissing(ctx, cfg, env, s, report.Missing)
	})
}

// readSeed reads the other database.
func readSeed(ctx context.Context, env Env, source string) (importer.Rows, error) {
	from, err := openForeign(ctx, env, source)
	if err != nil {
		return nil, sourceError(source, err)
	}
	defer from.Close() //nolint:errcheck // only read
	rows, err := from.ReadSeed(ctx)
	if err != nil {
		return nil, sourceError(source, err)
	}
	return rows, nil
}

// sourceError says --from where the store says DATABASE_URL.
func sourceError(source string, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case ok && f.Public != "":
		return blame("--from", err)
	case strings.HasPrefix(source, "postgres"):
		return &fault.Error{Kind: fault.KindOf(err), Public: "--from: cannot read the database; does the user have SELECT on the three tables?", Err: err}
	}
	return &fault.Error{Kind: fault.Invalid, Public: "--from: the database cannot be read; is the file damaged?", Err: err}
}

// blame says the flag that named a database where the store says DATABASE_URL.
func blame(flag string, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	said := *f
	if said.Public = strings.ReplaceAll(f.Public, "DATABASE_URL", flag); said.Public != f.Public {
		said.Err = nil // the text has the reason
	}
	return &said
}

// dryRun prints what an import would do. A database that is not there yet, or has no
// tables, counts as empty and stays as it is.
func dryRun(ctx context.Context, cfg config.Config, env Env, rows importer.Rows, o importer.Options, clone bool) error {
	var report importer.Report
	err := withStore(ctx, cfg, env, false, func(s *store.Store) error {
		var err error
		report, err = importer.DryRun(ctx, s, rows, o)
		return err
	})
	if errors.Is(err, store.ErrNoTables) || fault.Is(err, fault.NotFound) && cfg.Database.Driver != config.DriverPostgres {
		report, err = importer.DryRun(ctx, nil, rows, o)
	}
	if err != nil {
		return err
	}
	return fault.Note(report.Write(env.Stdout, false, clone), "print the report")
}

func importOptions(cfg config.Config, env Env, q SeedImport) (o importer.Options, err error) {
	for _, text := range q.Maps {
		m, err := importer.ParseMap(text)
		if err != nil {
			return o, err
		}
		o.Maps = append(o.Maps, m)
	}
	if err := importer.CheckMaps(o.Maps); err != nil {
		return o, err
	}
	if o.Hosts, err = remote.ParseHosts(cfg.Git.Hosts); err != nil {
		return o, err
	}
	root, err := filepath.Abs(cfg.WorkspacePath)
	if err != nil {
		return o, fault.Wrap(err, fault.Invalid, "WORKSPACE_PATH")
	}
	o.Folder = func(dir string) error { return codebase.Present(root, dir) }
	assistants, err := configuredAssistants(cfg, env)
	if err != nil {
		return o, err
	}
	o.Assistant = func(name string) bool { return slices.Contains(assistants, name) }
	o.Reach = func(key messages.ConversationKey) error {
		for _, k := range kindsOf(cfg) {
			if k.Platform() == key.Platform {
				return k.CheckID(key.ID)
			}
		}
		return nil
	}
	platforms := configuredPlatforms(cfg)
	o.Platform = func(name string) bool { return slices.Contains(platforms, name) }
	o.Merge, o.Skip, o.Now = q.Merge, q.Skip, time.Now()
	if env.Now != nil {
		o.Now = env.Now()
	}
	return o, nil
}

// cloneMissing clones the repositories of codebases whose folder is not here. One
// that fails leaves the others, and what was imported.
func cloneMissing(ctx context.Context, cfg config.Config, env Env, s *store.Store, missing []importer.Missing) error {
	_, repos, done, err := workspaceOf(ctx, cfg, env, s)
	if err != nil {
		return err
	}
	defer done()
	var failed []string
	for _, m := range missing {
		err := m.Clone
		if err == nil {
			err = repos.Clone(ctx, m.URL)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			env.Log.WarnContext(ctx, "could not clone a repository", "codebase", m.Name, "url", m.URL, "err", err)
			failed = append(failed, m.Name)
			say(env.Stdout, "not cloned: %s: %s\n", m.Name, fault.Public(err))
		default:
			say(env.Stdout, "cloned: %s from %s\n", m.Name, m.URL)
		}
	}
	if len(failed) > 0 {
		return fault.Newf(fault.Unavailable, "The import is complete, but these were not cloned: %s. Run the same command to try again.", strings.Join(failed, ", "))
	}
	return nil
}

// configuredAssistants returns the names of the assistants that can answer here.
func configuredAssistants(cfg config.Config, env Env) ([]string, error) {
	names := []string{config.AssistantDemo}
	for _, k := range modelsOf(cfg) {
		if k.Configured() {
			names = append(names, k.Assistant())
		}
	}
	claude, claudeErr := acp.Claude(cfg.Agents.Claude)
	codex, codexErr := acp.Codex(cfg.Agents.Codex)
	others, err := acp.ParseAgents(cfg.Agents.Others, builtIn(cfg)...)
	if err := errors.Join(claudeErr, codexErr, err); err != nil {
		return nil, err
	}
	ps := newPrograms(cfg, env)
	for _, agent := range append([]acp.Config{claude, codex}, others...) {
		agent.Env = append(ps.agentEnv(agent.Name, ""), agent.Env...)
		if acp.Installed(agent) {
			names = append(names, string(agent.Name))
		}
	}
	return names, nil
}

// configuredPlatforms returns the names of the platforms that messages come from.
func configuredPlatforms(cfg config.Config) []string {
	names := []string{string(console.Name), "web"}
	for _, k := range kindsOf(cfg) {
		if k.On() {
			names = append(names, string(k.Platform()))
		}
	}
	return names
}
