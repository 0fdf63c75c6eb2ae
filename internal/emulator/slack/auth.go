package slack

import (
	"slices"
	"strings"
)

// RefuseAppToken makes apps.connections.open fail with a code. Empty ends it.
func (s *Server) RefuseAppToken(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appRefusal = code
}

func (s *Server) authenticateApp(token string) *apiError {
	switch {
	case token == "":
		return refuse("not_authed")
	case s.appRefusal != "":
		return refuse(s.appRefusal)
	case token == s.opts.AppToken:
		return nil
	case len(s.ofToken(token)) > 0:
		return refuse("not_allowed_token_type")
	}
	return refuse("invalid_auth")
}

// authenticate returns the workspace of a call. A token of an organization is
// good for several: team_id or the channel tells which.
func (s *Server) authenticate(p params) (*Workspace, *apiError) {
	if p.token == "" {
		return nil, refuse("not_authed")
	}
	if p.token == s.opts.AppToken {
		return nil, refuse("not_allowed_token_type")
	}
	candidates := s.ofToken(p.token)
	if len(candidates) == 0 {
		return nil, refuse("invalid_auth")
	}
	ws := candidates[0]
	if id := p.get("team_id"); id != "" && len(candidates) > 1 {
		n := slices.IndexFunc(candidates, func(w *Workspace) bool { return w.team.ID == id })
		if n < 0 {
			return nil, refuse("team_access_not_granted")
		}
		ws = candidates[n]
	} else if n := slices.IndexFunc(candidates, func(w *Workspace) bool { return w.channels[p.channel()] != nil }); n >= 0 {
		ws = candidates[n]
	}
	if ws.refusal != "" {
		return nil, refuse(ws.refusal)
	}
	return ws, nil
}

func (s *Server) ofToken(token string) []*Workspace {
	return slices.DeleteFunc(slices.Clone(s.teams), func(w *Workspace) bool { return w.team.BotToken != token })
}

// teamOf returns the id of the workspace of a call, for the log.
func (s *Server) teamOf(p params) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, refused := s.authenticate(p); refused == nil {
		return w.team.ID
	}
	return ""
}

// need refuses a call if none of the scopes was granted.
func (r *request) need(scopes ...string) *apiError {
	if slices.ContainsFunc(scopes, func(scope string) bool { return slices.Contains(r.scopes, scope) }) {
		return nil
	}
	return &apiError{code: "missing_scope", extra: map[string]any{
		"needed": strings.Join(scopes, ","), "provided": strings.Join(r.scopes, ","),
	}}
}

func authTest(r *request) (map[string]any, *apiError) {
	t := r.ws.team
	out := map[string]any{
		"url": "https://" + t.Domain + ".slack.com/", "team": t.Name, "user": t.BotName,
		"team_id": t.ID, "user_id": t.BotUserID, "bot_id": t.BotID, "is_enterprise_install": t.EnterpriseInstall,
	}
	if t.EnterpriseID != "" {
		out["enterprise_id"] = t.EnterpriseID
	}
	return out, nil
}
