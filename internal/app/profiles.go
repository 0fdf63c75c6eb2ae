package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/tool/fetch"
	"remote-agent/internal/tool/files"
	"remote-agent/internal/tool/memo"
	"remote-agent/internal/tool/projectdb"
	"remote-agent/internal/tool/shell"
	"remote-agent/internal/transcript"
	"remote-agent/internal/wording"
)

// builtinTools are the names of all tools of the program, whether they are
// switched on or not, in order.
func builtinTools() ([]string, error) {
	root, err := os.OpenRoot(".")
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "list the tools")
	}
	defer root.Close() //nolint:errcheck // nothing was read
	names := []string{
		shell.Name, fetch.Name, projectdb.NameReader, projectdb.NameTable, memo.RememberName, memo.RecallName, memo.ForgetName,
	}
	for _, t := range files.New(root, files.Options{}) {
		names = append(names, t.Spec().Name)
	}
	slices.Sort(names)
	return names, nil
}

// profileRules is what profiles are held against here.
func profileRules(cfg config.Config) (profile.Rules, error) {
	tools, err := builtinTools()
	if err != nil {
		return profile.Rules{}, err
	}
	servers, err := readMCPConfig(cfg)
	if err != nil {
		return profile.Rules{}, err
	}
	self, err := os.Executable()
	if err != nil {
		self = "" // a server that is this program is then only found when it runs
	}
	return profile.Rules{Tools: tools, Servers: slices.Sorted(maps.Keys(servers)), Self: self}, nil
}

// ProfileFile is a text that should have profiles, and the file that it is from.
type ProfileFile struct {
	Name string // empty: it is of no file
	Text []byte
}

// says returns what is wrong with the text as an error that names the file in each line.
func (f ProfileFile) says(err error) error {
	if f.Name == "" || !fault.Is(err, fault.Invalid) {
		return err
	}
	name := f.Name + ": "
	return fault.New(fault.Invalid, name+strings.ReplaceAll(fault.Public(err), "\n", "\n"+name))
}

// parseProfiles reads and checks the profiles of a file.
func parseProfiles(cfg config.Config, text []byte) ([]profile.Profile, error) {
	rules, err := profileRules(cfg)
	if err != nil {
		return nil, err
	}
	list, err := profile.Parse(text)
	if err != nil {
		return nil, err
	}
	var problems []string
	seen := make(map[string]bool)
	for _, p := range list {
		if err := p.Check(rules); err != nil {
			for line := range strings.Lines(fault.Public(err)) {
				problems = append(problems, p.Title()+": "+strings.TrimSpace(line))
			}
		}
		if seen[p.Title()] {
			problems = append(problems, fmt.Sprintf("%s: it is in the file twice; remove one.", p.Title()))
		}
		seen[p.Title()] = true
	}
	if len(problems) > 0 {
		return nil, fault.New(fault.Invalid, strings.Join(problems, "\n"))
	}
	return list, nil
}

// ofFile reads the one profile of a file.
func ofFile(cfg config.Config, text []byte) (profile.Profile, error) {
	list, err := parseProfiles(cfg, text)
	if err != nil {
		return profile.Profile{}, err
	}
	if len(list) > 1 {
		return profile.Profile{}, fault.Newf(fault.Invalid, "The file has %d profiles; use `bot agent import` for more than one.", len(list))
	}
	return list[0], nil
}

// The commands on profiles change rows that a running daemon reads before each
// turn and keeps nothing of, so it need not be stopped for them.

// findAgent returns the profile that a person named.
func findAgent(ctx context.Context, tx *store.Tx, named string) (profile.Profile, error) {
	ref, err := profile.ParseRef(named)
	if err != nil {
		return profile.Profile{}, err
	}
	return tx.Profiles().Find(ctx, ref)
}

// AgentList prints the profiles, one a line.
func AgentList(ctx context.Context, cfg config.Config, env Env, group string) error {
	all, err := readStored(ctx, cfg, env, func(tx *store.Tx) ([]profile.Profile, error) { return tx.Profiles().List(ctx, group) })
	if err != nil {
		return err
	}
	if len(all) == 0 {
		say(env.Stdout, "there are no profiles; create one with `bot agent create -f FILE`\n")
	}
	for _, p := range all {
		say(env.Stdout, "%-24s  %-11s  %s  %s\n", p.Title(), p.Mode, profileFacts(p), transcript.Line(p.Description, 60))
	}
	return nil
}

