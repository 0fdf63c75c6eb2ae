package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/api"
	"remote-agent/internal/apikey"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// TestADatabaseThatHangsIsToldOf: after a minute the server breaks off whatever has no answer,
// so a request says before that what is wrong. Where only writing hangs, what is there is read.
func TestADatabaseThatHangsIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.SQLite(t)(t)
		k, token, err := apikey.New("all", apikey.Scopes(), 0, time.Now().Add(-2*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if err := s.InTx(ctx, func(tx *store.Tx) error { return tx.SignIn().InsertAPIKey(ctx, k) }); err != nil {
			t.Fatal(err)
		}
		a := api.New(api.Config{Store: s})
		stuck, over := make(chan struct{}), make(chan error, 1)
		go func() {
			over <- s.InTx(context.WithoutCancel(ctx), func(*store.Tx) error {
				<-stuck
				return nil
			})
		}()
		synctest.Wait()
		for _, c := range []struct {
			method, path string
			want         int
			most         time.Duration
		}{
			{http.MethodGet, "/sessions", http.StatusOK, 3 * time.Second},
			{http.MethodDelete, "/memories?person=telegram/42", http.StatusServiceUnavailable, 55 * time.Second},
		} {
			began, w := time.Now(), httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, c.method, api.Prefix+c.path, http.NoBody)
			r.Header.Set("Authorization", "Bearer "+token)
			a.ServeHTTP(w, r)
			if took := time.Since(began); w.Code != c.want || took > c.most {
				t.Errorf("%s %s: %d after %s: %s", c.method, c.path, w.Code, took, w.Body)
			}
			if c.want == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
				t.Error("it does not say when to try again")
			}
		}
		close(stuck)
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}
