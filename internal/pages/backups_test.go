//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/backup"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// hasBackup puts a folder that looks like a backup among the others.
func (w *world) hasBackup(name, database, problem string) (dir string) {
	w.t.Helper()
	file := map[string]string{"sqlite": "bot.db", "postgres": "postgres.dump"}[database]
	m := backup.Manifest{Format: "remote-agent-backup", Version: 1, Bot: "v1", Database: database, CreatedAt: w.now.Add(-time.Hour), Files: []backup.File{{Path: file, Size: 3, SHA256: "x"}}}
	if problem != "" {
		m.Problems = []string{problem}
	}
	encoded, err := json.Marshal(m)
	dir = filepath.Join(w.backups, name)
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "manifest.json"), encoded, 0o600), os.WriteFile(filepath.Join(dir, file), []byte("abc"), 0o600)); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

func TestBackupsAreMadeVerifiedAndDownloaded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		if w.Dialect() != "sqlite" {
			t.Skip("pg_dump makes those of PostgreSQL, and they are not downloaded")
		}
		w.fill()
		owner := w.as(ann)
		wants(t, owner.get("/backups"), "There are no backups yet.", w.backups, "bot backup restore NAME")
		page := owner.follow(owner.post("/backups/create", url.Values{}))
		name := w.now.Format("20060102T150405Z")
		wants(t, page, "done", name+", 1 file", `href="/backups/`+name+`/download"`, "not verified by this process")
		if r := owner.post("/backups/create", url.Values{}); r.Code != http.StatusSeeOther {
			t.Errorf("a second one in the same second: %d", r.Code)
		}
		wants(t, owner.get("/backups"), "already exists; wait a second")
		wants(t, owner.follow(owner.post("/backups/verify", url.Values{"name": {name}})), "sound, schema ")

		r := owner.send("GET", "/backups/"+name+"/download", nil)
		if got := r.Header().Get("Content-Disposition"); r.Code != http.StatusOK || got != `attachment; filename="remote-agent-`+name+`.tar"` {
			t.Fatalf("the download: %d, %s", r.Code, got)
		}
		to := t.TempDir()
		unpack(t, r.Body, to)
		m, err := backup.Verify(t.Context(), filepath.Join(to, name), backup.Postgres{})
		if err != nil || m.Bot != "v1" {
			t.Errorf("what was downloaded: %+v, %v", m, err)
		}
		if err := os.Truncate(filepath.Join(w.backups, name, "bot.db"), 4096); err != nil {
			t.Fatal(err)
		}
		wants(t, owner.follow(owner.post("/backups/verify", url.Values{"name": {name}})), "failed", "The backup is damaged")
		w.do(func(ctx context.Context, tx *store.Tx) error {
			var actions []string
			rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Limit: 100})
			for _, row := range rows {
				if strings.HasPrefix(row.Action, "backup.") {
					actions = append(actions, row.Actor+" "+row.Action+" "+row.Target)
				}
			}
			if len(actions) != 3 || !strings.Contains(strings.Join(actions, ","), "console/local backup.download "+name) {
				t.Errorf("the audit log: %q", actions)
			}
			return err
		})
	})
}

// Programs that look at a link before they follow it download nothing.
func TestAskingForABackupIsNoDownload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)(t))
	const name = "20260102T000000Z"
	w.hasBackup(name, "sqlite", "")
	owner := w.as(ann)
	r := owner.send("HEAD", "/backups/"+name+"/download", nil)
	if got := r.Header().Get("Content-Disposition"); r.Code != http.StatusOK || got != `attachment; filename="remote-agent-`+name+`.tar"` || r.Body.Len() != 0 {
		t.Errorf("HEAD: %d, %q, %d bytes that are read for nobody", r.Code, got, r.Body.Len())
	}
	if r := owner.send("HEAD", "/backups/none/download", nil); r.Code != http.StatusNotFound {
		t.Errorf("HEAD of none: %d", r.Code)
	}
	if r := w.as(bob).send("HEAD", "/backups/"+name+"/download", nil); r.Code != http.StatusForbidden {
		t.Errorf("HEAD by a member: %d", r.Code)
	}
	w.do(func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Action: "backup.download", Limit: 100})
		if len(rows) != 0 {
			t.Errorf("the audit log has %d downloads", len(rows))
		}
		return err
	})
}

