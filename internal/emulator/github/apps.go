package github

import (
	"net/http"
	"slices"
)

func (s *Server) getApp(*request) (*reply, *apiError) { return ok(s.renderApp()) }

func (s *Server) listInstallations(r *request) (*reply, *apiError) {
	return paged(r, s.installations, func(i *installation) any { return s.renderInstallation(i) })
}

func (s *Server) installationIn(r *request) *installation {
	for _, i := range s.installations {
		if i.id == r.id("installation") {
			return i
		}
	}
	return nil
}

func (s *Server) getInstallation(r *request) (*reply, *apiError) {
	return s.answerInstallation(s.installationIn(r))
}

func (s *Server) getRepoInstallation(r *request) (*reply, *apiError) {
	return s.answerInstallation(s.findInstallation(r.repo))
}

func (s *Server) getAccountInstallation(r *request) (*reply, *apiError) {
	for _, i := range s.installations {
		if sameName(i.account.login, r.vars["login"]) {
			return s.answerInstallation(i)
		}
	}
	return nil, notFound()
}

func (s *Server) answerInstallation(i *installation) (*reply, *apiError) {
	if i == nil {
		return nil, notFound()
	}
	return ok(s.renderInstallation(i))
}

func (s *Server) createToken(r *request) (*reply, *apiError) {
	names, byName := r.in.list("repositories")
	ids, byID := read[[]int64](r.in, "repository_ids", "an array of integers")
	permissions, some := read[map[string]string](r.in, "permissions", "an object")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	i := s.installationIn(r)
	switch {
	case i == nil:
		return nil, notFound()
	case i.suspended:
		return nil, refuse(http.StatusForbidden, "This installation has been suspended")
	case some && !narrowed(permissions, i.permissions):
		return nil, refuse(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
	}
	t := &token{installation: i, expires: s.opts.Now().Add(s.opts.TokenLifetime)}
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
	long := !s.opts.OldTokens
	switch r.http.Header.Get("X-Github-Stateless-S2s-Token") {
	case "enabled":
		long = true
	case "disabled":
		long = false
	}
	t.text = s.newInstallationToken(long, i, t.expires)
	s.tokens[t.text] = t
	out := obj{"token": t.text, "expires_at": stamp(t.expires), "permissions": t.effective(), "repository_selection": "selected"}
	if t.repos != nil {
		out["repositories"] = s.renderRepos(t.repos)
	}
	return created(out)
}

func (s *Server) renderRepos(list []*repo) []any {
	out := []any{}
	for _, r := range list {
		out = append(out, s.renderRepo(r))
	}
	return out
}

func (s *Server) revokeToken(r *request) (*reply, *apiError) {
	r.who.token.revoked = true
	return noContent()
}

func (s *Server) listInstallationRepos(r *request) (*reply, *apiError) {
	var seen []*repo
	for _, candidate := range r.who.installation.repos {
		if s.sees(r.who, candidate) {
			seen = append(seen, candidate)
		}
	}
	part, header := page(r, seen)
	return &reply{header: header, body: obj{
		"total_count": len(seen), "repository_selection": "selected", "repositories": s.renderRepos(part),
	}}, nil
}
