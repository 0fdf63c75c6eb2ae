package app

import (
	"testing"

	"remote-agent/internal/config"
	"remote-agent/internal/messages"
	"remote-agent/internal/option"
	"remote-agent/internal/platform"
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
