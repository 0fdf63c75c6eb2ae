package github

import (
	"context"
	"strconv"
	"time"

	"github.com/google/go-github/v62/github"
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
}

func newNewcomers() *newcomers {
	return &newcomers{
		bucket: rate.NewLimiter(rate.Every(newcomerEvery), newcomerBurst),
		known:  platform.NewRecent[string, bool](4096),
		denied: platform.NewRecent[string, time.Time](4096),
	}
}

func (n *newcomers) judged(who string, ok bool, now time.Time) {
	if n.known.Put(who, ok); !ok {
		n.denied.Put(who, now)
	}
}

// Screen implements platform.Screener. While strangers do not write more often than
// GitHub can be asked about them, it is asked about everybody. GitHub's word that
// somebody belongs to the repository is no authority, but reason enough to ask.
func (a *Adapter) Screen(in messages.Inbound) platform.Screening {
	at, err := parseKey(in.Conversation)
	if err != nil {
		return platform.ScreenAsk
	}
	who, now, n := memoryOf(at.repo, string(in.Sender.ID)), time.Now(), a.newcomers
	known, _ := n.known.Get(who)
	last, was := n.denied.Get(who)
	denied := was && now.Sub(last) < deniedFor
	switch {
	case denied && n.bucket.TokensAt(now) < newcomerBurst/2 && now.Sub(last) < askedAgain:
		return platform.ScreenDenied
	case known, in.Sender.Member && !denied, n.bucket.AllowN(now, 1):
		return platform.ScreenAsk
	case denied:
		return platform.ScreenDenied
	}
	a.observe("newcomer_not_checked")
	return platform.ScreenBusy
}

func memoryOf(repo, id string) string { return repo + " " + id }

// Admits implements platform.Gatekeeper: whoever may write to the repository may
// use the bot there, unless Config.Allowed names others. GitHub is asked each
// time; only a yes is remembered, and for seconds. What an event says of its
// author's association is no authority (contract C9).
func (a *Adapter) Admits(ctx context.Context, in messages.Inbound) (bool, error) {
	at, err := parseKey(in.Conversation)
	if err != nil {
		return false, err
	}
	id, err := strconv.ParseInt(string(in.Sender.ID), 10, 64)
	if err != nil || id < 1 || in.Sender.Bot {
		return false, nil //nolint:nilerr // who is nobody may nothing
	}
	if a.narrowed.Load() {
		allowed := a.allowed.Load()
		if allowed == nil {
			return false, fault.New(fault.Unavailable, "Access has not been loaded yet; try again in a moment.")
		}
		if !(*allowed)[id] {
			a.newcomers.judged(memoryOf(at.repo, string(in.Sender.ID)), false, time.Now())
			return false, nil
		}
	}
	return a.mayWrite(ctx, at.repo, id, in.Sender.Name)
}

// mayWrite asks whether an account may write to a repository. The endpoint takes
// a login; the number in its answer says whose that is now.
func (a *Adapter) mayWrite(ctx context.Context, repo string, id int64, login string) (bool, error) {
	memory := memoryOf(repo, strconv.FormatInt(id, 10))
	if until, ok := a.admits.Get(memory); ok && time.Now().Before(until) {
		return true, nil
	}
	ok, err := a.askPermission(ctx, repo, id, login)
	if err == nil {
		a.newcomers.judged(memory, ok, time.Now())
	}
	if err != nil || !ok {
		a.admits.Put(memory, time.Time{})
		return false, err
	}
	if a.cfg.PermissionTTL > 0 {
		a.admits.Put(memory, time.Now().Add(min(a.cfg.PermissionTTL, time.Minute)))
	}
	return true, nil
}

func (a *Adapter) askPermission(ctx context.Context, repo string, id int64, login string) (bool, error) {
	if !loginForm.MatchString(login) {
		return false, nil
	}
	out, _, err := inRepo(ctx, a, repo, op{name: "asking for a permission"}, func(g api) (*github.RepositoryPermissionLevel, *github.Response, error) {
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
