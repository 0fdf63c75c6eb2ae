package app

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/store"
)

// salvageNotice is what people read in conversations that had something open.
const salvageNotice = "The bot's database was damaged and partly recovered on %s. Some messages may be lost, and open requests will not be answered: please send them again."

// Salvage copies what can be read of the SQLite database that cfg names into a new
// file, to, or if that is empty one beside it, and prints what was copied and what was
// lost of each table.
func Salvage(ctx context.Context, cfg config.Config, env Env, to string) error {
	if cfg.Database.Driver != config.DriverSQLite {
		return fault.New(fault.Invalid, "bot salvage reads SQLite files; restore a backup of PostgreSQL with `bot backup restore NAME`.")
	}
	from := cfg.Database.Path
	if to == "" {
		to = strings.TrimSuffix(from, filepath.Ext(from)) + ".salvaged.db"
	}
	to, err := filepath.Abs(to)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "find the new file")
	}
	r, err := store.Salvage(ctx, from, to, fmt.Sprintf(salvageNotice, time.Now().UTC().Format("2006-01-02 15:04 UTC")), env.Log)
	if !r.Made {
		return err
	}
	if r.Mended != "" {
		say(env.Stdout, "%s of %s was destroyed and rebuilt\n", r.Mended, from)
	}
	say(env.Stdout, "%-28s %10s %10s\n", "table", "copied", "lost")
	var copied, lost int64
	more := ""
	for _, t := range r.Tables {
		copied, lost = copied+t.Copied, lost+t.Lost
		if t.Copied+t.Lost == 0 {
			continue
		}
		missing := fmt.Sprint(t.Lost)
		if !t.Known {
			missing, more = missing+" or more", " or more"
		}
		if t.Emptied > 0 {
			missing += "  JSON was damaged and is empty in " + count(t.Emptied, "row") + " copied"
		}
		if t.Problem != "" {
			missing += "  cannot be read: " + t.Problem
		}
		say(env.Stdout, "%-28s %10d %10s\n", t.Name, t.Copied, missing)
	}
	say(env.Stdout, "copied %s, lost %d%s; the new database is %s\n", count(copied, "row"), lost, more, to)
	sayClosed(env.Stdout, r.Settled.Entries, r.Settled.Deliveries, "revoked "+count(r.Settled.Keys, "API key"))
	say(env.Stdout, "to use it: move %[1]s, %[1]s-wal and %[1]s-shm away and rename %[2]s to %[1]s; then check bot person list and bot audit verify\n", from, to)
	return err
}
