package app

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// busyMenu fails as often as it has errors.
type busyMenu struct {
	platform.Menu

	errs []error
	set  []platform.CommandInfo
}

func (*busyMenu) Platform() messages.Platform { return "telegram" }

func (m *busyMenu) SetMenu(_ context.Context, commands []platform.CommandInfo) error {
	if len(m.errs) > 0 {
		err := m.errs[0]
		m.errs = m.errs[1:]
		return err
	}
	m.set = commands
	return nil
}

func TestTheMenuIsSetOnceThePlatformLetsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := fault.New(fault.Unavailable, "away")
		m := &busyMenu{errs: []error{&fault.Error{Kind: fault.RateLimited, RetryAfter: 90 * time.Second}}}
		for range 30 {
			m.errs = append(m.errs, away)
		}
		setMenu(t.Context(), m, []platform.CommandInfo{{Name: "help"}}, slog.New(slog.DiscardHandler))
		if len(m.set) != 1 {
			t.Errorf("the menu is %v", m.set)
		}
		m = &busyMenu{errs: []error{fault.New(fault.Unauthorized, "no")}}
		if setMenu(t.Context(), m, []platform.CommandInfo{{Name: "help"}}, slog.New(slog.DiscardHandler)); m.set != nil {
			t.Error("it was set although the credentials were refused")
		}
	})
}