// profileFacts is what a list says of a profile, on one line.
func profileFacts(p profile.Profile) string {
	facts := []string{fmt.Sprintf("v%d", p.Version)}
	if model := p.ModelTier + p.Model; model != "" {
		facts = append(facts, model)
	}
	if len(p.Plugins) > 0 {
		facts = append(facts, count(len(p.Plugins), "tool"))
	}
	if len(p.MCPServers) > 0 {
		facts = append(facts, count(len(p.MCPServers), "MCP server"))
	}
	if p.Interval > 0 {
		facts = append(facts, p.Often())
	}
	return strings.Join(facts, ", ")
}

// hidden stands for a value that may be a secret.
const hidden = "(hidden; bot agent export shows it)"

// AgentShow prints a profile as YAML, without what is likely to be secret.
func AgentShow(ctx context.Context, cfg config.Config, env Env, named string) error {
	p, err := readStored(ctx, cfg, env, func(tx *store.Tx) (profile.Profile, error) { return findAgent(ctx, tx, named) })
	if err != nil {
		return err
	}
	servers := make(map[string]mcpserver.Server, len(p.MCPServers))
	for name, server := range p.MCPServers {
		server.Env, server.Headers = hideValues(server.Env), hideValues(server.Headers)
		servers[name] = server
	}
	p.MCPServers = servers
	picture := len(p.AvatarImage)
	p.AvatarImage = nil
	text, err := profile.Format(p)
	if err != nil {
		return err
	}
	say(env.Stdout, "# %s, version %d of %s", p.Title(), p.Version, p.UpdatedAt.Format("2006-01-02 15:04Z"))
	if picture > 0 {
		say(env.Stdout, ", with a picture of %d bytes", picture)
	}
	say(env.Stdout, "\n%s", text)
	return nil
}

func hideValues(values map[string]string) map[string]string {
	values = maps.Clone(values)
	for name := range values {
		values[name] = hidden
	}
	return values
}

// AgentCreate stores the profile of a file.
func AgentCreate(ctx context.Context, cfg config.Config, env Env, file ProfileFile) error {
	p, err := ofFile(cfg, file.Text)
	if err != nil {
		return file.says(err)
	}
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		err := s.InTx(ctx, func(tx *store.Tx) error {
			if _, err := tx.Profiles().Create(ctx, p); err != nil {
				return err
			}
			return tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: "agent.create", Target: p.Title()})
		})
		if err == nil {
			say(env.Stdout, "created %s; to use it in a chat: /agent %s\n", p.Title(), p.Title())
		}
		return err
	})
}

// AgentEdit replaces what a profile says by what edit makes of its YAML. Nothing
// is changed if edit changes nothing, or if somebody else did in the meantime.
func AgentEdit(ctx context.Context, cfg config.Config, env Env, named string, edit func(text []byte) (ProfileFile, error)) error {
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		before, err := store.Within(ctx, s.InRead, func(tx *store.Tx) (profile.Profile, error) { return findAgent(ctx, tx, named) })
		if err != nil {
			return err
		}
		text, err := profile.Format(before)
		if err != nil {
			return err
		}
		changed, err := edit(text)
		if err != nil {
			return err
		}
		p, err := ofFile(cfg, changed.Text)
		if err != nil {
			return changed.says(err)
		}
		if p.Same(before) {
			say(env.Stdout, "%s is the same as before; nothing was changed\n", before.Title())
			return nil
		}
		p.ID, p.Version = before.ID, before.Version
		err = s.InTx(ctx, func(tx *store.Tx) error {
			if _, err := tx.Profiles().Update(ctx, p); err != nil {
				return err
			}
			return tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: "agent.edit", Target: p.Title()})
		})
		if err == nil {
			say(env.Stdout, "changed %s; takes effect with the next turn\n", p.Title())
		}
		return err
	})
}

