package github_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gogithub "github.com/google/go-github/v62/github"

	"remote-agent/internal/emulator/github"
)

// client is a client that others wrote.
func (w *world) client(token string) *gogithub.Client {
	w.t.Helper()
	c := gogithub.NewClient(w.http).WithAuthToken(token)
	base, err := url.Parse(w.URL() + "/")
	if err != nil {
		w.t.Fatal(err)
	}
	c.BaseURL = base
	return c
}

func must[T any](t *testing.T) func(T, *gogithub.Response, error) T {
	t.Helper()
	return func(value T, _ *gogithub.Response, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestIndependentClient(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := start(t, github.Options{})
	w.ann.OpenIssue("x", "x")
	app := w.client(w.JWT())
	in := must[*gogithub.Installation](t)(app.Apps.FindRepositoryInstallation(ctx, "acme", "web"))
	token := must[*gogithub.InstallationToken](t)(app.Apps.CreateInstallationToken(ctx, in.GetID(), &gogithub.InstallationTokenOptions{Repositories: []string{"web"}}))
	if token.GetExpiresAt().Before(time.Now().Add(50*time.Minute)) || token.GetPermissions().GetIssues() != "write" {
		t.Errorf("token %v", token)
	}
	c := w.client(token.GetToken())
	comment := must[*gogithub.IssueComment](t)(c.Issues.CreateComment(ctx, "acme", "web", 1, &gogithub.IssueComment{Body: new("one")}))
	for i := range 34 {
		w.ann.Comment(1, fmt.Sprint(i))
	}
	var all []string
	for opts := (&gogithub.IssueListCommentsOptions{}); ; {
		list, resp, err := c.Issues.ListComments(ctx, "acme", "web", 1, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list {
			all = append(all, item.GetBody())
		}
		if opts.Page = resp.NextPage; opts.Page == 0 {
			break
		}
	}
	if len(all) != 35 || all[34] != "33" {
		t.Errorf("comments %v", all)
	}
	must[*gogithub.Reaction](t)(c.Reactions.CreateIssueCommentReaction(ctx, "acme", "web", comment.GetID(), "eyes"))
	level := must[*gogithub.RepositoryPermissionLevel](t)(c.Repositories.GetPermissionLevel(ctx, "acme", "web", "ann"))
	if level.GetPermission() != "write" || level.GetUser().GetID() != w.UserOf("ann").ID {
		t.Errorf("permission %v", level)
	}
	w.SetBranch("acme/web", "fix", strings.Repeat("a", 40))
	pull := must[*gogithub.PullRequest](t)(c.PullRequests.Create(ctx, "acme", "web", &gogithub.NewPullRequest{
		Title: new("Fix"), Head: new("fix"), Base: new("main"), Draft: new(true),
	}))
	if !pull.GetDraft() || pull.GetHead().GetRef() != "fix" || pull.GetBase().GetRepo().GetFullName() != "acme/web" {
		t.Errorf("pull %v", pull)
	}
	_, _, err := c.PullRequests.Create(ctx, "acme", "web", &gogithub.NewPullRequest{Title: new("Fix"), Head: new("fix"), Base: new("main")})
	var refused *gogithub.ErrorResponse
	if !errors.As(err, &refused) || len(refused.Errors) != 1 || !strings.HasPrefix(refused.Errors[0].Message, "A pull request already exists") {
		t.Errorf("second pull: %v", err)
	}
	w.Inject(github.GetIssue, github.SecondaryLimit(http.StatusForbidden, 7*time.Second))
	var abuse *gogithub.AbuseRateLimitError
	if _, _, err := c.Issues.Get(ctx, "acme", "web", 1); !errors.As(err, &abuse) || abuse.GetRetryAfter() != 7*time.Second {
		t.Errorf("secondary limit: %v", err)
	}
	other := w.client(token.GetToken()) // the first one waits by itself now
	w.Inject(github.GetIssue, github.PrimaryLimit(time.Now().Add(time.Hour)))
	var limit *gogithub.RateLimitError
	if _, _, err := other.Issues.Get(ctx, "acme", "web", 1); !errors.As(err, &limit) {
		t.Errorf("primary limit: %v", err)
	}
}

func TestIndependentClientRedelivers(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	b := listen(t, w, github.Hook{})
	b.code = func(n int) int { return []int{500, 200, 200}[n-1] }
	w.ann.OpenIssue("x", "x")
	settle(t, w)
	app := w.client(w.JWT())
	list, _, err := app.Apps.ListHookDeliveries(t.Context(), nil)
	if err != nil || len(list) != 1 || list[0].GetStatusCode() != 500 || strconv.FormatInt(list[0].GetInstallationID(), 10) != w.installationID() {
		t.Fatalf("deliveries %v, %v", list, err)
	}
	_, _, err = app.Apps.RedeliverHookDelivery(t.Context(), list[0].GetID())
	var accepted *gogithub.AcceptedError
	if err != nil && !errors.As(err, &accepted) {
		t.Errorf("redelivery: %v", err)
	}
	settle(t, w)
	if len(w.Lost()) != 0 {
		t.Error("not redelivered")
	}
}

// TestIndependentReaderOfEvents has a library that others wrote check and read
// every kind of event.
func TestIndependentReaderOfEvents(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	b := listen(t, w, github.Hook{})
	ann := w.ann
	ann.OpenIssue("x", "text")
	comment := ann.Comment(1, "- [ ] a")
	ann.TickTask(comment.Comment, 1)
	ann.OpenPull(github.Pull{Title: "p", Head: "fix", Files: files})
	ann.ReviewComment(2, "a.go", 3, "why")
	ann.Push("fix")
	w.Ping()
	w.Install("acme/web")
	w.Uninstall("acme")
	seen := map[string]bool{}
	settle(t, w)
	for _, d := range b.all() {
		kind := d.header.Get("X-GitHub-Event")
		payload, err := gogithub.ValidatePayload(&http.Request{Header: d.header, Body: io.NopCloser(bytes.NewReader(d.body))}, []byte(github.DefaultSecret))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		event, err := gogithub.ParseWebHook(kind, payload)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		seen[kind] = true
		if from, ok := event.(interface {
			GetSender() *gogithub.User
			GetInstallation() *gogithub.Installation
		}); ok && kind != "ping" && (from.GetSender().GetID() == 0 || from.GetInstallation().GetID() == 0) {
			t.Errorf("%s without sender or installation", kind)
		}
		switch e := event.(type) {
		case *gogithub.IssuesEvent:
			if e.GetIssue().GetUser().GetLogin() != "ann" || e.GetRepo().GetFullName() != "acme/web" || e.GetIssue().GetCreatedAt().IsZero() {
				t.Errorf("issue %v", e)
			}
		case *gogithub.IssueCommentEvent:
			if e.GetComment().GetID() != comment.Comment || e.GetAction() == "edited" && e.GetChanges().GetBody().GetFrom() != "- [ ] a" {
				t.Errorf("comment %v", e)
			}
		case *gogithub.PullRequestEvent:
			if e.GetNumber() != 2 || e.GetPullRequest().GetChangedFiles() != 2 {
				t.Errorf("pull %v", e)
			}
		case *gogithub.PullRequestReviewCommentEvent:
			if e.GetComment().GetPath() != "a.go" || e.GetComment().GetLine() != 3 || e.GetPullRequest().GetNumber() != 2 {
				t.Errorf("line %v", e)
			}
		case *gogithub.PullRequestReviewEvent:
			if e.GetReview().GetState() != "commented" {
				t.Errorf("review %v", e)
			}
		}
	}
	var events []string
	for name := range seen {
		events = append(events, name)
	}
	slices.Sort(events)
	if diff := cmp.Diff([]string{
		"installation", "installation_repositories", "issue_comment", "issues", "ping", "pull_request", "pull_request_review", "pull_request_review_comment", "push",
	}, events); diff != "" {
		t.Error(diff)
	}
}
