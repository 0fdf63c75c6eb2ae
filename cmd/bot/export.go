package main

import (
	"context"
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
	Format       string `default:"jsonl"                                           enum:"jsonl,csv,markdown,sql" help:"jsonl (for bot import), csv (a table of sessions), markdown (one session) or sql (SQLite only)."`
	Conversation string `help:"Only this conversation: its ID, or platform/id."`
	Session      string `help:"The session to export; markdown only."`
	Redact       bool   `help:"Mask credentials, and leave out raw bodies and files."`
	Output       string `help:"File to create; it must not exist. Default: stdout." placeholder:"FILE"        short:"o"`
}

func (c exportCommand) Run(p *program) error {
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		q := app.ExportQuery{Format: c.Format, Conversation: c.Conversation, Session: c.Session, Redact: c.Redact}
		return p.writeNew(c.Output, func(out io.Writer) error { return app.Export(ctx, cfg, env, out, q) })
	})
}

// writeNew writes a file that must not exist, and removes it if that fails. No name, or
// "-", is the standard output.
func (p *program) writeNew(name string, write func(out io.Writer) error) error {
	if name == "" || name == "-" {
		return write(p.stdout)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator's own path
	if errors.Is(err, fs.ErrExist) {
		return fault.Newf(fault.Invalid, "%s already exists; choose another file name.", name)
	}
	if err != nil {
		return &fault.Error{Kind: fault.Invalid, Public: name + " cannot be created; check that the folder exists and is writable.", Err: err}
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
	File   string   `arg:""                                                                                                                                                       help:"JSON Lines file written by bot export." optional:""`
	From   string   `help:"Another program's database with the three remote_agent_* tables, instead of a file: an SQLite file, a postgres:// address, or a file that contains one." placeholder:"DATABASE"`
	DryRun bool     `help:"With --from: report what would be imported; write nothing."`
	Map    []string `help:"With --from: map a folder of the other machine to one here, as OLD=NEW; repeatable."                                             placeholder:"OLD=NEW"  sep:"none"`
	Merge  bool     `help:"With --from: merge codebases of the same repository. Default: keep them separate."`
	Clone  bool     `help:"With --from: clone repositories that are not on this machine now. Default: the first message asks."`
	Skip   bool     `help:"With --from: skip rows that cannot be imported. Default: refuse the whole import."`
}

func (c importCommand) Run(p *program) (err error) {
	if (c.File == "") == (c.From == "") {
		return fault.New(fault.Invalid, "name a file written by bot export, or another database with --from")
	}
	if c.From != "" {
		source, err := sourceOf("--from", c.From)
		if err != nil {
			return err
		}
		return with(p, app.ImportSeed, app.SeedImport{
			From: source, Maps: c.Map, Dry: c.DryRun, Merge: c.Merge, Clone: c.Clone, Skip: c.Skip,
		})
	}
	if c.DryRun || c.Merge || c.Clone || c.Skip || len(c.Map) > 0 {
		return fault.New(fault.Invalid, "--dry-run, --map, --merge, --clone and --skip require --from; an export file is imported as it is")
	}
	if err := regularFile(c.File); err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return fault.Newf(fault.Invalid, "cannot read %s: check the path", c.File)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return with(p, app.Import, f)
}

// regularFile refuses a directory, or a pipe, which cannot be examined first.
func regularFile(name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fault.Newf(fault.Invalid, "%s is not a regular file; save the export to disk first", name)
	}
	return nil
}

// sourceOf returns the database that a flag names: an address, a file that holds one, or
// SQLite's file.
func sourceOf(flag, from string) (string, error) {
	if scheme, _, ok := strings.Cut(from, "://"); ok && scheme != "sqlite" {
		if scheme != "postgres" && scheme != "postgresql" {
			return "", fault.Newf(fault.Invalid, "%s: %s:// is not supported; use an SQLite file or a postgres:// address", flag, scheme)
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
	f, err := os.Open(name) //nolint:gosec // the operator's own path
	if err != nil {
		return "", fault.Newf(fault.Invalid, "cannot read %s: check the path", name)
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
