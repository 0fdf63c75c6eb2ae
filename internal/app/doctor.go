package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"remote-agent/internal/backup"
	"remote-agent/internal/config"
	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/redact"
	"remote-agent/internal/resource"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// Doctor examines the installation that cfg describes, and changes nothing: the daemon
// may run or not. Offline, nothing is asked over the network.
func Doctor(ctx context.Context, cfg config.Config, env Env, offline bool) doctor.Report {
	e := newExamination(cfg, env)
	return doctor.Run(ctx, e.checks(offline), offline, e.redact.String)
}

// examine runs the checks of some areas only.
func examine(ctx context.Context, cfg config.Config, env Env, areas ...string) doctor.Report {
	e := newExamination(cfg, env)
	var checks []doctor.Check
	for _, c := range e.checks(false) {
		if slices.Contains(areas, c.Area) {
			checks = append(checks, c)
		}
	}
	return doctor.Run(ctx, checks, false, e.redact.String)
}

// examination is one look at an installation.
type examination struct {
	config config.Config
	env    Env
	log    *slog.Logger
	redact *redact.Redactor
}

func newExamination(cfg config.Config, env Env) *examination {
	return &examination{config: cfg, env: env, log: env.Log, redact: newRedactor(cfg, env)}
}

// checks returns all checks, in the order of the report. Offline, those of programs keep
// them from the network.
func (e *examination) checks(offline bool) []doctor.Check {
	checks := []doctor.Check{
		{Area: "system", Run: e.examineFolder},
		{Area: "system", Run: e.examineWorkspace},
		{Area: "system", Run: e.examineClock, Online: true},
		{Area: "system", Run: e.examineGit},
		{Area: "system", Run: e.examineSandbox},
		{Area: "database", Run: e.examineDatabase},
		{Area: "database", Run: func(context.Context) []doctor.Finding { return []doctor.Finding{e.examineBackup(time.Now())} }},
	}
	checks = append(checks, e.modelChecks()...)
	checks = append(checks, e.platformChecks()...)
	return append(checks,
		doctor.Check{Area: "agents", Run: func(ctx context.Context) []doctor.Finding { return e.examineAgents(ctx, offline) }},
		doctor.Check{Area: "tools", Run: e.examineHosts},
		doctor.Check{Area: "tools", Run: func(ctx context.Context) []doctor.Finding { return e.examineMCP(ctx, offline) }},
		doctor.Check{Area: "web", Run: e.examineListen},
		doctor.Check{Area: "web", Run: e.examineAddress, Online: true},
		doctor.Check{Area: "access", Run: e.examineAccess},
	)
}

func one(f doctor.Finding) []doctor.Finding { return []doctor.Finding{f} }

// examineFolder proves that DATA_DIR can be written to, with a file that it removes.
func (e *examination) examineFolder(context.Context) []doctor.Finding {
	dir := e.config.DataDir
	if _, err := os.Stat(dir); os.IsNotExist(err) && writable(dir) == nil {
		return one(doctor.Found("folder", doctor.Skip, dir+" does not exist yet; the first start creates it", ""))
	}
	if err := writable(dir); err != nil {
		return one(cannotUse("folder", "DATA_DIR", dir, err))
	}
	found := one(doctor.Found("folder", doctor.OK, dir+" is writable", ""))
	if info, err := os.Stat(dir); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		found = one(doctor.Found("folder", doctor.Warn, "every user of this machine can replace what is in "+dir, "chmod o-w "+dir))
	}
	if err := diskCheck(e.config); err != nil {
		return append(found, doctor.Failed("disk", err, "free some space, or move DATA_DIR to a larger disk"))
	}
	if free, _, ok := resource.DiskFree(dir); ok {
		return append(found, doctor.Found("disk", doctor.OK, fmt.Sprintf("%.1f GB free", float64(free)/1e9), ""))
	}
	return append(found, doctor.Found("disk", doctor.Skip, "cannot measure the free space on this system", ""))
}

