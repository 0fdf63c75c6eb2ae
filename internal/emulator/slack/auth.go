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
	case token == s.team.BotToken:
		return refuse("not_allowed_token_type")
	}
	return refuse("invalid_auth")
}

// authenticate refuses a call without the bot's token. The lock must be held.
func (s *Server) authenticate(p params) *apiError {
	switch {
	case p.token == "":
		return refuse("not_authed")
	case p.token == s.opts.AppToken:
		return refuse("not_allowed_token_type")
	case p.token != s.team.BotToken:
		return refuse("invalid_auth")
	case s.refusal != "":
		return refuse(s.refusal)
	}
	return nil
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
	return fields{
		{"url", "https://" + t.Domain + ".slack.com/"}, {"team", t.Name}, {"user", t.BotName},
		{"team_id", t.ID}, {"user_id", t.BotUserID}, {"bot_id", t.BotID}, {"is_enterprise_install", false},
	}.Object(), nil
}
