// Package migrations holds the numbered SQL files of the schema.
//
// The files are written in PostgreSQL's dialect, so that one text serves both
// databases: Files translates a handful of types and defaults for SQLite. A
// file is split into NAME.postgres.sql and NAME.sqlite.sql only where no
// translation of words would do (triggers). Files are forward-only, run in one
// transaction each, and never change once released.
package migrations

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Dialect names a database.
type Dialect string

// The databases.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

//go:embed *.sql
var embedded embed.FS

// Latest returns the number of the newest migration.
func Latest() (number int64) {
	entries, _ := embedded.ReadDir(".") // in the order of their names
	_, _ = fmt.Sscanf(entries[len(entries)-1].Name(), "%d_", &number)
	return number
}

// Files returns the migrations of a dialect as a flat file system, for goose.
func Files(dialect Dialect) (fs.FS, error) {
	entries, err := embedded.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	files := make(textFS, len(entries))
	for _, entry := range entries {
		name, split := strings.CutSuffix(entry.Name(), "."+string(dialect)+".sql")
		switch {
		case split:
			files[name+".sql"] = source{file: entry.Name()}
		case strings.Count(entry.Name(), ".") > 1: // another dialect's half
		default:
			files[entry.Name()] = source{file: entry.Name(), translated: dialect == SQLite}
		}
	}
	return files, nil
}

type rewrite struct {
	from *regexp.Regexp
	to   string
}

// toSQLite translates types and defaults. SQLite ignores the length of VARCHAR
// and has no type for JSON, so both become checks: what one database refuses
// the other refuses too.
func toSQLite(text []byte) []byte {
	for _, r := range rewrites() {
		text = r.from.ReplaceAll(text, []byte(r.to))
	}
	return text
}

var rewrites = sync.OnceValue(func() []rewrite {
	return []rewrite{
		{regexp.MustCompile(`BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY`), `INTEGER PRIMARY KEY AUTOINCREMENT`},
		{regexp.MustCompile(`(\w+) VARCHAR\((\d+)\)`), `$1 TEXT CHECK (length($1) <= $2)`},
		{regexp.MustCompile(`(\w+) JSONB`), `$1 TEXT CHECK (json_valid($1))`},
		{regexp.MustCompile(`\bUUID\b`), `TEXT`},
		{regexp.MustCompile(`\bTIMESTAMPTZ\b`), `TEXT`},
		{regexp.MustCompile(`\bBYTEA\b`), `BLOB`},
		{regexp.MustCompile(`DEFAULT CURRENT_TIMESTAMP`), `DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))`},
		{regexp.MustCompile(`DEFAULT gen_random_uuid\(\)`), `DEFAULT (` + randomUUID + `)`},
		{regexp.MustCompile(`extract\(epoch FROM (\w+)\)::bigint`), `unixepoch($1)`},
	}
})

// randomUUID is a version 4 UUID in SQLite's words, for rows that a person
// inserts by hand; the store mints its own ids.
const randomUUID = `lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || ` +
	`substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))`

// textFS is a flat, read-only file system of embedded files. They are translated when
// they are opened: a database that has all migrations needs none.
type textFS map[string]source

type source struct {
	file       string
	translated bool
}

// Open implements fs.FS.
func (t textFS) Open(name string) (fs.File, error) {
	from, ok := t[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	text, err := embedded.ReadFile(from.file)
	if err != nil {
		return nil, err
	}
	if from.translated {
		text = toSQLite(text)
	}
	return &textFile{Reader: bytes.NewReader(text), name: name, size: int64(len(text))}, nil
}

// Glob implements fs.GlobFS.
func (t textFS) Glob(pattern string) ([]string, error) {
	var names []string
	for name := range t {
		ok, err := path.Match(pattern, name)
		if err != nil {
			return nil, err
		}
		if ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// textFile is an open file of a textFS, and its own fs.FileInfo.
type textFile struct {
	*bytes.Reader
	name string
	size int64
}

func (f *textFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *textFile) Close() error               { return nil }
func (f *textFile) Name() string               { return f.name }
func (f *textFile) Size() int64                { return f.size }
func (f *textFile) Mode() fs.FileMode          { return 0o444 }
func (f *textFile) ModTime() time.Time         { return time.Time{} }
func (f *textFile) IsDir() bool                { return false }
func (f *textFile) Sys() any                   { return nil }