// A backup is made once, whoever presses the button again meanwhile, and noted once.
func TestABackupIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)(t))
	owner := w.as(ann)
	form := url.Values{}
	ctx, leave := context.WithCancel(t.Context())
	var backups []func(ctx context.Context)
	w.background = func(fn func(ctx context.Context)) bool {
		backups = append(backups, fn)
		leave() // the browser does not wait for it
		return true
	}
	owner.ctx = ctx
	owner.post("/backups/create", form)
	owner.ctx = nil
	owner.post("/backups/create", form)
	if r := owner.post("/backups/create", url.Values{}); r.Code != http.StatusConflict {
		t.Errorf("another form while it is made: %d", r.Code)
	}
	for _, run := range backups {
		run(t.Context())
	}
	owner.post("/backups/create", form)
	w.do(func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Action: "backup.create", Limit: 100})
		if len(rows) != 1 || len(backups) != 1 {
			t.Errorf("%d backups, %d rows of the audit log", len(backups), len(rows))
		}
		return err
	})
	wants(t, owner.get("/backups"), "done", w.now.Format("20060102T150405Z")+", 1 file")
}

// unpack puts the files of an archive below a folder.
func unpack(t *testing.T, from io.Reader, to string) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatalf("the archive: %+v, %v", h, err)
		}
		data, err := io.ReadAll(r)
		name := filepath.Join(to, h.Name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnlyOwnersHaveBackupsAndOnlyThoseThatThereAre(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.hasBackup("20260101T000000Z", "postgres", "")
		w.hasBackup("20260102T000000Z", "sqlite", evil)
		broken := w.hasBackup("20260103T000000Z", "sqlite", "")
		if err := os.Remove(filepath.Join(broken, "manifest.json")); err != nil {
			t.Fatal(err)
		}
		owner := w.as(ann)
		page := owner.get("/backups")
		clean(t, "/backups", page)
		wants(t, page, "unusable", "1 thing was not copied", "copy its folder from the server with scp -r", "1 hour ago")
		for path, want := range map[string]int{
			"/backups/20260101T000000Z/download":             http.StatusMethodNotAllowed,
			"/backups/20260103T000000Z/download":             http.StatusBadRequest,
			"/backups/none/download":                         http.StatusNotFound,
			"/backups/..%2f20260102T000000Z/download":        http.StatusNotFound,
			"/backups/" + url.PathEscape("..") + "/download": http.StatusNotFound,
			"/backups?before=a&before=b":                     http.StatusBadRequest,
		} {
			if r := owner.send("GET", path, nil); r.Code != want {
				t.Errorf("GET %s: %d, want %d", path, r.Code, want)
			}
		}
		if r := owner.post("/backups/verify", url.Values{"name": {"../x"}}); r.Code != http.StatusNotFound {
			t.Errorf("verifying what is not there: %d", r.Code)
		}
		for _, who := range []*browser{w.as(bob), w.as(cat)} {
			for _, path := range []string{"/backups", "/backups/20260102T000000Z/download"} {
				if r := who.send("GET", path, nil); r.Code != http.StatusForbidden || strings.Contains(r.Body.String(), `href="/backups"`) {
					t.Errorf("GET %s: %d", path, r.Code)
				}
			}
			for _, path := range []string{"/backups/create", "/backups/verify"} {
				if r := who.post(path, url.Values{"name": {"20260102T000000Z"}}); r.Code != http.StatusForbidden {
					t.Errorf("POST %s: %d", path, r.Code)
				}
			}
		}
	})
}

func TestManyBackupsHaveAStableCursor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for i := range 120 {
			w.hasBackup("20260101T000"+strconv.Itoa(100+i)+"Z", "sqlite", "")
		}
		owner, path, seen := w.as(ann), "/backups", 0
		for path != "" {
			page := owner.get(path)
			seen += strings.Count(page, `<th scope="row">`)
			w.hasBackup("20270101T000"+strconv.Itoa(seen)+"Z", "sqlite", "") // meanwhile
			path = ""
			if _, rest, ok := strings.Cut(page, `href="/backups?before=`); ok {
				before, _, _ := strings.Cut(rest, `"`)
				path = "/backups?before=" + before
			}
		}
		if seen != 120 {
			t.Errorf("%d backups are listed", seen)
		}
	})
}
