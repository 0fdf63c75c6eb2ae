package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/profile"
	"remote-agent/internal/recollect"
	"remote-agent/internal/redact"
	"remote-agent/internal/sandbox"
	"remote-agent/internal/store"
	"remote-agent/internal/tool"
	"remote-agent/internal/tool/fetch"
	"remote-agent/internal/tool/files"
	"remote-agent/internal/tool/memo"
	"remote-agent/internal/tool/projectdb"
	"remote-agent/internal/tool/shell"
)

// idleProject is how long the database of a project is kept open.
const idleProject = 10 * time.Minute

// toolSets hands out the tools of turns. It is safe for concurrent use.
type toolSets struct {
	config  config.Config
	runner  *sandbox.Runner
	outside *outside
	mcp     *mcpServers

	agentTroubles func() []string // which agents cannot answer now

	agents   *profileServers
	builtin  []string // names of the program's own tools that are switched on
	ripgrep  string
	homes    string             // a home for the programs of each conversation
	projects string             // the databases of projects, by codebase
	memory   *recollect.Service // nil with MEMORY=off
	store    *store.Store
	log      *slog.Logger

	mu   sync.Mutex // guards open
	open map[string]*project
}

// project is an open database with the turns that use it.
type project struct {
	db    *projectdb.DB
	users int
	idle  *time.Timer
}

var _ orchestrator.Tools = (*toolSets)(nil)

func (d *daemon) newToolSets() (*toolSets, error) {
	t := &toolSets{config: d.config, agentTroubles: d.roster.troubles, runner: d.programs.runner, outside: d.programs.outside, memory: d.memory.service, store: d.store, log: d.log, open: make(map[string]*project)}
	for _, place := range []struct {
		path *string
		name string
	}{{&t.homes, "homes"}, {&t.projects, "projects"}} {
		path, err := filepath.Abs(filepath.Join(d.config.DataDir, place.name))
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "DATA_DIR")
		}
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "make a folder in DATA_DIR")
		}
		*place.path = path
	}
	t.ripgrep = lookPath("rg", d.env)
	var err error
	var home string
	if t.mcp, home, err = openMCP(d.config, d.programs.outside.startServer, d.log); err != nil {
		return nil, err
	}
	t.agents = &profileServers{startIn: d.programs.outside.startServer, home: home + "-profiles", log: slog.New(redact.Handler(d.log.Handler(), d.redact)), learn: d.redact.Learn, open: make(map[string]*servedProfile)}
	all, err := builtinTools()
	t.builtin = slices.DeleteFunc(all, func(name string) bool {
		memory := name == memo.RememberName || name == memo.RecallName || name == memo.ForgetName
		return name == fetch.Name && !t.config.Tools.Fetch || memory && t.memory == nil
	})
	return t, err
}

