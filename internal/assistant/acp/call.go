package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

const (
	maxArguments = 64 << 10 // of one call, in bytes
	maxResult    = 32 << 10 // kept of one result
	maxTerminal  = 256 << 10
	maxTitle     = 200
	maxCalls     = 10_000   // in one turn
	maxHeld      = 64 << 20 // of the calls that have not ended, and ids
)

// What stands for a result that the agent did not report.
const (
	noResult   = "The agent reported no result of this call."
	noReason   = "The agent reported that this failed, without a reason."
	notAllowed = "This was not allowed, so it did not run."
)

// call is a tool call of the agent. It is told (on record as pending), then
// started (executing), then ended. A call whose input the agent has not sent is
// not told yet; one that waits for a person is not started, and one that was
// refused never is.
type call struct {
	id, agentID string
	name        string
	title       string
	kind        string
	input       json.RawMessage
	content     json.RawMessage
	asked       json.RawMessage // the content of the last request for its permission
	output      json.RawMessage
	terminal    strings.Builder
	exit        *int
	held        int // bytes of all this, as the transcript counts them

	told, started, ended bool
	asking               int // permission requests that are not decided
	refused              bool
	served, arrived      bool // it is of the toolbox, and starts when it has arrived there and the host has judged it
}

// tool takes the report of a tool call.
func (t *transcript) tool(u update) error {
	c, err := t.find(u.ToolCallID, u.Kind == "tool_call")
	if err != nil || c == nil {
		return err
	}
	if err := t.merge(c, u); err != nil {
		return err
	}
	return t.advance(c, u.Status)
}

// merge takes over what an update says of a call, within what is kept of all.
func (t *transcript) merge(c *call, u update) error {
	c.merge(u)
	c.nameTool()
	held := len(c.title) + len(c.input) + len(c.content) + len(c.asked) + len(c.output) + c.terminal.Len()
	t.held += held - c.held
	if c.held = held; t.held > maxHeld {
		return errTooMuch
	}
	return nil
}

// find returns the call with the agent's id. A report on one that ended is nil,
// unless it announces another call with the same id.
func (t *transcript) find(agentID string, announced bool) (*call, error) {
	if c := t.calls[agentID]; c != nil && (!c.ended || !announced) {
		if c.ended {
			return nil, nil
		}
		return c, nil
	}
	if t.held += len(agentID); t.numbered >= maxCalls || t.held > maxHeld { // the id stays known
		return nil, errTooMuch
	}
	if t.calls == nil {
		t.calls = map[string]*call{}
	}
	c := &call{agentID: agentID, id: t.newID(agentID)}
	t.calls[agentID] = c
	t.order = append(t.order, c)
	return c, nil
}

// callID returns the id of a call among those of the turn: subagents may have sessions, and
// numbers, of their own.
func (r *run) callID(session, id string) string {
	if session == r.agent.session {
		return id
	}
	return session + "/" + id
}

// newID makes an id that no other call of the session has: agents number their
// calls from 1 in each process, or repeat an id.
func (t *transcript) newID(agentID string) string {
	t.numbered++
	id := fmt.Sprintf("%s_%s%d", agentID, t.suffix, t.numbered)
	return messages.SafeID(id)
}

// merge takes over what an update says. What it leaves out stays.
func (c *call) merge(u update) {
	c.title = cmp.Or(u.Title, c.title)
	c.kind = cmp.Or(brief(u.ToolKind), c.kind)
	c.name = cmp.Or(brief(u.Name), c.name, brief(u.Meta.ClaudeCode.ToolName))
	if present(u.RawInput) {
		c.input = u.RawInput
	}
	if present(u.RawOutput) {
		c.output = u.RawOutput
	}
	switch list := strings.TrimSpace(string(u.Content)); {
	case u.Kind == "" && c.held > 0: // a request about what was announced: often the reason, and never the result
		c.asked = u.Content
	case strings.HasPrefix(list, "[") && list != "[]":
		c.content = u.Content
	}
	for _, data := range []string{u.Meta.Terminal.Data, u.Meta.TerminalDelta.Data} {
		if c.terminal.Len() < maxTerminal {
			c.terminal.WriteString(data)
		}
	}
	if u.Meta.TerminalExit != nil {
		c.exit = u.Meta.TerminalExit.ExitCode
	}
}

// brief is what is kept of a title or a name.
func brief(text string) string { return strings.Clone(oneLine(text, maxTitle)) }

// present reports whether raw says anything.
func present(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw[:min(len(raw), 8)])) {
	case "", "null", "{}", `""`, "[]":
		return false
	}
	return true
}

