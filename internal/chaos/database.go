package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"remote-agent/internal/store/cluster"
)

// database is where the bots keep everything: a file, a throwaway server, or an empty
// database of its own on somebody's server.
type database struct {
	url  string // of the bots; empty for SQLite
	name string // what the report says
	dir  string

	own  *cluster.Cluster
	base string // of somebody's server
	made string // the name of our database there
}

func openDatabase(ctx context.Context, which, dir string) (*database, error) {
	switch which {
	case "sqlite":
		return &database{name: "SQLite", dir: dir}, nil
	case "postgres":
		own, err := cluster.Start(time.Minute, "max_connections=200") //nolint:contextcheck // ended by close
		if err != nil {
			return nil, fmt.Errorf("%w: a throwaway PostgreSQL cannot be started: %w", errOptions, err)
		}
		return &database{name: "PostgreSQL, a throwaway server", url: own.URL(), own: own}, nil
	}
	u, err := url.Parse(which)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, fmt.Errorf("%w: a database is sqlite, postgres for a throwaway server, or the URL of a PostgreSQL server", errOptions)
	}
	d := &database{name: "PostgreSQL, a database of its own on " + u.Host, base: which, made: fmt.Sprintf("bot_chaos_%d", os.Getpid())}
	if d.url, err = cluster.Create(ctx, which, d.made); err != nil {
		return nil, fmt.Errorf("%w: a database for the run cannot be made there: %w", errOptions, err)
	}
	return d, nil
}

func (d *database) close() {
	d.own.Stop()
	if d.made != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = cluster.Drop(ctx, d.base, d.made) // the name says whose it is
	}
}

// restart ends all connections, and with a throwaway server the server itself, as a
// crash does.
func (d *database) restart(ctx context.Context) (what string, err error) {
	if d.own != nil {
		return "the database crashes and starts again", d.own.Restart() //nolint:contextcheck // as above
	}
	return "the database ends all connections", cluster.Terminate(ctx, d.url)
}

// delay makes each commit take longer, as a slow disk does, until it is taken back
// with zero.
func (d *database) delay(ctx context.Context, each time.Duration) error {
	if d.own == nil {
		return errors.New("a slow disk needs a throwaway PostgreSQL: a commit of SQLite cannot be slowed down from outside")
	}
	return cluster.Exec(ctx, d.url,
		fmt.Sprintf("ALTER SYSTEM SET commit_delay = %d", min(each.Microseconds(), 100_000)),
		"ALTER SYSTEM SET commit_siblings = 0", "SELECT pg_reload_conf()")
}

// size returns how many bytes the database has, if that is known.
func (d *database) size() int64 {
	file, log := d.sizes()
	return file + log
}

// sizes is size, the file and its write-ahead log apart.
func (d *database) sizes() (file, log int64) {
	if d.dir == "" {
		return 0, 0
	}
	files, _ := filepath.Glob(filepath.Join(d.dir, "data*", "bot.db*"))
	for _, f := range files {
		info, err := os.Stat(f)
		switch {
		case err != nil || strings.HasSuffix(f, ".lock"):
		case strings.HasSuffix(f, "bot.db"):
			file += info.Size()
		default:
			log += info.Size()
		}
	}
	return file, log
}