// lookPath finds a program in the PATH of the environment; empty if it is not
// there.
func lookPath(name string, env Env) string {
	dirs, _ := env.lookup("PATH")
	for _, dir := range filepath.SplitList(dirs) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// maxTools is how many tools a model is offered: OpenAI's API refuses a request that has
// more.
const maxTools = 128

// Open implements orchestrator.Tools.
func (t *toolSets) Open(ctx context.Context, turn orchestrator.ToolTurn) (*tool.Box, error) {
	box, err := tool.NewBox()
	if err != nil {
		return nil, err
	}
	all, err := t.available(ctx, box, turn)
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	for _, one := range all {
		if turn.Profile != nil && !turn.Profile.Offers(one.Spec().Name) {
			continue
		}
		if len(box.Specs()) == maxTools {
			t.log.WarnContext(ctx, "there are too many tools; the rest is not offered to the model", "tools", len(all), "offered", maxTools)
			break
		}
		if err := box.Add(one); err != nil {
			return nil, errors.Join(err, box.Close())
		}
	}
	return box, nil
}

// available are the tools that there are for a turn, of which its profile may name some.
func (t *toolSets) available(ctx context.Context, box *tool.Box, turn orchestrator.ToolTurn) (all []tool.Tool, err error) {
	if turn.ProfileServersOnly {
		return t.ofProfile(ctx, box, turn.Profile), nil
	}
	if turn.Dir != "" {
		if all, err = t.workTools(box, turn); err != nil { //nolint:contextcheck // a database that is opened outlives the turn
			return nil, err
		}
	} else {
		all = append(all, projectdb.Reader(t.past(turn)))
	}
	if t.config.Tools.Fetch {
		all = append(all, fetch.New(fetch.Options{}))
	}
	if t.memory != nil && (turn.Profile == nil || turn.Profile.Memory.Enabled) {
		all = append(all, t.memory.Tools(turn)...)
	}
	return append(all, t.served(ctx, box, turn.Profile)...), nil
}

// past is what a turn may read of what happened before: of its own conversation
// only. Where several people talk, what tools were given and returned is left out:
// it may be about one of them, as what is remembered of a person.
func (t *toolSets) past(turn orchestrator.ToolTurn) projectdb.Past {
	conversation, alone := turn.Conversation.ID, turn.Entry.In.Private
	return func(ctx context.Context, table string, add func(row ...any) error) error {
		err := t.store.InRead(ctx, func(tx *store.Tx) error {
			return tx.Pages().Past(ctx, conversation, table, !alone, add)
		})
		return fault.Note(err, "read the past of a conversation")
	}
}

// served are the tools of MCP servers: those of the service, then those of the
// profile. One of the profile's that has the name of another is left out.
func (t *toolSets) served(ctx context.Context, box *tool.Box, p *profile.Profile) []tool.Tool {
	all := slices.Clone(t.mcp.offer(ctx))
	for _, one := range t.ofProfile(ctx, box, p) {
		name := one.Spec().Name
		if slices.ContainsFunc(all, func(other tool.Tool) bool { return other.Spec().Name == name }) {
			t.log.WarnContext(ctx, "a tool of a profile's MCP server has the name of another one and is left out", "profile", p.Title(), "tool", name)
			continue
		}
		all = append(all, one)
	}
	return all
}

// ofProfile are the tools of the MCP servers of a profile.
func (t *toolSets) ofProfile(ctx context.Context, box *tool.Box, p *profile.Profile) []tool.Tool {
	if p == nil || len(p.MCPServers) == 0 {
		return nil
	}
	own, leave := t.agents.offer(ctx, *p)
	box.OnClose(leave)
	return own
}

// Missing implements orchestrator.Tools.
func (t *toolSets) Missing(turn orchestrator.ToolTurn) []string {
	p := turn.Profile
	if p == nil || len(p.Plugins) == 0 {
		return nil
	}
	known := slices.Concat(t.builtin, t.mcp.names(), t.agents.names(p.ID))
	return p.Missing(known)
}

// workTools are the tools of a conversation with a codebase.
func (t *toolSets) workTools(box *tool.Box, turn orchestrator.ToolTurn) ([]tool.Tool, error) {
	root, err := openWorkDir(turn)
	if err != nil {
		return nil, err
	}
	box.OnClose(root.Close)
	all := files.New(root, files.Options{Dir: turn.Dir, Ripgrep: t.ripgrep})
	run, err := t.commands(turn)
	if err != nil {
		return nil, err
	}
	note := "There is no network."
	if t.config.Tools.Network {
		note = t.outside.note()
	}
	all = append(all, shell.New(run, shell.Options{Dir: turn.Dir, MaxTimeout: t.config.Tools.Timeout, Note: note}))
	past := t.past(turn)
	db, err := t.project(turn.Conversation.CodebaseID)
	if err != nil { // most turns need no tables
		t.log.Error("a project database cannot be used", "codebase_id", turn.Conversation.CodebaseID, "err", err)
		return append(all, projectdb.Broken(err, past)...), nil
	}
	box.OnClose(func() error { return t.leave(turn.Conversation.CodebaseID) })
	return append(all, db.Tools(past)...), nil
}

// commands returns what runs the programs of a turn: in the worktree, with the
// repository's own git data to read, and with a home that the conversation keeps
// for its caches.
func (t *toolSets) commands(turn orchestrator.ToolTurn) (shell.Runner, error) {
	home := filepath.Join(t.homes, turn.Conversation.WorkID())
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "make a home for programs")
	}
	now := time.Now()
	_ = os.Chtimes(home, now, now) // it is in use: the sweep goes by this
	spec := granted(turn.Dir, turn.Tree, turn.GitData, home)
	if t.config.Tools.Network {
		if err := t.outside.connect(&spec, t.outside.forTools()); err != nil {
			return nil, err
		}
	}
	return confined(t.runner, spec), nil
}

