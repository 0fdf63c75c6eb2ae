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
	"strings"
	"sync"
	"time"

	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/config"
	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/profile"
	"remote-agent/internal/store"
	"remote-agent/internal/tool/mcp"
	"remote-agent/internal/wording"
)

// bench starts the programs of others as the daemon does, once each: in the same sandbox,
// with the same environment, and in the homes that they have. What has no home yet gets one
// that is removed, so that nothing is made for the daemon by another user.
type bench struct {
	*programs

	temporary string
	offline   bool
}

func (e *examination) openBench(offline bool) (b *bench, err error) {
	places, err := placesOf(e.config)
	if err != nil {
		return nil, err
	}
	b = &bench{programs: newPrograms(e.config, e.env), offline: offline}
	if b.temporary, err = os.MkdirTemp("", "doctor-*"); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "make a temporary folder")
	}
	if b.runner, err = b.newRunner(places, ""); err == nil {
		b.log = slog.New(slog.DiscardHandler) // what is refused to them is no finding
		b.outside, err = b.openOutside()
		b.log = e.log
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.outside.shut = offline
	return b, nil
}

func (b *bench) close() error {
	return errors.Join(b.programs.close(), os.RemoveAll(b.temporary))
}

// home returns the home of a program, or a temporary one if it has none.
func (b *bench) home(path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return os.MkdirTemp(b.temporary, "home-*")
	}
	if owner, ours := config.OwnedByUs(path); !ours {
		return "", fault.Newf(fault.Forbidden, "%s belongs to %s, who would not be able to use what is started here", path, owner)
	}
	return path, nil
}

// unsafe says why a program cannot be started without the network; empty if it can.
func (b *bench) unsafe() string {
	if b.offline && !b.outside.confined() {
		return "skipped because of --offline: programs cannot be kept from the network here"
	}
	return ""
}

// onBench runs checks of programs on a bench, all at once, and returns what they found in
// their order.
func (e *examination) onBench(offline bool, area string, checks func(b *bench) []func() []doctor.Finding) []doctor.Finding {
	b, err := e.openBench(offline)
	if err != nil {
		return one(doctor.Failed(area, err, "see \"The sandbox\" in docs/assistants.md"))
	}
	defer b.close() //nolint:errcheck // temporary files
	list := checks(b)
	found := make([][]doctor.Finding, len(list))
	var group sync.WaitGroup
	for i, check := range list {
		group.Go(func() { found[i] = check() })
	}
	group.Wait()
	return slices.Concat(found...)
}

// examineAgents proves of the external agents that they start, which version they have, and
// that somebody has logged them in. No model is asked.
func (e *examination) examineAgents(ctx context.Context, offline bool) []doctor.Finding {
	agents, err := newPrograms(e.config, e.env).knownAgents()
	if err != nil {
		return one(doctor.Failed("options", err, "bot config show"))
	}
	there, found := agents[:0:0], []doctor.Finding(nil)
	for _, a := range agents {
		switch {
		case acp.Installed(a.config):
			there = append(there, a)
		case a.asked:
			found = append(found, doctor.Found(string(a.config.Name), doctor.Fail, fmt.Sprintf("there is no program %q", a.config.Command[0]), a.config.InstallHint))
		default:
			found = append(found, doctor.Found(string(a.config.Name), doctor.Skip, "not installed, and not used", ""))
		}
	}
	if len(there) == 0 {
		return found
	}
	return append(e.onBench(offline, "agents", func(b *bench) (checks []func() []doctor.Finding) { //nolint:contextcheck // what the sandbox tries is bounded by itself
		for _, a := range there {
			checks = append(checks, func() []doctor.Finding { return b.examineAgent(ctx, a) })
		}
		return checks
	}), found...)
}

// agentPatience is how long an agent may be silent while it starts, and again until it says
// how it is logged in. Both are less than doctor.Patience.
const agentPatience = 12 * time.Second

func (b *bench) examineAgent(ctx context.Context, a knownAgent) []doctor.Finding {
	name := string(a.config.Name)
	skip := func(why string) []doctor.Finding { return one(doctor.Found(name, doctor.Skip, why, "")) }
	if why := b.unsafe(); why != "" {
		return skip(why)
	}
	home, err := b.home(a.home)
	if err != nil {
		return skip(fault.Public(err))
	}
	c := a.config
	if home != a.home {
		c.Env = append(c.Env, "HOME="+home)
	}
	c.InitTimeout, c.Start = agentPatience, b.startAgent(c.Name, home)
	if c.Scratch, err = os.MkdirTemp(b.temporary, "scratch-*"); err != nil {
		return skip("cannot create a temporary folder")
	}
	agent, err := acp.New(c)
	if err != nil {
		return one(doctor.Failed(name, err, "bot config show"))
	}
	defer agent.Close() //nolint:errcheck // it was released
	bad := doctor.Warn
	if a.asked {
		bad = doctor.Fail
	}
	seen, err := agent.Examine(ctx, !b.offline)
	if err != nil {
		return one(doctor.Found(name, bad, fault.Public(err), c.InstallHint))
	}
	found := one(doctor.Found(name, doctor.OK, "starts: "+cmp.Or(seen.Version, "it does not say which version it is"), ""))
	return append(found, b.examineLogin(a, seen, bad))
}

