package github_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/github"
)

func TestPullRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.person("ann").OpenIssue("x", "y").Number
	w.server.SetBranch(repo, "bot/issue-1", headSHA)
	pr := platform.PullRequest{Head: "bot/issue-1", Title: "Add a limiter, fixes #9\n", Body: "It limits. @ann closes #5.\n\nCloses #1\n", Draft: true}
	address, err := w.OpenPullRequest(t.Context(), key("acme/web#1"), pr)
	if err != nil || n != 1 {
		t.Fatal(err)
	}
	view := w.server.Issue(repo, 2)
	if !view.Pull.Draft || view.Title != "Add a limiter, fixes no. 9" || !strings.HasSuffix(view.Pull.Base, ":main") || !strings.HasSuffix(address, "/pull/2") || !view.FromBot {
		t.Errorf("%q %+v %+v", address, view, view.Pull)
	}
	if got := emulator.Closes(view.Body); len(got) != 1 || got[0] != 1 || len(emulator.Mentions(view.Body)) != 0 {
		t.Errorf("closes %v, mentions %v: %q", got, emulator.Mentions(view.Body), view.Body)
	}
	// Again it is brought up to date.
	pr.Title, pr.Body = "Another title", "Another text"
	again, err := w.OpenPullRequest(t.Context(), key("acme/web#1"), pr)
	if view = w.server.Issue(repo, 2); err != nil || again != address || view.Title != "Another title" || emulator.Visible(view.Body) != "Another text" {
		t.Errorf("%q, %v: %+v", again, err, view)
	}
	// What a person opened says what that person wrote.
	w.server.SetBranch(repo, "topic", headSHA)
	theirs := w.person("ann").OpenPull(emulator.Pull{Title: "Mine", Body: "My words", Head: "topic"}).Number
	pr.Head = "topic"
	if address, err := w.OpenPullRequest(t.Context(), key("acme/web#1"), pr); err != nil || !strings.HasSuffix(address, "/pull/"+strconv.Itoa(theirs)) {
		t.Errorf("%q, %v", address, err)
	}
	if view = w.server.Issue(repo, theirs); view.Title != "Mine" || view.Body != "My words" {
		t.Errorf("a person's pull request is now %q, %q", view.Title, view.Body)
	}
	// An answer that got lost leaves one pull request.
	w.server.SetBranch(repo, "bot/issue-3", headSHA)
	w.server.Inject(emulator.CreatePull, emulator.Fault{End: platformapi.After})
	other := platform.PullRequest{Head: "bot/issue-3", Base: "main", Title: "x", Body: "y"}
	if _, err := w.OpenPullRequest(t.Context(), key("acme/web#1"), other); !fault.Is(err, fault.Unavailable) || fault.Uncertain(err) {
		t.Errorf("a lost answer: %v", err)
	}
	if _, err := w.OpenPullRequest(t.Context(), key("acme/web#1"), other); err != nil || len(w.server.Issues(repo)) != 4 {
		t.Errorf("%v, %d", err, len(w.server.Issues(repo)))
	}
}

// After a repository was given to another owner, its pull requests are that one's.
func TestAPullRequestOfATransferredRepositoryIsUpdated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: func(c *github.Config) {
		api, err := url.Parse(c.APIURL)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(api)
		front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if rest, old := strings.CutPrefix(r.URL.Path, "/repos/before/web"); old {
				r.URL.Path = "/repos/" + repo + rest
				http.Redirect(rw, r, r.URL.String(), http.StatusTemporaryRedirect)
				return
			}
			proxy.ServeHTTP(rw, r)
		}))
		t.Cleanup(front.Close)
		c.APIURL = front.URL
	}})
	w.server.SetBranch(repo, "bot/issue-1", headSHA)
	for _, title := range []string{"First", "Second"} {
		pr := platform.PullRequest{Head: "bot/issue-1", Base: "main", Title: title, Body: "x"}
		if address, err := w.OpenPullRequest(t.Context(), key("before/web#1"), pr); err != nil || !strings.HasSuffix(address, "/pull/1") {
			t.Errorf("%q, %v", address, err)
		}
	}
	if got := w.server.Issue(repo, 1).Title; got != "Second" {
		t.Errorf("its title is %q", got)
	}
}

func TestPullRequestsThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("ann").OpenIssue("x", "y")
	open := func(pr platform.PullRequest) error {
		_, err := w.OpenPullRequest(t.Context(), key("acme/web#1"), pr)
		return err
	}
	for _, head := range []string{"", "-x", "a..b", "x y"} {
		if err := open(platform.PullRequest{Head: head, Title: "x"}); !fault.Is(err, fault.Invalid) {
			t.Errorf("head %q: %v", head, err)
		}
	}
	if err := open(platform.PullRequest{Head: "nowhere", Title: "x"}); !fault.Is(err, fault.Invalid) || !contains(fault.Public(err), "nowhere") {
		t.Errorf("no such branch: %v", err)
	}
	w.server.Inject(emulator.CreatePull, emulator.Refuse(http.StatusUnprocessableEntity, "No commits between main and x"))
	if err := open(platform.PullRequest{Head: "x", Title: "x"}); !contains(fault.Public(err), "nothing to merge") {
		t.Errorf("no commits: %v", err)
	}
	w.server.Inject(emulator.CreatePull, emulator.NotAccessible())
	if err := open(platform.PullRequest{Head: "x", Title: "x"}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("no permission: %v", err)
	}
	w.server.SetBranch(repo, "x", headSHA)
	w.server.Inject(emulator.CreatePull, emulator.Refuse(http.StatusUnprocessableEntity, "Draft pull requests are not supported in this repository."))
	if err := open(platform.PullRequest{Head: "x", Title: "", Draft: true}); err != nil || w.server.Issue(repo, 2).Pull.Draft || w.server.Issue(repo, 2).Title != "x" {
		t.Errorf("no drafts: %v", err)
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.AddRepo(emulator.Repo{Name: "Eve/Web", Fork: repo, NotInstalled: true})
	w.run(t)
	ann := w.person("ann")
	for head, want := range map[string]messages.Repository{
		"limiter":     {Branch: "limiter", Existing: true, Base: "main", Fetch: "refs/pull/"},
		"Eve:limiter": {Branch: "bot/pull-", ReadOnly: true, Base: "main", Fetch: "refs/pull/"},
	} {
		n := w.settled(t, ann.OpenPull(emulator.Pull{Title: "x", Body: "y", Head: head})).Number
		w.settled(t, ann.Comment(n, "@remote-agent hi"))
		in := w.last(t)
		if !in.Repository.ReadOnly || in.Repository.Head != "" {
			t.Errorf("%s: the event tells %+v", head, in.Repository)
		}
		got, err := w.Locate(t.Context(), in)
		if err != nil || got.Head == "" || got.Head != w.server.Issue(repo, n).Pull.HeadSHA || got.URL != in.Repository.URL {
			t.Errorf("%s: %+v, %v", head, got, err)
		}
		if !strings.HasPrefix(got.Branch, want.Branch) || got.Existing != want.Existing || got.ReadOnly != want.ReadOnly || got.Base != want.Base || !strings.HasPrefix(got.Fetch, want.Fetch) || (got.Fetch == "") != (want.Fetch == "") {
			t.Errorf("%s: %+v", head, got)
		}
		// Once it is known it stays, whatever is pushed.
		in.Repository = &got
		w.settled(t, ann.Push("limiter"))
		if again, err := w.Locate(t.Context(), in); err != nil || again != got {
			t.Errorf("%s: once more %+v, %v", head, again, err)
		}
	}
}

