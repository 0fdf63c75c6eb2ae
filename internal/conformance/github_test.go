package conformance_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/emulator/github"
	"remote-agent/internal/waittest"
)

// withGitHub gives a world GitHub with the repository owner/repo, which is polled.
func withGitHub(t *testing.T, w *world) {
	t.Helper()
	git := gittest.NewServer(t)
	url := git.Repo("owner/repo", map[string]string{"README.md": "# repo\n"})
	web := strings.TrimSuffix(url, "/owner/repo")
	w.hub = github.New(github.Options{WebURL: web, Limits: github.NoLimits()})
	if err := w.hub.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.hub.Close)
	w.hub.AddRepo(github.Repo{Name: "owner/repo", Collaborators: map[string]github.Permission{"gina": github.Write}})
	w.hub.AttachGit("owner/repo", github.Git{CloneURL: url + ".git", Dir: git.Dir("owner/repo")})
	git.Authorize(func(_, password, repo string, push bool) bool { return w.hub.Allows(password, repo, push) })
	key := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(key, w.hub.PrivateKey(), 0o600); err != nil {
		t.Fatal(err)
	}
	maps.Copy(w.env, map[string]string{
		"GITHUB_MODE": "poll", "GITHUB_APP_ID": "4711", "GITHUB_APP_PRIVATE_KEY_FILE": key, "GITHUB_API_URL": w.hub.URL(), "GITHUB_WEB_URL": web,
		"GITHUB_POLL_EVERY": "1s", "GITHUB_SWEEP_EVERY": "1m", "GIT_ALLOWED_HOSTS": w.env["GIT_ALLOWED_HOSTS"] + "," + git.Host(),
	})
}

// issue opens an issue that mentions the bot, waits for its answer, and returns the
// issue's number.
func (c *check) issue(text string) int {
	c.Helper()
	number := c.hub.Person("gina").In("owner/repo").OpenIssue("A question", "@remote-agent "+text).Number
	_, err := c.hub.WaitComment(waittest.Context(c.Context(), c.T), "owner/repo", number, func(m github.Comment) bool {
		return m.FromBot && strings.Contains(m.Body, text)
	})
	if err != nil {
		c.Fatalf("no answer in owner/repo#%d: %v", number, err)
	}
	return number
}
