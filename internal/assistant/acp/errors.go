package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"remote-agent/internal/fault"
	"remote-agent/internal/overflow"
	"remote-agent/internal/pattern"
)

// Error codes of the protocol.
const (
	codeAuthRequired = -32000
	codeNotFound     = -32002
)

// stage is what was being done when something went wrong.
type stage string

const (
	atStart   stage = "starting the agent"
	atSession stage = "opening a session"
	atPrompt  stage = "running a turn"
)

// errDetail bounds what of an agent's own error text goes to the log, in bytes.
const errDetail = 2 << 10

// exitWait is how long an error waits for the exit status of a process that
// closed its output.
const exitWait = 300 * time.Millisecond

// canceled is the error of a turn whose context ended.
func canceled(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &fault.Error{Kind: fault.Unavailable, Public: "The agent took too long to answer.", Err: errors.Join(cause, ctx.Err())}
	}
	return &fault.Error{Kind: fault.Canceled, Err: errors.Join(cause, ctx.Err())}
}

// scrub returns an error with the text of err, bounded and without credentials.
func (a *Assistant) scrub(err error) error {
	text := a.redact.String(err.Error())
	return errors.New(cut(text, errDetail))
}

// broken classifies what went wrong with the process and ends it, so that the
// next turn gets a fresh one.
func (g *agent) broken(ctx context.Context, at stage, err error) error {
	defer g.end()
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	if g.a.closed() {
		return errClosing
	}
	result := g.classify(at, err)
	g.log.WarnContext(ctx, "the agent failed", "stage", string(at), "err", result,
		"stderr", g.a.redact.String(g.process.StderrTail()))
	return result
}

func (g *agent) classify(at stage, err error) error {
	name := g.a.config.Name
	fail := func(kind fault.Kind, format string, args ...any) error {
		return &fault.Error{Kind: kind, Public: fmt.Sprintf(format, args...), Err: fmt.Errorf("%s: %w", at, g.a.scrub(err))}
	}
	if refusal, ok := errors.AsType[*sdk.RequestError](err); ok {
		return g.refused(at, refusal)
	}
	switch {
	case errors.Is(err, errSilent) && at == atPrompt:
		return fail(fault.Unavailable, "The agent %q sent nothing for %s and was stopped. What it did so far is kept.", name, g.a.config.SilenceTimeout)
	case errors.Is(err, errSilent) && at == atSession: // not tried again, here and below: it costs the person as long once more
		return fail(fault.Unsupported, "The agent %q did not open a session within %s and was stopped. Check its login, and whether it can reach its provider.", name, g.a.config.InitTimeout)
	case errors.Is(err, errSilent):
		return fail(fault.Unsupported, "The agent %q did not answer within %s and was stopped. Check that its command, which begins with %q, starts an agent that speaks the Agent Client Protocol.", name, g.a.config.InitTimeout, g.a.config.Command[0])
	case errors.Is(err, errGarbage):
		return fail(fault.Unavailable, "The agent %q sent something that is not the Agent Client Protocol and was stopped.", name)
	case errors.Is(err, errTooLong), errors.Is(err, errTooMuch):
		return fail(fault.Unavailable, "The agent %q sent too much at once and was stopped.", name)
	}
	return g.died(at, err, fail)
}

// died classifies the end of the process. A process that is about to exit is
// not disturbed, so that its exit status can be told.
func (g *agent) died(at stage, err error, fail func(fault.Kind, string, ...any) error) error {
	timer := time.NewTimer(exitWait)
	defer timer.Stop()
	how, status := "it closed its output", -1
	select {
	case <-g.gone:
		how, status = exitOf(g.exit)
	case <-timer.C:
	}
	name := g.a.config.Name
	switch {
	case at == atStart && (status == 126 || status == 127):
		// What env and shells say when an interpreter is not there.
		return fail(fault.Unsupported, "The agent %q cannot run here: its program, or what it needs (such as Node.js), is missing. To install it: %s", name, g.a.config.InstallHint)
	case at == atPrompt && errors.Is(err, errMidLine):
		return fail(fault.Unavailable, "The agent %q ended in the middle of a message (%s). What it did so far is kept.", name, how)
	case at == atPrompt:
		return fail(fault.Unavailable, "The agent %q ended before its answer was complete (%s). What it did so far is kept.", name, how)
	}
	return fail(fault.Unavailable, "The agent %q ended during startup (%s). The reason is in the log.", name, how)
}

// exitOf says how a process ended, by what Wait returned. The code is -1 if it is
// not known.
func exitOf(err error) (how string, code int) {
	if err == nil {
		return "exit status 0", 0
	}
	var exit interface{ ExitCode() int }
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return fmt.Sprintf("exit status %d", exit.ExitCode()), exit.ExitCode()
	}
	return oneLine(err.Error(), 80), -1
}

