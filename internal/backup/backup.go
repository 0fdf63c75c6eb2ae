// Package backup copies everything that cannot be had again into a folder,
// examines such copies, and puts them back: the database, the databases of
// projects, and commits of conversations that were not pushed. Clones are not in
// a backup, and neither are logs, secrets or the configuration.
//
// A backup is a folder with a manifest that names each file with its size and
// checksum. It appears under its name only when it is complete.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/audit"
	"remote-agent/internal/codebase"
	"remote-agent/internal/fault"
	"remote-agent/internal/store"
	"remote-agent/internal/tool/projectdb"
)

const (
	format       = "remote-agent-backup"
	version      = 1
	manifestName = "manifest.json"
	sqliteName   = "bot.db"
	postgresName = "postgres.dump"
	projectsDir  = "projects"
	bundlesDir   = "bundles"
	attachedDir  = "files"
	partial      = ".partial" // end of the name of a backup that is being made

	// nameLayout is the name of a backup: its time, so that names sort.
	nameLayout = "20060102T150405Z"
)

// Manifest describes a backup. It is the file manifest.json.
type Manifest struct {
	Format    string    `json:"format"`
	Version   int       `json:"version"`
	Bot       string    `json:"bot_version"`
	Schema    int64     `json:"schema_version"`
	Database  string    `json:"database"`                  // sqlite or postgres
	PgDump    int       `json:"pg_dump_version,omitempty"` // major version of what made postgres.dump
	CreatedAt time.Time `json:"created_at"`
	Files     []File    `json:"files"`

	// Audit is the end of the audit log as the backup was begun; later rows may be in
	// it as well. `bot audit verify` looks for it. Nil in backups of earlier versions.
	Audit *audit.Head `json:"audit,omitempty"`

	// Problems say what could not be copied, such as a repository that git
	// cannot read, or a damaged database of a project. The rest of the backup is complete.
	Problems []string `json:"problems,omitempty"`
}

// File is a file of a backup.
type File struct {
	Path   string `json:"path"` // in the folder, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Size returns the bytes of all files.
func (m Manifest) Size() (total int64) {
	for _, f := range m.Files {
		total += f.Size
	}
	return total
}

// Source is what a backup is made of.
type Source struct {
	Store     *store.Store
	Tools     Postgres            // how to copy PostgreSQL; unused on SQLite
	Projects  string              // folder of the databases of projects; may be missing
	Attached  string              // folder of what people attached, by hash, where the database does not keep it; may be missing
	Workspace *codebase.Workspace // nil: no repositories
	Bot       string              // version of the program
}

// Create makes a backup below a folder, which is created if it is missing, and
// returns where it is. The daemon may run meanwhile: each database is copied as
// it is at one moment. Nothing is left behind if it fails. A backup that a restore would
// refuse, because the database has rows that refer to none, is kept, and is fault.Invalid.
func Create(ctx context.Context, src Source, folder string, now time.Time) (dir string, m Manifest, err error) {
	m = Manifest{Format: format, Version: version, Bot: src.Bot, Database: src.Store.Dialect(), CreatedAt: now.UTC().Truncate(time.Second)}
	dir = filepath.Join(folder, m.CreatedAt.Format(nameLayout))
	if _, err := os.Lstat(dir); err == nil {
		return dir, m, fault.Newf(fault.Conflict, "A backup named %s already exists; wait a second.", dir)
	}
	work, whose := dir+partial, store.OwnerAt(folder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return dir, m, unusable(folder, err)
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return dir, m, unusable(work, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(work))
		}
	}()
	if m.Schema, err = src.Store.SchemaVersion(ctx); err != nil {
		return dir, m, err
	}
	err = src.Store.InRead(ctx, func(tx *store.Tx) error {
		head, err := tx.AuditLog().Head(ctx)
		m.Audit = &head
		return err
	})
	if err != nil {
		return dir, m, err
	}
	if m.PgDump, err = copyDatabase(ctx, src, work); err != nil {
		return dir, m, err
	}
	damaged, err := copyProjects(ctx, src.Projects, filepath.Join(work, projectsDir))
	if err != nil {
		return dir, m, err
	}
	if err := copyAttached(ctx, src.Attached, filepath.Join(work, attachedDir)); err != nil {
		return dir, m, err
	}
	if m.Problems, err = bundle(ctx, src.Workspace, filepath.Join(work, bundlesDir)); err != nil {
		return dir, m, err
	}
	m.Problems = append(m.Problems, damaged...)
	if m.Files, err = files(ctx, work); err != nil {
		return dir, m, err
	}
	if err := writeManifest(work, m); err != nil {
		return dir, m, err
	}
	if err := errors.Join(whose.Take(folder, filepath.Base(work)), os.Rename(work, dir)); err != nil {
		return dir, m, unusable(dir, err)
	}
	if err := syncDir(folder); err != nil || m.Database != "sqlite" {
		return dir, m, err
	}
	if err := store.CheckReferences(ctx, filepath.Join(dir, sqliteName)); err != nil {
		return dir, m, &fault.Error{Kind: fault.KindOf(err), Err: err, Public: fmt.Sprintf("The backup %s was created, but a restore would refuse it: %s "+
			"Another program changed the database. Stop the bot, repair the database with `bot salvage`, and create another backup.", dir, fault.Public(err))}
	}
	return dir, m, nil
}

