// Package conformance holds the program against the four documents that it grew
// out of, the seeds, from outside: their DDL, example queries, example code and
// rules, on a database that the running program has filled, on SQLite and on
// PostgreSQL. Tests are named by the seed's sections.
//
// docs/conformance.md is made from the lists of rules here; see TestDocument.
package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/sandbox"
	"remote-agent/internal/store/storetest"
)

func TestMain(m *testing.M) {
	acpagent.Hijack(os.Args) // a test starts itself as an agent
	sandbox.RunIfHelper()    // and as the helper that confines programs
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set("4") // one for each seed: they wait more than they work
	}
	os.Exit(storetest.Main(m))
}

// where says what a rule is checked on.
type where int

const (
	onBoth     where = iota // both databases
	onSQLite                // it is about SQLite
	onPostgres              // it is about PostgreSQL
	inCode                  // no database is needed
)

// databases are what the innermost subtests are called.
var databases = []string{"sqlite", "postgres"}

// rule is one thing that a seed asks for.
type rule struct {
	section string // of the seed; a part of the test's name
	name    string // the rest of it
	asks    string // in one line, for the document
	on      where

	differs string // if it holds with a difference: which, and why
	open    string // if it does not hold: what is missing; then holds has to fail
	apart   string // if it is about something that this program has not: what; there is no test

	holds func(c *check)
}

// state is what the document says of a rule.
func (r rule) state() string {
	switch {
	case r.apart != "":
		return "does not apply"
	case r.open != "":
		return "does not hold"
	case r.differs != "":
		return "holds with a difference"
	}
	return "holds"
}

// check is one rule on one database.
type check struct {
	*testing.T
	*world // nil in code

	open   bool
	failed []string
}

// Errorf says that the rule does not hold.
func (c *check) Errorf(format string, args ...any) {
	c.Helper()
	if !c.open {
		c.T.Errorf(format, args...)
		return
	}
	c.failed = append(c.failed, fmt.Sprintf(format, args...))
}

// Fatalf says so and ends the check.
func (c *check) Fatalf(format string, args ...any) {
	c.Helper()
	if !c.open {
		c.T.Fatalf(format, args...)
	}
	c.failed = append(c.failed, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// run runs a rule. One that is open has to fail: once it holds, the mark has to go,
// or the document would be wrong.
func (r rule) run(t *testing.T, w *world) {
	t.Helper()
	c := &check{T: t, world: w, open: r.open != ""}
	if !c.open {
		r.holds(c)
		return
	}
	done := make(chan struct{})
	go func() { // because Fatalf ends a goroutine
		defer close(done)
		r.holds(c)
	}()
	<-done
	if t.Skipped() { // the server has not what the rule is about
		return
	}
	if len(c.failed) == 0 {
		t.Error("this holds now: remove its mark `open`")
		return
	}
	t.Logf("known to be missing (%s): %s", r.open, strings.Join(c.failed, "; "))
}

// conforms runs the rules of a seed, those that need one in a world for each
// database that they share. surround is called before the bot starts, prepare then.
func conforms(t *testing.T, rules []rule, prepare func(c *check), surround ...func(t *testing.T, w *world)) {
	t.Helper()
	worlds := make(map[string]*world)
	for _, database := range databases {
		if database == "postgres" && noPostgres(t) != nil {
			continue
		}
		worlds[database] = newWorld(t, database)
		for _, with := range surround {
			with(t, worlds[database])
		}
	}
	for _, w := range worlds {
		w.begin(t)
	}
	for _, w := range worlds {
		prepare(&check{T: t, world: w})
	}
	for _, r := range rules {
		if r.apart != "" {
			continue
		}
		t.Run(r.section+"/"+r.name, func(t *testing.T) {
			if r.on == inCode {
				r.run(t, nil)
				return
			}
			for _, database := range databases {
				if database == "sqlite" && r.on == onPostgres || database == "postgres" && r.on == onSQLite {
					continue
				}
				t.Run(database, func(t *testing.T) {
					w := worlds[database]
					if w == nil {
						t.Skipf("no PostgreSQL: %v", noPostgres(t))
					}
					r.run(t, w)
				})
			}
		})
	}
}

func noPostgres(t *testing.T) error {
	t.Helper()
	err := storetest.NoPostgres()
	if err != nil && os.Getenv("REQUIRE_POSTGRES") == "1" {
		t.Fatalf("REQUIRE_POSTGRES=1, but no PostgreSQL: %v", err)
	}
	return err
}
