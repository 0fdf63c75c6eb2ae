package github

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// site is the GitHub that the bot is connected to.
type site struct {
	base *url.URL        // of the API, with a slash at the end
	web  *url.URL        // of pages and git, without one
	only map[string]bool // repositories that the bot works in, lower case; empty is all
}

// name names the GitHub that events come from. Ids of deliveries and comments
// are unique in it, whichever identity the bot has there.
func (gh *site) name() string { return gh.web.Host }

// Hosts implements platform.PullRequester: whether a repository, by its address
// for git, is on the adapter's GitHub and among those that the bot works in.
func (gh *site) Hosts(address string) bool {
	_, err := gh.ownRepo(address)
	return err == nil
}

// RepositoryID implements platform.PullRequester: "owner/repo", without an issue.
// It is empty for a repository elsewhere.
func (gh *site) RepositoryID(address string) string {
	repo, err := gh.ownRepo(address)
	if err != nil {
		return ""
	}
	return repo
}

// ownRepo returns the name of a repository on the adapter's GitHub.
func (gh *site) ownRepo(repository string) (string, error) {
	rest := repository
	if strings.HasPrefix(rest, "/") {
		return "", fault.Newf(fault.Invalid, "%q is a folder, not a repository on GitHub.", platform.Cut(rest, 100))
	}
	if strings.Contains(rest, "://") {
		u, err := url.Parse(rest)
		if err != nil || u.Scheme != gh.web.Scheme || u.User != nil {
			return "", errForeignHost()
		}
		rest = u.Host + u.Path
	}
	rest = strings.TrimSuffix(strings.Trim(rest, "/"), ".git")
	if host, path, ok := strings.Cut(rest, "/"); ok && strings.Contains(path, "/") {
		if !strings.EqualFold(host, gh.web.Host) {
			return "", errForeignHost()
		}
		rest = path
	}
	repo, ok := repoName(rest)
	if !ok {
		return "", fault.Newf(fault.Invalid, "%q is not a repository on GitHub.", platform.Cut(rest, 100))
	}
	if len(gh.only) > 0 && !gh.only[repo] {
		return "", fault.Newf(fault.Forbidden, "%s is not among the repositories that the bot works in.", repo)
	}
	return repo, nil
}

func errForeignHost() error {
	return fault.New(fault.Forbidden, "That repository is not on the GitHub that the bot is connected to.")
}

// senderOf returns a person with the address that GitHub gives everybody for
// commits (docs.github.com, Setting your commit email address).
func (gh *site) senderOf(u *github.User) messages.Sender {
	id := strconv.FormatInt(u.GetID(), 10)
	s := messages.Sender{ID: messages.UserID(id), Name: platform.Cut(u.GetLogin(), 100)}
	if loginForm.MatchString(u.GetLogin()) {
		s.Email = id + "+" + u.GetLogin() + "@users.noreply." + gh.web.Hostname()
	}
	return s
}

// repositoryOf says where work for a conversation belongs: an issue has a branch
// of its own, a pull request the branch that it is of. What is a fork's, or not
// known to be ours, is read-only; Locate finds out more. So is what was merged, whose
// branches may be gone.
func (gh *site) repositoryOf(s said) *messages.Repository {
	n := strconv.Itoa(s.number)
	r := &messages.Repository{URL: gh.cloneURL(s.repo), Locked: s.locked}
	if !s.isPull {
		r.Branch, r.Closes = "bot/issue-"+n, "#"+n
		return r
	}
	r.Branch, r.ReadOnly, r.Fetch = "bot/pull-"+n, true, "refs/pull/"+n+"/head"
	p := s.pull
	if p == nil {
		return r
	}
	base, head := p.GetBase().GetRef(), p.GetHead()
	if shaForm.MatchString(head.GetSHA()) {
		r.Head = head.GetSHA()
	}
	if p.GetMerged() || p.MergedAt != nil {
		return r
	}
	if isBranch(base) {
		r.Base = base
	}
	if head.GetRepo() == nil || !isBranch(head.GetRef()) {
		return r
	}
	if id := head.Repo.GetID(); id > 0 && id == s.repo.GetID() { // names change
		r.Branch, r.Existing, r.ReadOnly = head.GetRef(), true, false
	}
	return r
}

// cloneURL returns the address for git. One that is not on our GitHub is
// replaced: a token is going to be sent there.
func (gh *site) cloneURL(r *github.Repository) string {
	address := r.GetCloneURL()
	if strings.HasPrefix(address, gh.web.String()+"/") && !strings.ContainsAny(address, " \t\r\n@?#") {
		return address
	}
	return gh.web.String() + "/" + r.GetFullName() + ".git"
}
