package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// Target is where a backup is put.
type Target struct {
	Path     string   // file of the SQLite database; empty: PostgreSQL
	Tools    Postgres // the PostgreSQL database, which has to be empty
	DataDir  string
	Projects string // folder of the databases of projects
	Log      *slog.Logger

	// Replaced is the database whose place the backup takes: what its audit log has
	// from after the backup is kept. Nil where it is gone; then the row that the
	// restore appends to the audit log follows the last one of the backup.
	Replaced *store.Store
}

// Restored says what a restore did.
type Restored struct {
	Manifest Manifest
	Settled  store.Settled
	Kept     int64 // rows of the audit log of Target.Replaced
	Projects int
	Bundles  []string // files with commits that were not pushed
	Made     bool     // all is in its place; with an error it belongs to root
}

// notice is what people read in conversations that had something open when the
// backup was made.
const notice = "The bot was restored from a backup of %s. Messages from around then or later may be lost and will not be answered: please send them again."

// Restore verifies a backup and puts it where nothing is: a target that has data
// is fault.Conflict, and so is one that a daemon works on. The schema is brought
// up to date. Old answers are never sent again: what was open is settled before
// the database can be used, and each conversation concerned gets one notice; see
// store.SettleRestored. If it fails, a target on SQLite is as it was before. What root
// restores belongs to the owner of the folder that it is put into, as whom the daemon runs;
// a link in another user's folder is fault.Conflict, because root would give nothing behind it away.
func Restore(ctx context.Context, dir string, to Target) (Restored, error) {
	whose := store.OwnerAt(to.DataDir)
	for _, folder := range []string{filepath.Join(to.DataDir, attachedDir), to.Projects} {
		if info, err := os.Lstat(folder); whose.Differs() && err == nil && info.Mode().Type() == fs.ModeSymlink {
			return Restored{}, fault.Newf(fault.Conflict, "%s is a link, and DATA_DIR is not root's; restore as its owner, or move the link away.", folder)
		}
	}
	r, err := restore(ctx, dir, to)
	if err != nil {
		return r, err
	}
	r.Made = true
	err = whose.Take(to.DataDir, ".")
	if to.Path != "" {
		folder := filepath.Dir(to.Path)
		err = errors.Join(err, store.OwnerAt(folder).Take(folder, filepath.Base(to.Path)))
	}
	if err != nil {
		return r, &fault.Error{Kind: fault.Unavailable, Err: err, Public: "The backup is restored, but its files belong to root: give them to the user as whom the bot runs, with chown -R."}
	}
	return r, nil
}

func restore(ctx context.Context, dir string, to Target) (r Restored, err error) {
	if r.Manifest, err = Verify(ctx, dir, to.Tools); err != nil {
		return r, err
	}
	into := "postgres"
	if to.Path != "" {
		into = "sqlite"
	}
	if into != r.Manifest.Database {
		return r, fault.Newf(fault.Invalid, "The backup is for %s, but DATABASE_URL is %s; to move between them, use `bot export` and `bot import`.", r.Manifest.Database, into)
	}
	if err := to.refuseData(ctx, r.Manifest); err != nil {
		return r, err
	}
	var made []string
	bundles := filepath.Join(to.DataDir, bundlesDir)
	defer func() {
		if err != nil {
			for _, name := range made {
				err = errors.Join(err, os.RemoveAll(name))
			}
			_ = os.Remove(bundles) // it is empty, and while it is there the next restore is refused
		}
	}()
	for _, f := range r.Manifest.Files {
		folder, name, ok := strings.Cut(f.Path, "/")
		target := filepath.Join(to.DataDir, folder)
		switch {
		case !ok:
			continue
		case folder == projectsDir:
			target = to.Projects
		case folder != bundlesDir && folder != attachedDir:
			continue
		}
		target = filepath.Join(target, filepath.FromSlash(name))
		if there, err := measure(ctx, target); err == nil && folder == attachedDir {
			if there.SHA256 == f.SHA256 {
				continue
			}
			_ = os.Remove(target) // what a restore left that did not come to its end
		}
		if err := copyFile(ctx, filepath.Join(dir, filepath.FromSlash(f.Path)), target); err != nil {
			return r, err
		}
		made = append(made, target)
		switch folder {
		case projectsDir:
			r.Projects++
		case bundlesDir:
			r.Bundles = append(r.Bundles, target)
		}
	}
	text := fmt.Sprintf(notice, r.Manifest.CreatedAt.UTC().Format("2006-01-02 15:04 UTC"))
	if to.Path != "" {
		err = to.restoreSQLite(ctx, filepath.Join(dir, sqliteName), text, &r)
	} else {
		err = to.restorePostgres(ctx, filepath.Join(dir, postgresName), text, &r)
	}
	return r, err
}

