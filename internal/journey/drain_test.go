//go:build unix

package journey_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// maxCommands is how many commands are given: Slack takes 100 answers of their kind a
// minute, and what is over that waits.
const maxCommands = 90

// restarts is a Slack workspace in which people go on writing while the bot behind
// it is started again and again.
type restarts struct {
	*world
	t   *testing.T
	dir string

	procs []*process

	talking   sync.WaitGroup
	hush      context.CancelFunc
	questions atomic.Int64 // asked so far, one in each of the channels CQ0, CQ1, ...
	commands  atomic.Int64 // given so far, one in each of the channels CS0, CS1, ...
}

func newRestarts(t *testing.T, databaseURL string) *restarts {
	t.Helper()
	r := &restarts{t: t, dir: t.TempDir(), hush: func() {}}
	// Slack waits three seconds for what a start of the program is a part of here.
	r.world = newSlackWorldWith(t, databaseURL, "HTTP", slack.Options{AckTimeout: waittest.Scaled(3 * time.Second)})
	r.with(map[string]string{"SLACK_STREAMING_MODE": "batch", "SHUTDOWN_GRACE": "20s"})
	r.ai.Script(func(q openai.Request) openai.Response {
		text := q.LastUserText()
		return openai.Reply(openai.Pause(700*time.Millisecond), openai.Delta(wholeAnswer(text[strings.LastIndex(text, "question"):])))
	})
	t.Cleanup(r.close)
	return r
}

func (r *restarts) close() {
	r.hush()
	r.talking.Wait()
	for _, p := range r.procs {
		_ = p.cmd.Process.Kill() // gone already, except for the last ones
		<-p.done
		if r.t.Failed() {
			r.t.Logf("%s wrote:\n%s", p.name, p.out)
		}
	}
}

// talk lets a person ask and another one give commands until quiet is called.
func (r *restarts) talk() {
	ctx, hush := context.WithCancel(context.Background())
	r.hush = hush
	r.talking.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			<-tick.C
			if r.commands.Load() == maxCommands && n%5 != 0 {
				continue
			}
			if n%4 == 0 || r.commands.Load() == maxCommands {
				i := r.questions.Add(1) - 1
				r.sl.User(slackAn).In(fmt.Sprintf("CQ%d", i)).Mentions(crashQuestion(int(i)))
				continue
			}
			i := r.commands.Add(1) - 1
			r.sl.User(slackBo).In(fmt.Sprintf("CS%d", i)).Slash("/agent", "whoami")
		}
	})
}

// amid waits until so much more was said: the people are busy.
func (r *restarts) amid(more int64) {
	r.t.Helper()
	said := func() int64 { return r.commands.Load() + r.questions.Load() }
	until := said() + more
	waittest.Until(r.t, "more to be said", func() bool { return said() >= until })
}

// launch starts a process and waits until it is ready.
func (r *restarts) launch(name string, env map[string]string, sockets ...*os.File) *process {
	r.t.Helper()
	p, err := startProcess(r.t, r.dir, name, "", env, sockets...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.procs = append(r.procs, p)
	if err := p.ready(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return p
}

// settle ends the talking, and checks that nothing was refused or lost and that
// everything is answered, once.
func (r *restarts) settle() {
	r.t.Helper()
	r.hush()
	r.talking.Wait()
	if err := r.sl.WaitIdle(r.ctx()); err != nil {
		r.t.Fatalf("not everything was acknowledged: %v", err)
	}
	for _, d := range r.sl.Deliveries() {
		if d.Lost || !d.Acked || len(d.Attempts) != 1 || d.Attempts[0].Error != "" {
			r.t.Errorf("%s %s: acknowledged %t, lost %t, attempts %+v", d.Kind, d.Type, d.Acked, d.Lost, d.Attempts)
		}
	}
	for i := range int(r.questions.Load()) {
		channel := fmt.Sprintf("CQ%d", i)
		_, err := r.sl.WaitMessage(r.ctx(), channel, "", func(slack.Message) bool { return true })
		if err != nil {
			r.t.Fatal(err)
		}
		root := r.sl.Channel(channel).Messages[0].TS
		r.threadIn(channel, root, wholeAnswer(crashQuestion(i)))
		if shown := r.sl.Channel(channel).FromBot(); len(shown) != 1 {
			r.t.Errorf("question %d has %d answers", i, len(shown))
		}
	}
	waittest.Until(r.t, "answers to all commands", func() bool { return len(r.unanswered()) == 0 })
	r.t.Logf("%d questions and %d slash commands: none refused, none lost", r.questions.Load(), r.commands.Load())
}

// unanswered returns the channels with a command that has no answer.
func (r *restarts) unanswered() (list []string) {
	for i := range int(r.commands.Load()) {
		channel := fmt.Sprintf("CS%d", i)
		if view := r.sl.Channel(channel); len(view.Ephemerals)+len(view.FromBot()) == 0 {
			list = append(list, channel)
		}
	}
	return list
}

// balancer passes requests on to those processes that say they are ready, as a load
// balancer with a check of /readyz does. Nothing is sent twice.
type balancer struct {
	*http.Server
	addr string

	mu       sync.Mutex // guards all below
	backends []*backend
	next     int
	refused  []string
}

type backend struct {
	proxy   *httputil.ReverseProxy
	ready   *url.URL
	healthy bool
}

// newBalancer starts a balancer between Slack and addresses.
func newBalancer(t *testing.T, addrs ...string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{addr: l.Addr().String()}
	for _, addr := range addrs {
		to := &url.URL{Scheme: "http", Host: addr}
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
		proxy.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.refused = append(b.refused, fmt.Sprintf("%s %s: %v", addr, r.URL.Path, err))
			w.WriteHeader(http.StatusBadGateway)
		}
		b.backends = append(b.backends, &backend{proxy: proxy, ready: to.JoinPath("readyz")})
	}
	b.Server = &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { _ = b.Serve(l) })
	for _, to := range b.backends {
		working.Go(func() { b.watch(ctx, to) })
	}
	t.Cleanup(func() {
		cancel()
		_ = b.Close()
		working.Wait()
	})
	return b
}