// AgentRemove deletes a profile, or all of a group, if confirm says yes to what
// that would delete.
func AgentRemove(ctx context.Context, cfg config.Config, env Env, named, group string, confirm func(question string) bool) error {
	if (named == "") == (group == "") {
		return fault.New(fault.Invalid, "specify a profile, or a group with --group")
	}
	if group != "" {
		if err := profile.CheckGroup(group); err != nil {
			return err
		}
	}
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		var p profile.Profile
		var would store.AgentsRemoved
		err := s.InRead(ctx, func(tx *store.Tx) (err error) {
			if group != "" {
				would, err = tx.Profiles().MeasureAgents(ctx, group)
				return err
			}
			if p, err = findAgent(ctx, tx, named); err != nil {
				return err
			}
			would, err = tx.Profiles().MeasureAgent(ctx, p.ID)
			return err
		})
		if err != nil {
			return err
		}
		what := p.Title()
		if group != "" {
			what = "the group " + group
		}
		if would.Agents == 0 {
			return fault.Newf(fault.NotFound, "There are no profiles in %s; `bot agent list` shows all.", what)
		}
		if !confirm(fmt.Sprintf("Remove %s: %s?", what, countedAgents(would))) {
			return fault.New(fault.Invalid, "nothing was removed; answer y, or use --yes")
		}
		var r store.AgentsRemoved
		err = s.InTx(ctx, func(tx *store.Tx) (err error) {
			if group != "" {
				r, err = tx.Profiles().DeleteAgents(ctx, group)
			} else {
				r, err = tx.Profiles().Delete(ctx, p.ID)
			}
			if err != nil {
				return err
			}
			return tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: "agent.remove", Target: what})
		})
		if err == nil {
			say(env.Stdout, "removed %s\n", countedAgents(r))
		}
		return err
	})
}

func countedAgents(r store.AgentsRemoved) string {
	return fmt.Sprintf("%s, %s, %s saved by them; %s to the default",
		wording.Count(int(r.Agents), "profile", "profiles"), wording.Count(int(r.Schedules), "standing task", "standing tasks"),
		wording.Count(int(r.Memories), "memory", "memories"), wording.Count(int(r.Conversations), "conversation returns", "conversations return"))
}

// AgentExport writes a profile, or all of them, as YAML that AgentImport reads.
// Values of MCP servers are in it as they are.
func AgentExport(ctx context.Context, cfg config.Config, env Env, out io.Writer, named string, all bool) error {
	if (named == "") != all {
		return fault.New(fault.Invalid, "specify a profile, or use --all")
	}
	list, err := readStored(ctx, cfg, env, func(tx *store.Tx) (list []profile.Profile, err error) {
		if !all {
			p, err := findAgent(ctx, tx, named)
			return append(list, p), err
		}
		list, err = tx.Profiles().List(ctx, "")
		for i := range list {
			if list[i], err = tx.Profiles().Agent(ctx, list[i].ID); err != nil { // with its picture
				return nil, err
			}
		}
		return list, err
	})
	if err != nil {
		return err
	}
	text, err := profile.Format(list...)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, bytes.NewReader(text))
	return err
}

// AgentImport stores the profiles of a file: new ones are created, those that
// there are already become what the file says. It does all of it or nothing.
func AgentImport(ctx context.Context, cfg config.Config, env Env, file ProfileFile) error {
	list, err := parseProfiles(cfg, file.Text)
	if err != nil {
		return file.says(err)
	}
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		var created, changed, same int
		err := s.InTx(ctx, func(tx *store.Tx) error {
			created, changed, same = 0, 0, 0
			for _, p := range list {
				done, err := importAgent(ctx, tx, p)
				if err != nil {
					return err
				}
				switch done {
				case "agent.create":
					created++
				case "agent.edit":
					changed++
				default:
					same++
					continue
				}
				if err := tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: done, Target: p.Title()}); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			say(env.Stdout, "created %d, changed %d, unchanged %d\n", created, changed, same)
		}
		return err
	})
}

// importAgent returns the action that it did; empty for none.
func importAgent(ctx context.Context, tx *store.Tx, p profile.Profile) (action string, err error) {
	named, err := tx.Profiles().Named(ctx, p.Name)
	if err != nil {
		return "", err
	}
	for _, before := range named {
		switch {
		case before.Group != p.Group:
			continue
		case before.Same(p):
			return "", nil
		}
		p.ID, p.Version = before.ID, before.Version
		_, err := tx.Profiles().Update(ctx, p)
		return "agent.edit", err
	}
	_, err = tx.Profiles().Create(ctx, p)
	return "agent.create", err
}
