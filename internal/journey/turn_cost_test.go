package journey_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/emulator/openai"
)

// What turns may ask of the database: a message is accepted, a model answers, the answer
// is sent. Begin, commit and rollback are not among the statements, and transactions that
// only read are not among the commits.
var turnCosts = map[string]struct {
	statements, commits int
	learns, tool        bool
}{
	"plain":              {statements: 19, commits: 3},
	"learns":             {statements: 20, commits: 3, learns: true},
	"one call of a tool": {statements: 49, commits: 9, tool: true},
}

// TestWhatATurnAsksOfTheDatabase counts what really runs, the queue's statements
// and those of every background included. These only add, so the least of several
// turns is what a turn itself takes. No other journey runs meanwhile: beside them, a turn
// can last so long that something of the background falls into each.
func TestWhatATurnAsksOfTheDatabase(t *testing.T) { //nolint:paralleltest,tparallel // see above
	for name, most := range turnCosts {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, w *world) {
				var asked traced
				w.trace = asked.tell
				if most.learns {
					w.with(map[string]string{"MEMORY_LEARNING": "on"})
				}
				var url string
				if most.tool {
					_, url = w.withRepository(sumRepo)
				}
				w.ai.Script(func(r openai.Request) openai.Response {
					if roles := r.Roles(); most.tool && roles[len(roles)-1] == "user" {
						return openai.Calls(call("read_file", `{"path":"sum.sh"}`))
					}
					text := r.LastUserText()
					return openai.Text("answered" + text[strings.LastIndexByte(text, ' '):])
				})
				w.start()
				if most.tool {
					w.says(ann, "/clone "+url)
					w.seesText(ann, "Cloned")
				}
				w.leastTurn(&asked, most.statements, most.commits)
			})
		})
	}
}

// leastTurn fails if none of many turns asks as little as that.
func (w *world) leastTurn(asked *traced, most, mostCommits int) {
	w.t.Helper()
	var least []string
	for i := range 30 {
		asked.take()
		w.says(ann, fmt.Sprintf("I like number %d", i))
		w.seesText(ann, fmt.Sprintf("answered %d", i))
		w.settles()
		turn := asked.take()
		if i < 2 || least != nil && len(turn) >= len(least) { // the first ones create what later ones find
			continue
		}
		statements, commits := 0, 0
		for _, s := range turn {
			switch s {
			case "begin", "rollback":
			case "commit":
				commits++
			default:
				statements++
			}
		}
		if statements <= most && commits <= mostCommits {
			w.t.Logf("the turn takes %d statements and %d commits", statements, commits)
			return
		}
		least = turn
	}
	w.t.Errorf("the turn takes more than %d statements and %d commits:\n%s", most, mostCommits, strings.Join(least, "\n"))
}

// maxTurnWAL is how many bytes a plain turn may add to SQLite's write-ahead log.
const maxTurnWAL = 60_000

func TestWhatATurnWritesOnSQLite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	w.ai.Script(func(r openai.Request) openai.Response {
		text := r.LastUserText()
		return openai.Text("answered" + text[strings.LastIndexByte(text, ' '):])
	})
	w.start()
	const turns = 30 // the index of words is brought up to date meanwhile
	size := func() int64 {
		info, err := os.Stat(filepath.Join(w.env["DATA_DIR"], "bot.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	var before int64
	for i := range turns + 2 {
		if i == 2 { // the first ones create what later ones find
			before = size()
		}
		w.says(ann, fmt.Sprintf("I like number %d", i))
		w.seesText(ann, fmt.Sprintf("answered %d", i))
		w.settles()
	}
	each := (size() - before) / turns
	t.Logf("a plain turn writes %d bytes", each)
	if each > maxTurnWAL || each < 4096 {
		t.Errorf("a plain turn writes %d bytes, at most %d are allowed", each, maxTurnWAL)
	}
}

// traced keeps what the database was asked.
type traced struct {
	mu   sync.Mutex // guards list
	list []string
}

func (a *traced) tell(statement string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, strings.Join(strings.Fields(statement), " "))
}

// take returns what was asked since the last time.
func (a *traced) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.list
	a.list = nil
	return list
}
