package github

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// repoCalls are the operations on repositories, their branches and who may do what
// in them.
type repoCalls struct{ show renderer }

func (c repoCalls) get(r *request) (*reply, *apiError) { return ok(c.show.repoFor(r.repo, r.who)) }

func (c repoCalls) branches(r *request) (*reply, *apiError) {
	return paged(r, r.repo.branchNames(), func(name string) obj {
		sha, _ := r.repo.find(name)
		return c.show.branch(r.repo, name, sha)
	})
}

func (c repoCalls) branch(r *request) (*reply, *apiError) {
	sha, exists := r.repo.find(r.vars["branch"])
	if !exists {
		return nil, refuse(http.StatusNotFound, "Branch not found")
	}
	return ok(c.show.branch(r.repo, r.vars["branch"], sha))
}

func (c repoCalls) ref(r *request) (*reply, *apiError) {
	sha, exists := r.repo.find(r.vars["branch"])
	if !exists {
		return nil, notFound()
	}
	ref, api := "refs/heads/"+r.vars["branch"], c.show.repoURL(r.repo)+"/git/"
	return ok(obj{
		"ref": ref, "node_id": node("REF", r.repo.id), "url": api + ref,
		"object": obj{"type": "commit", "sha": sha, "url": api + "commits/" + sha},
	})
}

// branchNames lists the branches that are known: those of SetBranch, or of the
// repository that is attached.
func (r *repo) branchNames() []string {
	if r.git.Dir != "" {
		out, err := runGit(r.git.Dir, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/")
		if err == nil {
			return strings.Fields(out)
		}
	}
	return slices.Sorted(maps.Keys(r.branches))
}

func (c repoCalls) collaborators(r *request) (*reply, *apiError) {
	people := []*user{}
	for _, u := range c.show.world.users {
		if _, direct := r.repo.collaborators[u]; direct || u == r.repo.owner && u.kind == typeUser || r.repo.owner.members[u] {
			people = append(people, u)
		}
	}
	return paged(r, people, func(u *user) obj { return c.show.member(r.repo, u) })
}

func (c repoCalls) checkCollaborator(r *request) (*reply, *apiError) {
	u := c.show.world.findUser(r.vars["login"])
	if u == nil {
		return nil, notFound()
	}
	if _, direct := r.repo.collaborators[u]; !direct && u != r.repo.owner {
		if _, member := r.repo.owner.members[u]; !member {
			return nil, notFound()
		}
	}
	return noContent()
}

// permission answers with one of four words; the role has the exact one.
func (c repoCalls) permission(r *request) (*reply, *apiError) {
	u := c.show.world.findUser(r.vars["login"])
	if u == nil || u.kind == typeOrg {
		return nil, refuse(http.StatusNotFound, r.vars["login"]+" is not a user")
	}
	role := r.repo.role(u)
	word := role
	switch role {
	case Maintain:
		word = Write
	case Triage:
		word = Read
	default:
	}
	return ok(obj{"permission": string(word), "role_name": string(role), "user": c.show.member(r.repo, u)})
}
