package pages_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/pages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// hanging is a database that does not answer, as one behind a network that drops everything.
type hanging struct {
	pages.Storage
	reads, writes bool // that have no answer
	answers       int  // reads that have one before
}

// InRead implements pages.Storage.
func (h *hanging) InRead(ctx context.Context, fn func(tx *store.Tx) error) error {
	if h.answers--; h.reads && h.answers < 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.Storage.InRead(ctx, fn)
}

// InTx implements pages.Storage.
func (h *hanging) InTx(ctx context.Context, fn func(tx *store.Tx) error) error {
	if h.writes {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.Storage.InTx(ctx, fn)
}

// TestADatabaseThatHangsIsToldOf: after a minute the server breaks off whatever has no answer,
// so everything says before that what is wrong. Where only writing hangs, pages can be read.
func TestADatabaseThatHangsIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.SQLite(t)(t)
		h := &hanging{Storage: s}
		w := newWorld(t, s, func(c *pages.Config) {
			c.Storage = h
			c.About.Export = func(ctx context.Context, _ io.Writer, _ string, _ bool) error {
				return h.InRead(ctx, nil)
			}
		})
		filled := w.fill()
		b := w.as(ann)
		token := tokenField.FindStringSubmatch(b.get("/account"))[1]
		form := url.Values{"token": {token}, "nonce": {strings.Repeat("0", 32)}}
		asks := func(what, method, path string, want int, most time.Duration) {
			t.Helper()
			began := time.Now()
			r := b.send(method, path, form)
			if took := time.Since(began); r.Code != want || took > most {
				t.Errorf("%s: %s %s: %d after %s", what, method, path, r.Code, took)
			}
		}
		w.mu.Lock()
		w.now = w.now.Add(2 * time.Minute) // the use of the session is to be noted
		w.mu.Unlock()
		h.writes = true
		asks("no writing", http.MethodGet, "/sessions", http.StatusOK, 3*time.Second)
		asks("no writing", http.MethodPost, "/sign-out", http.StatusServiceUnavailable, 55*time.Second)
		h.reads = true
		for _, path := range []string{"/", "/sessions", "/costs.csv", "/events?topic=all", "/sign-in?k=x"} {
			asks("nothing", http.MethodGet, path, http.StatusServiceUnavailable, 55*time.Second)
		}
		for _, path := range []string{"/costs.csv", "/events?topic=" + url.QueryEscape("session/"+filled.session.ID), "/sessions/" + filled.session.ID + "/export"} {
			h.answers = 1 // who asks is known
			asks("nothing but who asks", http.MethodGet, path, http.StatusServiceUnavailable, 55*time.Second)
		}
		h.answers = 2
		asks("nothing of the session", http.MethodGet, "/sessions/"+filled.session.ID+"/export", http.StatusServiceUnavailable, 55*time.Second)
		asks("nothing", http.MethodPost, "/sign-out", http.StatusServiceUnavailable, 55*time.Second)
		asks("nothing", http.MethodPost, "/sign-in", http.StatusServiceUnavailable, 55*time.Second)
	})
}