// The permissions of the manifest suffice for all calls, and one less does not.
func TestManifest(t *testing.T) {
	t.Parallel()
	raw, err := github.Manifest("https://bot.example.com/", "acme agent")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Name   string
		URL    string
		Public bool
		Hook   struct {
			URL    string
			Active bool
		} `json:"hook_attributes"`
		Permissions map[string]string `json:"default_permissions"`
		Events      []string          `json:"default_events"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	if m.Name != "acme agent" || m.Public || m.Hook.URL != "https://bot.example.com/webhooks/github" || !m.Hook.Active || m.URL != "https://bot.example.com" {
		t.Errorf("%s", raw)
	}
	if diff := cmp.Diff(map[string]string{"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write"}, m.Permissions); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"issue_comment", "issues", "pull_request", "pull_request_review", "pull_request_review_comment"}, m.Events); diff != "" {
		t.Error(diff)
	}
	for _, e := range m.Events {
		if _, ok := github.HandledEvents[e]; !ok {
			t.Errorf("nobody reads %s", e)
		}
	}
	raw, err = github.Manifest("", "")
	if err != nil || strings.Contains(string(raw), "hook_attributes") || strings.Contains(string(raw), "default_events") {
		t.Errorf("without an address: %s, %v", raw, err)
	}
	for _, bad := range []string{"https://:443/", "bot.example.com", "ftp://x", "https://u:p@x", "http://localhost:8080", "http://127.0.0.1", "https://x?y=z"} {
		if _, err := github.Manifest(bad, ""); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := github.Manifest("", strings.Repeat("x", 35)); !fault.Is(err, fault.Invalid) {
		t.Errorf("a long name: %v", err)
	}
}

// An App with what the manifest asks for, and no more, can do everything, and
// everything needs all of it.
func TestThePermissionsAreEnoughAndNeeded(t *testing.T) {
	t.Parallel()
	app := newWorld(t, setting{
		server: func(o *emulator.Options) { o.App.Permissions = github.Permissions() },
		bot: func(c *github.Config) {
			c.Allowed = []string{"ann"}
			c.Cursor = &cursor{values: map[string]string{"deliveries": "2026-01-01T00:00:00Z"}}
			c.SweepEvery = 20 * time.Millisecond
		},
	})
	pat := newWorld(t, setting{pat: true, bot: func(c *github.Config) { c.Poll, c.WebhookSecret, c.PollEvery = true, "", 20*time.Millisecond }})
	needed := map[string]string{"contents": "write"} // for git
	for _, w := range []*world{app, pat} {
		everything(t, w)
		for _, c := range w.server.Calls() {
			if c.Status == http.StatusForbidden {
				t.Errorf("%s %s is not permitted: %s", c.Method, c.Path, c.Error)
			}
			for name, level := range emulator.Needs(c.Operation) {
				if needed[name] != "write" {
					needed[name] = level
				}
			}
		}
	}
	if diff := cmp.Diff(needed, github.Permissions()); diff != "" {
		t.Errorf("the manifest asks for something else than is needed (-needed +asked):\n%s", diff)
	}
}

// everything does all that an adapter can.
func everything(t *testing.T, w *world) {
	t.Helper()
	w.Pauses(func(time.Duration) {})
	ann := w.person("ann")
	issue := w.settled(t, ann.OpenIssue("x", "y")).Number // which nobody takes yet
	stop := w.run(t)
	n, line := w.openPull(t)
	comment := ann.Comment(issue, "@remote-agent hi").Comment
	on := func(number int) messages.ConversationKey { return key("acme/web#" + strconv.Itoa(number)) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	w.await(t, "a comment", func(all []messages.Inbound) bool { return len(all) > 0 })
	for _, out := range []messages.Outbound{
		{Delivery: "d-1", Conversation: on(issue), Text: "x"},
		{Delivery: "d-2", Conversation: on(n), ReplyTo: messages.MessageID("rc:" + strconv.Itoa(int(line))), Text: "x", Again: true},
	} {
		ref, err := w.Send(t.Context(), out)
		must(err)
		var cfg github.Config
		cfg.APIURL, cfg.WebhookSecret = w.server.URL(), secret
		if w.token != "" {
			cfg.Token = w.token
		} else {
			cfg.AppID, cfg.PrivateKey = "4711", w.key
		}
		fresh, err := github.New(cfg)
		must(err)
		must(fresh.Edit(t.Context(), platform.Edit{Ref: ref, Text: "y"}))
		fresh.CloseIdle()
	}
	for _, m := range []messages.MessageID{"is:1", messages.MessageID("ic:" + strconv.Itoa(int(comment))), messages.MessageID("rc:" + strconv.Itoa(int(line)))} {
		number := issue
		if strings.HasPrefix(string(m), "rc") {
			number = n
		}
		for _, mark := range []platform.Mark{platform.MarkSeen, platform.MarkDone} {
			must(w.Mark(t.Context(), messages.Ref{Conversation: on(number), Message: m}, mark))
		}
	}
	in := w.request("ann")
	in.Conversation, in.Repository = on(n), &messages.Repository{URL: "x", ReadOnly: true}
	_, err := w.Admits(t.Context(), in)
	must(err)
	_, err = w.Context(t.Context(), in)
	must(err)
	_, err = w.Locate(t.Context(), in)
	must(err)
	w.server.SetBranch(repo, "b", headSHA)
	for range 2 {
		_, err = w.OpenPullRequest(t.Context(), on(issue), platform.PullRequest{Head: "b", Title: "x"})
		must(err)
	}
	_, err = w.Token(t.Context(), "acme/web")
	must(err)
	await(t, func() bool { return w.server.Count(emulator.ListReviewCommentsForRepo) > 1 })
	stop()
}

func TestRepositoriesOfOtherConversations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: func(c *github.Config) { c.WebURL = "https://github.com" }})
	for address, want := range map[string]string{
		"https://github.com/Acme/Web.git": "acme/web", "https://github.com/Acme/Web": "acme/web", "https://gitlab.com/Acme/Web.git": "", "git@github.com:acme/web": "", "/srv/repos/web": "", "/srv/web": "", "file:///srv/acme/web": "",
	} {
		if got := w.RepositoryID(address); got != want || w.Hosts(address) != (want != "") {
			t.Errorf("%s: %q, %v", address, got, w.Hosts(address))
		}
	}
	w.server.SetBranch(repo, "b", headSHA)
	id := w.RepositoryID("https://github.com/Acme/Web.git")
	if _, err := w.OpenPullRequest(t.Context(), key(id), platform.PullRequest{Head: "b", Title: "x", Body: "Closes #1"}); err != nil {
		t.Fatal(err)
	}
	if got := emulator.Closes(w.server.Issue(repo, 1).Body); len(got) != 0 {
		t.Errorf("closes %v", got)
	}
}

// In a locked conversation no App can comment, and not every account: what nobody would
// see is not worked on.
func TestALockedConversationIsNotWorkedIn(t *testing.T) {
	t.Parallel()
	for _, pat := range []bool{false, true} {
		for role, mute := range map[emulator.Permission]bool{emulator.Read: true, emulator.Admin: !pat} {
			t.Run(fmt.Sprint("token ", pat, " ", role), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, setting{pat: pat})
				w.server.SetPermission(repo, "helper", role)
				w.run(t)
				ann := w.person("ann")
				n := w.settled(t, ann.OpenIssue("x", "y")).Number
				ask := func() error {
					w.settled(t, ann.Comment(n, "@remote-agent hi"))
					_, err := w.Locate(t.Context(), w.last(t))
					return err
				}
				if err := ask(); err != nil {
					t.Errorf("open: %v", err)
				}
				w.settled(t, ann.LockIssue(n))
				first := ask()
				if _, err := w.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: w.last(t).Conversation, Text: "x"}); fault.Is(err, fault.Gone) != mute {
					t.Errorf("a comment: %v", err)
				}
				second := ask()
				if fault.Is(first, fault.Gone) != mute || fault.Is(second, fault.Gone) != mute || mute && !strings.Contains(fault.Public(second), "locked") {
					t.Errorf("first %v, then %v", first, second)
				}
			})
		}
	}
}

// Polling hears of no deletion, so that a comment that waits for its turn is looked for before it.
func TestADeletedCommentIsNotWorkedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: polling})
	w.server.SetHook(emulator.Hook{})
	w.run(t)
	ann := w.person("ann")
	n := ann.OpenIssue("It is broken", "@remote-agent fix it").Number
	one := ann.Comment(n, "@remote-agent why?").Comment
	_, root := w.openPull(t)
	line := ann.ReplyToReviewComment(root, "@remote-agent and this?").Comment
	w.await(t, "all of them", func(all []messages.Inbound) bool { return len(all) == 3 })
	locate := func() (gone int) {
		for _, in := range w.sink.Events() {
			_, err := w.Locate(t.Context(), in)
			if errors.Is(err, platform.ErrWithdrawn) {
				gone++
			} else if err != nil {
				t.Errorf("%s: %v", in.Message, err)
			}
		}
		return gone
	}
	if gone := locate(); gone != 0 {
		t.Errorf("%d are gone", gone)
	}
	ann.DeleteComment(one)
	ann.DeleteComment(line)
	if gone := locate(); gone != 2 {
		t.Errorf("%d are gone, want 2", gone)
	}
}