// copyDatabase returns the version of pg_dump if that did it.
func copyDatabase(ctx context.Context, src Source, work string) (pgDump int, err error) {
	if src.Store.Dialect() == "sqlite" {
		return 0, outOfRoom(work, src.Store.Snapshot(ctx, filepath.Join(work, sqliteName)))
	}
	server, err := src.Store.ServerVersion(ctx)
	if err != nil {
		return 0, err
	}
	return src.Tools.dump(ctx, server, filepath.Join(work, postgresName))
}

// copyProjects copies the databases of projects and names those that are damaged, which
// keep nothing else out of a backup.
func copyProjects(ctx context.Context, from, to string) (damaged []string, err error) {
	names, err := projectNames(from)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return nil, unusable(to, err)
	}
	from, err = filepath.Abs(from)
	if err != nil {
		return nil, unusable(from, err)
	}
	for _, name := range names {
		switch err := copyProject(ctx, filepath.Join(from, name), filepath.Join(to, name)); {
		case projectdb.Damaged(err):
			damaged = append(damaged, filepath.Join(projectsDir, name)+": the database of this project is damaged")
		case err != nil:
			return nil, fmt.Errorf("copy the database of project %s: %w", name, outOfRoom(to, err))
		}
	}
	return damaged, nil
}

func copyProject(ctx context.Context, from, to string) error {
	db, err := projectdb.Open(from) //nolint:contextcheck // opening is bounded by its own time
	if err != nil {
		return err
	}
	return errors.Join(db.Backup(ctx, to), db.Close())
}

