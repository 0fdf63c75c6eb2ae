package github

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Names of operations for Inject and Calls, as in GitHub's OpenAPI description.
// These are the ones that tests name most; see routes for all.
const (
	AnyOperation = "*"

	CreateComment             = "issues/create-comment"
	UpdateComment             = "issues/update-comment"
	GetComment                = "issues/get-comment"
	ListComments              = "issues/list-comments"
	ListCommentsForRepo       = "issues/list-comments-for-repo"
	DeleteComment             = "issues/delete-comment"
	GetIssue                  = "issues/get"
	CreatePull                = "pulls/create"
	UpdatePull                = "pulls/update"
	GetPull                   = "pulls/get"
	ListPulls                 = "pulls/list"
	ListFiles                 = "pulls/list-files"
	CreateReviewComment       = "pulls/create-review-comment"
	UpdateReviewComment       = "pulls/update-review-comment"
	ListReviewComments        = "pulls/list-review-comments"
	ListReviewCommentsForRepo = "pulls/list-review-comments-for-repo"
	GetPermission             = "repos/get-collaborator-permission-level"
	GetRepo                   = "repos/get"
	CreateInstallationToken   = "apps/create-installation-access-token" //nolint:gosec // the name of an operation
	ListInstallations         = "apps/list-installations"
	ListInstallationRepos     = "apps/list-repos-accessible-to-installation"
	ListDeliveries            = "apps/list-webhook-deliveries"
	RedeliverDelivery         = "apps/redeliver-webhook-delivery"
)

// permission is one way to be allowed something.
type permission struct {
	name, level string     // of an installation
	role        Permission // of a person with a token
	pull        bool       // counts for pull requests only
}

type who int

const (
	anyToken who = iota // of an installation or a person
	appOnly             // the App's JWT
	installationOnly
)

// operation carries out a call. The lock must be held.
type operation func(*request) (*reply, *apiError)

// route is one operation of the API.
type route struct {
	name, method string
	segments     []string
	auth         who
	perms        []permission // one of them; none if it checks itself
	content      bool         // creates content, for the secondary limit
	run          operation
}

func perm(name, level string, role Permission) []permission {
	return []permission{{name: name, level: level, role: role}}
}

// orPull allows the permission for pull requests too.
func orPull(level string, role Permission) []permission {
	return []permission{{name: "issues", level: level, role: role}, {name: "pull_requests", level: level, role: role, pull: true}}
}

// routes are all operations.
type routes []*route

func (s *Server) routes() routes {
	show := renderer{s.world}
	comments := commentCalls{show, &s.lag}
	return slices.Concat(
		appRoutes(appCalls{show, s.credentials}), hookRoutes(hookCalls{s.webhooks}), userRoutes(userCalls{show}), repoRoutes(repoCalls{show}),
		issueRoutes(issueCalls{show}), commentRoutes(comments), pullRoutes(pullCalls{show}), reviewRoutes(reviewCalls{show}, comments),
		reactionRoutes(reactionCalls{show}),
	)
}

// Needs returns the permissions, by name with their level, any of which lets an
// installation carry out an operation.
func Needs(operation string) map[string]string {
	all := map[string]string{}
	for _, r := range new(Server).routes() {
		for _, p := range r.perms {
			if r.name == operation {
				all[p.name] = p.level
			}
		}
	}
	return all
}

func on(line, name string, auth who, perms []permission, content bool, run operation) *route {
	method, path, _ := strings.Cut(line, " ")
	return &route{
		name: name, method: method, segments: strings.Split(strings.Trim(path, "/"), "/"), auth: auth, perms: perms,
		content: content, run: run,
	}
}

func appRoutes(c appCalls) []*route {
	return []*route{
		on("GET /app", "apps/get-authenticated", appOnly, nil, false, c.get),
		on("GET /app/installations", ListInstallations, appOnly, nil, false, c.installations),
		on("POST /app/installations/{installation#}/access_tokens", CreateInstallationToken, appOnly, nil, false, c.createToken),
		on("GET /repos/{owner}/{repo}/installation", "apps/get-repo-installation", appOnly, nil, false, c.installation),
		on("GET /installation/repositories", ListInstallationRepos, installationOnly, perm("metadata", "read", Read), false, c.repos),
	}
}

func hookRoutes(c hookCalls) []*route {
	return []*route{
		on("GET /app/hook/deliveries", ListDeliveries, appOnly, nil, false, c.deliveries),
		on("POST /app/hook/deliveries/{delivery#}/attempts", RedeliverDelivery, appOnly, nil, false, c.redeliver),
	}
}

func userRoutes(c userCalls) []*route {
	return []*route{
		on("GET /user", "users/get-authenticated", anyToken, nil, false, c.self),
		on("GET /user/repos", "repos/list-for-authenticated-user", anyToken, nil, false, c.ownRepos),
		on("GET /users/{login}", "users/get-by-username", anyToken, nil, false, c.get),
	}
}

func repoRoutes(c repoCalls) []*route {
	return []*route{
		on("GET /repos/{owner}/{repo}", GetRepo, anyToken, perm("metadata", "read", Read), false, c.get),
		on("GET /repos/{owner}/{repo}/collaborators/{login}/permission", GetPermission, anyToken, perm("metadata", "read", Write), false, c.permission),
	}
}

