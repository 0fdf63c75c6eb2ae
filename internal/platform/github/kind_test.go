package github

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func TestGitHubIdentity(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	appKey := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)}))
	file := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(file, []byte(appKey), 0o600); err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	modern := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	type got struct {
		mode, app, key, token, secret string
	}
	for name, tt := range map[string]struct {
		env  []string
		want got
	}{
		"Nothing":           {nil, got{}},
		"TokenForGitOnly":   {[]string{"GITHUB_TOKEN=ghp_x"}, got{token: "ghp_x"}},
		"TokenByOtherName":  {[]string{"GH_TOKEN=ghp_x"}, got{token: "ghp_x"}},
		"TokenPolls":        {[]string{"GITHUB_MODE=POLL", "GITHUB_TOKEN=ghp_x", "GITHUB_REPOSITORIES=a/b"}, got{mode: "poll", token: "ghp_x"}},
		"TokenWithWebhooks": {[]string{"WEBHOOK_SECRET=0123456789abcdef", "GITHUB_TOKEN=ghp_x"}, got{mode: "webhook", token: "ghp_x", secret: "0123456789abcdef"}},
		"AppPolls":          {[]string{"GITHUB_MODE=poll", "GITHUB_APP_ID=Iv1.abc", "GITHUB_APP_PRIVATE_KEY_FILE=" + file}, got{mode: "poll", app: "Iv1.abc", key: strings.TrimSpace(appKey)}},
		"AppInOneLine":      {[]string{"GITHUB_APP_ID=1", "GITHUB_APP_PRIVATE_KEY=" + strings.ReplaceAll(appKey, "\n", `\n`)}, got{app: "1", key: appKey}},
		"AppOfTheOtherKind": {[]string{"GITHUB_APP_ID=1", "GITHUB_APP_PRIVATE_KEY=" + modern}, got{app: "1", key: strings.TrimSpace(modern)}},
		"PollDespiteSecret": {
			[]string{"GITHUB_MODE=poll", "GITHUB_WEBHOOK_SECRET=0123456789abcdef", "GITHUB_TOKEN=x", "GITHUB_REPOSITORIES=a/b"},
			got{mode: "poll", token: "x", secret: "0123456789abcdef"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, c, err := readKind(t, tt.env...)
			if err != nil {
				t.Fatal(err)
			}
			is := got{k.effectiveMode(), k.appID, k.privateKey.Reveal(), c.Git.Token.Reveal(), k.webhookSecret.Reveal()}
			if is != tt.want {
				t.Errorf("got %+v, want %+v", is, tt.want)
			}
			if len(c.Warnings) != 0 {
				t.Errorf("warnings = %q", c.Warnings)
			}
			all := strings.Join(c.Secrets(), "|")
			for _, secret := range []string{is.token, is.secret, is.key} {
				if !strings.Contains(all, secret) {
					t.Errorf("%q is not redacted", secret)
				}
			}
		})
	}
}

func TestOptionsOfGitHub(t *testing.T) {
	t.Parallel()
	k, _, err := readKind(t,
		"GITHUB_MENTION=Helper_acme", "GITHUB_ALLOWED_LOGINS=583231, @octocat, mona-cat_acme", "GITHUB_REPOSITORIES=acme/web acme/a.b_c-d", "GITHUB_STREAMING_MODE=stream",
		"GITHUB_API_URL=https://h/api/v3/", "GITHUB_WEB_URL=https://h/", "GITHUB_POLL_EVERY=1m", "GITHUB_SWEEP_EVERY=1h", "GITHUB_OWNER_IDS=7",
	)
	if err != nil {
		t.Fatal(err)
	}
	want := kind{
		mention: "@Helper_acme", allowed: []string{"583231", "octocat", "mona-cat_acme"}, repositories: []string{"acme/web", "acme/a.b_c-d"}, streaming: true,
		apiURL: "https://h/api/v3", webURL: "https://h", pollEvery: time.Minute, sweepEvery: time.Hour, owners: []string{"7"},
	}
	if diff := cmp.Diff(want, *k,
		cmp.AllowUnexported(kind{}), cmp.Comparer(func(a, b option.Secret) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if k.On() {
		t.Error("it is on without a mode and a secret")
	}
}

func TestWhereCredentialsGo(t *testing.T) {
	t.Parallel()
	for want, k := range map[string]kind{
		"github.com":   {},
		"h":            {apiURL: "https://h/api/v3"},
		"acme.ghe.com": {apiURL: "https://api.acme.ghe.com"},
		"127.0.0.1:1":  {apiURL: "https://h", webURL: "http://127.0.0.1:1"},
	} {
		if got := k.CredentialHost(); got != want {
			t.Errorf("%+v: %q, want %q", k, got, want)
		}
	}
}

func TestGitHubsBanner(t *testing.T) {
	t.Parallel()
	account := platform.Account{Name: "@agent"}
	for want, k := range map[string]kind{
		"off. `bot setup github` makes the app and connects it, or set GITHUB_MODE=poll and GITHUB_TOKEN.": {},
		"@agent by polling":                     {mode: "poll"},
		"@agent by webhook at /webhooks/github": {webhookSecret: option.NewSecret("s")},
	} {
		if got := k.Banner(account); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
