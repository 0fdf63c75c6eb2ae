package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"remote-agent/internal/fault"
)

// SalvagedTable is what became of a table.
type SalvagedTable struct {
	Name   string
	Copied int64

	// Lost is how many rows are missing. It is exact if Known: an index of the table
	// could still be counted. Otherwise there may be more.
	Lost  int64
	Known bool

	// Emptied is how many of the copied rows had JSON that is damaged, and could do without.
	Emptied int64

	Problem string // why the table could not be read at all; empty if it could
}

// Salvaged is what Salvage did.
type Salvaged struct {
	Tables  []SalvagedTable // in order of their names
	Mended  string          // what of the beginning of the file had to be guessed; empty if nothing
	Settled Settled

	// Made is set as soon as the new file can be used. With an error it belongs to root.
	Made bool
}

// probesPerTable bounds how often is looked for rows behind damage. Each look reads a
// few pages.
const (
	probesPerTable = 3000
	probesInVain   = 200 // after which a table is given up of which nothing was read
)

// Salvage copies what can be read of a damaged SQLite database into a new file, which
// must not exist and can be used as the database afterwards. The damaged file, and
// its write-ahead log beside it, are only read; the work is done on a copy that needs
// as much room again beside the new file. Nobody may work on the damaged one:
// fault.Conflict if somebody does, or if the new file exists. What was open is ended,
// as by a restore, and notice is put into the conversations concerned: what was lost
// may have been the answer. fault.Damaged means that nothing could be read. What root
// salvages belongs to the owner of the folder that it is put into. The audit log has a row
// of ActionSalvage behind the last one that was saved.
func Salvage(ctx context.Context, from, to, notice string, log *slog.Logger) (r Salvaged, err error) {
	info, err := os.Stat(from)
	if os.IsPermission(err) {
		return r, unreadable(from, err)
	}
	if err != nil || !info.Mode().IsRegular() {
		return r, &fault.Error{Kind: fault.NotFound, Public: "There is no file " + from + ". DATA_DIR or DATABASE_URL names the database to read.", Err: err}
	}
	if _, err := os.Lstat(to); err == nil {
		return r, fault.Newf(fault.Conflict, "%s already exists; name a file that does not.", to)
	}
	lock, err := lockFile(ctx, from)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	work, err := os.MkdirTemp(filepath.Dir(to), ".salvage-*")
	if err != nil {
		return r, unreadable(to, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	source := filepath.Join(work, "damaged.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyIfThere(from+suffix, source+suffix); err != nil {
			return r, unreadable(to, err)
		}
	}
	if r.Mended, err = mendHeader(source); err != nil {
		return r, err
	}
	// Built beside its place, so that nothing half done has its name.
	target := filepath.Join(work, "salvaged.db")
	if err := salvageInto(ctx, source, target, notice, log, &r); err != nil {
		return r, err
	}
	if err := errors.Join(syncFile(target), os.Rename(target, to)); err != nil {
		return r, unreadable(to, err)
	}
	r.Made = true
	dir := filepath.Dir(to)
	if err := OwnerAt(dir).Take(dir, filepath.Base(to)); err != nil {
		return r, &fault.Error{Kind: fault.Unavailable, Err: err, Public: "What can be read is in " + to + ", but that belongs to root: give it to the user as whom the bot runs, with chown."}
	}
	return r, nil
}

func copyIfThere(from, to string) error {
	in, err := os.Open(from) //nolint:gosec // the operator's own path
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()                                                      //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in a folder of ours
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func salvageInto(ctx context.Context, source, target, notice string, log *slog.Logger, r *Salvaged) (err error) {
	// What can be read of the schema is used, even if not all of it can.
	damagedDB, err := openFile(source, url.Values{"mode": {"rw"}, "_pragma": {busySetting, "writable_schema(1)", "trusted_schema(0)"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, damagedDB.Close()) }()
	s, err := Open(ctx, Options{URL: "sqlite:" + target, Log: log, Exclusive: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := s.Migrate(ctx); err != nil {
		return err
	}
	if err := refuseOtherSchema(ctx, damagedDB); err != nil {
		return err
	}
	v := &salvage{from: damagedDB, to: s.writerDB}
	if r.Tables, err = v.run(ctx); err != nil {
		return err
	}
	var copied int64
	for _, t := range r.Tables {
		copied += t.Copied
	}
	if copied == 0 {
		return fault.New(fault.Damaged, "Nothing of the database can be read.")
	}
	return s.InTx(ctx, func(tx *Tx) (err error) {
		if r.Settled, err = tx.Care().SettleRestored(ctx, notice); err != nil {
			return err
		}
		return tx.AuditLog().noteSalvage(ctx)
	})
}

// refuseOtherSchema refuses a database of another version where that can be read:
// its rows would have to be migrated, which this does not do.
func refuseOtherSchema(ctx context.Context, db *sql.DB) error {
	var version int64
	if err := db.QueryRowContext(ctx, schemaVersionSQL).Scan(&version); err != nil || version == 0 {
		return nil //nolint:nilerr // it cannot be read, and most likely it is ours
	}
	if latest := LatestSchema(); version != latest {
		return fault.Newf(fault.Invalid, "The database has schema version %d, but this version uses %d: salvage it with the version that used it last.", version, latest)
	}
	return nil
}

// salvage copies rows from one database to another with the same schema.
type salvage struct {
	from, to *sql.DB
}

// table is a table of the target, and what is needed to copy it.
type table struct {
	name      string
	columns   []string
	key       []string // of one without rowids
	withRowid bool
}

func (v *salvage) run(ctx context.Context) (list []SalvagedTable, err error) {
	tables, err := v.tables(ctx)
	if err != nil {
		return nil, err
	}
	restore, err := v.dropTriggers(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := v.to.ExecContext(ctx, `PRAGMA foreign_keys = OFF`); err != nil {
		return nil, classifySQLite(err)
	}
	for _, t := range tables {
		done, err := v.table(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("salvage %s: %w", t.name, err)
		}
		list = append(list, done)
	}
	if err := errors.Join(v.dropUnreadable(ctx, list), v.dropOrphans(ctx, list), v.keepNumbers(ctx)); err != nil {
		return nil, err
	}
	for _, statement := range restore {
		if _, err := v.to.ExecContext(ctx, statement); err != nil {
			return nil, classifySQLite(err)
		}
	}
	if _, err := v.to.ExecContext(ctx, `PRAGMA foreign_keys = ON`); err != nil {
		return nil, classifySQLite(err)
	}
	return list, nil
}

// tables lists the tables that hold data of their own; indexes of words are made
// again from it.
func (v *salvage) tables(ctx context.Context) ([]table, error) {
	rows, err := queryAll(ctx, v.to, `
		SELECT name, wr FROM pragma_table_list
		WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'goose_db_version' ORDER BY name`)
	if err != nil {
		return nil, err
	}
	var list []table
	for _, row := range rows {
		t := table{name: fmt.Sprint(row[0]), withRowid: fmt.Sprint(row[1]) == "0"}
		columns, err := queryAll(ctx, v.to, `SELECT name, pk FROM pragma_table_info(?) ORDER BY cid`, t.name)
		if err != nil {
			return nil, err
		}
		for _, c := range columns {
			t.columns = append(t.columns, fmt.Sprint(c[0]))
			if fmt.Sprint(c[1]) != "0" {
				t.key = append(t.key, quoted(fmt.Sprint(c[0])))
			}
		}
		list = append(list, t)
	}
	return list, nil
}

// dropTriggers has rows copied as they are, and returns what makes the triggers
// again and brings the indexes of words up to date.
func (v *salvage) dropTriggers(ctx context.Context) (restore []string, err error) {
	rows, err := queryAll(ctx, v.to, `
		SELECT type, name, sql FROM sqlite_schema WHERE type = 'trigger' OR sql LIKE 'CREATE VIRTUAL TABLE%fts5%' ORDER BY type`)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		name := quoted(fmt.Sprint(row[1]))
		if fmt.Sprint(row[0]) != "trigger" {
			restore = append(restore, `INSERT INTO `+name+`(`+name+`) VALUES ('rebuild')`)
			continue
		}
		if _, err := v.to.ExecContext(ctx, `DROP TRIGGER `+name); err != nil {
			return nil, classifySQLite(err)
		}
		restore = append(restore, fmt.Sprint(row[2]))
	}
	// Sums are made again from the usage that is left.
	return append(restore, `DELETE FROM usage_day_parts`, `DELETE FROM usage_days`, spreadUsage), nil
}

// spreadUsage finds the usage of more than one day (see migration 00040) where the table of
// it may have lost some.
const spreadUsage = `
	INSERT OR IGNORE INTO usage_spread (event_id)
	SELECT u.event_id FROM usage_records u LEFT JOIN inbound_events e ON e.id = u.event_id
	WHERE u.event_id IS NOT NULL AND u.at_ms / 86400000 IS NOT e.accepted_ms / 86400000`

// keepNumbers has no number given out again, as far as can be read which were. One that nobody
// came to is damage, and would leave none to give out.
func (v *salvage) keepNumbers(ctx context.Context) error {
	rows, err := queryAll(ctx, v.from, `SELECT name, seq FROM sqlite_sequence WHERE typeof(seq) = 'integer' AND seq BETWEEN 1 AND 1 << 40`)
	if err != nil {
		return nil //nolint:nilerr // they go on behind those of the rows that were saved
	}
	for _, row := range rows {
		_, err = v.to.ExecContext(ctx, `INSERT INTO sqlite_sequence SELECT t.name, 0 FROM sqlite_schema t
			WHERE t.name = $1 AND t.sql LIKE '%AUTOINCREMENT%' AND NOT EXISTS (SELECT 1 FROM sqlite_sequence s WHERE s.name = t.name)`, row[0])
		if err == nil {
			_, err = v.to.ExecContext(ctx, `UPDATE sqlite_sequence SET seq = max(seq, $2) WHERE name = $1`, row...)
		}
		if err != nil {
			return classifySQLite(err)
		}
	}
	return nil
}

// table copies one table, in one transaction.
func (v *salvage) table(ctx context.Context, t table) (SalvagedTable, error) {
	done := SalvagedTable{Name: t.name}
	tx, err := v.to.BeginTx(ctx, nil)
	if err != nil {
		return done, classifySQLite(err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	c := &copier{ctx: ctx, table: t, from: v.from, to: tx}
	c.insert = `INSERT OR IGNORE INTO ` + quoted(t.name) + ` (` + c.names() + `) VALUES (?` + strings.Repeat(", ?", len(t.columns)-1) + `)`
	if err := c.clear(); err != nil {
		return done, err
	}
	if t.withRowid {
		c.whole()
	} else {
		c.withoutRowid()
	}
	if c.failed != nil {
		return done, classifySQLite(c.failed)
	}
	done.Copied, done.Emptied = c.copied, c.emptied
	total, known := v.count(ctx, t)
	switch {
	case known:
		done.Known, done.Lost = true, max(total-c.copied, 0)
	case c.damage == nil:
		done.Known, done.Lost = true, c.refused
	default:
		done.Lost = 1 + c.refused
	}
	if c.damage != nil && c.copied == 0 {
		done.Problem = c.damage.Error()
	}
	if c.copied == 0 {
		return done, nil // rolled back: the rows that every database has stay
	}
	return done, classifySQLite(tx.Commit())
}

// count returns how many rows a table had, by whichever index, or the table itself,
// can be read.
func (v *salvage) count(ctx context.Context, t table) (total int64, known bool) {
	by := []string{`NOT INDEXED`}
	if rows, err := queryAll(ctx, v.from, `SELECT name FROM pragma_index_list(?) WHERE partial = 0`, t.name); err == nil {
		for _, row := range rows {
			by = append(by, `INDEXED BY `+quoted(fmt.Sprint(row[0])))
		}
	}
	for _, how := range by {
		var n int64
		if err := v.from.QueryRowContext(ctx, `SELECT count(*) FROM `+quoted(t.name)+` `+how).Scan(&n); err == nil {
			total, known = max(total, n), true
		}
	}
	return total, known
}

// useless are the rows that nobody can read without their JSON, and that would keep others from
// being read.
var useless = map[string]string{
	"inbound_events":  `data <> '' AND NOT json_valid(data)`,
	"agent_messages":  `data_json <> '' AND NOT json_valid(data_json) AND kind IN ('tool_call', 'tool_result', 'tool', 'thinking', 'attachment')`,
	"agent_schedules": `NOT json_valid(origin)`,
}

// dropUnreadable removes rows whose JSON is damaged.
func (v *salvage) dropUnreadable(ctx context.Context, list []SalvagedTable) error {
	for name, where := range useless {
		n, err := v.change(ctx, `DELETE FROM `+name+` WHERE `+where)
		if err != nil {
			return err
		}
		lose(list, name, n)
	}
	return nil
}

func (v *salvage) change(ctx context.Context, query string, args ...any) (rows int64, err error) {
	result, err := v.to.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, classifySQLite(err)
	}
	return result.RowsAffected()
}

// lose counts copied rows of a table as lost.
func lose(list []SalvagedTable, name string, n int64) {
	i := slices.IndexFunc(list, func(t SalvagedTable) bool { return t.Name == name })
	list[i].Copied, list[i].Lost = list[i].Copied-n, list[i].Lost+n
}

// dropOrphans removes rows that refer to others which were lost, or takes the
// reference out where it may be missing.
func (v *salvage) dropOrphans(ctx context.Context, list []SalvagedTable) error {
	for {
		rows, err := queryAll(ctx, v.to, `
			SELECT c."table", c.rowid, f."from", (SELECT i."notnull" OR i.pk FROM pragma_table_info(c."table") i WHERE i.name = f."from"), f."table", f."to"
			FROM pragma_foreign_key_check c JOIN pragma_foreign_key_list(c."table") f ON f.id = c.fkid`)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			name, from := fmt.Sprint(row[0]), quoted(fmt.Sprint(row[2]))
			where, args := `rowid = ?`, []any{row[1]}
			if row[1] == nil { // a table without rowids: all its orphans at once
				where, args = from+` IS NOT NULL AND NOT EXISTS (SELECT 1 FROM `+quoted(fmt.Sprint(row[4]))+` p WHERE p.`+quoted(fmt.Sprint(row[5]))+` = `+quoted(name)+`.`+from+`)`, nil
			}
			change := `UPDATE ` + quoted(name) + ` SET ` + from + ` = NULL WHERE ` + where //nolint:gosec // names of the schema
			if fmt.Sprint(row[3]) != "0" {
				change = `DELETE FROM ` + quoted(name) + ` WHERE ` + where
			}
			n, err := v.change(ctx, change, args...)
			if err != nil {
				return err
			}
			if strings.HasPrefix(change, "DELETE") {
				lose(list, name, n)
			}
		}
	}
}