func issueRoutes(c issueCalls) []*route {
	return []*route{
		on("GET /repos/{owner}/{repo}/issues", "issues/list-for-repo", anyToken, perm("issues", "read", Read), false, c.list),
		on("GET /repos/{owner}/{repo}/issues/{number#}", GetIssue, anyToken, orPull("read", Read), false, c.get),
	}
}

func commentRoutes(c commentCalls) []*route {
	read, write := orPull("read", Read), orPull("write", Read)
	return []*route{
		on("GET /repos/{owner}/{repo}/issues/comments", ListCommentsForRepo, anyToken, perm("issues", "read", Read), false, c.list),
		on("GET /repos/{owner}/{repo}/issues/comments/{comment#}", GetComment, anyToken, read, false, c.get),
		on("PATCH /repos/{owner}/{repo}/issues/comments/{comment#}", UpdateComment, anyToken, write, false, c.update),
		on("DELETE /repos/{owner}/{repo}/issues/comments/{comment#}", DeleteComment, anyToken, write, false, c.remove),
		on("GET /repos/{owner}/{repo}/issues/{number#}/comments", ListComments, anyToken, read, false, c.list),
		on("POST /repos/{owner}/{repo}/issues/{number#}/comments", CreateComment, anyToken, write, true, c.create),
	}
}

func pullRoutes(c pullCalls) []*route {
	read, write := perm("pull_requests", "read", Read), perm("pull_requests", "write", Read)
	return []*route{
		on("GET /repos/{owner}/{repo}/pulls", ListPulls, anyToken, read, false, c.list),
		on("POST /repos/{owner}/{repo}/pulls", CreatePull, anyToken, write, true, c.create),
		on("GET /repos/{owner}/{repo}/pulls/{number#}", GetPull, anyToken, read, false, c.get),
		on("PATCH /repos/{owner}/{repo}/pulls/{number#}", UpdatePull, anyToken, write, false, c.update),
		on("GET /repos/{owner}/{repo}/pulls/{number#}/files", ListFiles, anyToken, read, false, c.files),
	}
}

func reviewRoutes(c reviewCalls, comments commentCalls) []*route {
	read, write := perm("pull_requests", "read", Read), perm("pull_requests", "write", Read)
	return []*route{
		on("GET /repos/{owner}/{repo}/pulls/{number#}/reviews", "pulls/list-reviews", anyToken, read, false, c.list),
		on("GET /repos/{owner}/{repo}/pulls/{number#}/reviews/{review#}", "pulls/get-review", anyToken, read, false, c.get),
		on("POST /repos/{owner}/{repo}/pulls/{number#}/comments", CreateReviewComment, anyToken, write, true, c.comment),
		on("GET /repos/{owner}/{repo}/pulls/comments", ListReviewCommentsForRepo, anyToken, read, false, comments.listOfLines),
		on("GET /repos/{owner}/{repo}/pulls/comments/{comment#}", "pulls/get-review-comment", anyToken, read, false, comments.get),
		on("PATCH /repos/{owner}/{repo}/pulls/comments/{comment#}", UpdateReviewComment, anyToken, write, false, comments.update),
		on("DELETE /repos/{owner}/{repo}/pulls/comments/{comment#}", "pulls/delete-review-comment", anyToken, write, false, comments.remove),
		on("GET /repos/{owner}/{repo}/pulls/{number#}/comments", ListReviewComments, anyToken, read, false, comments.listOfLines),
	}
}

func reactionRoutes(c reactionCalls) []*route {
	var out []*route
	for _, at := range []struct{ path, subject, remove string }{
		{"issues/{number#}", "issue", "issue"},
		{"issues/comments/{comment#}", "issue-comment", "issue-comment"},
		{"pulls/comments/{comment#}", "pull-request-review-comment", "pull-request-comment"},
	} {
		read, write := orPull("read", Read), orPull("write", Read)
		if strings.HasPrefix(at.path, "pulls") {
			read, write = perm("pull_requests", "read", Read), perm("pull_requests", "write", Read)
		}
		base := " /repos/{owner}/{repo}/" + at.path + "/reactions"
		out = append(
			out,
			on("GET"+base, "reactions/list-for-"+at.subject, anyToken, read, false, c.list),
			on("POST"+base, "reactions/create-for-"+at.subject, anyToken, write, true, c.create),
			on("DELETE"+base+"/{reaction#}", "reactions/delete-for-"+at.remove, anyToken, write, false, c.remove),
		)
	}
	return out
}

// match reports whether a path is that of the route, and its variables.
func (r *route) match(path []string) (map[string]string, bool) {
	vars := map[string]string{}
	for i, segment := range r.segments {
		name, variable := strings.CutPrefix(segment, "{")
		name = strings.TrimSuffix(name, "}")
		if i >= len(path) {
			return nil, false
		}
		number, numeric := strings.CutSuffix(name, "#")
		switch {
		case !variable && path[i] != segment, variable && path[i] == "":
			return nil, false
		case variable && numeric:
			if _, err := strconv.ParseInt(path[i], 10, 64); err != nil {
				return nil, false
			}
			vars[number] = path[i]
		case variable:
			vars[name] = path[i]
		}
	}
	return vars, len(path) == len(r.segments)
}

// find returns the route of a request. Literal segments win over variables
// because those routes come first or differ in kind.
func (all routes) find(r *http.Request) (*route, map[string]string) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for _, candidate := range all {
		if candidate.method != r.Method && (r.Method != http.MethodHead || candidate.method != http.MethodGet) {
			continue
		}
		if vars, ok := candidate.match(parts); ok {
			return candidate, vars
		}
	}
	return nil, nil
}
