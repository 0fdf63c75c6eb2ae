package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
)

// agentCommand is about agent profiles.
type agentCommand struct {
	List   agentListCommand   `cmd:"" help:"List the profiles."`
	Show   agentShowCommand   `cmd:"" help:"Print a profile as YAML; the values of MCP servers are hidden."`
	Create agentCreateCommand `cmd:"" help:"Create a profile from a YAML file."`
	Edit   agentEditCommand   `cmd:"" help:"Change a profile in $EDITOR or from a file."`
	Rm     agentRmCommand     `cmd:"" help:"Remove a profile or a group; lists what goes with it and asks first."`
	Export agentExportCommand `cmd:"" help:"Write one profile or all of them as YAML, including the values of MCP servers."`
	Import agentImportCommand `cmd:"" help:"Create or change the profiles in a YAML file, all or none."`
}

type agentListCommand struct {
	Group string `help:"Only this group."`
}

func (c agentListCommand) Run(p *program) error { return with(p, app.AgentList, c.Group) }

type agentShowCommand struct {
	Name string `arg:"" help:"Name, or group/name."`
}

func (c agentShowCommand) Run(p *program) error { return with(p, app.AgentShow, c.Name) }

type agentCreateCommand struct {
	File string `help:"YAML file; - for stdin." placeholder:"FILE" required:"" short:"f"`
}

func (c agentCreateCommand) Run(p *program) error {
	return p.withFile(c.File, app.AgentCreate)
}

type agentEditCommand struct {
	Name string `arg:"" help:"Name, or group/name."`
	File string `help:"YAML file to use instead of the editor; - is stdin." placeholder:"FILE" short:"f"`
}

func (c agentEditCommand) Run(p *program) error {
	if c.File == "" {
		return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
			kept := ""
			err := app.AgentEdit(ctx, cfg, env, c.Name, func(text []byte) (changed app.ProfileFile, err error) {
				changed.Text, kept, err = p.editor(text)
				return changed, err
			})
			if kept == "" {
				return err
			}
			if err != nil {
				_, _ = fmt.Fprintf(p.stderr, "bot: your text was saved to %s\n", kept) // the error follows
				return err
			}
			return os.RemoveAll(filepath.Dir(kept))
		})
	}
	return p.withFile(c.File, func(ctx context.Context, cfg config.Config, env app.Env, file app.ProfileFile) error {
		return app.AgentEdit(ctx, cfg, env, c.Name, func([]byte) (app.ProfileFile, error) { return file, nil })
	})
}

// editor has a person change a text in $VISUAL or $EDITOR. file is where it is
// kept until it is stored.
func (p *program) editor(text []byte) (changed []byte, file string, err error) {
	command := ""
	for _, name := range []string{"EDITOR", "VISUAL"} { // the latter wins, as usual
		if value, _ := p.lookup(name); value != "" {
			command = value
		}
	}
	if command == "" {
		return nil, "", fault.New(fault.Invalid, "EDITOR is not set; set it to your editor, or give a file with -f")
	}
	dir, err := os.MkdirTemp("", "bot-agent")
	if err != nil {
		return nil, "", fmt.Errorf("make a folder: %w", err)
	}
	file = filepath.Join(dir, "profile.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	// As others do it: the variable is a command line, such as "code --wait".
	run := exec.CommandContext(p.ctx, "sh", "-c", command+` "$1"`, "editor", file) //nolint:gosec // the operator's own editor
	run.Stdin, run.Stdout, run.Stderr, run.Env = p.stdin, p.stdout, p.stderr, p.environ
	if err := run.Run(); err != nil {
		return nil, file, fault.Newf(fault.Invalid, "the editor %q failed (%v); nothing was changed", command, err)
	}
	changed, err = os.ReadFile(file) //nolint:gosec // made above
	return changed, file, err
}

type agentRmCommand struct {
	Name  string `arg:"" help:"Name, or group/name."  optional:""`
	Group string `help:"Remove all profiles of this group."`
	Yes   bool   `help:"Do not ask."                  short:"y"`
}

// Run asks first.
func (c agentRmCommand) Run(p *program) error {
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		return app.AgentRemove(ctx, cfg, env, c.Name, c.Group, func(question string) bool {
			return c.Yes || p.confirm(question)
		})
	})
}

// confirm asks a question that is answered with y; no answer is a no.
func (p *program) confirm(question string) bool {
	_, _ = fmt.Fprint(p.stdout, question+" [y/N] ") // the question may go unseen
	line, _ := bufio.NewReader(p.stdin).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

type agentExportCommand struct {
	Name   string `arg:"" help:"Name, or group/name."                            optional:""`
	All    bool   `help:"All profiles."`
	Output string `help:"File to create; it must not exist. Default: stdout." placeholder:"FILE" short:"o"`
}

func (c agentExportCommand) Run(p *program) error {
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		return p.writeNew(c.Output, func(out io.Writer) error { return app.AgentExport(ctx, cfg, env, out, c.Name, c.All) })
	})
}

type agentImportCommand struct {
	File string `arg:"" help:"YAML file written by bot agent export; - for stdin."`
}

func (c agentImportCommand) Run(p *program) error {
	return p.withFile(c.File, app.AgentImport)
}

// maxProfiles is the longest file of profiles that is read, in bytes.
const maxProfiles = 32 << 20

// withFile runs a command on the data with the text of a file.
func (p *program) withFile(name string, run func(ctx context.Context, cfg config.Config, env app.Env, file app.ProfileFile) error) error {
	in, file := p.stdin, app.ProfileFile{}
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // the operator's own path
		if err != nil {
			return fault.Newf(fault.Invalid, "cannot read %s: check the path", name)
		}
		defer f.Close() //nolint:errcheck // only read
		in, file.Name = f, name
	}
	var err error
	file.Text, err = io.ReadAll(io.LimitReader(in, maxProfiles+1)) // one more, which is refused
	if err != nil {
		return fault.Newf(fault.Invalid, "cannot read %s: not a text file", name)
	}
	return with(p, run, file)
}
