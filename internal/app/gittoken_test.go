package app

import (
	"testing"

	"remote-agent/internal/config"
)

// The personal token of a GitHub Enterprise goes there, and not to github.com.
func TestWhereThePersonalTokenGoes(t *testing.T) {
	t.Parallel()
	for api, home := range map[string]string{"": "github.com", "https://git.example.com/api/v3": "git.example.com"} {
		cfg, _ := config.Inspect(config.Source{Environ: []string{"GITHUB_TOKEN=ghp_0123456789abcdef", "GITHUB_API_URL=" + api}}, Sections()...)
		for _, host := range []string{"github.com", "git.example.com", "elsewhere.example.com"} {
			if got := gitToken(cfg, host) != ""; got != (host == home) {
				t.Errorf("API %q: %s gets the token: %v", api, host, got)
			}
		}
	}
}
