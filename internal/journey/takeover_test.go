//go:build unix

package journey_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// TestTakeover has one of two replicas on PostgreSQL die, freeze or lose its
// connections to the database under load, and looks how long it takes until what it
// worked on is begun by the other one: the model is asked a second time. Run it with
// -v for the figures. No other journey runs meanwhile: beside them, a slow machine cannot
// store sixty messages that come at once in the three seconds that Slack waits.
func TestTakeover(t *testing.T) { //nolint:tparallel // see above
	for _, tc := range []struct {
		how  string
		most time.Duration
	}{{"dead", 3 * time.Second}, {"frozen", 25 * time.Second}, {"cut off", 25 * time.Second}} {
		t.Run(tc.how, func(t *testing.T) {
			t.Parallel()
			took := newLoss(t).lose(tc.how)
			slices.Sort(took)
			p95 := took[(len(took)-1)*95/100]
			t.Logf("%s: %d conversations were taken over, p50 %s, p95 %s, the last after %s", tc.how, len(took), took[len(took)/2], p95, took[len(took)-1])
			if waittest.TooLong(p95, tc.most) {
				t.Errorf("p95 is %s, want %s", p95, tc.most)
			}
		})
	}
}

// TestReadyzSaysWhyTheDatabaseIsAway has PostgreSQL fall silent, and refuse connections.
func TestReadyzSaysWhyTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	for want, away := range map[string]func(*cutter){
		"The database does not answer.": (*cutter).silence,
		"nothing listens on port":       (*cutter).hangUp,
	} {
		proxy := newCutter(t, storetest.PostgresURL(t))
		w := newWorld(t, proxy.url).with(map[string]string{"SHUTDOWN_GRACE": "1s"}).start()
		away(proxy)
		why := ""
		waittest.Until(t, want, func() bool {
			why = w.unready()["database"]
			return strings.Contains(why, want)
		})
		if strings.Contains(why, "127.0.0.1") {
			t.Errorf("anybody reads the address: %q", why)
		}
		proxy.hangUp()
	}
}

// unready returns the errors of /readyz, by check.
func (w *world) unready() map[string]string {
	w.t.Helper()
	response, err := http.Get("http://" + w.addr + "/readyz") //nolint:noctx // a test's own server
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // a test
	var ready struct {
		Checks []struct{ Name, Error string }
	}
	if err := json.NewDecoder(response.Body).Decode(&ready); err != nil {
		w.t.Fatal(err)
	}
	failed := map[string]string{}
	for _, c := range ready.Checks {
		failed[c.Name] = c.Error
	}
	return failed
}

// loss is two replicas of which one is lost. The model answers a question late
// when it is asked for the first time, and at once when it is asked again.
type loss struct {
	*restarts
	proxy *cutter

	mu    sync.Mutex
	first map[string]time.Time
	again map[string]time.Time
}

func newLoss(t *testing.T) *loss {
	t.Helper()
	database := storetest.PostgresURL(t)
	o := &loss{restarts: newRestarts(t, database), first: map[string]time.Time{}, again: map[string]time.Time{}}
	o.proxy = newCutter(t, database)
	o.with(map[string]string{"MAX_CONCURRENT_CONVERSATIONS": "100"})
	o.ai.Script(func(q openai.Request) openai.Response {
		text := q.LastUserText()
		question := text[strings.LastIndex(text, "question"):]
		o.mu.Lock()
		defer o.mu.Unlock()
		if _, asked := o.first[question]; asked {
			if _, twice := o.again[question]; !twice {
				o.again[question] = time.Now()
			}
			return openai.Text(wholeAnswer(question))
		}
		o.first[question] = time.Now()
		return openai.Reply(openai.Pause(waittest.Scaled(30*time.Second)), openai.Delta(wholeAnswer(question)))
	})
	return o
}

