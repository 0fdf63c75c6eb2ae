package gitcmd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"unicode"

	"remote-agent/internal/egress"
	"remote-agent/internal/fault"
)

var (
	errTimeout = errors.New("it took too long")
	errTooBig  = errors.New("it is too large")
)

// Error is a run of git that failed. It holds no credential.
type Error struct {
	Command string // the subcommand
	Code    int    // exit code; -1 if it was ended by a signal or never started
	Stderr  string // the end of it
	Told    string // the beginning of what the remote said there, in one line
	Cause   error
}

// Error returns the text for the operator.
func (e *Error) Error() string {
	text := fmt.Sprintf("git %s: exit code %d", e.Command, e.Code)
	if e.Cause != nil {
		text = fmt.Sprintf("git %s: %v", e.Command, e.Cause)
	}
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// Unwrap returns the cause, such as a context's error.
func (e *Error) Unwrap() error { return e.Cause }

// ExitCode returns the exit code of git in err, or -1.
func ExitCode(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return -1
}

// explain classifies what went wrong with a call.
func explain(ctx context.Context, c *Call, err error, over bool, stderr string, grant *egress.Grant) error {
	e := &Error{Command: c.Args[0], Code: -1}
	e.Stderr, e.Told = clean(stderr, c.Remote, grant)
	exit, exited := errors.AsType[*exec.ExitError](err)
	if exited {
		e.Code = exit.ExitCode()
	}
	cause := context.Cause(ctx)
	refused, tooMuch := grant.Refusal()
	switch {
	case errors.Is(cause, errTooBig), tooMuch:
		e.Cause = errTooBig
		return &fault.Error{Kind: fault.Exhausted, Public: "The repository is larger than the size limit.", Err: e}
	case errors.Is(cause, errTimeout):
		e.Cause = errTimeout
		return &fault.Error{Kind: fault.Unavailable, Public: "Git took too long and was stopped.", Err: e}
	case cause != nil:
		e.Cause = cause
		return &fault.Error{Kind: fault.KindOf(cause), Err: e}
	case over:
		e.Cause = errors.New("too much output")
		return &fault.Error{Kind: fault.Exhausted, Public: "Git printed too much output.", Err: e}
	case refused != "":
		return &fault.Error{Kind: fault.Forbidden, Public: refused, Err: e}
	case !exited:
		e.Cause = err
		return &fault.Error{Kind: fault.Or(err, fault.Internal), Err: e}
	case c.Remote != nil:
		kind, public := judge(stderr, c.Remote)
		return &fault.Error{Kind: kind, Public: public, Err: e}
	case full(stderr):
		return &fault.Error{Kind: fault.Disk, Err: e}
	case c.Index != "" && strings.Contains(stderr, "Out of memory"):
		return &fault.Error{Kind: fault.Exhausted, Public: "A file in the worktree, such as a .gitignore, is too large for git. An operator has to remove it.", Err: e}
	}
	return &fault.Error{Kind: fault.Internal, Err: e}
}

// full reports whether git found no room on the disk. Of files of a worktree and of the
// index it says only that they could not be written.
func full(stderr string) bool {
	return slices.ContainsFunc([]string{"No space left on device", "Disk quota exceeded", "unable to write file", "unable to write new index file"},
		func(t string) bool { return strings.Contains(stderr, t) })
}

// httpStatus is how git begins to name the status that a host answered with.
const httpStatus = "The requested URL returned error: "

// judge reads what git says about a remote that did not work. The texts are those
// of git 2.30 and later in the C locale. What the host said is in lines of its own: it
// may say anything, so only whether it has a limit is read there.
func judge(stderr string, e *Endpoint) (kind fault.Kind, public string) {
	var git, theirs strings.Builder
	for line := range strings.SplitSeq(strings.ReplaceAll(stderr, "\r", "\n"), "\n") {
		if said, ok := strings.CutPrefix(line, "remote: "); ok {
			theirs.WriteString(strings.ToLower(said) + "\n")
		} else {
			git.WriteString(line + "\n")
		}
	}
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(git.String(), t) })
	}
	host, _, _ := strings.Cut(e.Address, ":")
	_, status, _ := strings.Cut(git.String(), httpStatus)
	if status = status[:min(len(status), 3)]; status == "429" || status == "403" && strings.Contains(theirs.String(), "rate limit") {
		return fault.RateLimited, host + " limits how often it may be asked. Try again later."
	} else if strings.HasPrefix(status, "5") {
		return fault.Unavailable, host + " is not available now (error " + status + "). Try again later."
	}
	switch {
	case full(git.String()):
		return fault.Disk, ""
	case has("Too many open files"):
		return fault.Descriptors, ""
	case has("Cannot allocate memory"):
		return fault.Memory, ""
	case has("returned error: 301", "returned error: 302", "returned error: 303", "returned error: 307", "returned error: 308", "redirects to"):
		return fault.Invalid, "The address redirects elsewhere, as after the repository was renamed or moved. Use `/clone` with its current address."
	case e.Token != "" && has("could not read Username", "Authentication failed", "returned error: 401", "returned error: 403"):
		return fault.Unauthorized, host + " rejected the configured token for this repository."
	case has("could not read Username", "Authentication failed", "returned error: 401", "returned error: 403"):
		return fault.NotFound, "There is no such repository at " + host + ", or it is private and no token is configured for it (GITHUB_TOKEN)."
	case has("not found", "returned error: 404", "does not appear to be a git repository", "not valid: is this a git repository"):
		return fault.NotFound, "There is no such repository at " + host + "."
	case has("SSL certificate", "server certificate verification failed", "TLS"):
		return fault.Unavailable, host + " does not have a valid certificate."
	}
	return fault.Unavailable, host + " did not send the repository. Try again later."
}

// maxTold is how much of what a remote says is told: enough for which rule it goes by.
const maxTold = 600

// clean takes credentials and control characters out of what git printed, and returns its end
// and what the remote said.
func clean(stderr string, e *Endpoint, grant *egress.Grant) (last, told string) {
	var secrets []string
	if e != nil && e.Token != "" {
		secrets = append(secrets, basic(e.Token), e.Token)
	}
	if grant != nil {
		if proxy, err := grant.URL(); err == nil {
			secrets = append(secrets, proxy)
		}
		secrets = append(secrets, grant.Secrets()...)
	}
	for _, s := range secrets {
		stderr = strings.ReplaceAll(stderr, s, "[redacted]")
	}
	var lines, theirs []string
	for line := range strings.SplitSeq(strings.ReplaceAll(stderr, "\r", "\n"), "\n") {
		line = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return ' '
			}
			return r
		}, line)
		if line = strings.TrimSpace(line); line == "" || strings.Contains(line, "% (") {
			continue
		}
		lines = append(lines, line)
		if words, ok := strings.CutPrefix(line, "remote: "); ok && strings.ContainsFunc(words, unicode.IsLetter) {
			theirs = append(theirs, strings.Fields(words)...)
		}
	}
	told = strings.Join(theirs, " ")
	if len(told) > maxTold {
		told = strings.ToValidUTF8(told[:maxTold], "") + "…"
	}
	if len(lines) > 8 {
		lines = lines[len(lines)-8:]
	}
	last = strings.Join(lines, "; ")
	if len(last) > 2000 {
		last = strings.ToValidUTF8(last[len(last)-2000:], "")
	}
	return last, told
}
