package github

import (
	"net/http"
	"slices"

	"remote-agent/internal/lists"
)

// appCalls are the operations with which an App finds where it is installed and gets
// its tokens.
type appCalls struct {
	show   renderer
	tokens *credentials
}

func (c appCalls) get(*request) (*reply, *apiError) { return ok(c.show.app()) }

func (c appCalls) installations(r *request) (*reply, *apiError) {
	return paged(r, c.show.world.installations, c.show.installation)
}

// find returns the installation that the path names, by its id or one of its
// repositories, or nil.
func (c appCalls) find(r *request) *installation {
	return lists.First(c.show.world.installations, func(i *installation) bool { return i.id == r.id("installation") || slices.Contains(i.repos, r.repo) })
}

func (c appCalls) installation(r *request) (*reply, *apiError) {
	i := c.find(r)
	if i == nil {
		return nil, notFound()
	}
	return ok(c.show.installation(i))
}

func (c appCalls) createToken(r *request) (*reply, *apiError) {
	names, byName := r.in.list("repositories")
	var ids []int64
	var permissions map[string]string
	byID := r.in.read("repository_ids", "an array of integers", &ids)
	some := r.in.read("permissions", "an object", &permissions)
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	i := c.find(r)
	switch {
	case i == nil:
		return nil, notFound()
	case some && !narrowed(permissions, i.permissions):
		return nil, refuse(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
	}
	t := &token{installation: i}
	if some {
		t.permissions = permissions
	}
	for _, candidate := range i.repos {
		if slices.Contains(names, candidate.name) || slices.Contains(ids, candidate.id) {
			t.repos = append(t.repos, candidate)
		}
	}
	if (byName || byID) && len(t.repos) != len(names)+len(ids) {
		return nil, refuse(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
	}
	c.tokens.issue(t)
	out := obj{"token": t.text, "expires_at": stamp(t.expires), "permissions": t.effective(), "repository_selection": "selected"}
	if t.repos != nil {
		out["repositories"] = rendered(t.repos, c.show.repo)
	}
	return created(out)
}

func (c appCalls) repos(r *request) (*reply, *apiError) {
	var seen []*repo
	for _, candidate := range r.who.installation.repos {
		if r.who.sees(candidate) {
			seen = append(seen, candidate)
		}
	}
	part, header := page(r, seen)
	return &reply{header: header, body: obj{
		"total_count": len(seen), "repository_selection": "selected", "repositories": rendered(part, c.show.repo),
	}}, nil
}
