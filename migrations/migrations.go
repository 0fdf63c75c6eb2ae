// Package migrations holds the numbered SQL files of the schema.
//
// The files are written in PostgreSQL's dialect, so that one text serves both
// databases: Files translates a handful of types and defaults for SQLite. A
// file is split into NAME.postgres.sql and NAME.sqlite.sql only where no
// translation of words would do (triggers). Files are forward-only, run in one
// transaction each, and never change once released.
//
// The program has them, and the schema that they make, compressed: "make generate"
// packs sql.s2 from the files, and a test compares it with them.
package migrations

import (
	_ "embed" // sql.s2
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"
)

// Dialect names a database.
type Dialect string

// The databases.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

//go:embed sql.s2
var packed []byte

// texts are those of all SQL files, by their names in this folder. Names and texts are
// packed in turn, with NUL in between.
var texts = sync.OnceValue(func() map[string]string {
	all, err := s2.Decode(nil, packed)
	if err != nil {
		panic("sql.s2: " + err.Error()) // a test reads it
	}
	files := make(map[string]string)
	for file := range slices.Chunk(strings.Split(string(all), "\x00"), 2) {
		files[file[0]] = file[1]
	}
	return files
})

// Latest returns the number of the newest migration.
func Latest() (number int64) {
	for name := range texts() {
		var n int64
		if _, err := fmt.Sscanf(name, "%d_", &n); err == nil { // the schema has no number
			number = max(number, n)
		}
	}
	return number
}

// Files returns the migrations of a dialect as a flat file system, for goose.
func Files(dialect Dialect) fs.FS {
	files := make(textFS)
	for file, text := range texts() {
		name, split := strings.CutSuffix(file, "."+string(dialect)+".sql")
		switch {
		case strings.Contains(file, "/"): // the schema
		case split:
			files[name+".sql"] = source{text: text}
		case strings.Count(file, ".") > 1: // another dialect's half
		default:
			files[file] = source{text: text, translated: dialect == SQLite}
		}
	}
	return files
}

type rewrite struct {
	from *regexp.Regexp
	to   string
}

// toSQLite translates types and defaults. SQLite ignores the length of VARCHAR
// and has no type for JSON, so both become checks: what one database refuses
// the other refuses too.
func toSQLite(text string) string {
	for _, r := range rewrites() {
		text = r.from.ReplaceAllString(text, r.to)
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

// textFS is a flat, read-only file system. Its files are translated when
// they are opened: a database that has all migrations needs none.
type textFS map[string]source

type source struct {
	text       string
	translated bool
}

// Open implements fs.FS.
func (t textFS) Open(name string) (fs.File, error) {
	from, ok := t[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if from.translated {
		from.text = toSQLite(from.text)
	}
	return &textFile{Reader: strings.NewReader(from.text), name: name}, nil
}

// Glob implements fs.GlobFS.
func (t textFS) Glob(pattern string) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t)), func(name string) bool {
		ok, _ := path.Match(pattern, name)
		return !ok
	}), nil
}

// textFile is an open file of a textFS, and its own fs.FileInfo.
type textFile struct {
	*strings.Reader
	name string
}

func (f *textFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *textFile) Close() error               { return nil }
func (f *textFile) Name() string               { return f.name }
func (f *textFile) Mode() fs.FileMode          { return 0o444 }
func (f *textFile) ModTime() time.Time         { return time.Time{} }
func (f *textFile) IsDir() bool                { return false }
func (f *textFile) Sys() any                   { return nil }