// openWorkDir opens the folder that a conversation works in. The folder may be a
// link by now: it is opened from the top of the worktree, out of which no link
// leads.
func openWorkDir(turn orchestrator.ToolTurn) (*os.Root, error) {
	top, err := os.OpenRoot(cmp.Or(turn.Tree, turn.Dir))
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "open the worktree")
	}
	rel, err := filepath.Rel(top.Name(), turn.Dir)
	if err != nil || rel == "." {
		return top, err
	}
	root, err := top.OpenRoot(rel)
	if err != nil {
		err = &fault.Error{Kind: fault.NotFound, Err: err, Public: fmt.Sprintf("The folder %q no longer exists. Use `/setcwd .` to go back to the root.", rel)}
	}
	return root, errors.Join(err, top.Close())
}

// confined runs commands of the bash tool in the sandbox.
func confined(runner *sandbox.Runner, spec sandbox.Spec) shell.Runner {
	return func(ctx context.Context, c shell.Command) (shell.Outcome, error) {
		output := sandbox.NewCapture(c.Head + c.Tail)
		spec := spec
		spec.Argv, spec.Dir, spec.Timeout, spec.Stdout, spec.Stderr = c.Argv, c.Dir, c.Timeout, output, output
		p, err := runner.Command(ctx, spec)
		if err != nil {
			return shell.Outcome{}, err
		}
		result, err := p.Run()
		head, tail, _ := output.Bytes()
		code := result.Code
		if code < 0 {
			code = 128 + int(syscall.SIGKILL) // as a shell gives it
		}
		out := shell.Outcome{ExitCode: code, Head: head, Tail: tail, Total: output.Total(), TimedOut: result.Ended == sandbox.EndedTimeout, Over: result.Over}
		if err == nil && result.Ended == sandbox.EndedCanceled {
			err = context.Cause(ctx)
		}
		return out, err
	}
}

// project opens the database of a codebase, or joins those who use it.
func (t *toolSets) project(codebaseID string) (*projectdb.DB, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.open[codebaseID]
	if p == nil {
		db, err := projectdb.Open(filepath.Join(t.projects, codebaseID+".db"))
		if err != nil {
			return nil, err
		}
		p = &project{db: db}
		t.open[codebaseID] = p
	}
	if p.idle != nil {
		p.idle.Stop()
		p.idle = nil
	}
	p.users++
	return p.db, nil
}

// leave gives a database back. It is closed when nobody has used it for a while.
func (t *toolSets) leave(codebaseID string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.open[codebaseID]
	if p == nil {
		return nil
	}
	if p.users--; p.users > 0 {
		return nil
	}
	p.idle = time.AfterFunc(idleProject, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if p.users == 0 && t.open[codebaseID] == p {
			delete(t.open, codebaseID)
			if err := p.db.Close(); err != nil {
				t.log.Warn("could not close the database of a project", "codebase", codebaseID, "err", err)
			}
		}
	})
	return nil
}

// Status implements orchestrator.Tools.
func (t *toolSets) Status() []string {
	lines := []string{"sandbox: " + t.runner.Level().String(), "network: " + t.outside.line()}
	if n := len(t.builtin) + len(t.mcp.names()); n > maxTools {
		lines = append(lines, fmt.Sprintf("MCP servers: a model is offered only %d of %d tools. List the ones you want under \"allow\" in MCP_CONFIG.", maxTools, n))
	}
	return append(lines, slices.Concat(t.mcp.status(), t.agents.status(), t.agentTroubles())...)
}

// sweep removes the homes of conversations that have not run a program since
// before.
func (t *toolSets) sweep(before time.Time) error {
	entries, err := os.ReadDir(t.homes)
	if err != nil {
		return fmt.Errorf("list the homes of programs: %w", err)
	}
	var all error
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			all = errors.Join(all, os.RemoveAll(filepath.Join(t.homes, e.Name())))
		}
	}
	return all
}

// close closes the databases of projects.
func (t *toolSets) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.agents.close()
	all := t.mcp.close()
	for id, p := range t.open {
		if p.idle != nil {
			p.idle.Stop()
		}
		all = errors.Join(all, p.db.Close())
		delete(t.open, id)
	}
	return all
}
