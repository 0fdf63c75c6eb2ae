package github

import (
	"maps"
	"strings"
)

// userCalls are the operations on accounts, and on what belongs to the caller's own.
type userCalls struct{ show renderer }

func (c userCalls) self(r *request) (*reply, *apiError) {
	if r.who.kind != personal {
		return nil, notAccessible(r.who)
	}
	return &reply{body: c.profile(r.who.user), header: map[string]string{"X-OAuth-Scopes": strings.Join(r.who.token.scopes, ", ")}}, nil
}

func (c userCalls) get(r *request) (*reply, *apiError) {
	u := c.show.world.findUser(r.vars["login"])
	if u == nil {
		return nil, notFound()
	}
	return ok(c.profile(u))
}

func (c userCalls) profile(u *user) any {
	out, _ := c.show.user(u).(obj)
	maps.Copy(out, fields{
		{"name", nullable(u.name)}, {"company", nil}, {"blog", ""}, {"location", nil}, {"email", nil}, {"bio", nil}, {"public_repos", 0},
		{"followers", 0}, {"following", 0}, {"created_at", "2020-01-01T00:00:00Z"}, {"updated_at", "2026-01-01T00:00:00Z"},
	}.Object())
	return out
}

func (c userCalls) ownRepos(r *request) (*reply, *apiError) {
	if r.who.kind != personal {
		return nil, notAccessible(r.who)
	}
	var out []*repo
	for _, candidate := range c.show.world.repos {
		_, direct := candidate.collaborators[r.who.user]
		if (direct || candidate.owner == r.who.user) && r.who.sees(candidate) {
			out = append(out, candidate)
		}
	}
	return paged(r, out, func(x *repo) obj { return c.show.repoFor(x, r.who) })
}
