package github

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/calls"
)

// Fault is something that goes wrong with one call. The zero value lets the call
// pass. Use the constructors.
type Fault struct {
	refuse  *apiError
	instead *apiError // answered after the call was carried out
	delay   time.Duration
	gate    *emulator.Gate
	stall   *emulator.Gate // after the call was carried out
	end     calls.Ending
}

// Pass lets one call through, to script "the second call fails".
func Pass() Fault { return Fault{} }

// Refuse answers with a status and a message and does nothing.
func Refuse(status int, message string) Fault { return Fault{refuse: refuse(status, message)} }

// NotAccessible answers 403 "Resource not accessible by integration".
func NotAccessible() Fault { return Fault{refuse: notAccessible(nil)} }

// SecondaryLimit answers 403 or 429 with the words of the secondary limit, and
// with Retry-After unless that is zero. Calls before it is over are recorded as
// violations.
func SecondaryLimit(status int, retryAfter time.Duration) Fault {
	return Fault{refuse: secondaryLimit(status, retryAfter)}
}

// PrimaryLimit answers 403 with no calls left until a time.
func PrimaryLimit(reset time.Time) Fault {
	e := primaryLimit("installation")
	e.header = map[string]string{
		"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(reset.Unix(), 10),
	}
	return Fault{refuse: e}
}

// ServerError answers with a 5xx status and an HTML page and does nothing.
func ServerError(status int) Fault { return Fault{refuse: &apiError{status: status, html: true}} }

// ServerErrorAfter does what was asked and answers with a 5xx status.
func ServerErrorAfter(status int) Fault {
	return Fault{instead: &apiError{status: status, html: true}}
}

// DropBefore breaks the connection before anything is done.
func DropBefore() Fault { return Fault{end: calls.Before} }

// DropAfter does what was asked and then breaks the connection, which is the
// case in which the caller cannot know.
func DropAfter() Fault { return Fault{end: calls.After} }

// CutAnswer does what was asked and breaks the connection in the middle of the
// answer.
func CutAnswer() Fault { return Fault{end: calls.Short} }

// TruncatedJSON does what was asked and answers with half of the JSON.
func TruncatedJSON() Fault { return Fault{end: calls.Truncated} }

// Garbage does what was asked and answers 200 with an HTML page.
func Garbage() Fault { return Fault{end: calls.Garbage} }

// Delay holds the call back before it is carried out.
func Delay(d time.Duration) Fault { return Fault{delay: d} }

// Hold stops the call before it is carried out until the gate opens.
func Hold(gate *emulator.Gate) Fault { return Fault{gate: gate} }

// StallAfter does what was asked and answers only when the gate opens, which is
// a timeout after the effect.
func StallAfter(gate *emulator.Gate) Fault { return Fault{stall: gate} }

// After returns f with a delay in front of it.
func (f Fault) After(d time.Duration) Fault { f.delay = d; return f }

// AfterGate returns f with a gate in front of it.
func (f Fault) AfterGate(gate *emulator.Gate) Fault { f.gate = gate; return f }

// Inject makes the next calls of an operation fail, one fault for each call. More
// faults are added to the end.
func (s *Server) Inject(operation string, fs ...Fault) {
	s.faults.Inject(operation, fs...)
}

// InjectFunc asks decide about every call for which no fault is queued. Nil ends
// it. decide may be called concurrently.
func (s *Server) InjectFunc(decide func(Call) Fault) {
	s.faults.Decide(decide)
}

// ClearFaults takes back everything that was injected.
func (s *Server) ClearFaults() { s.faults.Clear() }

// QueuedFaults returns how many faults injected for an operation are still to
// come.
func (s *Server) QueuedFaults(operation string) int {
	return s.faults.Queued(operation)
}

func (s *Server) nextFault(c Call) Fault { return s.faults.Next(c, c.Operation, AnyOperation) }

// pause spends time before or after a call is carried out and reports whether
// somebody is still there.
func (s *Server) pause(ctx context.Context, d time.Duration, gate *emulator.Gate) bool {
	return calls.Hold(ctx, s.ctx.Done(), gate, d) == nil
}

// answer carries out one call with the fault that is due.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, call Call, do func(*Call) (*reply, *apiError, rate)) {
	fault := s.nextFault(call)
	if !s.pause(r.Context(), fault.delay, fault.gate) {
		panic(http.ErrAbortHandler)
	}
	call.Faulty = fault.refuse != nil || fault.instead != nil || fault.end != calls.Normal || fault.stall != nil
	w.Header().Set("X-Github-Request-Id", strings.ToUpper(letters(16)))
	w.Header().Set("X-Github-Media-Type", "github.v3; format=json")
	if fault.end == calls.Before {
		call.Error = "dropped"
		s.log(call)
		emulator.Reset(w)
	}
	if fault.refuse != nil {
		s.noteLimit(fault.refuse)
		call.Status, call.Error = fault.refuse.status, fault.refuse.message
		s.log(call)
		writeError(w, fault.refuse)
		return
	}
	answer, refused, limit := do(&call)
	s.headers(w, limit)
	notModified := refused == nil && answer.tag(w, r)
	call.Status = http.StatusOK
	switch {
	case refused != nil:
		call.Status, call.Error = refused.status, refused.message
	case notModified:
		call.Status = http.StatusNotModified
		s.uncount(call.As)
	case answer.status != 0:
		call.Status = answer.status
	}
	s.log(call)
	if !s.pause(r.Context(), 0, fault.stall) {
		panic(http.ErrAbortHandler)
	}
	if fault.instead != nil && refused == nil {
		refused = fault.instead
	}
	writeEnding(w, call.Status, answer, refused, fault.end)
}

// noteLimit remembers until when an injected limit keeps the bot from calling.
func (s *Server) noteLimit(e *apiError) {
	wait, err := strconv.Atoi(e.header["Retry-After"])
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace.until = s.opts.Now().Add(time.Duration(wait) * time.Second)
}

func (s *Server) headers(w http.ResponseWriter, limit rate) {
	if limit.limit == 0 {
		return
	}
	h := w.Header()
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(limit.limit-limit.used))
	h.Set("X-RateLimit-Used", strconv.Itoa(limit.used))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(limit.reset.Unix(), 10))
	h.Set("X-RateLimit-Resource", "core")
}

// tag encodes an answer, gives the answer to a reading call an ETag and reports
// whether the caller has that version already.
func (a *reply) tag(w http.ResponseWriter, r *http.Request) bool {
	if a.raw == nil && a.status != http.StatusNoContent {
		a.raw = mustJSON(a.body)
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead || a.status != 0 {
		return false
	}
	tag := `W/"` + hexSum(a.raw) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, max-age=60, s-maxage=60")
	return strings.TrimPrefix(r.Header.Get("If-None-Match"), "W/") == tag[2:]
}

func writeEnding(w http.ResponseWriter, status int, answer *reply, refused *apiError, end calls.Ending) {
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
	case status == http.StatusNotModified:
		w.WriteHeader(status)
		return
	}
	body := answer.raw
	switch end {
	case calls.Truncated:
		writeBody(w, status, answer.contentType, body[:len(body)/2])
	case calls.Short:
		calls.CutShort(w, status, body)
	default:
		writeBody(w, status, answer.contentType, body)
	}
}