// lose loses a replica that has work, and returns how long each of its conversations
// waited.
func (o *loss) lose(how string) (took []time.Duration) {
	t := o.t
	t.Helper()
	addrs := []string{freePort(t), freePort(t)}
	start := func(i int) *process {
		env := maps.Clone(o.env)
		env["LISTEN_ADDR"], env["DATA_DIR"] = addrs[i], filepath.Join(o.dir, fmt.Sprint("data", i))
		if i == 0 {
			env["DATABASE_URL"] = o.proxy.url
		}
		return o.launch(fmt.Sprintf("replica %d", i), env)
	}
	const questions = 20
	first := start(0)
	o.endpoints(addrs[0]) // all of them are the first one's, which is alone
	for i := range questions {
		o.questions.Add(1)
		o.sl.User(slackAn).In(fmt.Sprintf("CQ%d", i)).Mentions(crashQuestion(i))
	}
	waittest.Until(t, "all questions to be asked", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.first) == questions
	})
	start(1)
	o.endpoints(addrs[1])
	o.mu.Lock()
	begun := len(o.again) // none, unless the machine stands still
	lost := time.Now()
	o.mu.Unlock()
	if begun > 0 {
		t.Fatalf("%d were asked again before anything was lost", begun)
	}
	switch how {
	case "dead":
		_ = first.cmd.Process.Kill()
	case "frozen":
		_ = first.cmd.Process.Signal(syscall.SIGSTOP)
		t.Cleanup(func() { _ = first.cmd.Process.Signal(syscall.SIGCONT) })
	case "cut off":
		o.proxy.silence()
	}
	waittest.Until(t, "all to be asked again", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.again) == questions
	})
	if how == "frozen" { // it must not say anything when it thaws
		_ = first.cmd.Process.Signal(syscall.SIGCONT)
	}
	o.settle()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, at := range o.again {
		took = append(took, at.Sub(lost))
	}
	return took
}

// cutter passes connections on to a PostgreSQL server until it falls silent: then
// nothing is closed and nothing arrives any more, as on a network that breaks.
type cutter struct {
	url      string
	listener net.Listener

	mu     sync.Mutex // guards all below
	silent bool
	closed bool
	open   []net.Conn
}

func newCutter(t *testing.T, database string) *cutter {
	t.Helper()
	config, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	network, to := pgNetwork(config)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, url: (&url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: l.Addr().String(), Path: config.Database, RawQuery: "sslmode=disable",
	}).String()}
	var working sync.WaitGroup
	working.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial(network, to)
			if err != nil {
				_ = in.Close()
				continue
			}
			if !c.keep(in, out) {
				return
			}
			working.Go(func() { c.pass(out, in) })
			working.Go(func() { c.pass(in, out) })
		}
	})
	t.Cleanup(func() {
		c.hangUp()
		working.Wait()
	})
	return c
}

// hangUp ends all connections and refuses new ones, as a server does that was stopped.
func (c *cutter) hangUp() {
	_ = c.listener.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.open {
		_ = conn.Close()
	}
}

// keep notes a pair of connections, to be closed in the end. One that came while that
// happened is closed at once, or nobody would.
func (c *cutter) keep(in, out net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_, _ = in.Close(), out.Close()
		return false
	}
	c.open = append(c.open, in, out)
	return true
}

// pgNetwork returns where a PostgreSQL server listens.
func pgNetwork(config *pgx.ConnConfig) (network, addr string) {
	if strings.HasPrefix(config.Host, "/") {
		return "unix", filepath.Join(config.Host, fmt.Sprintf(".s.PGSQL.%d", config.Port))
	}
	return "tcp", net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
}

// pass copies until the connection ends; what is read while it is silent is lost.
func (c *cutter) pass(to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		c.mu.Lock()
		silent := c.silent
		c.mu.Unlock()
		if !silent && n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if closer, ok := to.(io.Closer); ok && !silent {
				_ = closer.Close()
			}
			return
		}
	}
}

func (c *cutter) silence() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = true
}
