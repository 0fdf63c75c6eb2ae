package slack

import (
	"os"
	"path/filepath"
	"testing"

	"remote-agent/internal/config"
	"remote-agent/internal/platform"
)

// readKind reads the options of the platform, and what is wrong with them.
func readKind(t *testing.T, environ ...string) (*kind, config.Config, error) {
	t.Helper()
	none := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k := Kind().(*kind)
	c, err := config.Load(config.Source{Environ: environ, EnvFile: none}, k)
	return k, c, err
}

func TestHowSlacksEventsComeIn(t *testing.T) {
	t.Parallel()
	account := platform.Account{Name: "@agent"}
	for name, tt := range map[string]struct {
		env    []string
		on     bool
		intake platform.Intake
		banner string
	}{
		"off":     {nil, false, platform.OverHTTP, "off. `bot setup slack` makes the app and connects it, or set SLACK_BOT_TOKEN and SLACK_APP_TOKEN."},
		"sockets": {[]string{"SLACK_BOT_TOKEN=xoxb-1", "SLACK_APP_TOKEN=xapp-1"}, true, platform.OverSocket, "@agent by Socket Mode"},
		"HTTP":    {[]string{"SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET=s"}, true, platform.OverHTTP, "@agent over HTTP at /webhooks/slack/"},
		"both": {
			[]string{"SLACK_BOT_TOKEN=xoxb-1", "SLACK_APP_TOKEN=xapp-1", "SLACK_SIGNING_SECRET=s"},
			true, platform.OverSocket, "@agent by Socket Mode",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, c, err := readKind(t, tt.env...)
			if err != nil {
				t.Fatal(err)
			}
			if k.On() != tt.on || k.Intake() != tt.intake || k.Banner(account) != tt.banner {
				t.Errorf("on %v, intake %v, banner %q", k.On(), k.Intake(), k.Banner(account))
			}
			if len(c.Secrets()) != len(tt.env) {
				t.Errorf("%d secrets are redacted of %d", len(c.Secrets()), len(tt.env))
			}
		})
	}
}

func TestWhomSlackLetsIn(t *testing.T) {
	t.Parallel()
	k, c, err := readKind(t, "SLACK_ALLOWED_USER_IDS=U012AB3CD, W045EF6GH,*", "SLACK_OWNER_IDS=U012AB3CD")
	if err != nil {
		t.Fatal(err)
	}
	p := k.People()
	if !p.Everyone || len(p.IDs) != 2 || len(p.Owners) != 1 || p.Owners[0] != "U012AB3CD" || len(c.Warnings) != 1 {
		t.Errorf("%+v, warnings %q", p, c.Warnings)
	}
	if p.Form.MatchString("ann") || !p.Form.MatchString("U012AB3CD") {
		t.Errorf("the form of ids is %v", p.Form)
	}
}
