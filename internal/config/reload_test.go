package config_test

import (
	"slices"
	"testing"

	"remote-agent/internal/config"
)

// TestLiveOptionsAreTaken gives every option that a running process takes another
// value, and sees that nothing of it is left for a restart.
func TestLiveOptionsAreTaken(t *testing.T) {
	t.Parallel()
	other := map[string]string{
		"TELEGRAM_ALLOWED_USER_IDS": "7", "TELEGRAM_OWNER_IDS": "7", "SLACK_ALLOWED_USER_IDS": "U012AB3CD", "SLACK_OWNER_IDS": "U012AB3CD",
		"GITHUB_ALLOWED_LOGINS": "ann", "GITHUB_OWNER_IDS": "7", "TURN_TIMEOUT": "7m", "SHUTDOWN_GRACE": "7s", "CONTEXT_TOKENS": "70000",
		"OPENAI_MODEL": "other", "ANTHROPIC_MODEL": "other", "MODEL_FAST": "openai:other", "MODEL_SMART": "openai:other", "SYSTEM_PROMPT": "other", "LOG_LEVEL": "debug",
	}
	load := func(environ ...string) config.Config {
		return mustLoad(t, "", nil, append(environ, "OPENAI_API_KEY=sk-0123456789abcdef")...)
	}
	before := load()
	tested := 0
	for _, o := range config.Options(sections()...) {
		name := o.Name
		if !o.Live() {
			continue
		}
		tested++
		value := other[name]
		if value == "" {
			value = "7"
		}
		next := load(name + "=" + value)
		live, restart := before.Changes(next)
		if !slices.Equal(live, []string{name}) || len(restart) > 0 {
			t.Errorf("%s changed: %v live, %v need a restart", name, live, restart)
		}
		if live, _ := before.WithLive(next).Changes(next); len(live) > 0 {
			t.Errorf("after the reload %v still differ", live)
		}
	}
	if tested < 20 {
		t.Errorf("only %d options are live", tested)
	}
}
