package github

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/pattern"
)

// Permission is what somebody may do in a repository.
type Permission string

// The permissions, each with those before it. None takes access away.
const (
	None     Permission = "none"
	Read     Permission = "read"
	Triage   Permission = "triage"
	Write    Permission = "write"
	Maintain Permission = "maintain"
	Admin    Permission = "admin"
)

var ranks = []Permission{None, Read, Triage, Write, Maintain, Admin}

func (p Permission) rank() int { return max(0, slices.Index(ranks, p)) }

// atLeast reports whether p includes other.
func (p Permission) atLeast(other Permission) bool { return p.rank() >= other.rank() }

const (
	typeUser = "User"
	typeBot  = "Bot"
	typeOrg  = "Organization"
)

type user struct {
	id          int64
	login, name string
	kind        string
	app         bool // the bot of the App under test
	members     map[*user]bool
	base        Permission // of members, if it is an organization
	association string     // shown instead of the real one
}

// User is an account.
type User struct {
	ID    int64 // given by the server if it is zero
	Login string
	Name  string
	Type  string // User, Bot or Organization; default User

	// Association is shown as the author's association wherever they write,
	// whatever is true.
	Association string
}

// AddUser makes an account, or changes one that exists, and returns it.
func (s *Server) AddUser(u User) User {
	s.mu.Lock()
	defer s.unlock()
	known := s.know(u.Login)
	if u.ID != 0 {
		known.id = u.ID
	}
	if u.Name != "" {
		known.name = u.Name
	}
	if u.Type != "" {
		known.kind = u.Type
	}
	if u.Association != "" {
		known.association = u.Association
	}
	return known.public()
}

// RenameUser gives an account another login and keeps its id.
func (s *Server) RenameUser(from, to string) {
	s.mu.Lock()
	defer s.unlock()
	s.know(from).login = to
}

// UserOf returns an account by its login, made if there was none.
func (s *Server) UserOf(login string) User {
	s.mu.Lock()
	defer s.unlock()
	return s.know(login).public()
}

func (u *user) public() User {
	return User{ID: u.id, Login: u.login, Name: u.name, Type: u.kind, Association: u.association}
}

func sameName(a, b string) bool { return strings.EqualFold(a, b) }

func (s *Server) findUser(login string) *user {
	for _, u := range s.users {
		if sameName(u.login, login) {
			return u
		}
	}
	return nil
}

// know returns the account with a login, made if there is none. The lock must be
// held.
func (s *Server) know(login string) *user {
	if u := s.findUser(login); u != nil {
		return u
	}
	u := &user{id: int64(1000 + len(s.users)), login: login, kind: typeUser, members: map[*user]bool{}, base: Read}
	if strings.HasSuffix(login, "[bot]") {
		u.kind = typeBot
	}
	s.users = append(s.users, u)
	return u
}

// Org is an organization.
type Org struct {
	Login   string
	Owners  []string // may do everything in its repositories
	Members []string
	Base    Permission // of members in its repositories; default Read
}

// AddOrg makes an organization, or changes one.
func (s *Server) AddOrg(o Org) {
	s.mu.Lock()
	defer s.unlock()
	org := s.know(o.Login)
	org.kind, org.base = typeOrg, o.Base
	org.base = cmp.Or(org.base, Read)
	org.members = map[*user]bool{}
	for _, m := range o.Members {
		org.members[s.know(m)] = false
	}
	for _, m := range o.Owners {
		org.members[s.know(m)] = true
	}
}

// Repo is a repository.
type Repo struct {
	Name          string // owner/name
	Private       bool
	Archived      bool
	NoIssues      bool
	Description   string
	DefaultBranch string // default main
	Fork          string // the repository that it is a fork of, which exists

	Collaborators map[string]Permission // by login; the owner may do everything

	// Branches are the branches that exist, with their commits. The default
	// branch is added. AttachGit replaces them.
	Branches map[string]string

	// NotInstalled keeps the App out. Otherwise it is installed for the owner's
	// repository.
	NotInstalled bool
}

type repo struct {
	id            int64
	owner         *user
	name          string
	private       bool
	archived      bool
	noIssues      bool
	description   string
	branch        string
	parent        *repo
	collaborators map[*user]Permission
	branches      map[string]string
	git           Git
	issues        []*issue // number is the index + 1; nil once deleted
	labels        []string
	hooks         []*hook
	created       time.Time
}

func (r *repo) fullName() string { return r.owner.login + "/" + r.name }

