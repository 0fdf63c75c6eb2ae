package backup

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
	"remote-agent/internal/store"
)

// Postgres runs the programs of PostgreSQL that copy a database.
type Postgres struct {
	URL string // of the database; its password is given to them in their environment

	// Environ is what they get besides; pg_dump is a script on some systems and
	// needs PATH.
	Environ []string
}

// poolParams are parameters of an address that mean something to this program
// and nothing to PostgreSQL's own.
var poolParams = []string{"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity"}

// serverParams are the parameters of an address that PostgreSQL's own programs know. What
// is none of them, this program sets for its sessions, such as search_path.
var serverParams = []string{
	"application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "fallback_application_name", "gssdelegation", "gssencmode",
	"gsslib", "host", "hostaddr", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "krbsrvname", "load_balance_hosts",
	"max_protocol_version", "min_protocol_version", "options", "passfile", "port", "require_auth", "requirepeer", "requiressl", "service",
	"ssl_max_protocol_version", "ssl_min_protocol_version", "sslcert", "sslcertmode", "sslcompression", "sslcrl", "sslcrldir", "sslkey", "sslmode",
	"sslnegotiation", "sslpassword", "sslrootcert", "sslsni", "target_session_attrs", "tcp_user_timeout", "user",
}

// address returns the address without its password, which every user of the
// machine could read in the arguments.
func (p Postgres) address() (address, password string, err error) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "", "", fault.New(fault.Invalid, "DATABASE_URL is not valid; use postgres://user:password@host:5432/name.")
	}
	password, _ = u.User.Password()
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	if query.Has("password") {
		password = query.Get("password")
		query.Del("password")
	}
	for name := range query {
		if strings.HasPrefix(name, "pool_") {
			query.Del(name)
		}
	}
	for _, name := range poolParams {
		query.Del(name)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(serverParams, name) {
			continue
		}
		setting := "-c " + name + "=" + strings.NewReplacer(`\`, `\\`, " ", `\ `).Replace(query.Get(name))
		query.Set("options", strings.TrimSpace(query.Get("options")+" "+setting))
		query.Del(name)
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return u.String(), password, nil
}

func (p Postgres) run(ctx context.Context, program string, args ...string) error {
	_, err := p.output(ctx, program, args...)
	return err
}

// output runs a program and returns what it prints.
func (p Postgres) output(ctx context.Context, program string, args ...string) (string, error) {
	found, err := exec.LookPath(program)
	if err != nil {
		return "", &fault.Error{Kind: fault.Unsupported, Err: err,
			Public: program + " is not in the PATH; install the PostgreSQL client programs, in the server's version or newer."}
	}
	_, password, err := p.address()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, found, args...) //nolint:gosec // argv only, built by this program
	cmd.Env = append([]string{"PGAPPNAME=bot backup", "PGCONNECT_TIMEOUT=10"}, p.Environ...)
	if password != "" {
		cmd.Env = append(cmd.Env, "PGPASSWORD="+password)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			return "", &fault.Error{Kind: fault.Unavailable, Public: program + " cannot be run.", Err: err}
		}
		said := strings.Join(strings.Fields(stderr.String()), " ")
		if password != "" {
			said = strings.ReplaceAll(said, password, "[redacted]")
		}
		return "", &fault.Error{Kind: fault.Unavailable, Public: program + " failed: " + said, Err: errors.New(said)}
	}
	return stdout.String(), nil
}

// version returns the major version of a program; 0 if it does not say.
func (p Postgres) version(ctx context.Context, program string) (int, error) {
	said, err := Postgres{Environ: p.Environ}.output(ctx, program, "--version")
	if err != nil {
		return 0, err
	}
	found := majorVersion.FindStringSubmatch(said)
	if found == nil {
		return 0, nil
	}
	major, _ := strconv.Atoi(found[1]) // digits only, and few of them
	return major, nil
}

// majorVersion finds the version in "pg_dump (PostgreSQL) 15.8 (Debian 15.8-0)".
var majorVersion = pattern.Lazy(`\(PostgreSQL\) (\d{1,4})`)

// outdated is the error about a program that is older than what it works on.
func outdated(program string, have int, what string, need int) error {
	return fault.Newf(fault.Unsupported, "%s in the PATH has version %d, but %s has %d: install the PostgreSQL client programs in version %d or newer, and put them first in the PATH.",
		program, have, what, need, need)
}

// dump copies the database of a server of the given major version into a file,
// and returns the version of the program that did it.
func (p Postgres) dump(ctx context.Context, server int, to string) (int, error) {
	address, _, err := p.address()
	if err != nil {
		return 0, err
	}
	have, err := p.version(ctx, "pg_dump")
	if err != nil {
		return 0, err
	}
	if have > 0 && have < server {
		return 0, outdated("pg_dump", have, "the server", server)
	}
	if err := p.run(ctx, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--no-password", "--file="+to, "--dbname="+address); err != nil {
		return 0, err
	}
	return have, os.Chmod(to, 0o600)
}

// check reads a dump, which a pg_dump of a version made, to its end.
func (p Postgres) check(ctx context.Context, name string, by int) error {
	have, err := p.version(ctx, "pg_restore")
	if err != nil {
		return err
	}
	if have > 0 && have < by {
		return outdated("pg_restore", have, "the dump was made by one", by)
	}
	err = Postgres{Environ: p.Environ}.run(ctx, "pg_restore", "--file="+os.DevNull, name)
	if fault.Is(err, fault.Unavailable) {
		return fault.Newf(fault.Invalid, "%s cannot be read: %s.", postgresName, fault.Public(err))
	}
	return err
}

// restore loads a dump but for what belongs to pgvector: the server may not have
// it, and the program makes all of it again from its own tables where there is one.
func (p Postgres) restore(ctx context.Context, name string) error {
	address, _, err := p.address()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bot-restore")
	if err != nil {
		return unusable(os.TempDir(), err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a list of names
	contents := filepath.Join(dir, "contents")
	if err := (Postgres{Environ: p.Environ}).run(ctx, "pg_restore", "--list", "--file="+contents, name); err != nil {
		return err
	}
	list, err := os.ReadFile(contents) //nolint:gosec // written above
	if err != nil {
		return unusable(contents, err)
	}
	if err := os.WriteFile(contents, withoutVectors(list), 0o600); err != nil {
		return unusable(contents, err)
	}
	return p.run(ctx, "pg_restore", "--no-owner", "--no-privileges", "--no-password", "--exit-on-error", "--single-transaction",
		"--use-list="+contents, "--dbname="+address, name)
}

// withoutVectors takes out of a dump's list of contents what store.OfVectors names.
func withoutVectors(list []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(list) {
		words := strings.FieldsFunc(string(line), func(r rune) bool { return strings.ContainsRune(" \t\r\n(),\"", r) })
		extension := strings.Contains(string(line), " EXTENSION ") && slices.Contains(words, "vector")
		cast := strings.Contains(string(line), " CAST ") && slices.ContainsFunc(words, func(w string) bool { return w == "vector" || strings.HasSuffix(w, ".vector") })
		if !extension && !cast && !slices.ContainsFunc(words, store.OfVectors) {
			kept = append(kept, line...)
		}
	}
	return kept
}
