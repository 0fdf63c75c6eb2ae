// Package shell has the tool bash. It runs nothing itself: a Runner does, which
// decides how far the command is confined.
package shell

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/tool"
)

// Name is the name of the tool.
const Name = "bash"

const (
	// DefaultTimeout is how long a command may run if the model does not say.
	DefaultTimeout = 2 * time.Minute
	// MaxTimeout is the longest time that a model can ask for.
	MaxTimeout = 10 * time.Minute
	// MaxOutput is how much of the output of a command is kept, in bytes: half of
	// it from the start and half from the end.
	MaxOutput = 64 << 10

	maxCommand     = 64 << 10 // bytes
	maxRule        = 500      // bytes
	maxDescription = 200      // runes
)

// Command is what a Runner runs.
type Command struct {
	Argv    []string
	Dir     string // absolute
	Timeout time.Duration

	// Head and Tail are how many bytes of the output, stdout and stderr together
	// in the order of writing, are kept from its start and its end.
	Head, Tail int
}

// Outcome is how a command ended.
type Outcome struct {
	ExitCode int    // as a shell gives it: 128 + n after signal n
	Head     []byte // the start of the output
	Tail     []byte // the end of it, without what is in Head
	Total    int64  // bytes of the whole output
	TimedOut bool   // it was ended because its time was over
	Over     string // why else it was ended, as in "it used more than 4 GiB of memory"; empty if it was not
}

// Runner runs a program and waits for its end. When it returns, the program and
// all that it started are gone, also after a timeout and after the end of ctx,
// which must take no more than about 2 s. A program that fails is an Outcome; an
// error means that it could not be started, or that ctx ended: then the outcome
// has the output so far. It is safe for concurrent use.
type Runner func(ctx context.Context, c Command) (Outcome, error)

// Options says how commands run.
type Options struct {
	Dir   string   // the directory they start in, absolute
	Shell []string // what the command is appended to; {"bash", "-c"} if empty

	// Timeout is used if the model gives none, and MaxTimeout is the most that it
	// can ask for. Zero means DefaultTimeout and MaxTimeout.
	Timeout, MaxTimeout time.Duration

	// Note is added to the description for the model, such as what the sandbox
	// forbids. May be empty.
	Note string
}

type shell struct {
	run  Runner
	opts Options
	spec messages.ToolSpec
}

// New returns the tool. Its effect has assistant.KindExecute; the rule is the
// whole command, and empty for one that a person cannot take in at a glance:
// several lines, more than 500 bytes, or characters that cannot be seen.
func New(run Runner, opts Options) tool.Tool {
	if len(opts.Shell) == 0 {
		opts.Shell = []string{"bash", "-c"}
	}
	opts.Timeout = cmp.Or(opts.Timeout, DefaultTimeout)
	opts.MaxTimeout = max(cmp.Or(opts.MaxTimeout, MaxTimeout), opts.Timeout)
	seconds := func(d time.Duration) int { return int(d / time.Second) }
	return &shell{run: run, opts: opts, spec: messages.ToolSpec{
		Name: Name,
		Description: strings.TrimSpace(fmt.Sprintf("Run a shell command in the top folder of the worktree and return its output and exit code. "+
			"Each call is a new shell without input or terminal; everything it started is ended with it. "+
			"It is ended after %d seconds unless timeout_seconds says otherwise. Of long output the middle is left out. %s", seconds(opts.Timeout), opts.Note)),
		Schema: fmt.Appendf(nil, `{"type":"object","properties":{`+
			`"command":{"type":"string","description":"The command"},`+
			`"timeout_seconds":{"type":"integer","minimum":1,"maximum":%d},`+
			`"description":{"type":"string","description":"What it is for, in a few words, for people"}},`+
			`"required":["command"],"additionalProperties":false}`, seconds(opts.MaxTimeout)),
	}}
}

// Spec implements tool.Tool.
func (s *shell) Spec() messages.ToolSpec { return s.spec }

type arguments struct {
	Command     string `json:"command"`
	Timeout     int64  `json:"timeout_seconds"`
	Description string `json:"description"`
}

