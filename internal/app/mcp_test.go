package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/mcpserver"
	"remote-agent/internal/profile"
	"remote-agent/internal/tool/mcp"
)

// A turn waits for a server that is being connected to for the first time: two seconds
// for one of the configuration, eight for one of its profile, and not longer than the
// attempt. It waits for no later attempt.
func TestATurnWaitsForServersThatBegin(t *testing.T) {
	t.Parallel()
	servers := map[string]mcpserver.Server{"weather": {Command: "weather"}}
	for name, tt := range map[string]struct {
		profile      bool
		takes, waits time.Duration
	}{
		"OfTheConfiguration":            {false, time.Second, time.Second},
		"OfTheConfigurationAndItIsSlow": {false, 5 * time.Second, 2 * time.Second},
		"OfAProfile":                    {true, 5 * time.Second, 5 * time.Second},
		"OfAProfileAndItIsTooSlow":      {true, time.Minute, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				startIn := func(string) func(context.Context, mcp.Server) (*mcp.Process, error) {
					return func(ctx context.Context, _ mcp.Server) (*mcp.Process, error) {
						select {
						case <-ctx.Done():
						case <-time.After(tt.takes):
						}
						return nil, errors.New("it does not start")
					}
				}
				log := slog.New(slog.DiscardHandler)
				var offer func()
				if tt.profile {
					s := &profileServers{startIn: startIn, home: t.TempDir(), log: log, open: make(map[string]*servedProfile)}
					defer s.close()
					offer = func() {
						_, leave := s.offer(t.Context(), profile.Profile{ID: "p", MCPServers: servers})
						_ = leave()
					}
				} else {
					m := newMCPServers(startIn, t.TempDir(), servers, mcpPatience, log)
					defer m.close() //nolint:errcheck // nothing was started
					offer = func() { m.offer(t.Context()) }
				}
				for i, want := range []time.Duration{tt.waits, 0} {
					begin := time.Now()
					offer()
					if took := time.Since(begin); took != want {
						t.Errorf("turn %d waited for %s, want %s", i+1, took, want)
					}
				}
			})
		})
	}
}
