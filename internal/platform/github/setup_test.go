package github_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/platform/platformtest"
	"remote-agent/internal/waittest"
)

const (
	secret = "0123456789abcdef0123456789abcdef"
	repo   = "Acme/Web"
	inKey  = "acme/web"
)

// world is an adapter that talks to the emulator.
type world struct {
	*github.Adapter
	server *emulator.Server
	sink   *platformtest.Sink
	front  *httptest.Server
	hook   atomic.Pointer[http.Handler]
	key    string
	token  string
}

// setting changes how a world is made.
type setting struct {
	server func(*emulator.Options)
	bot    func(*github.Config)
	pat    bool
}

func newWorld(t *testing.T, settings ...setting) *world {
	t.Helper()
	w := &world{sink: &platformtest.Sink{}}
	opts := emulator.Options{App: emulator.App{Key: testKey()}}
	cfg := github.Config{WebhookSecret: secret, Surroundings: platform.Surroundings{Log: testLog(t)}, SweepEvery: time.Hour, PermissionTTL: -1}
	pat := false
	for _, s := range settings {
		if s.server != nil {
			s.server(&opts)
		}
		pat = pat || s.pat
	}
	if pat {
		opts.Login = "helper"
	}
	w.server = emulator.New(opts)
	if err := w.server.Start(); err != nil {
		t.Fatal(err)
	}
	w.front = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if h := w.hook.Load(); h != nil {
			(*h).ServeHTTP(rw, r)
			return
		}
		rw.WriteHeader(http.StatusServiceUnavailable)
	}))
	w.server.AddRepo(emulator.Repo{Name: repo, NotInstalled: pat, Collaborators: map[string]emulator.Permission{
		"ann": emulator.Write, "reader": emulator.Read, "triager": emulator.Triage, "boss": emulator.Admin, "mia": emulator.Maintain, "helper": emulator.Admin,
	}})
	hook := emulator.Hook{URL: w.front.URL + "/webhooks/github", Secret: secret}
	w.key = string(w.server.PrivateKey())
	cfg.APIURL = w.server.URL()
	if pat {
		w.token = w.server.PersonalToken("helper", "repo")
		cfg.Token = w.token
		w.server.AddRepoHook(repo, hook)
	} else {
		cfg.AppID, cfg.PrivateKey = "4711", w.key
	}
	w.server.SetHook(hook)
	for _, s := range settings {
		if s.bot != nil {
			s.bot(&cfg)
		}
	}
	var err error
	if w.Adapter, err = github.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stop)
	return w
}

func (w *world) stop() {
	w.server.Close()
	w.front.Close()
	w.CloseIdle()
}

func (w *world) mount(h http.Handler) { w.hook.Store(&h) }

// run receives and starts the adapter for a test.
func (w *world) run(t *testing.T) (stop func()) {
	t.Helper()
	w.mount(w.Webhook(w.sink))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, w.sink) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// settled waits until the bot has answered for what a person did.
func (w *world) settled(t *testing.T, sent emulator.Sent) emulator.Sent {
	t.Helper()
	ctx := waittest.Context(t.Context(), t)
	if err := w.server.WaitSettled(ctx, sent); err != nil {
		t.Fatal(err)
	}
	return sent
}

// await waits until the sink satisfies done.
func (w *world) await(t *testing.T, what string, done func([]messages.Inbound) bool) {
	t.Helper()
	ctx := waittest.Context(t.Context(), t)
	if err := w.sink.Wait(ctx, func() bool { return done(w.sink.Events()) }); err != nil {
		t.Fatalf("%s: still waiting; events %+v", what, w.sink.Events())
	}
}

// last returns the newest event.
func (w *world) last(t *testing.T) messages.Inbound {
	t.Helper()
	all := w.sink.Events()
	if len(all) == 0 {
		t.Fatal("no event was accepted")
	}
	return all[len(all)-1]
}

func (w *world) person(login string) emulator.Person { return w.server.Person(login).In(repo) }

func key(id string) messages.ConversationKey {
	return messages.ConversationKey{Platform: github.Name, ID: id}
}

// logBuffer collects a log.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// testLog returns a logger that fails the test if a credential gets into it.
func testLog(t *testing.T) *slog.Logger {
	t.Helper()
	l := &logBuffer{}
	t.Cleanup(func() {
		for _, s := range []string{secret, "ghs_", "ghp_", "github_pat_", "PRIVATE KEY", "eyJ"} {
			if strings.Contains(l.String(), s) {
				t.Errorf("the log contains a credential: %s", l.String())
			}
		}
		if t.Failed() {
			t.Logf("log:\n%s", l.String())
		}
	})
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