func (s *shell) arguments(raw json.RawMessage) (a arguments, timeout time.Duration, err error) {
	if err := tool.Decode(raw, &a); err != nil {
		return a, 0, err
	}
	switch {
	case strings.TrimSpace(a.Command) == "":
		return a, 0, fault.New(fault.Invalid, `"command" is missing.`)
	case len(a.Command) > maxCommand:
		return a, 0, fault.Newf(fault.Invalid, "The command is longer than %d KiB. Write a script file and run that.", maxCommand>>10)
	case strings.ContainsRune(a.Command, 0):
		return a, 0, fault.New(fault.Invalid, "The command contains a NUL character.")
	case a.Timeout < 0 || a.Timeout > int64(s.opts.MaxTimeout/time.Second):
		return a, 0, fault.Newf(fault.Invalid, `"timeout_seconds" is 1 to %d.`, int64(s.opts.MaxTimeout/time.Second))
	}
	timeout = s.opts.Timeout
	if a.Timeout > 0 {
		timeout = time.Duration(a.Timeout) * time.Second
	}
	return a, timeout, nil
}

// Effect implements tool.Tool.
func (s *shell) Effect(_ context.Context, raw json.RawMessage) (tool.Effect, error) {
	a, timeout, err := s.arguments(raw)
	e := tool.Effect{Kind: assistant.KindExecute, Summary: tool.Line(a.Command, tool.MaxSummary)}
	if err != nil {
		return e, err
	}
	e.Detail = tool.Exact("sh", a.Command)
	if why := tool.Line(a.Description, maxDescription); why != "" {
		e.Detail += "\n\nThe assistant says: " + why
	}
	e.Detail += fmt.Sprintf("\n\nTime limit: %s", limit(timeout))
	if len(a.Command) <= maxRule && !strings.ContainsAny(a.Command, "\r\n") && len(tool.Hidden(a.Command)) == 0 {
		e.Rule = a.Command
	}
	return e, nil
}

// limit writes a time limit as a person reads it: 2 min, 90 s.
func limit(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

// Run implements tool.Tool.
func (s *shell) Run(ctx context.Context, raw json.RawMessage) (tool.Result, error) {
	a, timeout, err := s.arguments(raw)
	if err != nil {
		return tool.Result{}, err
	}
	started := time.Now()
	out, err := s.run(ctx, Command{
		Argv:    append(append([]string(nil), s.opts.Shell...), a.Command),
		Dir:     s.opts.Dir,
		Timeout: timeout,
		Head:    MaxOutput / 2,
		Tail:    MaxOutput / 2,
	})
	took := time.Since(started)
	left := out.Total - int64(len(out.Head)) - int64(len(out.Tail))
	output := cmp.Or(strings.TrimRight(tool.Join(plain(out.Head), plain(out.Tail), left), "\n"), "(no output)")
	switch {
	case ctx.Err() != nil:
		return result(output, "stopped before it ended", "stopped", took, true), nil //nolint:nilerr // the output so far is the answer
	case err != nil:
		return tool.Result{}, fmt.Errorf("run a command: %w", err)
	case out.TimedOut:
		return result(output, fmt.Sprintf("ended because it ran longer than %s; give a longer timeout_seconds, or split the work", timeout), "timed out", took, true), nil
	case out.Over != "":
		return result(output, "ended because "+out.Over, "ended: "+out.Over, took, true), nil
	}
	end := fmt.Sprintf("exit %d", out.ExitCode)
	return result(output, fmt.Sprintf("exit code %d", out.ExitCode), end, took, out.ExitCode != 0), nil
}

func result(output, how, note string, took time.Duration, failed bool) tool.Result {
	seconds := fmt.Sprintf("%.1f s", took.Seconds())
	if took >= 10*time.Second {
		seconds = fmt.Sprintf("%.0f s", math.Round(took.Seconds()))
	}
	return tool.Result{Content: fmt.Sprintf("%s\n[%s, %s]", output, how, seconds), IsError: failed, Note: note + ", " + seconds}
}

// sequence is a control sequence of a terminal (ECMA-48): CSI, OSC and the like,
// or a single escape.
var sequence = pattern.Lazy("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")

// plain makes text for a model of the output of a program: without the control
// sequences of terminals, and of a line that was written over with carriage
// returns only the last state.
func plain(output []byte) string {
	text := strings.ToValidUTF8(string(output), "\uFFFD")
	if strings.Contains(text, "\x1b") {
		text = sequence.ReplaceAllString(text, "")
	}
	if !strings.ContainsFunc(text, isControl) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		body, hasEnd := strings.CutSuffix(line, "\n")
		body = strings.TrimRight(body, "\r")
		body = body[strings.LastIndexByte(body, '\r')+1:]
		b.WriteString(strings.Map(func(r rune) rune {
			if isControl(r) {
				return -1
			}
			return r
		}, body))
		if hasEnd {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func isControl(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }
