package github

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
)

// route is an operation of GitHub's API, with placeholders.
type route string

// permission is one that an App is given.
type permission struct{ name, level string }

// The operations that this package uses.
const (
	routeApp              route = "GET /app"
	routeInstallations    route = "GET /app/installations"
	routeToken            route = "POST /app/installations/{installation}/access_tokens" //nolint:gosec // the name of an operation
	routeDeliveries       route = "GET /app/hook/deliveries"
	routeRedeliver        route = "POST /app/hook/deliveries/{delivery}/attempts"
	routeRepoInstallation route = "GET /repos/{owner}/{repo}/installation"
	routeInstalledRepos   route = "GET /installation/repositories"
	routeUser             route = "GET /user"
	routeUserRepos        route = "GET /user/repos"
	routeUserByLogin      route = "GET /users/{login}"

	routeRepo       route = "GET /repos/{owner}/{repo}"
	routePermission route = "GET /repos/{owner}/{repo}/collaborators/{login}/permission"

	routeIssues           route = "GET /repos/{owner}/{repo}/issues"
	routeIssue            route = "GET /repos/{owner}/{repo}/issues/{number}"
	routeRepoComments     route = "GET /repos/{owner}/{repo}/issues/comments"
	routeComments         route = "GET /repos/{owner}/{repo}/issues/{number}/comments"
	routeComment          route = "GET /repos/{owner}/{repo}/issues/comments/{comment}"
	routeAddComment       route = "POST /repos/{owner}/{repo}/issues/{number}/comments"
	routeEditComment      route = "PATCH /repos/{owner}/{repo}/issues/comments/{comment}"
	routeIssueReactions   route = "GET /repos/{owner}/{repo}/issues/{number}/reactions"
	routeReactIssue       route = "POST /repos/{owner}/{repo}/issues/{number}/reactions"
	routeUnreactIssue     route = "DELETE /repos/{owner}/{repo}/issues/{number}/reactions/{reaction}"
	routeCommentReactions route = "GET /repos/{owner}/{repo}/issues/comments/{comment}/reactions"
	routeReactComment     route = "POST /repos/{owner}/{repo}/issues/comments/{comment}/reactions"
	routeUnreactComment   route = "DELETE /repos/{owner}/{repo}/issues/comments/{comment}/reactions/{reaction}"

	routePulls         route = "GET /repos/{owner}/{repo}/pulls"
	routePull          route = "GET /repos/{owner}/{repo}/pulls/{number}"
	routeAddPull       route = "POST /repos/{owner}/{repo}/pulls"
	routeEditPull      route = "PATCH /repos/{owner}/{repo}/pulls/{number}"
	routeFiles         route = "GET /repos/{owner}/{repo}/pulls/{number}/files"
	routeReviews       route = "GET /repos/{owner}/{repo}/pulls/{number}/reviews"
	routeRepoLines     route = "GET /repos/{owner}/{repo}/pulls/comments"
	routeLines         route = "GET /repos/{owner}/{repo}/pulls/{number}/comments"
	routeLine          route = "GET /repos/{owner}/{repo}/pulls/comments/{comment}"
	routeReply         route = "POST /repos/{owner}/{repo}/pulls/{number}/comments/{comment}/replies"
	routeEditLine      route = "PATCH /repos/{owner}/{repo}/pulls/comments/{comment}"
	routeLineReactions route = "GET /repos/{owner}/{repo}/pulls/comments/{comment}/reactions"
	routeReactLine     route = "POST /repos/{owner}/{repo}/pulls/comments/{comment}/reactions"
	routeUnreactLine   route = "DELETE /repos/{owner}/{repo}/pulls/comments/{comment}/reactions/{reaction}"
)

var (
	metadataRead = permission{"metadata", "read"}
	issuesRead   = permission{"issues", "read"}
	issuesWrite  = permission{"issues", "write"}
	pullsRead    = permission{"pull_requests", "read"}
	pullsWrite   = permission{"pull_requests", "write"}

	// gitPermission is what cloning and pushing need.
	gitPermission = permission{"contents", "write"}
)

