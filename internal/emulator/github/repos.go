package github

import "net/http"

// repoCalls are the operations on repositories and who may do what in them.
type repoCalls struct{ show renderer }

func (c repoCalls) get(r *request) (*reply, *apiError) { return ok(c.show.repoFor(r.repo, r.who)) }

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
