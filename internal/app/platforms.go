package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/console"
	webchat "remote-agent/internal/platform/web"
	"remote-agent/internal/store"
)

// kindsOf returns the platforms of a configuration.
//
//go:noinline // it would be copied into many callers
func kindsOf(cfg config.Config) []platform.Kind { return sectionsOf[platform.Kind](cfg) }

// platforms are the adapters, and how this process is connected to their platforms.
type platforms struct {
	config   config.Config
	store    *store.Store
	log      *slog.Logger
	console  *console.Adapter
	talk     *webchat.Adapter // conversations in the browser
	adapters []platform.Adapter
	links    links // as the pages show them

	mu       sync.Mutex                             // guards what follows
	accounts map[messages.Platform]platform.Account // what Check told
	troubles map[messages.Platform]error            // why Check failed last
}

// addPlatforms makes the adapters of the platforms that are on.
func (d *daemon) addPlatforms() error {
	for _, k := range kindsOf(d.config) {
		if !k.On() {
			continue
		}
		a, err := k.New(platform.Surroundings{
			PublicURL: d.config.PublicURL,
			GitToken:  d.config.Git.Token.Reveal(),
			Log:       d.log,
			Observe:   func(event string) { d.metrics.Platform(string(k.Platform()), event) },
			MaxConns:  d.plan.PerPlatform,
			Commands:  func() []string { return d.chat.Names() },
			Engaged:   engaged(d.store),
			Cursor:    cursors{d.store},
			Limits:    limitsOf(d.store),
		})
		if err != nil {
			return err
		}
		d.platforms.adapters = append(d.platforms.adapters, a)
	}
	return nil
}

// adapterOf returns the adapter of a platform; nil if it is off.
func (pl *platforms) adapterOf(name messages.Platform) platform.Adapter {
	return lists.First(pl.adapters, func(a platform.Adapter) bool { return a.Platform() == name })
}

// engaged returns what reports whether the bot takes part in a conversation.
func engaged(s *store.Store) func(ctx context.Context, key messages.ConversationKey) (bool, error) {
	return func(ctx context.Context, key messages.ConversationKey) (bool, error) {
		err := s.InRead(ctx, func(tx *store.Tx) error {
			_, err := tx.Conversations().FindConversation(ctx, key)
			return err
		})
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		return err == nil, err
	}
}

// intakeOf says how events come in to an adapter. The console belongs to this process.
func (pl *platforms) intakeOf(a platform.Adapter) platform.Intake {
	for _, k := range kindsOf(pl.config) {
		if k.Platform() == a.Platform() {
			return k.Intake()
		}
	}
	return platform.Polled
}

// sayPlatforms says of each platform whether it is on, or how to turn it on.
func (d *daemon) sayPlatforms() {
	for _, k := range kindsOf(d.config) {
		account, answers := d.platforms.account(k.Platform())
		line := "on, but not responding yet; retrying"
		if answers || !k.On() {
			line = k.Banner(account)
		}
		d.notices.say("  %-9s %s\n", k.Platform(), line)
	}
}

// cursors keeps up to where platforms were read.
type cursors struct{ store *store.Store }

// Load implements platform.Cursor.
func (c cursors) Load(ctx context.Context, key string) (string, error) {
	return store.Within(ctx, c.store.InRead, func(tx *store.Tx) (string, error) { return tx.Inbox().Cursor(ctx, key) })
}

// Save implements platform.Cursor.
func (c cursors) Save(ctx context.Context, key, value string) error {
	return c.store.InTx(ctx, func(tx *store.Tx) error { return tx.Inbox().SaveCursor(ctx, key, value) })
}

// sharedLimits counts the calls of all replicas on a database.
type sharedLimits struct{ *store.Store }

// limitsOf returns the limits that the processes on a database share; nil where there
// is one process.
func limitsOf(s *store.Store) platform.SharedLimits {
	if !s.Shared() {
		return nil
	}
	return sharedLimits{s}
}

// Local implements platform.SharedLimits.
func (l sharedLimits) Local(full time.Duration) bool { return l.CountsCalls(full) }

// Take implements platform.SharedLimits.
func (l sharedLimits) Take(ctx context.Context, c platform.Claim) (time.Duration, error) {
	return l.TakeCalls(ctx, store.CallClaim(c))
}

// CountsAlone implements platform.SharedLimits.
func (l sharedLimits) CountsAlone(usage func() []platform.Usage) {
	l.Store.CountsAlone(func() (all []store.CallUsage) {
		for _, u := range usage() {
			all = append(all, store.CallUsage(u))
		}
		return all
	})
}

// Silence implements platform.SharedLimits.
func (l sharedLimits) Silence(ctx context.Context, account, who string, d time.Duration) error {
	return l.SilenceCalls(ctx, account, who, d)
}

// repoToken returns the credential for one repository: that of a platform which has
// one for its host.
func (pl *platforms) repoToken(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", nil //nolint:nilerr // no address of a host: it has no credential of ours
	}
	for _, k := range kindsOf(pl.config) {
		known, ok := k.(platform.RepoCredentials)
		a := pl.adapterOf(k.Platform())
		if !ok || a == nil || !strings.EqualFold(u.Host, known.CredentialHost()) {
			continue
		}
		token, err := known.Token(ctx, a, address)
		if fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) {
			return "", nil // not one of ours: it may be public
		}
		if err != nil {
			return "", fmt.Errorf("get a token for the repository: %w", err)
		}
		return token, nil
	}
	return "", nil
}
