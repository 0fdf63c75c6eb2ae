package github

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/go-github/v62/github"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const (
	// deniedFor is how long a no is remembered at the door, for when there is no room
	// to ask again. Within askedAgain of it, that takes half of the room left: who was
	// given access is served at once in quiet times, and soon in a flood.
	deniedFor, askedAgain = time.Minute, 5 * time.Second

	// Of people who were never admitted so many are asked about: a request each,
	// before their message is stored and before its turn.
	newcomerBurst, newcomerEvery = 20, time.Second
)

// newcomers bounds how many people GitHub is asked about who were not admitted
// before. It is safe for concurrent use.
type newcomers struct {
	bucket *rate.Limiter
	known  *platform.Recent[string, bool]      // who was admitted where, for as long as there is room
	denied *platform.Recent[string, time.Time] // who was not, and when
	asked  *platform.Recent[string, time.Time] // who was counted as one to ask about, and when
}

func newNewcomers() *newcomers {
	return &newcomers{
		bucket: rate.NewLimiter(rate.Every(newcomerEvery), newcomerBurst),
		known:  platform.NewRecent[string, bool](4096),
		denied: platform.NewRecent[string, time.Time](4096),
		asked:  platform.NewRecent[string, time.Time](4096),
	}
}

func (n *newcomers) judged(who string, ok bool, now time.Time) {
	if n.known.Put(who, ok); !ok {
		n.denied.Put(who, now)
	}
}

// gate asks GitHub who may use the bot.
type gate struct {
	client    *client
	logins    []string                            // Config.Allowed
	ttl       time.Duration                       // of a yes
	allowed   atomic.Pointer[map[int64]bool]      // nil until logins are resolved
	narrowed  atomic.Bool                         // only allowed may, among those who may write
	admits    *platform.Recent[string, time.Time] // who may write where -> until when that holds
	asking    singleflight.Group                  // by who, where and under which login
	newcomers *newcomers
	log       *slog.Logger
	observe   func(string)
}

// Screen implements platform.Screener. While there are not more strangers than
// GitHub can be asked about, it is asked about everybody. GitHub's word that
// somebody belongs to the repository is no authority, but reason enough to ask. What
// somebody writes before there is an answer counts once: after a downtime all that they
// wrote comes at a time.
func (gt *gate) Screen(in messages.Inbound) platform.Screening {
	at, err := parseKey(in.Conversation)
	if err != nil {
		return platform.ScreenAsk
	}
	who, now, n := memoryOf(at.repo, string(in.Sender.ID)), time.Now(), gt.newcomers
	known, _ := n.known.Get(who)
	last, was := n.denied.Get(who)
	denied := was && now.Sub(last) < deniedFor
	counted, waits := n.asked.Get(who)
	switch {
	case denied && n.bucket.TokensAt(now) < newcomerBurst/2 && now.Sub(last) < askedAgain:
		return platform.ScreenDenied
	case known, in.Sender.Member && !denied, waits && !denied && now.Sub(counted) < deniedFor:
		return platform.ScreenAsk
	case n.bucket.AllowN(now, 1):
		n.asked.Put(who, now)
		return platform.ScreenAsk
	case denied:
		return platform.ScreenDenied
	}
	gt.observe("newcomer_not_checked")
	return platform.ScreenBusy
}

func memoryOf(repo, id string) string { return repo + " " + id }

// Admits implements platform.Gatekeeper: whoever may write to the repository may
// use the bot there, unless Config.Allowed names others. GitHub is asked each
// time; only a yes is remembered, and for seconds. What an event says of its
// author's association is no authority (contract C9).
func (gt *gate) Admits(ctx context.Context, in messages.Inbound) (bool, error) {
	at, err := parseKey(in.Conversation)
	if err != nil {
		return false, err
	}
	id, err := strconv.ParseInt(string(in.Sender.ID), 10, 64)
	if err != nil || id < 1 || in.Sender.Bot {
		return false, nil //nolint:nilerr // who is nobody may nothing
	}
	if gt.narrowed.Load() {
		allowed := gt.allowed.Load()
		if allowed == nil {
			return false, fault.New(fault.Unavailable, "Access has not been loaded yet; try again in a moment.")
		}
		if !(*allowed)[id] {
			gt.newcomers.judged(memoryOf(at.repo, string(in.Sender.ID)), false, time.Now())
			return false, nil
		}
	}
	return gt.mayWrite(ctx, at.repo, id, in.Sender.Name)
}