// examineWorkspace proves that WORKSPACE_PATH can be written to, or made where it is
// missing, with a file that it removes.
func (e *examination) examineWorkspace(context.Context) []doctor.Finding {
	dir, err := filepath.Abs(e.config.WorkspacePath)
	if err != nil {
		return one(doctor.Failed("workspace", fault.Wrap(err, fault.Invalid, "WORKSPACE_PATH"), "bot config show"))
	}
	if err := writable(dir); err != nil {
		return one(cannotUse("workspace", "WORKSPACE_PATH", dir, err))
	}
	return one(doctor.Found("workspace", doctor.OK, dir+" is writable", ""))
}

// cannotUse says why a folder cannot be read or written to: another owner helps against one of the causes.
func cannotUse(check, name, dir string, err error) doctor.Finding {
	if f, ok := errors.AsType[*fs.PathError](err); ok {
		err = f.Err
	}
	fix := "make the bot's user its owner: chown -R $(id -un) " + dir
	if !errors.Is(err, fs.ErrPermission) {
		fix = "see what is wrong with its disk (df -h, df -i, mount), or set " + name + " to another folder; bot config show says where its value comes from"
	}
	return doctor.Found(check, doctor.Fail, fmt.Sprintf("cannot use %s %s: %v", name, dir, err), fix)
}

