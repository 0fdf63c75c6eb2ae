package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
)

// exportCommand writes data for keeping or for other programs.
type exportCommand struct {
	Format       string `default:"jsonl"                                           enum:"jsonl,csv,markdown,sql" help:"jsonl (everything, for bot import), csv (a table of sessions), markdown (one session) or sql (SQLite only)."`
	Conversation string `help:"Only this conversation: its id, or platform/id."`
	Session      string `help:"The session, for markdown."`
	Redact       bool   `help:"Take credentials out, and leave raw bodies and files out."`
	Output       string `help:"File to write, which must not exist; without it stdout." placeholder:"FILE"        short:"o"`
}

// Run implements the command.
func (c exportCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error {
		q := app.ExportQuery{Format: c.Format, Conversation: c.Conversation, Session: c.Session, Redact: c.Redact}
		if c.Output == "" {
			return app.Export(p.ctx, cfg, env, p.stdout, q)
		}
		return writeNew(c.Output, func(out io.Writer) error { return app.Export(p.ctx, cfg, env, out, q) })
	})
}

// writeNew writes a file that must not exist, and removes it if that fails.
func writeNew(name string, write func(out io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator's own path
	if errors.Is(err, fs.ErrExist) {
		return fault.Newf(fault.Invalid, "%s exists already; name another file.", name)
	}
	if err != nil {
		return &fault.Error{Kind: fault.Invalid, Public: name + " cannot be created; check that the folder is there and can be written.", Err: err}
	}
	err = write(f)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// importCommand reads what exportCommand wrote, or another program's tables.
type importCommand struct {
	File   string   `arg:""                                                                                                                                                       help:"File that bot export wrote as jsonl." optional:""`
	From   string   `help:"Instead of a file: another program's database with the three tables remote_agent_*. An SQLite file, a postgres:// address, or a file that holds one." placeholder:"DATABASE"`
	DryRun bool     `help:"With --from: report what would be taken over, and write nothing."`
	Map    []string `help:"With --from: a folder of the other machine and where it is on this one, as OLD=NEW; can be repeated."                                             placeholder:"OLD=NEW"  sep:"none"`
	Merge  bool     `help:"With --from: make one codebase of all that are of one repository; otherwise each stays as it is."`
	Clone  bool     `help:"With --from: clone repositories now whose folder is not on this machine; otherwise the first message asks."`
	Skip   bool     `help:"With --from: leave rows out that cannot be taken; otherwise one of them refuses the import."`
}

// Run implements the command.
func (c importCommand) Run(p *program) (err error) {
	if (c.File == "") == (c.From == "") {
		return fault.New(fault.Invalid, "name a file that bot export wrote, or another database with --from")
	}
	if c.From != "" {
		source, err := sourceOf(c.From)
		if err != nil {
			return err
		}
		return p.care(func(cfg config.Config, env app.Env) error {
			return app.ImportSeed(p.ctx, cfg, env, app.SeedImport{
				From: source, Maps: c.Map, Dry: c.DryRun, Merge: c.Merge, Clone: c.Clone, Skip: c.Skip,
			})
		})
	}
	if c.DryRun || c.Merge || c.Clone || c.Skip || len(c.Map) > 0 {
		return fault.New(fault.Invalid, "--dry-run, --map, --merge, --clone and --skip go with --from; a file of bot export is taken as it is")
	}
	if err := regularFile(c.File); err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return fault.Newf(fault.Invalid, "%s cannot be read; name a file that is there", c.File)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return p.care(func(cfg config.Config, env app.Env) error { return app.Import(p.ctx, cfg, env, f) })
}

// regularFile refuses a directory, or a pipe, which cannot be examined first.
func regularFile(name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fault.Newf(fault.Invalid, "%s is not a file; name one that was written to the disk", name)
	}
	return nil
}

// sourceOf returns the database that --from names: an address, or a file.
func sourceOf(from string) (string, error) {
	if scheme, _, ok := strings.Cut(from, "://"); ok && scheme != "sqlite" {
		if scheme != "postgres" && scheme != "postgresql" {
			return "", fault.Newf(fault.Invalid, "--from: %s:// is no database that I can read; name an SQLite file or a postgres:// address", scheme)
		}
		return from, nil
	}
	name := strings.TrimPrefix(strings.TrimPrefix(from, "sqlite:"), "//")
	if err := regularFile(name); err != nil {
		return "", err
	}
	return addressIn(name)
}

// addressIn returns the address of PostgreSQL that a file holds, else the name of the
// file. An address may hold a password, which every user of the machine could read in
// the arguments: in a file it is safe.
func addressIn(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	f, err := os.Open(name) //nolint:gosec // the operator's own path
	if err != nil {
		return "", fault.Newf(fault.Invalid, "%s cannot be read; name a file that is there", name)
	}
	head, err := io.ReadAll(io.LimitReader(f, 4096))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read the file: %w", err)
	}
	if address := strings.TrimSpace(string(head)); strings.HasPrefix(address, "postgres") {
		return address, nil
	}
	return name, nil
}