// mayWrite asks whether an account may write to a repository. The endpoint takes
// a login; the number in its answer says whose that is now.
func (gt *gate) mayWrite(ctx context.Context, repo string, id int64, login string) (bool, error) {
	memory := memoryOf(repo, strconv.FormatInt(id, 10))
	if until, ok := gt.admits.Get(memory); ok && time.Now().Before(until) {
		return true, nil
	}
	ok, err := gt.askOnce(ctx, memory+" "+login, func() (any, error) { return gt.askPermission(ctx, repo, id, login) })
	if err == nil {
		gt.newcomers.judged(memory, ok, time.Now())
	}
	if err != nil || !ok {
		gt.admits.Put(memory, time.Time{})
		return false, err
	}
	if gt.ttl > 0 {
		gt.admits.Put(memory, time.Now().Add(min(gt.ttl, time.Minute)))
	}
	return true, nil
}

// askOnce asks, or waits for the answer of who asks the same at this moment: a message that
// has arrived is asked about while its turn begins, which does so, too.
func (gt *gate) askOnce(ctx context.Context, what string, ask func() (any, error)) (bool, error) {
	for {
		select {
		case r := <-gt.asking.DoChan(what, ask):
			if r.Err != nil && r.Shared && ctx.Err() == nil && errors.Is(r.Err, context.Canceled) {
				continue // it was somebody else who gave up
			}
			ok, _ := r.Val.(bool)
			return ok, r.Err
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (gt *gate) askPermission(ctx context.Context, repo string, id int64, login string) (bool, error) {
	if !loginForm.MatchString(login) {
		return false, nil
	}
	out, _, err := inRepo(ctx, gt.client, repo, op{name: "asking for a permission"}, func(g api) (*github.RepositoryPermissionLevel, *github.Response, error) {
		return g.Repositories.GetPermissionLevel(g.ctx, g.owner, g.repo, login)
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil // no such account, or nothing to do with the repository
	case err != nil:
		return false, err
	case out.GetUser().GetID() != id:
		return false, nil // somebody else has the login now
	}
	switch out.GetPermission() {
	case "admin", "maintain", "write":
		return true, nil
	}
	return false, nil
}

// resolveAllowed turns the logins of Config.Allowed into numbers, which nobody
// can take over.
func (gt *gate) resolveAllowed(ctx context.Context) error {
	if gt.allowed.Load() != nil {
		return nil
	}
	ids, err := gt.numbers(ctx, gt.logins)
	if err != nil {
		return err
	}
	gt.allowed.CompareAndSwap(nil, &ids) // or it was set to others meanwhile
	return nil
}

// SetAllowed replaces Config.Allowed. An error changes nothing: a fault.Invalid that
// names the option if a login is nobody's, else what kept GitHub from telling.
func (gt *gate) SetAllowed(ctx context.Context, logins []string) error {
	ids, err := gt.numbers(ctx, logins)
	if err != nil {
		return err
	}
	gt.allowed.Store(&ids)
	gt.narrowed.Store(len(logins) > 0)
	return nil
}

// numbers returns the numbers of accounts.
func (gt *gate) numbers(ctx context.Context, logins []string) (map[int64]bool, error) {
	ids := make(map[int64]bool)
	who := asToken
	if gt.client.appID != "" && len(logins) > 0 {
		var err error
		if who, err = gt.anyInstallation(ctx); err != nil {
			return nil, err
		}
	}
	for _, entry := range logins {
		if id, err := strconv.ParseInt(entry, 10, 64); err == nil {
			ids[id] = true
			continue
		}
		out, _, err := call(ctx, gt.client, who, op{name: "reading an account"}, func(g api) (*github.User, *github.Response, error) { return g.Users.Get(g.ctx, entry) })
		switch {
		case fault.Is(err, fault.NotFound), err == nil && out.GetID() < 1:
			return nil, fault.Newf(fault.Invalid, "GITHUB_ALLOWED_LOGINS: there is no account %q on GitHub", entry)
		case err != nil:
			return nil, err
		case out.GetType() != "User":
			return nil, fault.Newf(fault.Invalid, "GITHUB_ALLOWED_LOGINS: %q is not a person's account", entry)
		}
		ids[out.GetID()] = true
		gt.log.InfoContext(ctx, "github: an allowed login was turned into its number; only the number counts", "login", entry, "id", out.GetID())
	}
	return ids, nil
}

// anyInstallation returns an installation, for calls about no repository.
func (gt *gate) anyInstallation(ctx context.Context) (caller, error) {
	all, err := gt.client.installations(ctx)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 {
		return 0, fault.New(fault.Invalid, "GITHUB_ALLOWED_LOGINS: a login cannot be looked up while the GitHub App is installed nowhere; use the account's number, or install the App")
	}
	return caller(all[0].GetID()), nil
}