// What the texts of agents say. There is no code for these in the protocol.
var (
	saysLimit    = pattern.Lazy(`(?i)rate.?limit|too many requests|\b429\b`)
	saysOverload = pattern.Lazy(`(?i)overloaded|server_error|high demand|stream disconnected|\b5(00|02|03|29)\b|ECONN|connection (error|dropped|refused|reset)|timed? ?out|unavailable`)
	saysQuota    = pattern.Lazy(`(?i)billing|quota|credit balance|usage.?limit|limit reached|hit your [\w -]{0,20}limit|account_on_hold|budget`)
	saysLogin    = pattern.Lazy(`(?i)authentication_failed|invalid (x-)?api.?key|not logged in|please (log ?in|run /login)|unauthorized|\b401\b`)
	saysModel    = pattern.Lazy(`(?i)selected model|model_?not_?found|(unknown|unsupported|invalid|no such) model\b|\bmodels?\b.{0,80}(does not exist|not found|is not supported)|not_found_error.{0,80}\bmodel\b`)
	saysUnknown  = pattern.Lazy(`(?i)not found|no rollout|unknown (session|thread)|no (such )?(session|conversation|thread)|does not exist|invalid session|valid session`)
)

// detail returns all that an error of an agent says.
func detail(e *sdk.RequestError) string {
	text := e.Message
	if e.Data != nil {
		if data, err := json.Marshal(e.Data); err == nil {
			text += " " + string(data)
		}
	}
	return text
}

// refused classifies an error that the agent answered.
func (g *agent) refused(at stage, e *sdk.RequestError) error {
	text, name := detail(e), g.a.config.Name
	fail := func(kind fault.Kind, format string, args ...any) error {
		cause := fmt.Errorf("%s: the agent answered error %d: %s", at, e.Code, cut(g.a.redact.String(text), errDetail))
		return &fault.Error{Kind: kind, Public: strings.TrimSpace(fmt.Sprintf(format, args...)), Err: cause}
	}
	limited := saysLimit.MatchString(text) || saysQuota.MatchString(text)
	if wait, ok := limitEnds(text, time.Now()); ok && limited {
		err := fail(fault.RateLimited, "The usage limit of the agent %q is reached until %s.", name, time.Now().Add(wait).UTC().Format("2006-01-02 15:04 UTC"))
		return withWait(err, wait)
	}
	_, full := overflow.Reported(strings.ToLower(text))
	// Some use the code for whatever goes wrong in a turn, as JSON-RPC lets them.
	login := saysLogin.MatchString(text) || e.Code == codeAuthRequired && !limited && !full && !saysOverload.MatchString(text)
	switch {
	case login:
		return fail(fault.Unauthorized, "The agent %q is not logged in, or its key is refused. %s%s", name, g.waysIn, g.a.config.LoginHint)
	case full:
		return fail(fault.Exhausted, "This conversation is too long for the model of the agent %q. /new starts a new session; nothing is deleted.", name)
	case saysQuota.MatchString(text):
		return fail(fault.Exhausted, "The quota of the agent %q is used up. An operator needs to check its account.", name)
	case saysLimit.MatchString(text):
		return fail(fault.RateLimited, "The model of the agent %q is busy.", name)
	case saysModel.MatchString(text):
		return fail(fault.Unsupported, "The agent %q cannot use its model: there is no such model, or its account has no access to it. /handoff continues with another assistant.", name)
	case saysOverload.MatchString(text):
		return fail(fault.Unavailable, "The agent %q cannot reach its model right now.", name)
	case at == atStart:
		return fail(fault.Unsupported, "The agent %q refused to start. The reason is in the log; most likely its configuration is wrong.", name)
	case at == atSession:
		return fail(fault.Unavailable, "The agent %q could not open a session. The reason is in the log.", name)
	}
	return fail(fault.Unavailable, "The agent %q ended with an error. What it did so far is kept; the reason is in the log.", name)
}

// withWait adds how long to wait to an error of fail.
func withWait(err error, wait time.Duration) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		f.RetryAfter = wait
	}
	return err
}

// forgotten reports whether an answer to session/load or session/resume says
// that there is no such session.
func forgotten(err error) bool {
	e, ok := errors.AsType[*sdk.RequestError](err)
	return ok && e.Code != codeAuthRequired && (e.Code == codeNotFound || saysUnknown.MatchString(detail(e)))
}

// cut shortens text to about n bytes: it keeps the beginning and the end.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	head, tail := n*2/3, n/3
	return strings.ToValidUTF8(text[:head], "") +
		fmt.Sprintf("\n[… %d bytes left out …]\n", len(text)-head-tail) +
		strings.ToValidUTF8(text[len(text)-tail:], "")
}
