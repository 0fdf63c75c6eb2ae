package github

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/lists"
)

// world is what there is at GitHub, under one lock. The lock guards what the other
// parts of the server keep, too, because a call changes several of them at once. It
// must be held for all but reading and writing.
type world struct {
	core *core

	mu            sync.Mutex
	opts          Options // the App's permissions change when an app is made
	lastID        int64
	users         []*user
	repos         []*repo
	comments      map[int64]*comment
	installations []*installation
	appBot        *user
	due           []func() // deliveries, sent when the lock is given back
	changes       []Change // for OnChange, after that
}

func newWorld(c *core, opts Options) *world {
	w := &world{
		core:     c,
		opts:     opts,
		lastID:   2_500_000_000, // ids of comments have not fitted into 32 bits for years
		comments: map[int64]*comment{},
	}
	w.appBot = w.know(opts.App.Slug + "[bot]")
	w.appBot.kind = typeBot
	return w
}

// reading takes the lock to look at something, and returns what gives it back.
// Nobody is woken by that, so that who waits for something may look for it.
func (w *world) reading() (done func()) {
	w.mu.Lock()
	return w.mu.Unlock
}

// writing takes the lock to change something. What it returns gives it back, sends
// what came up meanwhile and tells everyone who watches about the changes.
func (w *world) writing() (done func()) {
	w.mu.Lock()
	return func() {
		if due := w.due; len(due) > 0 {
			w.due = nil
			w.core.Go(func() {
				for _, send := range due {
					send()
				}
			})
		}
		platformapi.Unlock(&w.core.Server, &w.mu, &w.changes, w.opts.OnChange)
	}
}

func (w *world) now() time.Time { return w.opts.Now() }

// id returns a new id.
func (w *world) id() int64 {
	w.lastID++
	return w.lastID
}

// isBot reports whether a user is the bot under test.
func (w *world) isBot(u *user) bool {
	return u == w.appBot || w.opts.Login != "" && sameName(u.login, w.opts.Login)
}

func (w *world) findUser(login string) *user {
	return lists.First(w.users, func(u *user) bool { return sameName(u.login, login) })
}

// know returns the account with a login, made if there is none.
func (w *world) know(login string) *user {
	if u := w.findUser(login); u != nil {
		return u
	}
	u := &user{id: int64(1000 + len(w.users)), login: login, kind: typeUser}
	if strings.HasSuffix(login, "[bot]") {
		u.kind = typeBot
	}
	w.users = append(w.users, u)
	return u
}

func (w *world) findRepo(fullName string) *repo {
	return lists.First(w.repos, func(r *repo) bool { return sameName(r.fullName(), fullName) })
}

func (w *world) mustRepo(fullName string) *repo {
	r := w.findRepo(fullName)
	if r == nil {
		panic(fmt.Sprintf("github emulator: there is no repository %q", fullName))
	}
	return r
}

func (w *world) mustComment(id int64) *comment {
	c := w.comments[id]
	if c == nil {
		panic(fmt.Sprintf("github emulator: there is no comment %d", id))
	}
	return c
}

// headOf finds the branch that a pull request shall merge: of the repository, or
// with an owner before it of that owner's fork.
func (w *world) headOf(base *repo, head string) (side, bool) {
	at := side{repo: base, ref: head}
	if owner, branch, named := strings.Cut(head, ":"); named {
		at.ref = branch
		if !sameName(owner, base.owner.login) {
			at.repo = nil
			for _, r := range w.repos {
				if sameName(r.owner.login, owner) && r.parent == base {
					at.repo = r
				}
			}
		}
	}
	if at.repo == nil || at.ref == "" {
		return at, false
	}
	sha, exists := at.repo.find(at.ref)
	at.sha = sha
	return at, exists
}

// findInstallation returns the installation that covers a repository, or nil.
func (w *world) findInstallation(r *repo) *installation {
	return lists.First(w.installations, func(i *installation) bool { return slices.Contains(i.repos, r) })
}