// routes are the operations with the permissions that they need of an App; on a
// pull request those for issues need that for pull requests. A test holds the
// table against the calls that are made, and the manifest is made of it.
var routes = map[route][]permission{
	routeApp: nil, routeInstallations: nil, routeToken: nil, routeDeliveries: nil, routeRedeliver: nil,
	routeRepoInstallation: nil, routeUser: nil, routeUserRepos: nil, routeUserByLogin: nil,

	routeInstalledRepos: {metadataRead},
	routeRepo:           {metadataRead},
	routePermission:     {metadataRead},

	routeIssues: {issuesRead}, routeRepoComments: {issuesRead},
	routeIssue: {issuesRead, pullsRead}, routeComments: {issuesRead, pullsRead}, routeComment: {issuesRead, pullsRead},
	routeAddComment: {issuesWrite, pullsWrite}, routeEditComment: {issuesWrite, pullsWrite},
	routeIssueReactions: {issuesRead, pullsRead}, routeReactIssue: {issuesWrite, pullsWrite}, routeUnreactIssue: {issuesWrite, pullsWrite},
	routeCommentReactions: {issuesRead, pullsRead}, routeReactComment: {issuesWrite, pullsWrite}, routeUnreactComment: {issuesWrite, pullsWrite},

	routePulls: {pullsRead}, routePull: {pullsRead}, routeFiles: {pullsRead}, routeReviews: {pullsRead},
	routeRepoLines: {pullsRead}, routeLines: {pullsRead}, routeLine: {pullsRead}, routeLineReactions: {pullsRead},
	routeAddPull: {pullsWrite}, routeEditPull: {pullsWrite}, routeReply: {pullsWrite}, routeEditLine: {pullsWrite},
	routeReactLine: {pullsWrite}, routeUnreactLine: {pullsWrite},
}

const (
	// callTimeout bounds every call.
	callTimeout = 30 * time.Second

	// maxAnswer bounds what is read of an answer.
	maxAnswer = 32 << 20
)

// request is one call.
type request struct {
	route      route
	args       []any // for the placeholders, in order
	query      url.Values
	body       any
	etag       string // the answer that is known already
	idempotent bool   // doing it again does no harm, so its error is never Uncertain
}

// repoArgs returns the arguments of a repository and what follows it.
func repoArgs(repo string, more ...any) []any {
	owner, name, _ := strings.Cut(repo, "/")
	return append([]any{owner, name}, more...)
}

func (r request) method() string {
	method, _, _ := strings.Cut(string(r.route), " ")
	return method
}

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// path returns the path with its arguments and the query, without a slash in
// front: it stands below the API's.
func (r request) path() string {
	_, path, _ := strings.Cut(string(r.route), " /")
	args := r.args
	path = placeholder.ReplaceAllStringFunc(path, func(string) string {
		var v any
		if len(args) > 0 {
			v, args = args[0], args[1:]
		}
		return url.PathEscape(fmt.Sprint(v))
	})
	if len(r.query) > 0 {
		path += "?" + r.query.Encode()
	}
	return path
}

// outcome is what was seen of one HTTP exchange, for telling a call that
// certainly did nothing from one that may have worked.
type outcome struct {
	wrote  atomic.Bool // the whole request was written to the connection
	status int         // of the response, 0 if there was none
	header http.Header
}

// client returns the library's client for a caller. It remembers GitHub's
// limits, which hold for each.
func (a *Adapter) client(who caller) *github.Client {
	if c, ok := a.clients.Load(who); ok {
		return c.(*github.Client)
	}
	c := github.NewClient(a.http)
	c.BaseURL = a.base
	c.UserAgent = "remote-agent"
	made, _ := a.clients.LoadOrStore(who, c)
	return made.(*github.Client)
}

