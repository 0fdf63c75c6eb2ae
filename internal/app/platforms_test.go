package app

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/option"
	"remote-agent/internal/platform"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// plain is a platform that can do only what every platform can, and so cannot be asked
// who the bot is.
type plain struct {
	platform.Kind
	platform.Adapter
}

func (plain) Platform() messages.Platform              { return "plain" }
func (plain) On() bool                                 { return true }
func (plain) Banner(platform.Account) string           { return "by webhook" }
func (plain) Options() []option.Option                 { return nil }
func (plain) Check(*option.Check)                      {}
func (p plain) WithLive(option.Section) option.Section { return p }

func TestAPlatformThatCannotBeAskedIsTakenToAnswer(t *testing.T) {
	t.Parallel()
	cfg := config.Config{Sections: []option.Section{plain{}}}
	pl := platforms{config: cfg, adapters: []platform.Adapter{plain{}}, accounts: make(map[messages.Platform]platform.Account)}
	if err := pl.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := pl.lights(cfg); len(got) != 1 || !got[0].Works || got[0].Detail != "by webhook" {
		t.Errorf("the lights: %+v", got)
	}
}

// late is a platform that does not answer at first.
type late struct {
	platform.Adapter

	asked *int
}

func (late) Platform() messages.Platform { return "plain" }

func (l late) Check(context.Context) (platform.Account, error) {
	if *l.asked++; *l.asked <= 2 {
		return platform.Account{}, fault.New(fault.Unavailable, "It does not answer.")
	}
	return platform.Account{ID: "7", Name: "@late"}, nil
}

// lateKind is its Kind.
type lateKind struct{ plain }

func (lateKind) Intake() platform.Intake                  { return platform.Polled }
func (lateKind) Banner(a platform.Account) string         { return a.Name }
func (k lateKind) WithLive(option.Section) option.Section { return k }

func latePlatform(s *store.Store) *platforms {
	return &platforms{
		config: config.Config{Sections: []option.Section{lateKind{}}}, store: s, adapters: []platform.Adapter{late{asked: new(int)}}, log: slog.New(slog.DiscardHandler),
		accounts: make(map[messages.Platform]platform.Account), troubles: make(map[messages.Platform]error),
	}
}

// TestAPlatformThatAnswersAfterTheStartIsShownAsOn has it asked each minute, as incidents do.
func TestAPlatformThatAnswersAfterTheStartIsShownAsOn(t *testing.T) {
	t.Parallel()
	pl := latePlatform(nil)
	if err := pl.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	i := incidents{platforms: pl, log: pl.log}
	for _, works := range []bool{false, false, true} {
		list := pl.connections(pl.config)
		if len(list) != 1 || list[0].Works != works || works && list[0].Detail != "@late" {
			t.Errorf("connections %+v, want one that works: %t", list, works)
		}
		i.unreachable(t.Context())
	}
}

// TestReplicasReceiveUnderTheNameOfTheBotOnly would have two of them receive, if one that
// was started while the platform was away held a lease without that name.
func TestReplicasReceiveUnderTheNameOfTheBotOnly(t *testing.T) {
	t.Parallel()
	pl := latePlatform(storetest.Postgres(t)(t))
	synctest.Test(t, func(t *testing.T) {
		if err := pl.check(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		name, err := pl.singleton(t.Context(), pl.adapters[0])
		if err != nil || name != "receive/plain/7" || time.Since(began) != 2*askAgain {
			t.Errorf("after %v: %q, %v", time.Since(began), name, err)
		}
	})
}

// calledKind is the Kind of a platform that calls us.
type calledKind struct{ plain }

func (calledKind) Intake() platform.Intake { return platform.OverHTTP }

// Whatever a platform is called: that its address was not asked is said.
func TestTheDoctorMissesTheAddressOfAPlatformThatCallsUs(t *testing.T) {
	t.Parallel()
	for says, kind := range map[string]option.Section{"where events of plain come in": calledKind{}, "webhooks and web pages": lateKind{}} {
		e := examination{config: config.Config{Sections: []option.Section{kind}}}
		if found := e.examineAddress(t.Context()); len(found) != 1 || found[0].Status != doctor.Skip || !strings.Contains(found[0].Detail, says) {
			t.Errorf("%T: %+v", kind, found)
		}
	}
}
