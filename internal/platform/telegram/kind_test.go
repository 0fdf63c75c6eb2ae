package telegram

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/config"
	"remote-agent/internal/option"
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

func TestOptionsOfTelegram(t *testing.T) {
	t.Parallel()
	defaults := kind{apiURL: "https://api.telegram.org", mode: "poll", streaming: true, rate: 30, perChat: 1}
	for name, tt := range map[string]struct {
		env  []string
		want func(k *kind)
	}{
		"nothing": {nil, func(*kind) {}},
		"all": {
			[]string{
				"TELEGRAM_BOT_TOKEN=1:x", "TELEGRAM_API_URL=http://127.0.0.1:1/", "TELEGRAM_MODE=Webhook", "PUBLIC_URL=http://127.0.0.1:2",
				"TELEGRAM_WEBHOOK_SECRET=0123456789abcdef", "TELEGRAM_ALLOWED_USER_IDS= 42, 7;42 9", "TELEGRAM_OWNER_IDS=42",
				"TELEGRAM_STREAMING_MODE=batch", "TELEGRAM_SEND_RATE=0", "TELEGRAM_CHAT_SEND_RATE=0.5",
			},
			func(k *kind) {
				*k = kind{
					token: option.NewSecret("1:x"), apiURL: "http://127.0.0.1:1", mode: "webhook", webhookSecret: option.NewSecret("0123456789abcdef"),
					allowed: []string{"42", "7", "9"}, owners: []string{"42"}, perChat: 0.5,
				}
			},
		},
		"everybody": {[]string{"TELEGRAM_ALLOWED_USER_IDS=*"}, func(k *kind) { k.everyone = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, c, err := readKind(t, tt.env...)
			if err != nil {
				t.Fatal(err)
			}
			want := defaults
			tt.want(&want)
			if diff := cmp.Diff(want, *k,
				cmp.AllowUnexported(kind{}), cmp.Comparer(func(a, b option.Secret) bool { return a.Equal(b) })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if warned := len(c.Warnings) > 0; warned != k.everyone {
				t.Errorf("warnings: %q", c.Warnings)
			}
		})
	}
}

func TestTelegramsBanner(t *testing.T) {
	t.Parallel()
	account := platform.Account{Name: "@acme_bot"}
	for want, env := range map[string][]string{
		"off. `bot setup telegram` connects it, or set TELEGRAM_BOT_TOKEN.": nil,
		"@acme_bot by poll, for its owner":                                  {"TELEGRAM_BOT_TOKEN=1:x"},
		"@acme_bot by poll, for the people in TELEGRAM_ALLOWED_USER_IDS":    {"TELEGRAM_BOT_TOKEN=1:x", "TELEGRAM_ALLOWED_USER_IDS=1"},
		"@acme_bot by poll, open to EVERYONE (TELEGRAM_ALLOWED_USER_IDS=*)": {"TELEGRAM_BOT_TOKEN=1:x", "TELEGRAM_ALLOWED_USER_IDS=*"},
	} {
		k, _, err := readKind(t, env...)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Banner(account); got != want {
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
}
