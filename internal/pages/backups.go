package pages

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"remote-agent/internal/backup"
	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// Backups is what can be done with backups.
type Backups struct {
	Folder string
	Create func(ctx context.Context) (name string, m backup.Manifest, err error)
	Verify func(ctx context.Context, dir string) (backup.Manifest, error)
}

const (
	backupsPage = 50
	createJob   = "backup" // the names of jobs
	verifyJob   = "backup/"

	// slowest is how long a browser may take for the next part of a download.
	slowest = time.Minute
)

// backupPages are the backups that there are.
type backupPages struct {
	storage Storage
	show    *renderer
	jobs    *jobs
	can     *Backups
	log     *slog.Logger
}

func (p *backupPages) routes(to *Pages) {
	to.page("GET /backups", ownersSee(p.backups))
	to.file("GET /backups/{name}/download", p.downloadBackup)
	to.act("POST /backups/create", ownersDo(p.createBackup))
	to.act("POST /backups/verify", ownersDo(p.verifyBackup))
}

// backupList returns the backups behind the one with a name, the newest first.
func (p *backupPages) backupList(before string) ([]backup.Listed, error) {
	all, err := backup.List(p.can.Folder)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(l backup.Listed) bool { return filepath.Base(l.Dir) == before })
	return all[i+1:], nil
}

// backupNamed finds a backup that can be used.
func (p *backupPages) backupNamed(name string) (backup.Listed, error) {
	all, err := p.backupList("")
	if err != nil {
		return backup.Listed{}, err
	}
	i := slices.IndexFunc(all, func(l backup.Listed) bool { return filepath.Base(l.Dir) == name })
	if i < 0 {
		return backup.Listed{}, fault.New(fault.NotFound, "There is no backup of that name.")
	}
	return all[i], all[i].Err
}

// backups lists the backups.
func (p *backupPages) backups(r *request) (view, error) {
	if err := r.plain("before"); err != nil {
		return view{}, err
	}
	list, err := p.backupList(r.URL.Query().Get("before"))
	if err != nil {
		return view{}, err
	}
	more := len(list) > backupsPage
	list = list[:min(len(list), backupsPage)]
	body := html.Group{html.Tag("h1", "Backups"),
		html.El("p", html.Text("A backup contains the database, attachments, project databases and commits that were not pushed: everything that was said, but no configuration. Backups are in "),
			html.Tag("code", p.show.redact(p.can.Folder)), html.Text(" on the server.")),
		form(r, "/backups/create", button("Create a backup", "primary")), p.show.job(p.jobs, createJob)}
	if len(list) == 0 {
		body = append(body, emptyText("There are no backups yet. Create one here, or run bot backup create every night from cron or a timer."))
	} else {
		body = append(body, table([]string{"Backup", "Created", "Size", "State", "Actions"}, html.Map(list, func(l backup.Listed) html.Node { return p.backupRow(r, l) })))
	}
	if more {
		body = append(body, older(r, "before", filepath.Base(list[len(list)-1].Dir), "", "Older backups"))
	}
	body = append(body, html.Tag("h2", "Restore"),
		html.El("p", html.Text("Restoring is done on the server while the bot is stopped: "), html.Tag("code", "bot backup restore NAME"),
			html.Text(". It needs an empty data directory, and sends nothing again.")))
	return view{title: "Backups", body: body}, nil
}

func (p *backupPages) backupRow(r *request, l backup.Listed) html.Node {
	name := filepath.Base(l.Dir)
	heading := html.El("th", html.Attr("scope", "row"), html.Text(p.show.head200(name)))
	if l.Err != nil {
		return html.El("tr", heading, html.Tag("td", "–"), html.Tag("td", "–"), html.El("td", state("error", "✖", "unusable"), html.Text(": "+p.show.head200(fault.Public(l.Err)))), html.El("td"))
	}
	m := l.Manifest
	shown := html.Node(html.Text("not verified by this process"))
	if j, ok := p.jobs.of(verifyJob + name); ok {
		shown = p.show.jobState(j)
	}
	actions := html.Group{form(r, "/backups/verify", hidden("name", name), button("Verify", ""))}
	if m.Database == sqliteBackup {
		actions = append(actions, linkButton("/backups/"+name+"/download", "Download"))
	} else {
		actions = append(actions, html.Styled("p", "meta", "Contains a PostgreSQL dump: copy its folder from the server with scp -r, or make your own dump with pg_dump."))
	}
	if n := len(m.Problems); n > 0 {
		shown = html.Group{shown, html.Styled("p", "warning", fmt.Sprintf("%s not copied: %s", wording.Count(n, "thing was", "things were"), p.show.head200(m.Problems[0])))}
	}
	return html.El("tr", heading, html.El("td", p.show.when(m.CreatedAt)), html.Tag("td", fmt.Sprintf("%s, %s", bytesText(int(m.Size())), wording.Count(len(m.Files), "file", "files"))),
		html.El("td", shown), html.El("td", html.El("div", html.Class("actions"), actions)))
}

