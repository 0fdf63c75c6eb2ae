package acpagent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Script is what the agent does. The zero value answers every prompt with its
// own text and forgets its sessions when it ends.
type Script struct {
	Protocol int  `json:"protocol,omitempty"` // what initialize answers; 0 means 1
	Load     bool `json:"load,omitempty"`     // offers session/load, which replays
	Resume   bool `json:"resume,omitempty"`   // offers session/resume, which does not

	Renames bool `json:"renames,omitempty"` // what it resumes goes on as a session with another id

	Images bool `json:"images,omitempty"` // takes pictures in prompts
	HTTP   bool `json:"http,omitempty"`   // takes MCP servers by their address

	// Login is what it says of its login after initialize, as Claude Code and Codex
	// do; empty: it has no such habit. "silent" promises it and says nothing.
	Login json.RawMessage `json:"login,omitempty"`

	// Ways is what initialize answers as authMethods. Locked refuses every session until
	// authenticate has named one of these; Auth is done when that arrives.
	Ways   []Way  `json:"ways,omitempty"`
	Locked bool   `json:"locked,omitempty"`
	Auth   []Step `json:"auth,omitempty"`

	Modes  []string `json:"modes,omitempty"`  // session modes; the first is current
	Models []string `json:"models,omitempty"` // models to choose from; the first is current

	// Start is done before anything is read. Init, Open and Mode are done when
	// initialize, session/new or session/set_mode arrives; if they end without
	// Error, Hang or Exit, the request is answered.
	Start []Step `json:"start,omitempty"`
	Init  []Step `json:"init,omitempty"`
	Open  []Step `json:"open,omitempty"`
	Mode  []Step `json:"mode,omitempty"`

	// Turns are asked in order for the first that fits the prompt. Without one,
	// the prompt is echoed.
	Turns []Turn `json:"turns,omitempty"`

	// Unknown is what session/load and session/resume answer for an id that the
	// agent does not know; nil means code -32002.
	Unknown *Error `json:"unknown,omitempty"`

	// State is a directory in which sessions outlive the process. Record is a
	// file to which every line that arrives is appended, and one {"started":pid}
	// for each start.
	State  string `json:"state,omitempty"`
	Record string `json:"record,omitempty"`
}

// Way is a way to authenticate.
type Way struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"` // empty is that of an agent that does it by itself
	Vars        []Var  `json:"vars,omitempty"` // of the type "env_var"
}

// Var is a variable of the environment that a way to authenticate needs.
type Var struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"`
}

// Turn is how the agent answers a prompt.
type Turn struct {
	Match string `json:"match,omitempty"` // a part of the prompt; empty fits all
	Nth   int    `json:"nth,omitempty"`   // only the n-th prompt of this process, from 1; 0 fits all
	Steps []Step `json:"steps,omitempty"` // after the last, the turn stops with "end_turn"
}

// Step is one thing that the agent does. Exactly one field is set, besides
// Times, which repeats it.
type Step struct {
	Times int `json:"times,omitempty"` // 0 means once

	Say   string  `json:"say,omitempty"`   // a piece of the answer; %PROMPT% stands for the prompt, %FILES% for the types and sizes of its files
	Think string  `json:"think,omitempty"` // a piece of reasoning
	Tool  *Tool   `json:"tool,omitempty"`  // a whole tool call
	Plan  []Entry `json:"plan,omitempty"`  // the plan
	Usage *Usage  `json:"usage,omitempty"` // the context, and what the session cost so far
	Use   *Use    `json:"use,omitempty"`   // a call of a tool of an MCP server

	Update  json.RawMessage `json:"update,omitempty"`  // a session/update as it is
	Session string          `json:"session,omitempty"` // with Update: for this session instead of the prompt's
	Request json.RawMessage `json:"request,omitempty"` // {"method","params"}: asks, and waits for the answer; %SESSION% stands for the id

	Line   string `json:"line,omitempty"`   // a line on stdout as it is, but for %SESSION%
	Raw    string `json:"raw,omitempty"`    // bytes on stdout, without a line end
	Fill   int    `json:"fill,omitempty"`   // so many bytes without a line end on stdout
	Stderr string `json:"stderr,omitempty"` // text on stderr

	Pause       string `json:"pause,omitempty"`        // a duration
	AwaitCancel bool   `json:"await_cancel,omitempty"` // waits for session/cancel
	Touch       string `json:"touch,omitempty"`        // makes a file
	AwaitFile   string `json:"await_file,omitempty"`   // waits until a file is there
	Fork        string `json:"fork,omitempty"`         // starts a child that keeps stdout open, and writes its pid to this file

	Hang    bool   `json:"hang,omitempty"`     // does nothing more, whatever comes
	Deaf    bool   `json:"deaf,omitempty"`     // ignores SIGTERM and the end of stdin from now on
	Exit    *int   `json:"exit,omitempty"`     // ends the process
	Error   *Error `json:"error,omitempty"`    // answers the request with an error
	Stop    *Stop  `json:"stop,omitempty"`     // answers the prompt
	NoReply bool   `json:"no_reply,omitempty"` // the request is never answered, but the agent goes on
}