// call makes one call, decodes its answer into out, which may be nil, and
// classifies its error. A token of an installation that GitHub refuses is
// replaced once.
func (a *Adapter) call(ctx context.Context, who caller, r request, out any) (http.Header, error) {
	for again := false; ; again = true {
		token, m, err := a.credential(ctx, who)
		if err != nil {
			return nil, err
		}
		seen, body, err := a.exchange(ctx, who, token, r)
		if err == nil && out != nil {
			err = decode(body, out)
		}
		if err == nil {
			return seen.header, nil
		}
		if seen.status == http.StatusUnauthorized && m != nil && !again {
			m.drop(token)
			continue
		}
		return seen.header, a.classify(ctx, who, r, err, seen)
	}
}

// exchange sends one request and reads the whole answer.
func (a *Adapter) exchange(ctx context.Context, who caller, token string, r request) (*outcome, []byte, error) {
	seen := &outcome{}
	inner, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	inner = httptrace.WithClientTrace(inner, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				seen.wrote.Store(true)
			}
		},
	})
	if err := ctx.Err(); err != nil {
		return seen, nil, err
	}
	client := a.client(who)
	req, err := client.NewRequest(r.method(), r.path(), r.body)
	if err != nil {
		return seen, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if r.etag != "" {
		req.Header.Set("If-None-Match", r.etag)
	}
	answer := &limitedBuffer{left: maxAnswer}
	resp, err := client.Do(inner, req, answer)
	if resp != nil && resp.Response != nil && resp.Request != nil {
		seen.status, seen.header = resp.StatusCode, resp.Header
	}
	if _, accepted := errors.AsType[*github.AcceptedError](err); accepted {
		err = nil // status 202: GitHub is going to do it
	}
	return seen, answer.bytes.Bytes(), err
}

// limitedBuffer takes up to left bytes. It hides the buffer's other methods,
// which would read without an end.
type limitedBuffer struct {
	bytes bytes.Buffer
	left  int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, io.ErrShortBuffer
	}
	return b.bytes.Write(p)
}

// decode reads an answer into out: a *[]T element by element.
func decode(body []byte, out any) error {
	if l, ok := out.(interface{ decode(body []byte) error }); ok {
		return l.decode(body)
	}
	return lenient(body, out)
}

// many is a list that is read element by element.
type many[T any] struct{ all []T }

func (m *many[T]) decode(body []byte) error {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '[' || !jsonValid(body) {
		return errNoList
	}
	m.all = list[T](body)
	return nil
}

var errNoList = fmt.Errorf("the answer is not a list")

// limited makes a call when the limits allow it, and waits out a short refusal.
func (a *Adapter) limited(ctx context.Context, who caller, r request, out any) (http.Header, error) {
	deadline := time.Now().Add(shortWait)
	for {
		if err := a.limits.wait(ctx, who, costOf(r)); err != nil {
			return nil, err
		}
		header, err := a.call(ctx, who, r, out)
		if !fault.Is(err, fault.RateLimited) {
			if err == nil {
				a.limits.calm(who)
			}
			return header, err
		}
		a.observe("rate_limited")
		after := retryAfter(err)
		if time.Now().Add(after).After(deadline) {
			return header, err
		}
	}
}

// shed makes a call that is worth nothing later: at once or not at all.
func (a *Adapter) shed(ctx context.Context, who caller, r request, out any) error {
	if err := a.limits.try(who, costOf(r)); err != nil {
		a.observe("shed")
		return err
	}
	_, err := a.call(ctx, who, r, out)
	if fault.Is(err, fault.RateLimited) {
		a.observe("rate_limited")
	}
	return err
}

// inRepo makes a call in a repository.
func (a *Adapter) inRepo(ctx context.Context, repo string, r request, out any) (http.Header, error) {
	who, err := a.callerFor(ctx, repo)
	if err != nil {
		return nil, err
	}
	header, err := a.limited(ctx, who, r, out)
	if fault.Is(err, fault.Gone) {
		a.homes.Put(repo, 0) // ask again where the App is installed
	}
	return header, err
}