// sqliteBackup is what the manifest of a backup says of one that can be downloaded.
const sqliteBackup = "sqlite"

// jobState says what came of a job.
func (re *renderer) jobState(j job) html.Node {
	switch {
	case j.Ended.IsZero():
		return html.Group{state("running", "◐", "running"), html.Text(" for " + clock(re.now().Sub(j.Began)) + "; reload the page to see the result.")}
	case j.Err != nil:
		return html.Group{state("error", "✖", "failed"), html.Text(": " + re.head200(fault.Public(j.Err)) + " "), re.when(j.Ended)}
	}
	return html.Group{state("ok", "✔", "done"), html.Text(": " + re.head200(j.Said) + " "), re.when(j.Ended)}
}

// job says what came of the last one of a name, if there was one.
func (re *renderer) job(all *jobs, name string) html.Node {
	j, ok := all.of(name)
	if !ok {
		return nil
	}
	return html.El("p", html.Attr("role", "status"), re.jobState(j))
}

// createBackup makes a backup.
func (p *backupPages) createBackup(_ http.ResponseWriter, r *request) (outcome, error) {
	err := p.jobs.work(r, createJob, func(ctx context.Context, j *job) {
		if j.Err = p.note(ctx, r, "backup.create", ""); j.Err != nil {
			return
		}
		name, m, err := p.can.Create(ctx)
		j.Said, j.Err = fmt.Sprintf("%s, %s, %s", name, wording.Count(len(m.Files), "file", "files"), bytesText(int(m.Size()))), err
	})
	return outcome{to: "/backups"}, err
}

// verifyBackup examines a backup.
func (p *backupPages) verifyBackup(_ http.ResponseWriter, r *request) (outcome, error) {
	name := r.PostForm.Get("name")
	l, err := p.backupNamed(name)
	if err != nil {
		return outcome{}, err
	}
	err = p.jobs.work(r, verifyJob+name, func(ctx context.Context, j *job) {
		var m backup.Manifest
		m, j.Err = p.can.Verify(ctx, l.Dir)
		j.Said = fmt.Sprintf("sound, schema %d", m.Schema)
	})
	return outcome{to: "/backups"}, err
}

// note writes down what somebody does.
func (p *backupPages) note(ctx context.Context, r *request, action, target string) error {
	e := sessions.AuditEntry{Action: action, Target: target}
	e.Actor = r.actor()
	return p.storage.InTx(ctx, func(tx *store.Tx) error { return tx.Audit(ctx, e) })
}

// downloadBackup sends a backup as an archive, as fast as the browser takes it.
func (p *backupPages) downloadBackup(w http.ResponseWriter, r *request) error {
	if !r.owner() {
		return fault.New(fault.Forbidden, "Only owners can do this.")
	}
	name := r.PathValue("name")
	l, err := p.backupNamed(name)
	switch {
	case err != nil:
		return err
	case l.Manifest.Database != sqliteBackup:
		return fault.New(fault.Unsupported, "A PostgreSQL backup cannot be downloaded here. Copy its folder from the server, or make your own dump with pg_dump.")
	}
	downloads := r.Method != http.MethodHead
	if downloads {
		if err := p.note(r.Context(), r, "backup.download", name); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Content-Disposition", `attachment; filename="remote-agent-`+name+`.tar"`)
	if !downloads {
		return nil
	}
	if err := backup.Archive(r.Context(), patient{w, http.NewResponseController(w)}, l.Dir); err != nil {
		p.log.WarnContext(r.Context(), "a download of a backup was cut off", "backup", name, "err", err)
		panic(http.ErrAbortHandler) // so that half a file is not taken for a whole one
	}
	return nil
}

// patient gives a browser time for each part of an answer, not for all of it.
type patient struct {
	io.Writer

	control *http.ResponseController
}

// Write implements io.Writer.
func (w patient) Write(part []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(slowest)) // where there is none, none is needed
	return w.Writer.Write(part)                             //nolint:wrapcheck // of a browser that left
}