var repoForm = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9-]*(?:\[bot\])?/[A-Za-z0-9._-]+$`)

// AddRepo makes a repository, or replaces the settings of one. It panics if the
// name is not owner/name: that is a mistake in the test.
func (s *Server) AddRepo(r Repo) {
	s.mu.Lock()
	defer s.unlock()
	owner, name, _ := strings.Cut(r.Name, "/")
	if !repoForm.MatchString(r.Name) {
		panic(fmt.Sprintf("github emulator: %q is not owner/name", r.Name))
	}
	known := s.findRepo(r.Name)
	if known == nil {
		account := s.findUser(owner)
		if account == nil {
			account = s.know(owner)
			account.kind = typeOrg
		}
		known = &repo{id: s.id(), owner: account, name: name, created: s.opts.Now(), labels: []string{"bug", "enhancement", "question"}}
		s.repos = append(s.repos, known)
	}
	known.private, known.archived, known.noIssues, known.description = r.Private, r.Archived, r.NoIssues, r.Description
	known.branch = r.DefaultBranch
	known.branch = cmp.Or(known.branch, "main")
	known.parent = nil
	if r.Fork != "" {
		known.parent = s.mustRepo(r.Fork)
	}
	known.collaborators = map[*user]Permission{}
	for login, p := range r.Collaborators {
		known.collaborators[s.know(login)] = p
	}
	known.branches = maps.Clone(r.Branches)
	if known.branches == nil {
		known.branches = map[string]string{}
	}
	if known.branches[known.branch] == "" {
		known.branches[known.branch] = fakeSHA(r.Name + " " + known.branch)
	}
	if !r.NotInstalled {
		s.installationOf(known.owner).add(known)
	}
}

// SetBranch says that a branch exists at a commit; an empty one takes it away.
// Nobody is told; see Person.Push.
func (s *Server) SetBranch(repoName, branch, sha string) {
	s.mu.Lock()
	defer s.unlock()
	r := s.mustRepo(repoName)
	if sha == "" {
		delete(r.branches, branch)
		return
	}
	r.branches[branch] = sha
}

// SetPermission changes what somebody may do, without an event. None takes the
// collaborator away.
func (s *Server) SetPermission(repoName, login string, p Permission) {
	s.mu.Lock()
	defer s.unlock()
	s.setPermission(s.mustRepo(repoName), s.know(login), p)
}

func (s *Server) setPermission(r *repo, u *user, p Permission) {
	if p == None {
		delete(r.collaborators, u)
		return
	}
	r.collaborators[u] = p
}

func (s *Server) findRepo(fullName string) *repo {
	for _, r := range s.repos {
		if sameName(r.fullName(), fullName) {
			return r
		}
	}
	return nil
}

func (s *Server) mustRepo(fullName string) *repo {
	r := s.findRepo(fullName)
	if r == nil {
		panic(fmt.Sprintf("github emulator: there is no repository %q", fullName))
	}
	return r
}

// role returns what a user may do in a repository.
func (r *repo) role(u *user) Permission {
	best := None
	if !r.private {
		best = Read
	}
	raise := func(p Permission) {
		if !best.atLeast(p) {
			best = p
		}
	}
	if u == r.owner {
		raise(Admin)
	}
	if owner, member := r.owner.members[u]; member {
		raise(r.owner.base)
		if owner {
			raise(Admin)
		}
	}
	raise(r.collaborators[u])
	return best
}

// association returns how the author of something is shown. It is no
// authorization: members of an organization who keep that private show as
// strangers, and the emulator takes all of them to.
func (r *repo) association(u *user) string {
	_, collaborator := r.collaborators[u]
	switch {
	case u.association != "":
		return u.association
	case u == r.owner:
		return "OWNER"
	case collaborator:
		return "COLLABORATOR"
	case slices.ContainsFunc(r.issues, func(i *issue) bool { return i != nil && i.pull != nil && i.pull.merged && i.author == u }):
		return "CONTRIBUTOR"
	}
	return "NONE"
}

// issue returns an issue or pull request by its number, or nil.
func (r *repo) issue(number int64) *issue {
	if number < 1 || number > int64(len(r.issues)) {
		return nil
	}
	return r.issues[number-1]
}

// installation is the App in an account.
type installation struct {
	id          int64
	account     *user
	repos       []*repo
	permissions map[string]string
	suspended   bool
	created     time.Time
}

func (i *installation) add(r *repo) {
	if !slices.Contains(i.repos, r) {
		i.repos = append(i.repos, r)
	}
}

func (s *Server) findInstallation(r *repo) *installation {
	for _, i := range s.installations {
		if slices.Contains(i.repos, r) {
			return i
		}
	}
	return nil
}

// installationOf returns the installation of an account, made if there is none.
func (s *Server) installationOf(account *user) *installation {
	for _, i := range s.installations {
		if i.account == account {
			return i
		}
	}
	i := &installation{id: s.id(), account: account, permissions: maps.Clone(s.opts.App.Permissions), created: s.opts.Now()}
	s.installations = append(s.installations, i)
	return i
}

// InstallationID returns the id of the installation that covers a repository, or
// zero.
func (s *Server) InstallationID(repoName string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.findInstallation(s.mustRepo(repoName)); i != nil {
		return i.id
	}
	return 0
}

// SetInstallationPermissions changes what the installation of an account may do.
// Tokens that exist change too. Nil is what the App asks for.
func (s *Server) SetInstallationPermissions(account string, permissions map[string]string) {
	s.mu.Lock()
	defer s.unlock()
	if permissions == nil {
		permissions = s.opts.App.Permissions
	}
	s.installationOf(s.know(account)).permissions = maps.Clone(permissions)
}

// Suspend suspends the installation of an account, or ends that.
func (s *Server) Suspend(account string, suspended bool) {
	s.mu.Lock()
	defer s.unlock()
	s.installationOf(s.know(account)).suspended = suspended
}
