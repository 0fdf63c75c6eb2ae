package app

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/store"
)

func (d *daemon) addGitHub() error {
	c := d.config.GitHub
	if c.Mode == "" {
		return nil
	}
	a, err := github.New(github.Config{
		AppID:         c.AppID,
		PrivateKey:    c.PrivateKey.Reveal(),
		Token:         d.config.Git.Token.Reveal(),
		WebhookSecret: c.WebhookSecret.Reveal(),
		Poll:          c.Mode == config.ModePoll,
		APIURL:        c.APIURL,
		WebURL:        c.WebURL,
		Mention:       c.Mention,
		Repositories:  c.Repositories,
		Allowed:       c.Allowed,
		Streaming:     c.Streaming,
		PollEvery:     c.PollEvery,
		SweepEvery:    c.SweepEvery,
		Commands:      func() []string { return d.chat.Names() },
		Cursor:        cursors{d.store},
		Log:           d.log,
		Observe:       d.metrics.Platform,
		MaxConns:      d.plan.PerPlatform,
	})
	if err != nil {
		return err
	}
	d.github = a
	d.adapters = append(d.adapters, a)
	return nil
}

// cursors keeps up to where platforms were read.
type cursors struct{ store *store.Store }

// Load implements github.Cursor.
func (c cursors) Load(ctx context.Context, key string) (position string, err error) {
	err = c.store.InRead(ctx, func(tx *store.Tx) error {
		position, err = tx.Cursor(ctx, key)
		return err
	})
	return position, err
}

// Save implements github.Cursor.
func (c cursors) Save(ctx context.Context, key, value string) error {
	return c.store.InTx(ctx, func(tx *store.Tx) error { return tx.SaveCursor(ctx, key, value) })
}

// repoToken returns the credential for one repository: that of the app's
// installation, where the repository is on the adapter's GitHub.
func (d *daemon) repoToken(ctx context.Context, address string) (string, error) {
	if d.github == nil || d.config.GitHub.AppID == "" {
		return "", nil
	}
	u, err := url.Parse(address)
	if err != nil || !strings.EqualFold(u.Host, d.githubHost()) {
		return "", nil //nolint:nilerr // another host: it has no credential of ours
	}
	token, err := d.github.Token(ctx, address)
	if fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) {
		return "", nil // not one of ours: it may be public
	}
	if err != nil {
		return "", fmt.Errorf("get a token for the repository: %w", err)
	}
	return token, nil
}

// githubHost is the host that the adapter's repositories are cloned from.
func (d *daemon) githubHost() string {
	for _, address := range []string{d.config.GitHub.WebURL, d.config.GitHub.APIURL} {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			return u.Host
		}
	}
	return "github.com"
}

func (d *daemon) sayGitHub() {
	c := d.config.GitHub
	switch account, ok := d.accounts[github.Name]; {
	case c.Mode == "":
		d.say("  github    off. `bot github manifest` makes an app; or set GITHUB_MODE=poll and GITHUB_TOKEN.\n")
	case !ok:
		d.say("  github    on, but it does not answer yet; it is tried again\n")
	case c.Mode == config.ModePoll:
		d.say("  github    %s by polling\n", account.Name)
	default:
		d.say("  github    %s by webhook at /webhooks/github\n", account.Name)
	}
}
