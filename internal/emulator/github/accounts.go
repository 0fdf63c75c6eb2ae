package github

import (
	"cmp"
	"fmt"
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
	association string // shown instead of the real one
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
	defer s.world.writing()()
	known := s.world.know(u.Login)
	known.id, known.name = cmp.Or(u.ID, known.id), cmp.Or(u.Name, known.name)
	known.kind, known.association = cmp.Or(u.Type, known.kind), cmp.Or(u.Association, known.association)
	return known.public()
}

// RenameUser gives an account another login and keeps its id.
func (s *Server) RenameUser(from, to string) {
	defer s.world.writing()()
	s.world.know(from).login = to
}

// UserOf returns an account by its login, made if there was none.
func (s *Server) UserOf(login string) User {
	defer s.world.writing()()
	return s.world.know(login).public()
}

func (u *user) public() User {
	return User{ID: u.id, Login: u.login, Name: u.name, Type: u.kind, Association: u.association}
}

func sameName(a, b string) bool { return strings.EqualFold(a, b) }

// Repo is a repository.
type Repo struct {
	Name     string // owner/name
	Private  bool
	Archived bool
	Fork     string // the repository that it is a fork of, which exists

	Collaborators map[string]Permission // by login; the owner may do everything

	// NotInstalled keeps the App out. Otherwise it is installed for the owner's
	// repository.
	NotInstalled bool
}

// defaultBranch is that of every repository.
const defaultBranch = "main"

type repo struct {
	id            int64
	owner         *user
	name          string
	private       bool
	archived      bool
	parent        *repo
	collaborators map[*user]Permission
	branches      map[string]string
	git           Git
	issues        []*issue // number is the index + 1
	labels        []string
	hooks         []*hook
	created       time.Time
}

func (r *repo) fullName() string { return r.owner.login + "/" + r.name }

var repoForm = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9-]*(?:\[bot\])?/[A-Za-z0-9._-]+$`)

// AddRepo makes a repository, or replaces the settings of one. It panics if the
// name is not owner/name: that is a mistake in the test.
func (s *Server) AddRepo(r Repo) {
	w := s.world
	defer w.writing()()
	owner, name, _ := strings.Cut(r.Name, "/")
	if !repoForm.MatchString(r.Name) {
		panic(fmt.Sprintf("github emulator: %q is not owner/name", r.Name))
	}
	known := w.findRepo(r.Name)
	if known == nil {
		account := w.findUser(owner)
		if account == nil {
			account = w.know(owner)
			account.kind = typeOrg
		}
		known = &repo{id: w.id(), owner: account, name: name, created: w.now(), labels: []string{"bug", "enhancement", "question"}}
		w.repos = append(w.repos, known)
	}
	known.private, known.archived, known.parent = r.Private, r.Archived, nil
	if r.Fork != "" {
		known.parent = w.mustRepo(r.Fork)
	}
	known.collaborators = map[*user]Permission{}
	for login, p := range r.Collaborators {
		known.collaborators[w.know(login)] = p
	}
	known.branches = map[string]string{defaultBranch: fakeSHA(r.Name + " " + defaultBranch)}
	if !r.NotInstalled {
		w.installationOf(known.owner).add(known)
	}
}

// SetBranch says that a branch exists at a commit; an empty one takes it away.
// Nobody is told; see Person.Push.
func (s *Server) SetBranch(repoName, branch, sha string) {
	defer s.world.writing()()
	r := s.world.mustRepo(repoName)
	if sha == "" {
		delete(r.branches, branch)
		return
	}
	r.branches[branch] = sha
}

// SetPermission changes what somebody may do, without an event. None takes the
// collaborator away.
func (s *Server) SetPermission(repoName, login string, p Permission) {
	defer s.world.writing()()
	s.world.mustRepo(repoName).permit(s.world.know(login), p)
}

// permit says what somebody may do from now on.
func (r *repo) permit(u *user, p Permission) {
	if p == None {
		delete(r.collaborators, u)
		return
	}
	r.collaborators[u] = p
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
	raise(r.collaborators[u])
	return best
}

// association returns how the author of something is shown. It is no
// authorization.
func (r *repo) association(u *user) string {
	_, collaborator := r.collaborators[u]
	switch {
	case u.association != "":
		return u.association
	case u == r.owner:
		return "OWNER"
	case collaborator:
		return "COLLABORATOR"
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