// copyAttached copies the files that people attached. They never change; one that is
// deleted meanwhile is left out.
func copyAttached(ctx context.Context, from, to string) error {
	if from == "" {
		return nil
	}
	source := os.DirFS(from) // the folder's own name may mean something in a pattern
	names, err := fs.Glob(source, "[0-9a-f][0-9a-f]/*")
	if err != nil {
		return err
	}
	for _, name := range names {
		name = filepath.FromSlash(name)
		if err := copyFile(ctx, filepath.Join(from, name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func projectNames(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unread(folder, err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".db") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func bundle(ctx context.Context, w *codebase.Workspace, to string) ([]string, error) {
	if w == nil {
		return nil, nil
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return nil, unusable(to, err)
	}
	bundles, problems, err := w.Bundles(ctx, to)
	if err == nil && len(bundles) == 0 {
		err = os.Remove(to)
	}
	return problems, err
}

// files lists the files of a backup with their checksums, in order, and makes
// sure that they are on the disk.
func files(ctx context.Context, dir string) ([]File, error) {
	var list []File
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		f, err := measure(ctx, name)
		f.Path = filepath.ToSlash(rel)
		list = append(list, f)
		return err
	})
	if err != nil {
		return nil, unusable(dir, err)
	}
	return list, nil
}

func measure(ctx context.Context, name string) (File, error) {
	f, err := open(name)
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	size, err := io.Copy(sum, reader{ctx, f})
	err = errors.Join(err, f.Sync(), f.Close())
	return File{Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// reader ends with its context.
type reader struct {
	ctx context.Context //nolint:containedctx // an io.Reader has no other place for it
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

func writeManifest(dir string, m Manifest) error {
	encoded, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fault.Wrap(err, fault.Internal, "encode manifest")
	}
	name := filepath.Join(dir, manifestName)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator's own path
	if err != nil {
		return unusable(name, err)
	}
	_, err = f.Write(append(encoded, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return unusable(name, err)
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	f, err := os.Open(dir) //nolint:gosec // the operator's own path
	if err != nil {
		return unusable(dir, err)
	}
	_ = f.Sync() // not every file system can
	return f.Close()
}

func unusable(name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &fault.Error{Kind: fault.Unavailable, Public: "Cannot use " + name + "; check that the folder is writable and the disk is not full.", Err: err}
}

// outOfRoom names the folder that a database was copied to if its disk was full: the
// database itself says only that some disk is.
func outOfRoom(folder string, err error) error {
	if !fault.Is(err, fault.Disk) {
		return err
	}
	return &fault.Error{Kind: fault.Disk, Public: "The disk of " + folder + " is full; free some space, or set BACKUP_DIR to a folder on another disk.", Err: err}
}

// unread is unusable for what is only read.
func unread(name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &fault.Error{Kind: fault.Unavailable, Public: "Cannot read " + name + "; check that it belongs to the bot's user.", Err: err}
}

// Read reads the manifest of a backup. A folder without one, a damaged one or
// one that a newer bot wrote is fault.Invalid.
func Read(dir string) (Manifest, error) {
	var m Manifest
	if strings.HasSuffix(filepath.Clean(dir), partial) {
		return m, fault.Newf(fault.Invalid, "%s is incomplete; delete it.", dir)
	}
	f, err := open(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fault.Newf(fault.Invalid, "%s is not a backup: it has no %s.", dir, manifestName)
	}
	if err != nil {
		return m, unread(dir, err)
	}
	defer f.Close() //nolint:errcheck // only read
	if err := json.NewDecoder(f).Decode(&m); err != nil {
		return m, &fault.Error{Kind: fault.Invalid, Public: fmt.Sprintf("The %s of %s is damaged.", manifestName, dir), Err: err}
	}
	switch {
	case m.Format != format:
		return m, fault.Newf(fault.Invalid, "%s is not a backup made by this program.", dir)
	case m.Version > version:
		return m, fault.Newf(fault.Invalid, "The backup was made by a newer version (format %d, this one supports %d): use that version or newer.", m.Version, version)
	case m.Schema > store.LatestSchema():
		return m, fault.Newf(fault.Invalid, "The backup has schema version %d, but this version supports only %d: use version %s or newer.", m.Schema, store.LatestSchema(), m.Bot)
	case !slices.Contains([]string{"sqlite", "postgres"}, m.Database):
		return m, fault.Newf(fault.Invalid, "The backup is of an unknown kind of database, %q.", m.Database)
	}
	if !slices.ContainsFunc(m.Files, func(f File) bool { return f.Path == m.databaseFile() }) {
		return m, fault.Newf(fault.Invalid, "The backup has no %s.", m.databaseFile())
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return m, fault.Newf(fault.Invalid, "The backup refers to a file outside itself, %q.", f.Path)
		}
	}
	return m, nil
}

func (m Manifest) databaseFile() string {
	if m.Database == "sqlite" {
		return sqliteName
	}
	return postgresName
}

// Verify examines a backup: that each file is there and as it was written, that
// the databases are sound and of the schema that the manifest says, and that a
// dump of PostgreSQL can be read to its end. All problems are in the error, which
// is fault.Invalid. Nothing is changed.
func Verify(ctx context.Context, dir string, tools Postgres) (Manifest, error) {
	m, err := Read(dir)
	if err != nil {
		return m, err
	}
	var problems []string
	for _, f := range m.Files {
		if err := verifyFile(ctx, dir, f, m, tools); err != nil {
			if !fault.Is(err, fault.Invalid) {
				return m, err
			}
			problems = append(problems, fault.Public(err))
		}
	}
	if len(problems) > 0 {
		return m, fault.Newf(fault.Invalid, "The backup is damaged: %s", strings.Join(problems, " "))
	}
	return m, nil
}

func verifyFile(ctx context.Context, dir string, f File, m Manifest, tools Postgres) error {
	name := filepath.Join(dir, filepath.FromSlash(f.Path))
	got, err := measure(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Newf(fault.Invalid, "%s is missing.", f.Path)
	case err != nil:
		return unread(name, err)
	case got.Size != f.Size:
		return fault.Newf(fault.Invalid, "%s has %d bytes instead of %d.", f.Path, got.Size, f.Size)
	case got.SHA256 != f.SHA256:
		return fault.Newf(fault.Invalid, "%s was changed: its checksum differs.", f.Path)
	}
	switch {
	case f.Path == sqliteName:
		schema, err := store.CheckFile(ctx, name)
		if err == nil && schema != m.Schema {
			err = fault.Newf(fault.Invalid, "%s has schema version %d, but the manifest says %d.", f.Path, schema, m.Schema)
		}
		return err
	case f.Path == postgresName:
		return tools.check(ctx, name, m.PgDump)
	case strings.HasSuffix(f.Path, ".db"):
		_, err := store.CheckFile(ctx, name)
		return err
	case strings.HasSuffix(f.Path, ".bundle"):
		return checkBundle(name)
	}
	return nil
}

func checkBundle(name string) error {
	f, err := open(name)
	if err != nil {
		return unread(name, err)
	}
	defer f.Close() //nolint:errcheck // only read
	head := make([]byte, len("# v2 git bundle"))
	_, _ = io.ReadFull(f, head)
	if text := string(head); text != "# v2 git bundle" && text != "# v3 git bundle" {
		return fault.Newf(fault.Invalid, "%s is not a git bundle.", filepath.Base(name))
	}
	return nil
}