// watch asks a process ten times a second whether it is ready.
func (b *balancer) watch(ctx context.Context, to *backend) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		healthy := false
		if req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.ready.String(), nil); err == nil {
			if resp, err := client.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				healthy = resp.StatusCode == http.StatusOK
			}
		}
		b.mu.Lock()
		to.healthy = healthy
		b.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// ServeHTTP implements http.Handler.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	var to *backend
	for range b.backends {
		b.next = (b.next + 1) % len(b.backends)
		if b.backends[b.next].healthy {
			to = b.backends[b.next]
			break
		}
	}
	if to == nil {
		b.refused = append(b.refused, "nobody is ready")
	}
	b.mu.Unlock()
	if to == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	to.proxy.ServeHTTP(w, r)
}

// TestRollingRestartRefusesNobody starts two replicas on PostgreSQL again, one after
// the other and twice each, behind a balancer and while people write.
func TestRollingRestartRefusesNobody(t *testing.T) {
	t.Parallel()
	r := newRestarts(t, storetest.PostgresURL(t))
	addrs := []string{freePort(t), freePort(t)}
	b := newBalancer(t, addrs...)
	r.endpoints(b.addr)
	procs := make([]*process, len(addrs))
	start := func(i int) {
		r.with(map[string]string{"LISTEN_ADDR": addrs[i], "DATA_DIR": filepath.Join(r.dir, fmt.Sprint("data", i))})
		procs[i] = r.launch(fmt.Sprintf("replica %d", i), r.env)
		waittest.Until(t, "the balancer to see it", func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.backends[i].healthy
		})
	}
	start(0)
	start(1)
	r.talk()
	for range 2 {
		for i := range procs {
			r.amid(8)
			if err := procs[i].end(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if procs[i].err != nil {
				t.Errorf("%s ended with %v", procs[i].name, procs[i].err)
			}
			start(i)
		}
	}
	r.amid(8)
	r.settle()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.refused) > 0 {
		t.Errorf("%d requests were refused: %q", len(b.refused), b.refused[:min(len(b.refused), 5)])
	}
}

// TestRestartWithSocketActivationRefusesNobody starts one process again while people
// write: a service manager, here the test, keeps its socket open.
func TestRestartWithSocketActivationRefusesNobody(t *testing.T) {
	t.Parallel()
	r := newRestarts(t, "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the processes have copies
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close() //nolint:errcheck // as above
	r.endpoints(l.Addr().String())
	r.with(map[string]string{"LISTEN_ADDR": "127.0.0.1:1", "DATA_DIR": filepath.Join(r.dir, "data")})
	p := r.launch("first", r.env, socket)
	r.talk()
	for i := range 4 {
		r.amid(8)
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if p.err != nil {
			t.Errorf("%s ended with %v", p.name, p.err)
		}
		p = r.launch(fmt.Sprintf("life %d", i+2), r.env, socket)
	}
	r.amid(8)
	r.settle()
}

// endpoints tells Slack where the bot is.
func (r *restarts) endpoints(addr string) {
	r.sl.UseHTTP(slack.Endpoints{
		Events: "http://" + addr + "/webhooks/slack/events", Commands: "http://" + addr + "/webhooks/slack/commands",
		Interactions: "http://" + addr + "/webhooks/slack/interactions",
	})
}
