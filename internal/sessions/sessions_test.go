package sessions_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/sessions"
)

func TestPairingWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	within, over := now.Add(-sessions.PairingTTL+time.Second), now.Add(-sessions.PairingTTL)
	for _, tt := range []struct {
		name           string
		p              sessions.Pairing
		waits, settled bool
	}{
		{"waiting", sessions.Pairing{State: sessions.PairingWaiting, AskedAt: within}, true, true},
		{"waited too long", sessions.Pairing{State: sessions.PairingWaiting, AskedAt: over, DecidedAt: now}, false, false},
		{"denied", sessions.Pairing{State: sessions.PairingDenied, AskedAt: within, DecidedAt: within}, false, true},
		{"denied, asked long ago", sessions.Pairing{State: sessions.PairingDenied, AskedAt: over, DecidedAt: within}, false, true},
		{"denied long ago", sessions.Pairing{State: sessions.PairingDenied, AskedAt: over, DecidedAt: over}, false, false},
		{"allowed", sessions.Pairing{State: sessions.PairingAllowed, AskedAt: within, DecidedAt: within}, false, false},
	} {
		if got := tt.p.Waits(now); got != tt.waits {
			t.Errorf("%s: waits is %v", tt.name, got)
		}
		if got := tt.p.Settled(now); got != tt.settled {
			t.Errorf("%s: settled is %v", tt.name, got)
		}
	}
}

func TestClaimed(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]bool{"": true, sessions.GrantedByCode: true, sessions.GrantedByCLI: false, "telegram/42": false} {
		if got := (sessions.Identity{GrantedBy: by}).Claimed(); got != want {
			t.Errorf("a role granted by %q is claimed: %v", by, got)
		}
	}
}

func TestFreeName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 255)
	for _, tt := range []struct {
		name, want string
		taken      []string
	}{
		{"web", "web", nil},
		{"web", "web", []string{"web-2"}},
		{"web", "web-3", []string{"web", "web-2"}},
		{"", "-2", []string{""}},
		{long, long[:2*253] + "-2", []string{long}},
	} {
		got, err := sessions.FreeName(tt.name, func(name string) (bool, error) { return slices.Contains(tt.taken, name), nil })
		if got != tt.want || err != nil {
			t.Errorf("%q beside %q is %q, %v", tt.name, tt.taken, got, err)
		}
	}
	if _, err := sessions.FreeName("web", func(string) (bool, error) { return true, errors.New("away") }); err == nil {
		t.Error("the error of who knows is lost")
	}
}

func TestWorkID(t *testing.T) {
	t.Parallel()
	c := sessions.Conversation{ID: "c-1"}
	if got := c.WorkID(); got != "c-1" {
		t.Errorf("a conversation works in %q, want its own worktree", got)
	}
	c.Settings.Worktree = "c-2"
	if got := c.WorkID(); got != "c-2" {
		t.Errorf("after a hand-off it works in %q, want that of the other", got)
	}
}