// examineLogin says how an agent is logged in.
func (b *bench) examineLogin(a knownAgent, seen acp.Seen, bad doctor.Status) doctor.Finding {
	check := string(a.config.Name) + " login"
	switch {
	case seen.Login.None && seen.Refused != nil && a.config.Login == nil:
		return doctor.Found(check, bad, fault.Public(seen.Refused), "log it in with HOME="+a.home)
	case seen.Login.None:
		return doctor.Found(check, bad, "it is not logged in, and has no key", cmp.Or(a.config.LoginCommand(a.home), a.config.LoginHint))
	case seen.Login.By != "":
		return doctor.Found(check, doctor.OK, seen.Login.By, "")
	case seen.Login.Known:
		return doctor.Found(check, doctor.OK, "it opens a session without a login", "")
	case seen.Refused != nil:
		return doctor.Found(check, doctor.Warn, fault.Public(seen.Refused), "see \"Agents\" in docs/assistants.md")
	case b.offline:
		return doctor.Found(check, doctor.Skip, "it does not say, and is not asked because of --offline", "")
	}
	return doctor.Found(check, doctor.Skip, "it does not say; a turn shows it", "")
}

// examineMCP proves of each MCP server that it can be connected to and has tools.
func (e *examination) examineMCP(ctx context.Context, offline bool) []doctor.Finding {
	const none = "MCP servers"
	servers, err := readMCPConfig(e.config)
	if err != nil {
		return one(doctor.Failed(none, err, "mend "+e.config.Tools.MCPConfig))
	}
	folder, err := filepath.Abs(filepath.Join(e.config.DataDir, "mcp"))
	if err != nil {
		return one(doctor.Failed(none, err, "bot config show"))
	}
	var all []knownServer
	for _, s := range startable(servers) {
		all = append(all, knownServer{Server: s, shown: s.Name, home: filepath.Join(folder, filepath.Base(s.Name)), mend: "correct its entry in " + e.config.Tools.MCPConfig})
	}
	for _, p := range e.profilesNow(ctx) {
		for _, s := range startable(p.MCPServers) {
			all = append(all, knownServer{
				Server: s, shown: p.Title() + " " + s.Name, home: filepath.Join(folder+"-profiles", p.ID, filepath.Base(s.Name)), mend: "bot agent edit " + p.Title(),
			})
		}
	}
	if len(all) == 0 {
		return one(doctor.Found(none, doctor.Skip, "none configured", ""))
	}
	return e.onBench(offline, none, func(b *bench) (checks []func() []doctor.Finding) { //nolint:contextcheck // as above
		for _, s := range all {
			checks = append(checks, func() []doctor.Finding { return one(b.examineServer(ctx, s)) })
		}
		return checks
	})
}

// knownServer is an MCP server with where it keeps its files.
type knownServer struct {
	mcp.Server

	shown, home, mend string
}

// profilesNow are the profiles in the database, if it can be read: another check tells
// that.
func (e *examination) profilesNow(ctx context.Context) (all []profile.Profile) {
	if _, err := os.Stat(e.config.Database.Path); e.config.Database.Driver == config.DriverSQLite && err != nil {
		return nil
	}
	_ = withStore(ctx, e.config, e.env, false, func(s *store.Store) (err error) {
		all, err = store.Within(ctx, s.InRead, func(tx *store.Tx) ([]profile.Profile, error) { return tx.Profiles().List(ctx, "") })
		return err
	})
	return all
}

func (b *bench) examineServer(ctx context.Context, s knownServer) doctor.Finding {
	skip := func(why string) doctor.Finding { return doctor.Found(s.shown, doctor.Skip, why, "") }
	why := ""
	switch {
	case b.offline && (s.URL != "" || len(s.Hosts) > 0):
		why = "skipped because of --offline"
	case s.URL == "":
		why = b.unsafe()
	}
	if why != "" {
		return skip(why)
	}
	opts := mcp.Options{AllowLoopback: true}
	if s.URL == "" {
		home, err := b.home(s.home)
		if err != nil {
			return skip(fault.Public(err))
		}
		opts.Start = b.outside.startServer(home)
	}
	seen, troubles := mcp.Probe(ctx, s.Server, opts)
	said := lists.Map(troubles, fault.Public)
	switch {
	case seen.Tools == 0:
		return doctor.Found(s.shown, doctor.Fail, strings.Join(said, " "), s.mend)
	case len(said) > 0:
		return doctor.Found(s.shown, doctor.Warn, strings.Join(said, " "), s.mend)
	}
	return doctor.Found(s.shown, doctor.OK, cmp.Or(seen.Name, "it")+" offers "+wording.Count(seen.Tools, "tool", "tools"), "")
}
