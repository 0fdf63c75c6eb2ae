package github

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

func (s *Server) getRepo(r *request) (*reply, *apiError) { return ok(s.renderRepoFor(r.repo, r.who)) }

func (s *Server) renderBranch(r *repo, name, sha string) obj {
	api := s.URL() + "/repos/" + r.fullName() + "/commits/" + sha
	return obj{"name": name, "commit": obj{"sha": sha, "url": api}, "protected": false}
}

func (s *Server) listBranches(r *request) (*reply, *apiError) {
	names := r.repo.branchNames()
	return paged(r, names, func(name string) any {
		sha, _ := r.repo.find(name)
		return s.renderBranch(r.repo, name, sha)
	})
}

func (s *Server) getBranch(r *request) (*reply, *apiError) {
	sha, exists := r.repo.find(r.vars["branch"])
	if !exists {
		return nil, refuse(http.StatusNotFound, "Branch not found")
	}
	return ok(s.renderBranch(r.repo, r.vars["branch"], sha))
}

func (s *Server) getRef(r *request) (*reply, *apiError) {
	sha, exists := r.repo.find(r.vars["branch"])
	if !exists {
		return nil, notFound()
	}
	ref := "refs/heads/" + r.vars["branch"]
	api := s.URL() + "/repos/" + r.repo.fullName() + "/git/"
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

func (s *Server) listCollaborators(r *request) (*reply, *apiError) {
	people := []*user{}
	for _, u := range s.users {
		if _, direct := r.repo.collaborators[u]; direct || u == r.repo.owner && u.kind == typeUser || r.repo.owner.members[u] {
			people = append(people, u)
		}
	}
	return paged(r, people, func(u *user) any { return s.renderMember(r.repo, u) })
}

func (s *Server) renderMember(r *repo, u *user) obj {
	out, _ := s.renderUser(u).(obj)
	out["permissions"], out["role_name"] = rights(r.role(u)), string(r.role(u))
	return out
}

func (s *Server) checkCollaborator(r *request) (*reply, *apiError) {
	u := s.findUser(r.vars["login"])
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

// getPermission answers with one of four words; the role has the exact one.
func (s *Server) getPermission(r *request) (*reply, *apiError) {
	u := s.findUser(r.vars["login"])
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
	return ok(obj{"permission": string(word), "role_name": string(role), "user": s.renderMember(r.repo, u)})
}

func (s *Server) getSelf(r *request) (*reply, *apiError) {
	if r.who.kind != personal {
		return nil, notAccessible(r.who)
	}
	answer, refused := s.answerUser(r.who.user)
	if refused == nil {
		answer.header = map[string]string{"X-OAuth-Scopes": strings.Join(r.who.token.scopes, ", ")}
	}
	return answer, refused
}

func (s *Server) getUser(r *request) (*reply, *apiError) {
	for _, u := range s.users {
		if r.vars["user"] != "" && u.id == r.id("user") || r.vars["user"] == "" && sameName(u.login, r.vars["login"]) {
			return s.answerUser(u)
		}
	}
	return nil, notFound()
}

func (s *Server) answerUser(u *user) (*reply, *apiError) {
	out, _ := s.renderUser(u).(obj)
	maps.Copy(out, obj{
		"name": nullable(u.name), "company": nil, "blog": "", "location": nil, "email": nil, "bio": nil, "public_repos": 0,
		"followers": 0, "following": 0, "created_at": "2020-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
	})
	return ok(out)
}

func (s *Server) listOwnRepos(r *request) (*reply, *apiError) {
	if r.who.kind != personal {
		return nil, notAccessible(r.who)
	}
	var out []*repo
	for _, candidate := range s.repos {
		_, direct := candidate.collaborators[r.who.user]
		_, member := candidate.owner.members[r.who.user]
		if (direct || member || candidate.owner == r.who.user) && s.sees(r.who, candidate) {
			out = append(out, candidate)
		}
	}
	return paged(r, out, func(x *repo) any { return s.renderRepoFor(x, r.who) })
}

func (s *Server) rateLimit(r *request) (*reply, *apiError) {
	p := s.pace.byWho[r.who.name()]
	core := obj{"limit": s.limits.PerHour, "used": p.used, "remaining": s.limits.PerHour - p.used, "reset": p.windowEnds.Unix()}
	return ok(obj{"resources": obj{"core": core}, "rate": core})
}
