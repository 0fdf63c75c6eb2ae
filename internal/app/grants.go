package app

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/sandbox"
)

// What a program is granted follows from the records of the service alone: where
// the worktree of the conversation is, where the data of its repository is, and
// what the operator configured. Nothing that a program could have written is read
// to find it out.

// granted is what every program of a conversation gets: its worktree to change,
// the data of git to read, and a home. dir is where it works, which is in tree if
// there is one.
func granted(dir, tree, gitData, home string) sandbox.Spec {
	if tree == "" {
		return sandbox.Spec{Writable: []string{dir}, Home: home}
	}
	s := sandbox.Spec{Writable: []string{tree}, Home: home, Sealed: []string{filepath.Join(tree, ".git")}}
	if gitData != "" {
		s.ReadOnly = []string{gitData}
	}
	return s
}

// programFolders are what the program of an agent outside of the system's folders
// needs to be read: itself, with the links that lead there, and its own folder, or
// the one that its package manager keeps it in. A folder in which one of the shared
// ones is, such as somebody's home, is left out. For a program in the agent's own home
// it is nothing, because links there are the agent's.
func programFolders(program, home string, shared ...string) []string {
	resolved, err := filepath.EvalSymlinks(program)
	if err != nil || below(home, program) {
		return nil
	}
	folders := []string{program}
	add := func(dir string) {
		holds := func(p string) bool {
			real, err := filepath.EvalSymlinks(p)
			return err == nil && below(dir, real)
		}
		if !slices.ContainsFunc(shared, holds) {
			folders = append(folders, dir)
		}
	}
	add(filepath.Dir(resolved))
	for _, p := range []string{program, resolved} {
		if top, _, ok := strings.Cut(p, "/lib/node_modules/"); ok && top != "" {
			add(top)
		}
		if top, _, ok := strings.Cut(p, "/node_modules/"); ok && top != "" {
			add(filepath.Join(top, "node_modules"))
		}
	}
	return folders
}

// below reports whether p is in dir, by their names.
func below(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && filepath.IsLocal(rel)
}

// programs is how programs of assistants run here: which agents there are and what they
// find in their environment, the sandbox, and the way to the network.
type programs struct {
	config  config.Config
	env     Env
	log     *slog.Logger
	observe func(kind, outcome string) // told of every wish to connect; may be nil
	guest   bool                       // DATA_DIR is another process's

	runner  *sandbox.Runner // nil before open
	outside *outside        // nil before open
}

func newPrograms(cfg config.Config, env Env) *programs {
	return &programs{config: cfg, env: env, log: env.Log}
}

// open finds out how programs can be confined here. The error with
// SANDBOX=strict says what is missing.
func (ps *programs) open(ctx context.Context) error {
	places, err := placesOf(ps.config)
	if err != nil {
		return err
	}
	dir := places.private
	if ps.guest {
		dir = ""
	}
	if ps.runner, err = ps.newRunner(places, dir); err != nil { //nolint:contextcheck // it finds out once, and bounds that itself
		return err
	}
	if level := ps.runner.Level(); !level.Full() {
		ps.log.WarnContext(ctx, "programs of assistants are not fully confined here", "sandbox", level.String())
	}
	if ps.outside, err = ps.openOutside(); err != nil {
		return err
	}
	if !ps.outside.confined() {
		ps.log.WarnContext(ctx, "programs with a network cannot be limited to their hosts here", "network", ps.outside.line())
	}
	return nil
}

// newRunner finds out how programs can be confined here. dir is where they have their
// temporary files, and belongs to one process; empty for a folder that Close removes.
func (ps *programs) newRunner(p places, dir string) (*sandbox.Runner, error) {
	c := ps.config.Tools
	return sandbox.New(sandbox.Config{
		Mode: sandbox.Mode(c.Sandbox), Log: ps.log, Dir: dir,
		ReadOnly: c.ReadPaths, Hidden: append(p.hidden, p.files(config.EnvFiles(ps.env.EnvFile)...)...), Grantable: p.areas,
		Env: ps.env.Lookup, AllowedEnv: c.Env, Without: ps.env.SandboxWithout,
	})
}

// close ends the way to the network and removes the temporary files.
func (ps *programs) close() error {
	var errs []error
	if ps.runner != nil {
		errs = append(errs, ps.runner.Close())
	}
	if ps.outside != nil {
		errs = append(errs, ps.outside.proxy.Close())
	}
	return errors.Join(errs...)
}

// places are the folders of the service, as the sandbox has to know them.
type places struct {
	private string // of the sandbox itself
	hidden  []string
	areas   []sandbox.Area
}

// placesOf finds the folders of the service. All that is the service's is hidden,
// and so are the files that its secrets were read from.
func placesOf(c config.Config) (places, error) {
	data, err := filepath.Abs(c.DataDir)
	if err != nil {
		return places{}, fault.Wrap(err, fault.Invalid, "DATA_DIR")
	}
	p := places{private: filepath.Join(data, "run"), hidden: []string{data}}
	for _, name := range []string{"homes", "scratch", "mcp", "mcp-profiles"} {
		p.areas = append(p.areas, sandbox.Area{Dir: filepath.Join(data, name), Write: true})
	}
	for _, name := range []string{"homes", "scratch", "mcp", "mcp-profiles", "projects", "log", "run"} {
		p.hidden = append(p.hidden, filepath.Join(data, name))
	}
	agents, err := filepath.Abs(c.Agents.Home)
	if err != nil {
		return places{}, fault.Wrap(err, fault.Invalid, "AGENT_HOME")
	}
	workspace, err := filepath.Abs(c.WorkspacePath)
	if err != nil {
		return places{}, fault.Wrap(err, fault.Invalid, "WORKSPACE_PATH")
	}
	p.hidden = append(p.hidden, agents, workspace)
	p.areas = append(p.areas,
		sandbox.Area{Dir: agents, Write: true}, sandbox.Area{Dir: workspace}, sandbox.Area{Dir: filepath.Join(workspace, ".worktrees"), Write: true})
	p.hidden = append(p.hidden, p.files(c.BackupDir, c.Tools.MCPConfig)...)
	if c.Database.Driver == config.DriverSQLite {
		p.hidden = append(p.hidden, p.files(c.Database.Path, c.Database.Path+"-wal", c.Database.Path+"-shm")...)
	}
	p.hidden = append(p.hidden, p.files(c.SecretFiles()...)...)
	return p, nil
}

// files makes paths absolute and leaves out what is empty.
func (places) files(paths ...string) []string {
	var out []string
	for _, path := range paths {
		if absolute, err := filepath.Abs(path); path != "" && err == nil {
			out = append(out, absolute)
		}
	}
	return out
}
