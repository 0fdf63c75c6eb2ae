package slack

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/calls"
)

// apiError is a refusal as the Web API words it.
type apiError struct {
	code       string
	status     int // HTTP; 0 is 200
	retryAfter int // seconds
	messages   []string
	extra      map[string]any
}

func refuse(code string, messages ...string) *apiError {
	return &apiError{code: code, messages: messages}
}

func rateLimited(d time.Duration) *apiError {
	return &apiError{
		code: "ratelimited", status: http.StatusTooManyRequests,
		retryAfter: max(1, int((d+time.Second-1)/time.Second)),
	}
}

// Names for Inject besides the methods of the Web API.
const (
	AnyMethod   = "*"            // every method
	ResponseURL = "response_url" // posts to response URLs
	Upload      = "upload"       // uploads of files
	Download    = "download"     // downloads of files
)

// Fault is something that goes wrong with one call. The zero value lets the call
// pass. Use the constructors.
type Fault struct {
	refuse  *apiError
	instead *apiError // answered after the call was carried out
	delay   time.Duration
	gate    *emulator.Gate
	end     calls.Ending
}

// Pass lets one call through, to script "the second call fails".
func Pass() Fault { return Fault{} }

// Refuse answers {"ok":false} with an error code and does nothing.
func Refuse(code string) Fault { return Fault{refuse: refuse(code)} }

// RateLimited answers 429 with Retry-After, rounded up to seconds. Calls of the
// same method before it is over are recorded as violations.
func RateLimited(retryAfter time.Duration) Fault { return Fault{refuse: rateLimited(retryAfter)} }

// ServerError answers with a 5xx status and an HTML page and does nothing.
func ServerError(status int) Fault { return Fault{refuse: &apiError{status: status}} }

// FailAfter does what was asked and answers with an error code, as
// "internal_error" and "fatal_error" may do.
func FailAfter(code string) Fault { return Fault{instead: refuse(code)} }

// ServerErrorAfter does what was asked and answers with a 5xx status.
func ServerErrorAfter(status int) Fault { return Fault{instead: &apiError{status: status}} }

// DropBefore breaks the connection before anything is done.
func DropBefore() Fault { return Fault{end: calls.Before} }

// DropAfter does what was asked and then breaks the connection, which is the
// case in which the caller cannot know.
func DropAfter() Fault { return Fault{end: calls.After} }

// CutAnswer does what was asked and breaks the connection in the middle of the
// answer.
func CutAnswer() Fault { return Fault{end: calls.Short} }

// TruncatedJSON does what was asked and answers 200 with half of the JSON.
func TruncatedJSON() Fault { return Fault{end: calls.Truncated} }

// Garbage does what was asked and answers 200 with an HTML page.
func Garbage() Fault { return Fault{end: calls.Garbage} }

// Delay holds the call back before it is carried out.
func Delay(d time.Duration) Fault { return Fault{delay: d} }

// Hold stops the call before it is carried out until the gate opens.
func Hold(gate *emulator.Gate) Fault { return Fault{gate: gate} }

// After returns f with a delay in front of it.
func (f Fault) After(d time.Duration) Fault { f.delay = d; return f }

// AfterGate returns f with a gate in front of it.
func (f Fault) AfterGate(gate *emulator.Gate) Fault { f.gate = gate; return f }

// Inject makes the next calls of a method fail, one fault for each call. More
// faults are added to the end.
func (s *Server) Inject(method string, fs ...Fault) {
	s.faults.Inject(method, fs...)
}

// InjectFunc asks decide about every call for which no fault is queued. Nil ends
// it. decide may be called concurrently.
func (s *Server) InjectFunc(decide func(Call) Fault) {
	s.faults.Decide(decide)
}

// ClearFaults takes back everything that was injected.
func (s *Server) ClearFaults() { s.faults.Clear() }

// QueuedFaults returns how many faults injected for a method are still to come.
func (s *Server) QueuedFaults(method string) int {
	return s.faults.Queued(method)
}

func (s *Server) nextFault(c Call) Fault { return s.faults.Next(c, c.Method, AnyMethod) }

// outcome carries out a call and returns the scopes of its token too.
type outcome func() (map[string]any, *apiError, []string)

// answer carries out one call with the fault that is due.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, call Call, do outcome, p params) {
	call.Team = s.teamOf(p)
	s.checkPause(call)
	fault := s.nextFault(call)
	if s.waitFault(r.Context(), fault) != nil {
		panic(http.ErrAbortHandler)
	}
	if fault.end == calls.Before {
		s.log(call, &apiError{code: "dropped"}, true, true)
		emulator.Reset(w)
	}
	if fault.refuse != nil {
		s.noteRetryAfter(call, fault.refuse)
		s.log(call, fault.refuse, true, false)
		writeError(w, fault.refuse)
		return
	}
	result, refused, scopes := do()
	s.noteRetryAfter(call, refused)
	s.log(call, refused, fault.end != calls.Normal || fault.instead != nil, false)
	if len(scopes) > 0 {
		w.Header().Set("X-Oauth-Scopes", strings.Join(scopes, ","))
		if m, ok := s.methods[call.Method]; ok && len(m.scopes) > 0 {
			w.Header().Set("X-Accepted-Oauth-Scopes", strings.Join(m.scopes, ","))
		}
	}
	if fault.instead != nil && refused == nil {
		refused = fault.instead
	}
	if p.warning != "" && refused == nil {
		result = withWarning(result, p.warning)
	}
	writeEnding(w, result, refused, fault.end)
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

func writeEnding(w http.ResponseWriter, result map[string]any, refused *apiError, end calls.Ending) {
	switch {
	case end == calls.After:
		emulator.Reset(w)
	case end == calls.Garbage:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html><body>Something went wrong</body></html>"))
		return
	case refused != nil:
		writeError(w, refused)
		return
	}
	body := encode(result)
	switch end {
	case calls.Truncated:
		writeBody(w, http.StatusOK, body[:len(body)/2])
	case calls.Short:
		calls.CutShort(w, http.StatusOK, body)
	default:
		writeBody(w, http.StatusOK, body)
	}
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
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(e.status)
		_, _ = w.Write([]byte("<html><body>" + http.StatusText(e.status) + "</body></html>"))
		return
	}
	body := map[string]any{"ok": false, "error": e.code}
	maps.Copy(body, e.extra)
	if len(e.messages) > 0 {
		body["response_metadata"] = map[string]any{"messages": e.messages}
	}
	status := e.status
	setDefault(&status, http.StatusOK)
	writeBody(w, status, encode(body))
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