// writable proves that a folder can be written to, or made where it is missing, with a
// file that it removes.
func writable(dir string) error {
	for _, err := os.Stat(dir); os.IsNotExist(err) && dir != filepath.Dir(dir); _, err = os.Stat(dir) {
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err //nolint:wrapcheck // it names the folder
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// examineHosts reads the lists of hosts as the start does, which ends at a wrong one.
func (e *examination) examineHosts(context.Context) []doctor.Finding {
	var found []doctor.Finding
	tools, agents := e.config, e.config
	tools.Agents.Hosts, agents.Tools.Hosts = nil, nil
	for _, c := range []config.Config{tools, agents} { // each says what is wrong with one of them
		if _, err := newPrograms(c, e.env).openOutside(); err != nil {
			found = append(found, doctor.Failed("hosts", err, "see where the value comes from: bot config show"))
		}
	}
	return found
}

// Clocks that are further off fail: GitHub refuses what an App signs a minute ahead,
// Slack's requests are refused after five.
const (
	clockWarn = 10 * time.Second
	clockFail = time.Minute
)

// examineClock compares the clock with the one of a server that is used anyway.
func (e *examination) examineClock(ctx context.Context) []doctor.Finding {
	base := e.clockServer()
	if base == "" {
		return one(doctor.Found("clock", doctor.Skip, "no server to compare with is configured", ""))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, base, http.NoBody)
	if err != nil {
		return one(doctor.Found("clock", doctor.Skip, "no address to compare with", ""))
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return one(doctor.Found("clock", doctor.Skip, "the server to compare with does not answer", ""))
	}
	_ = resp.Body.Close()
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return one(doctor.Found("clock", doctor.Skip, "the server to compare with does not send the time", ""))
	}
	off := time.Since(theirs).Abs().Round(time.Second)
	text, fix := fmt.Sprintf("differs by %s from that of %s", off, req.URL.Host), "timedatectl set-ntp true"
	switch {
	case off > clockFail:
		return one(doctor.Found("clock", doctor.Fail, text, fix))
	case off > clockWarn:
		return one(doctor.Found("clock", doctor.Warn, text, fix))
	}
	return one(doctor.Found("clock", doctor.OK, text, ""))
}

// clockServer is the address of a model API; empty if there is none.
func (e *examination) clockServer() string {
	for _, k := range modelsOf(e.config) {
		if k.Configured() {
			return k.Address()
		}
	}
	return ""
}

func (e *examination) examineGit(ctx context.Context) []doctor.Finding {
	root, err := os.MkdirTemp("", "doctor-*") // nothing is made in WORKSPACE_PATH
	if err != nil {
		return one(doctor.Found("git", doctor.Skip, "cannot create a temporary folder", ""))
	}
	defer os.RemoveAll(root) //nolint:errcheck // it is temporary
	cfg := e.config
	cfg.WorkspacePath = root
	w, err := newWorkspace(ctx, cfg, e.log, nil)
	if err != nil {
		return one(doctor.Failed("git", err, "install git 2.31 or newer"))
	}
	_ = w.Close()
	return one(doctor.Found("git", doctor.OK, "usable", ""))
}

// examineSandbox works in a folder of its own: that of the daemon holds the files of
// programs that run.
func (e *examination) examineSandbox(context.Context) []doctor.Finding {
	const fix = "see \"The sandbox\" in docs/assistants.md"
	places, err := placesOf(e.config)
	if err != nil {
		return one(doctor.Failed("sandbox", err, fix))
	}
	runner, err := newPrograms(e.config, e.env).newRunner(places, "") //nolint:contextcheck // what it tries is bounded by itself
	if err != nil {
		return one(doctor.Failed("sandbox", err, fix))
	}
	defer runner.Close() //nolint:errcheck // a temporary folder
	if level := runner.Level(); !level.Full() {
		return one(doctor.Found("sandbox", doctor.Warn, level.String(), fix))
	}
	return one(doctor.Found("sandbox", doctor.OK, "assistants' programs are fully confined", ""))
}

func (e *examination) examineDatabase(ctx context.Context) []doctor.Finding {
	db := e.config.Database
	if db.Driver == config.DriverSQLite {
		if _, err := os.Stat(db.Path); os.IsNotExist(err) {
			return one(doctor.Found("database", doctor.Skip, "none yet; the first start creates it", ""))
		}
	}
	fix := "see where the value comes from: bot config show"
	s, err := openStore(ctx, e.config, e.env, false)
	if err != nil {
		if fault.Is(err, fault.Damaged) {
			fix = "see \"A damaged database\" and \"Backups\" in docs/operations.md"
		}
		return one(doctor.Failed("database", err, fix))
	}
	defer s.Close() //nolint:errcheck // only read
	var found []doctor.Finding
	add := func(check, well, fix string, err error) {
		f := doctor.Found(check, doctor.OK, well, "")
		if err != nil {
			f = doctor.Failed(check, err, fix)
		}
		found = append(found, f)
	}
	add("database", s.Dialect()+" answers", fix, s.CheckEncoding(ctx))
	fix = "bot migrate up"
	if version, unread := s.SchemaVersion(ctx); unread == nil && version > store.LatestSchema() {
		fix = "install the newer version, or see where the value comes from: bot config show"
	}
	err = s.CheckSchema(ctx)
	add("schema", "up to date", fix, err)
	if err == nil {
		fix = "give the files to the bot's user, or free the disk"
		if db.Driver == config.DriverPostgres {
			fix = "fix that server, or see where its address comes from: bot config show"
		}
		add("writes", "can be stored", fix, s.CheckWrites(ctx))
	}
	add("integrity", "no damage found", "bot backup restore, or bot salvage", explainDamage(e.config, s.CheckIntegrity(ctx)))
	return found
}

// examineBackup looks for a backup that is new enough.
func (e *examination) examineBackup(now time.Time) doctor.Finding {
	if _, err := os.Stat(e.config.Database.Path); e.config.Database.Driver == config.DriverSQLite && os.IsNotExist(err) {
		return doctor.Found("backup", doctor.Skip, "nothing to back up yet", "")
	}
	_, unread := backup.List(e.config.BackupDir)
	if err := cmp.Or(unread, writable(e.config.BackupDir)); err != nil {
		return cannotUse("backup", "BACKUP_DIR", e.config.BackupDir, err)
	}
	newest, ok := newestBackup(e.config.BackupDir)
	if !ok {
		return doctor.Found("backup", doctor.Warn, "no backup in "+e.config.BackupDir, "bot backup create")
	}
	age := now.Sub(newest.Manifest.CreatedAt).Round(time.Minute)
	if age > oldBackup {
		return doctor.Found("backup", doctor.Warn, fmt.Sprintf("the newest is %s old", age), "bot backup create")
	}
	return doctor.Found("backup", doctor.OK, fmt.Sprintf("the newest is %s old", age), "")
}

// platformChecks prove the credentials of the platforms that are on, and more.
func (e *examination) platformChecks() []doctor.Check {
	var checks []doctor.Check
	for _, k := range kindsOf(e.config) {
		area := string(k.Platform())
		if !k.On() {
			checks = append(checks, doctor.Check{Area: area, Run: func(context.Context) []doctor.Finding {
				return one(doctor.Found("account", doctor.Skip, k.Banner(platform.Account{}), ""))
			}})
			continue
		}
		checks = append(checks, doctor.Check{Area: area, Online: true, Run: func(ctx context.Context) []doctor.Finding { return e.examinePlatform(ctx, k) }})
	}
	return checks
}

func (e *examination) examinePlatform(ctx context.Context, k platform.Kind) []doctor.Finding {
	a, err := e.adapterFor(k)
	if err != nil {
		return one(doctor.Failed("options", err, "bot config show"))
	}
	if idle, ok := a.(interface{ CloseIdle() }); ok {
		defer idle.CloseIdle()
	}
	checker, ok := a.(platform.Checker)
	if !ok {
		return one(doctor.Found("account", doctor.Skip, "this platform has no check", ""))
	}
	account, err := checker.Check(ctx)
	switch {
	case fault.Is(err, fault.Unauthorized), fault.Is(err, fault.Invalid):
		return one(doctor.Failed("account", err, "see where the value comes from: bot config show"))
	case err != nil:
		return one(doctor.Found("account", doctor.Warn, fault.Public(err), "try again: bot doctor"))
	}
	found := one(doctor.Found("account", doctor.OK, account.Name+" answers", ""))
	if examiner, ok := a.(platform.Examiner); ok {
		found = append(found, examiner.Examine(ctx)...)
	}
	return found
}

// adapterFor makes an adapter that asks the platform, and receives nothing.
func (e *examination) adapterFor(k platform.Kind) (platform.Adapter, error) {
	return k.New(platform.Surroundings{
		PublicURL: e.config.PublicURL, GitToken: e.config.Git.Token.Reveal(), Log: e.log,
	})
}

// examineAccess says who may get in.
func (e *examination) examineAccess(ctx context.Context) []doctor.Finding {
	var found []doctor.Finding
	owners, on := 0, 0
	for _, k := range kindsOf(e.config) {
		if !k.On() {
			continue
		}
		on++
		let := k.People()
		owners += len(let.Owners)
		if let.Everyone {
			found = append(found, doctor.Found("strangers", doctor.Warn, "everyone may use the bot on "+string(k.Platform()), "list people in "+let.AllowOption))
		}
	}
	if on == 0 {
		return one(doctor.Found("access", doctor.Skip, "no platform is on: the bot can be used in its console and in the browser only", ""))
	}
	if len(found) == 0 {
		found = one(doctor.Found("strangers", doctor.OK, "strangers are refused", ""))
	}
	if owners == 0 {
		n, err := e.countOwners(ctx)
		if err != nil {
			return append(found, doctor.Found("owners", doctor.Skip, "cannot count them: "+fault.Public(err), ""))
		}
		if n == 0 {
			return append(found, doctor.Found("owners", doctor.Warn, "the bot has no owner: nobody gets notices of problems or can let people in",
				"bot owner add PLATFORM/ID, or use the link that bot serve prints"))
		}
		owners = n
	}
	return append(found, doctor.Found("owners", doctor.OK, wording.Count(owners, "owner", "owners"), ""))
}

func (e *examination) countOwners(ctx context.Context) (n int, err error) {
	if _, err := os.Stat(filepath.Clean(e.config.Database.Path)); e.config.Database.Driver == config.DriverSQLite && err != nil {
		return 0, nil //nolint:nilerr // there is no database, and so no owner
	}
	err = withStore(ctx, e.config, e.env, false, func(s *store.Store) error {
		list, err := newPeople(e.config, s, nil, nil).List(ctx)
		for _, person := range list {
			if person.Role == sessions.Owner && person.Account.Platform != console.Name {
				n++
			}
		}
		return err
	})
	return n, err
}
