//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/pages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// hasRepository registers a repository.
func (w *world) hasRepository(name, address string) (c sessions.Codebase) {
	w.t.Helper()
	w.do(func(ctx context.Context, tx *store.Tx) (err error) {
		c, err = tx.Registry().Create(ctx, sessions.Codebase{Name: name, RepositoryURL: address, DefaultCwd: "/srv/" + name, Assistant: "demo"})
		return err
	})
	return c
}

func TestRepositoriesAreShown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		owner := w.as(ann)
		wants(t, owner.get("/repos"), "No repositories.")
		s := w.fill()
		c := w.hasRepository("acme/web", "https://example.com/acme/web")
		local := w.hasRepository("tools", "")
		w.do(func(ctx context.Context, tx *store.Tx) error {
			return tx.Registry().RegisterCommand(ctx, c.ID, "plan", sessions.CommandDef{Path: ".claude/commands/plan.md", Description: evil})
		})
		page := owner.get("/repos")
		clean(t, "/repos", page)
		wants(t, page, "acme/web", "https://example.com/acme/web", "a folder on the server", `href="/sessions?repository=`+c.ID+`"`)

		w.repository = func(ctx context.Context, got sessions.Codebase) (pages.Repository, error) {
			if _, bounded := ctx.Deadline(); !bounded || got.ID != c.ID {
				t.Errorf("asked for %+v", got)
			}
			return pages.Repository{Branch: evilName, Worktrees: []pages.Worktree{
				{ConversationID: s.conversation.ID, Branch: "bot/" + evilName, Made: w.now.Add(-2 * time.Hour)}, {ConversationID: "gone", Branch: "bot/2", Made: w.now}}}, nil
		}
		page = owner.get("/repos/" + c.ID)
		clean(t, "a repository", page)
		wants(t, page, "/srv/acme/web", "<code>plan</code>", ".claude/commands/plan.md", "Worktrees (2)", "telegram/42", "2 hours ago", "a deleted conversation", "Default branch")
		for _, who := range []*browser{w.as(bob), w.as(cat)} {
			page := who.get("/repos/" + c.ID)
			wants(t, page, "acme/web", "<code>plan</code>", "Access")
			if strings.Contains(page, "/srv/") || strings.Contains(page, "Worktrees") {
				t.Errorf("others see the folders of the server:\n%s", page)
			}
		}
		w.repository = func(context.Context, sessions.Codebase) (pages.Repository, error) {
			return pages.Repository{}, fault.New(fault.NotFound, "tools is not on this machine. "+evil)
		}
		page = owner.get("/repos/" + local.ID)
		clean(t, "a repository that is not there", page)
		wants(t, page, "tools is not on this machine.", "unknown", "No command files.")
		for _, path := range []string{"/repos/none", "/repos/" + url.PathEscape(evilName), "/repos/0198c2d1-7a3b-7c4d-8e5f-0123456789ab"} {
			if r := owner.send("GET", path, nil); r.Code != http.StatusNotFound {
				t.Errorf("GET %s: %d", path, r.Code)
			}
		}
		if r := owner.send("GET", "/repos?after="+strings.Repeat("x", 301), nil); r.Code != http.StatusBadRequest {
			t.Errorf("a wrong address: %d", r.Code)
		}
	})
}

func TestManyRepositoriesHaveAStableCursor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for i := range 230 {
			w.hasRepository(fmt.Sprintf("r%03d", i), "https://example.com/"+fmt.Sprint(i)+"/"+strings.Repeat("&", 190))
		}
		b, path, seen := w.as(bob), "/repos", 0
		for path != "" {
			page := b.get(path)
			if len(page) > 300<<10 {
				t.Errorf("GET %s has %d bytes", path, len(page))
			}
			seen += strings.Count(page, `<a class="button" href="/sessions?`)
			w.hasRepository(fmt.Sprintf("a%03d", seen), "") // meanwhile
			path = ""
			if _, rest, ok := strings.Cut(page, `href="/repos?after=`); ok {
				after, _, _ := strings.Cut(rest, `"`)
				path = "/repos?after=" + after
			}
		}
		if seen != 230 {
			t.Errorf("%d repositories are listed", seen)
		}
	})
}