// refuseData refuses a target that is not empty, and says first if a daemon is
// the reason.
func (to Target) refuseData(ctx context.Context, m Manifest) error {
	names, err := projectNames(to.Projects)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fault.Newf(fault.Conflict, "%s already contains project databases; move them away, or set DATA_DIR to another folder.", to.Projects)
	}
	for _, f := range m.Files {
		if name, ok := strings.CutPrefix(f.Path, projectsDir+"/"); ok {
			if err := store.RefuseLog(filepath.Join(to.Projects, filepath.FromSlash(name)), "-wal", "-journal"); err != nil {
				return err
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(to.DataDir, bundlesDir)); err == nil {
		return fault.Newf(fault.Conflict, "%s already exists; move it away, or set DATA_DIR to another folder.", filepath.Join(to.DataDir, bundlesDir))
	}
	if to.Path != "" {
		return to.refuseFile(ctx)
	}
	s, err := store.Open(ctx, store.Options{URL: to.Tools.URL, DataDir: to.DataDir, Log: to.Log})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing was written
	empty, err := s.IsEmpty(ctx)
	if err == nil && !empty {
		err = fault.New(fault.Conflict, "The database in DATABASE_URL already has the bot's tables; create an empty one with createdb and use that.")
	}
	if err == nil {
		err = s.CheckEncoding(ctx)
	}
	return err
}

func (to Target) refuseFile(ctx context.Context) error {
	if _, err := os.Lstat(to.Path); errors.Is(err, fs.ErrNotExist) {
		return store.RefuseLog(to.Path, "-wal", "-journal")
	} else if err != nil {
		return unusable(to.Path, err)
	}
	s, err := store.Open(ctx, store.Options{URL: "sqlite:" + to.Path, Log: to.Log, Exclusive: true})
	if fault.Is(err, fault.Conflict) {
		return err // it says which process works on it
	}
	if err == nil {
		err = s.Close()
	}
	return errors.Join(fault.Newf(fault.Conflict, "There is already a database at %s; move it away together with its -wal and -shm, or set DATA_DIR to another folder.", to.Path), err)
}

// restoreSQLite makes the database ready under another name and links it to its
// own in one step, which fails if somebody else was faster.
func (to Target) restoreSQLite(ctx context.Context, from, notice string, r *Restored) error {
	work := to.Path + ".restoring"
	clean := func() {
		for _, end := range []string{"", "-wal", "-shm", ".lock"} {
			_ = os.Remove(work + end)
		}
	}
	clean()
	defer clean()
	if err := copyFile(ctx, from, work); err != nil {
		return err
	}
	if err := to.settle(ctx, store.Options{URL: "sqlite:" + work, Log: to.Log, Exclusive: true}, notice, r); err != nil {
		return err
	}
	if _, err := os.Lstat(work + "-wal"); err == nil {
		return fault.New(fault.Conflict, "Another program has opened the database being restored; try again.")
	}
	if err := os.Link(work, to.Path); err != nil {
		return unusable(to.Path, err)
	}
	return syncDir(filepath.Dir(to.Path))
}

func (to Target) restorePostgres(ctx context.Context, from, notice string, r *Restored) error {
	if err := to.Tools.restore(ctx, from); err != nil {
		return err
	}
	err := to.refuseElsewhere(ctx)
	if err == nil {
		err = to.settle(ctx, store.Options{URL: to.Tools.URL, DataDir: to.DataDir, Log: to.Log}, notice, r)
	}
	if err != nil {
		return &fault.Error{Kind: fault.KindOf(err), Err: err,
			Public: "The dump was loaded, but its open work could not be closed: do not start the bot on this database. Drop it and restore again. " + fault.Public(err)}
	}
	return nil
}

// refuseElsewhere refuses what was loaded into a schema that the address does not look in:
// the bot would make another one and find nothing there.
func (to Target) refuseElsewhere(ctx context.Context) error {
	s, err := store.Open(ctx, store.Options{URL: to.Tools.URL, DataDir: to.DataDir, Log: to.Log})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing was written
	empty, err := s.IsEmpty(ctx)
	if err == nil && empty {
		err = fault.New(fault.Invalid, "The backup is of a schema in which DATABASE_URL does not look: add its search_path.")
	}
	return err
}

// settle makes the restored database safe to run, and writes down in its audit log
// that it is a restored one.
func (to Target) settle(ctx context.Context, o store.Options, notice string, r *Restored) (err error) {
	s, err := store.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(s.Explain(err), s.Close()) }()
	if _, err := s.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	detail := store.RestoreDetail{Backup: r.Manifest.CreatedAt}
	err = s.InRead(ctx, func(tx *store.Tx) (err error) {
		detail.Head, err = tx.AuditLog().Head(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if to.Replaced != nil {
		if r.Kept, detail.Head, err = s.KeepAudit(ctx, to.Replaced); err != nil {
			return err
		}
	}
	detail.Kept = r.Kept
	encoded, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("encode the audit entry: %w", err)
	}
	return s.InTx(ctx, func(tx *store.Tx) error {
		if r.Settled, err = tx.Care().SettleRestored(ctx, notice); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: store.ActionRestore, Target: r.Manifest.CreatedAt.Format(nameLayout), Detail: string(encoded)})
	})
}

// copyFile copies a file to a place where none is.
func copyFile(ctx context.Context, from, to string) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return unusable(to, err)
	}
	in, err := open(from)
	if err != nil {
		return unusable(from, err)
	}
	defer in.Close()                                                      //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator's own path
	if err != nil {
		return unusable(to, err)
	}
	_, err = io.Copy(out, reader{ctx, in})
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return errors.Join(unusable(to, err), os.Remove(to))
	}
	return nil
}
