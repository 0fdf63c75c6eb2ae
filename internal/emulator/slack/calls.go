package slack

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// Call is one call of the bot: of a method, a response URL or a file.
type Call struct {
	Method  string
	Channel string
	Params  map[string]string // as sent, without the token; structures are JSON
	At      time.Time         // when it came in
}

// outcome carries out a call and returns the scopes of its token too.
type outcome func() (map[string]any, *apiError, []string)

// answer carries out one call with the fault that is due.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, call Call, do outcome, p params) {
	s.checkPause(call)
	s.Answer(r.Context(), w, call, platformapi.Exchange[apiError]{
		Do: func() (*platformapi.Reply, *apiError) {
			result, refused, scopes := do()
			if len(scopes) > 0 {
				w.Header().Set("X-Oauth-Scopes", strings.Join(scopes, ","))
				if accepted := s.methods[call.Method].scopes; len(accepted) > 0 {
					w.Header().Set("X-Accepted-Oauth-Scopes", strings.Join(accepted, ","))
				}
			}
			if refused != nil {
				return nil, refused
			}
			if p.warning != "" {
				result = withWarning(result, p.warning)
			}
			return &platformapi.Reply{Body: encode(result)}, nil
		},
		Log: func(refused *apiError, _, _ bool) {
			s.noteRetryAfter(call, refused)
			s.Log(call)
		},
		Refuse: writeError,
	})
}

func withWarning(result map[string]any, warning string) map[string]any {
	result = maps.Clone(result)
	if result == nil {
		result = map[string]any{}
	}
	if w, ok := result["warning"].(string); ok {
		warning = w + "," + warning
	}
	result["warning"] = warning
	meta := map[string]any{"warnings": strings.Split(warning, ",")}
	if old, ok := result["response_metadata"].(map[string]any); ok {
		maps.Copy(meta, old)
	}
	result["response_metadata"] = meta
	return result
}

func encode(result map[string]any) []byte {
	full := map[string]any{"ok": true}
	maps.Copy(full, result)
	body, err := json.Marshal(full)
	if err != nil {
		return []byte(`{"ok":false,"error":"fatal_error"}`)
	}
	return body
}

func writeError(w http.ResponseWriter, e *apiError) {
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	if e.code == "" {
		platformapi.WritePage(w, e.status, http.StatusText(e.status))
		return
	}
	body := map[string]any{"ok": false, "error": e.code}
	maps.Copy(body, e.extra)
	if len(e.messages) > 0 {
		body["response_metadata"] = map[string]any{"messages": e.messages}
	}
	platformapi.WriteBody(w, cmp.Or(e.status, http.StatusOK), "", encode(body))
}