// advance does what the state of a call and its reported status ask for.
func (t *transcript) advance(c *call, status string) error {
	over := status == "completed" || status == "failed"
	if present(c.input) && (status != "pending" || !c.awaitsCommand()) || over || status == "in_progress" || c.asking > 0 {
		if err := t.tell(c); err != nil {
			return err
		}
	}
	// An agent that runs what was refused is on record with it.
	// In progress is not enough: some say so before they ask for permission.
	if over && c.asking == 0 && (status == "completed" || !c.refused) {
		if err := t.start(c); err != nil {
			return err
		}
	}
	if !over {
		return nil
	}
	content, err := t.result(c)
	switch {
	case err != nil:
		return err
	case content != "" || status == "completed":
	case c.refused && !c.started:
		content = notAllowed
	default:
		content = noReason
	}
	return t.finish(c, status == "completed", content)
}

// tell yields the call as a message, once.
func (t *transcript) tell(c *call) error {
	if c.told {
		return nil
	}
	c.told = true
	return t.emit(assistant.MessageDone{Message: t.complete(c.block())})
}

// tellAll tells the calls of which no input came.
func (t *transcript) tellAll() error {
	for _, c := range t.open() {
		if err := t.tell(c); err != nil {
			return err
		}
	}
	return nil
}

// open returns the calls that have not ended, in order.
func (t *transcript) open() []*call {
	t.order = slices.DeleteFunc(t.order, func(c *call) bool { return c.ended })
	return slices.Clone(t.order)
}

// start reports that the call runs, once.
func (t *transcript) start(c *call) error {
	if c.started {
		return nil
	}
	c.started = true
	return t.emit(assistant.ToolStarted{ID: c.id, Name: c.toolName(), Summary: c.summary(), Kind: c.permissionKind()})
}

// unstarted reports whether there are calls that are told and wait for nobody.
func (t *transcript) unstarted() bool {
	return slices.ContainsFunc(t.order, func(c *call) bool { return c.waitsToStart() })
}

func (c *call) waitsToStart() bool {
	return c.told && !c.started && !c.ended && c.asking == 0 && !c.refused && !c.served
}

