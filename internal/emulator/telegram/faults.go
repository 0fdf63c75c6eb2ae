package telegram

import (
	"fmt"
	"net/http"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/calls"
)

// apiError is a refusal as the Bot API words it.
type apiError struct {
	code       int
	text       string
	retryAfter int
	migrateTo  int64
}

func badRequest(format string, args ...any) *apiError {
	return &apiError{code: http.StatusBadRequest, text: "Bad Request: " + fmt.Sprintf(format, args...)}
}

func forbidden(text string) *apiError {
	return &apiError{code: http.StatusForbidden, text: "Forbidden: " + text}
}

func conflict(text string) *apiError {
	return &apiError{code: http.StatusConflict, text: "Conflict: " + text}
}

func floodWait(d time.Duration) *apiError {
	seconds := int((d + time.Second - 1) / time.Second)
	return &apiError{
		code:       http.StatusTooManyRequests,
		text:       fmt.Sprintf("Too Many Requests: retry after %d", seconds),
		retryAfter: seconds,
	}
}

// AnyMethod injects a fault into every method but getUpdates.
const AnyMethod = "*"

// Fault is something that goes wrong with one call. The zero value lets the
// call pass. Use the constructors.
type Fault struct {
	refuse *apiError
	delay  time.Duration
	gate   *emulator.Gate
	end    calls.Ending
}

// Pass lets one call through, to script "the second call fails".
func Pass() Fault { return Fault{} }

// Refuse answers with an error and does nothing. The description is sent as it
// is, such as "Bad Request: chat not found".
func Refuse(status int, description string) Fault {
	return Fault{refuse: &apiError{code: status, text: description}}
}

// FloodWait answers 429 with retry_after, rounded up to seconds.
func FloodWait(retryAfter time.Duration) Fault { return Fault{refuse: floodWait(retryAfter)} }

// ServerError answers with a 5xx status and does nothing.
func ServerError(status int) Fault { return Refuse(status, http.StatusText(status)) }

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
	s.faults.Inject(canonical(method), fs...)
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
	return s.faults.Queued(canonical(method))
}

// nextFault returns the fault for a call.
func (s *Server) nextFault(c Call) Fault {
	name := canonical(c.Method)
	if name == "getupdates" {
		return s.faults.Next(c, name)
	}
	return s.faults.Next(c, name, AnyMethod)
}