// Tool is a tool call with all its updates.
type Tool struct {
	ID       string          `json:"id"`
	Name     string          `json:"name,omitempty"`
	Title    string          `json:"title,omitempty"`
	Kind     string          `json:"kind,omitempty"`  // empty means "execute"
	Input    json.RawMessage `json:"input,omitempty"` // rawInput
	Content  json.RawMessage `json:"content,omitempty"`
	Output   string          `json:"output,omitempty"`    // text of the result
	Failed   bool            `json:"failed,omitempty"`    // it ends as failed
	Late     bool            `json:"late,omitempty"`      // the input comes with an update of its own
	Endless  bool            `json:"endless,omitempty"`   // it never ends
	Ask      []Option        `json:"ask,omitempty"`       // asks for permission first, with these options
	TakeBack string          `json:"take_back,omitempty"` // takes the request for permission back once this file is there
	Write    string          `json:"write,omitempty"`     // if it runs, makes this file, relative to the session's directory
	AskEmpty bool            `json:"ask_empty,omitempty"` // asks for permission without any option
}

// Option is an answer to a permission request. Its id is "id-" and the kind.
type Option struct {
	Kind string `json:"kind"` // allow_once, allow_always, reject_once, reject_always
}

// Options returns one option of each kind.
func Options(kinds ...string) []Option {
	options := make([]Option, len(kinds))
	for i, k := range kinds {
		options[i] = Option{Kind: k}
	}
	return options
}

// Entry is a step of a plan.
type Entry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// Usage is the state of a session.
type Usage struct {
	Used int      `json:"used"`
	Size int      `json:"size"`
	Cost *float64 `json:"-"` // of the whole session so far, in USD
}

// MarshalJSON writes the protocol's form.
func (u Usage) MarshalJSON() ([]byte, error) {
	m := map[string]any{"used": u.Used, "size": u.Size}
	if u.Cost != nil {
		m["cost"] = map[string]any{"amount": *u.Cost, "currency": "USD"}
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads the protocol's form.
func (u *Usage) UnmarshalJSON(b []byte) error {
	var w struct {
		Used, Size int
		Cost       *struct{ Amount float64 }
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	u.Used, u.Size = w.Used, w.Size
	if w.Cost != nil {
		u.Cost = &w.Cost.Amount
	}
	return nil
}

// Canceled is the stop reason of a turn that the client ended.
const Canceled = "cancelled" //nolint:misspell // the protocol's spelling

// Stop ends a turn.
type Stop struct {
	Reason string           `json:"reason"`
	Tokens map[string]int64 `json:"tokens,omitempty"` // the "usage" of the response
}

// Error is an answer of JSON-RPC.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Says returns a script that answers every prompt with the pieces.
func Says(pieces ...string) Script {
	steps := make([]Step, len(pieces))
	for i, p := range pieces {
		steps[i] = Step{Say: p}
	}
	return Does(steps...)
}

// Does returns a script that takes the same steps for every prompt.
func Does(steps ...Step) Script { return Script{Turns: []Turn{{Steps: steps}}} }

// hijackArg is the first argument of a program that is to be the agent.
const hijackArg = "be-the-scripted-acp-agent"

// Command writes the script into dir and returns the argv of a program that
// plays it: this program, which calls Hijack.
func Command(dir string, s Script) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing the script: %w", err)
	}
	path := filepath.Join(dir, "acp-script.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	return []string{self, hijackArg, path}, nil
}

// fits returns the steps for a prompt.
func (s Script) fits(prompt string, nth int) []Step {
	for _, t := range s.Turns {
		if (t.Nth == 0 || t.Nth == nth) && strings.Contains(prompt, t.Match) {
			return t.Steps
		}
	}
	return []Step{{Say: "You said: "}, {Say: "%PROMPT%"}}
}