// startAll starts the calls for which the agent asked nobody.
func (t *transcript) startAll() error {
	for _, c := range t.open() {
		if c.waitsToStart() {
			if err := t.start(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish yields the result of a call.
func (t *transcript) finish(c *call, ok bool, content string) error {
	c.ended = true
	t.open() // forgets it in the order; its id stays known
	result := messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{messages.ToolResult{
		CallID: c.id, Name: c.toolName(), Content: content, IsError: !ok, Summary: brief(c.title),
	}}}
	c.content, c.asked, c.output, c.input, c.title = nil, nil, nil, nil, brief(c.title)
	t.held -= c.held
	c.terminal.Reset()
	if err := t.emit(assistant.MessageDone{Message: result}); err != nil || !c.started {
		return err
	}
	return t.emit(assistant.ToolFinished{ID: c.id, OK: ok})
}

// closeAll ends the calls that are open when the turn is over.
func (t *transcript) closeAll() error {
	for _, c := range t.open() {
		if err := t.tell(c); err != nil {
			return err
		}
		content := noResult
		if c.refused && !c.started {
			content = notAllowed
		}
		if err := t.finish(c, false, content); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) block() messages.ToolCall {
	return messages.ToolCall{ID: c.id, Name: c.toolName(), Arguments: c.arguments()}
}

func (c *call) toolName() string {
	return messages.SafeName(cmp.Or(c.name, c.kind))
}

// arguments returns the call's input as a JSON object.
func (c *call) arguments() string {
	switch {
	case !present(c.input):
		return object("title", cut(c.title, maxArguments/2))
	case len(c.input) > maxArguments:
		return object("input_shortened", cut(string(c.input), maxArguments/2))
	case c.input[0] == '{':
		return strings.ToValidUTF8(string(c.input), "\uFFFD")
	}
	return `{"input":` + strings.ToValidUTF8(string(c.input), "\uFFFD") + `}`
}

func object(key, value string) string {
	text, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		return "{}"
	}
	return string(text)
}

func (c *call) summary() string {
	return cmp.Or(brief(c.title), c.toolName())
}

// permissionKind maps the protocol's kinds. A call with a command runs a program,
// also where a front end takes it for reading.
func (c *call) permissionKind() assistant.PermissionKind {
	if c.command() != "" {
		return assistant.KindExecute
	}
	switch c.kind {
	case "read", "search", "think":
		return assistant.KindRead
	case "edit", "delete", "move":
		return assistant.KindWrite
	case "execute":
		return assistant.KindExecute
	case "fetch":
		return assistant.KindNetwork
	case "":
		return ""
	}
	return assistant.KindOther
}

// command returns the command line in the input, if there is one. Its name is looked for
// as agents do: a "Command" beside it is not what runs.
func (c *call) command() string {
	var w map[string]json.RawMessage
	if len(c.input) == 0 || json.Unmarshal(c.input, &w) != nil {
		return ""
	}
	return cmp.Or(commandLine(w["command"]), commandLine(w["cmd"]))
}

// awaitsCommand reports whether the input says only where a command will run, as opencode does
// before it says which.
func (c *call) awaitsCommand() bool {
	var w map[string]json.RawMessage
	return c.kind == "execute" && json.Unmarshal(c.input, &w) == nil && len(w) == 1 && w["cwd"] != nil
}

// plan returns the plan that the agent asks to carry out, if there is one.
func (c *call) plan() (text string) {
	var w map[string]json.RawMessage
	if c.kind == "switch_mode" && json.Unmarshal(c.input, &w) == nil {
		_ = json.Unmarshal(w["plan"], &text) // another one is no text
	}
	return text
}

// commandLine returns a command that is a line or a list of words; empty if it is neither.
func commandLine(raw json.RawMessage) string {
	var line string
	var words []string
	if json.Unmarshal(raw, &line) == nil {
		return line
	}
	if json.Unmarshal(raw, &words) != nil {
		return ""
	}
	for i, word := range words {
		words[i] = shellWord(word)
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word of an argv as a shell would have to read it.
func shellWord(word string) string {
	plain := word != "" && strings.IndexFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./=:,@%+", r)
	}) < 0
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// result returns the text of the result: what the tool printed, and what it
// changed. A picture that the agent did not just look at is for people.
func (t *transcript) result(c *call) (string, error) {
	var parts []string
	for _, p := range partsOf(c.content) {
		if p.picture != nil && c.permissionKind() != assistant.KindRead {
			text, err := t.shown(*p.picture)
			if err != nil {
				return "", err
			}
			p.text = text
		}
		parts = append(parts, p.text)
	}
	if c.terminal.Len() > 0 {
		parts = append(parts, c.terminal.String())
	}
	if len(parts) == 0 && present(c.output) {
		var text string
		if json.Unmarshal(c.output, &text) != nil {
			text = string(c.output)
		}
		parts = append(parts, text)
	}
	if c.exit != nil && *c.exit != 0 {
		parts = append(parts, fmt.Sprintf("[exit status %d]", *c.exit))
	}
	return cut(strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD"), maxResult), nil
}

// part is one piece of a call's content.
type part struct {
	text    string
	diff    bool
	picture *block
}

// partsOf returns the content that can be shown as text.
func partsOf(content json.RawMessage) []part {
	var list []struct {
		Type    string  `json:"type"`
		Content block   `json:"content"`
		Path    string  `json:"path"`
		OldText *string `json:"oldText"`
		NewText string  `json:"newText"`
	}
	if json.Unmarshal(content, &list) != nil {
		return nil
	}
	var parts []part
	for _, item := range list {
		switch item.Type {
		case "content":
			p := part{text: item.Content.text()}
			if item.Content.Type == "image" {
				p.picture = &item.Content
			}
			if p.text != "" {
				parts = append(parts, p)
			}
		case "diff":
			old := ""
			if item.OldText != nil {
				old = *item.OldText
			}
			parts = append(parts, part{text: diff(oneLine(item.Path, 1000), old, item.NewText, item.OldText == nil), diff: true})
		}
	}
	return parts
}

// diff returns one hunk that turns old into text: the lines between what both
// have at their beginning and at their end, with three lines around them.
func diff(path, old, text string, created bool) string {
	a, b := lines(old), lines(text)
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	endA, endB := len(a), len(b)
	for endA > from && endB > from && a[endA-1] == b[endB-1] {
		endA--
		endB--
	}
	const around = 3
	first, last := max(0, from-around), min(len(a), endA+around)
	source := "a/" + strings.TrimPrefix(path, "/")
	if created {
		source = "/dev/null"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ b/%s\n@@ -%d,%d +%d,%d @@\n", source, strings.TrimPrefix(path, "/"),
		min(first+1, len(a)), last-first, min(first+1, len(b)), endB+(last-endA)-first)
	write := func(sign string, lines []string) {
		for _, line := range lines {
			out.WriteString(sign + line + "\n")
		}
	}
	write(" ", a[first:from])
	write("-", a[from:endA])
	write("+", b[from:endB])
	write(" ", a[endA:last])
	return strings.TrimSuffix(out.String(), "\n")
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
