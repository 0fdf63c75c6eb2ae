package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

// maxDetail is how much a person is shown of a request, in bytes. It is twice the longest
// command of the bot's own tool: of a file that is written, changes and input are shown.
const maxDetail = 128 << 10

// maxAnswers is how many answers to a question of an agent are named.
const maxAnswers = 20

// ask is a permission request that has no answer yet.
type ask struct {
	id      json.RawMessage
	call    *call
	options []permissionOption
	cancel  context.CancelFunc
	pending bool // a person is asked
}

type permissionOption struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// verdict is the decision on an ask.
type verdict struct {
	ask *ask
	assistant.Verdict
	err error
}

// permission handles session/request_permission: the call goes on record, and a
// person is asked beside the turn.
func (r *run) permission(ctx context.Context, x arrival) error {
	var w struct {
		SessionID string             `json:"sessionId"`
		ToolCall  update             `json:"toolCall"`
		Options   []permissionOption `json:"options"`
	}
	if !decoded(x.permission, &w) {
		r.reply(ctx, x.id, canceledPermission())
		return nil
	}
	if r.asks[string(x.id)] != nil { // an answer would be one to either
		return r.agent.broken(ctx, atPrompt, errGarbage)
	}
	c, err := r.t.find(r.callID(w.SessionID, w.ToolCall.ToolCallID), true)
	if err != nil {
		return err
	}
	if err := r.t.merge(c, w.ToolCall); err != nil {
		return err
	}
	c.asking++
	if err := r.t.tell(c); err != nil {
		return err
	}
	q := &ask{id: x.id, call: c, options: w.Options, cancel: func() {}}
	if notice := q.unanswerable(); notice != "" {
		if err := r.t.emit(assistant.Notice{Text: notice}); err != nil {
			return err
		}
		return r.decided(ctx, verdict{ask: q})
	}
	if r.agent.tools.has(c.toolName()) && len(q.answers()) <= 1 {
		// The host judges it, knowing what it does, when it arrives: nobody is asked twice.
		c.asking--
		c.served = true
		r.reply(ctx, x.id, selectedPermission(q.option("allow_once", "allow_always")))
		return nil
	}
	host := r.turn.Host
	if host == nil {
		return r.decided(ctx, verdict{ask: q})
	}
	ctx, q.cancel = context.WithCancel(ctx)
	q.pending = true
	r.asks[string(x.id)] = q
	request := q.request()
	r.asking.Go(func() {
		v, err := host.Ask(ctx, request)
		select {
		case r.verdicts <- verdict{ask: q, Verdict: v, err: err}:
		case <-r.closed:
		case <-ctx.Done():
		}
	})
	return nil
}

// unanswerable returns what to tell a person about a request to which nobody
// could say yes, or nothing.
func (q *ask) unanswerable() string {
	if q.option("allow_once") != "" || q.forAlways() {
		return ""
	}
	return "The agent asked for permission but offered no way to grant it, so it was denied: " + q.call.summary()
}

// request is what a person is asked.
func (q *ask) request() assistant.Permission {
	c := q.call
	kind := cmp.Or(c.permissionKind(), assistant.KindOther)
	title := c.summary()
	if command := c.command(); command != "" {
		title = oneLine(command, maxTitle) // what runs, whatever it is called
	}
	detail := c.detail()
	answers, always := q.answers(), q.forAlways()
	if len(answers) > 1 && (kind == assistant.KindOther || kind == assistant.KindRead) {
		kind, always = assistant.KindQuestion, false
	}
	if len(answers) > 1 && detail != "" {
		detail += fmt.Sprintf("\n\nThe agent offers several answers: %s. If you allow this, the answer is %s.", strings.Join(answers, ", "), answers[0])
	}
	return assistant.Permission{
		Call: c.block(), Kind: kind, Title: title, Detail: detail,
		Always: always, OnlyAlways: q.option("allow_once") == "",
	}
}

// forAlways reports whether a person may say yes for always. A title is no rule: another effect
// may have it, too.
func (q *ask) forAlways() bool { return q.option("allow_always") != "" && present(q.call.input) }

// answers returns the names of what says yes for once. Some agents ask what a person would like so,
// with an option for each answer; a yes is the first, as in option.
func (q *ask) answers() (names []string) {
	for _, o := range q.options {
		if o.Kind == "allow_once" && o.ID != "" && len(names) < maxAnswers {
			names = append(names, "`"+strings.ReplaceAll(oneLine(cmp.Or(o.Name, o.ID), 100), "`", "'")+"`")
		}
	}
	return names
}

// option returns the id of the first option of the first kind that is offered.
func (q *ask) option(kinds ...string) string {
	for _, kind := range kinds {
		for _, o := range q.options {
			if o.Kind == kind && o.ID != "" {
				return o.ID
			}
		}
	}
	return ""
}

// decided answers the agent. A yes for once never becomes a yes for always. A yes for always is
// one for once where the agent takes that: what is asked from now on is answered by the rule that
// the person has seen, while what the agent would allow itself may be more, such as all commands
// that begin alike, or whatever it does next.
func (r *run) decided(ctx context.Context, v verdict) error {
	q := v.ask
	if q.pending && r.asks[string(q.id)] != q {
		return nil // it was taken back meanwhile
	}
	q.cancel()
	delete(r.asks, string(q.id))
	q.call.asking--
	if v.err != nil {
		r.agent.log.WarnContext(ctx, "nobody could be asked for a permission; it is refused", "err", v.err)
		v.Allow = false
	}
	permanent := v.Allow || fault.Is(v.err, fault.Unsupported)
	choice := ""
	switch {
	case v.Allow && v.Always:
		choice = q.option("allow_once", "allow_always")
	case v.Allow:
		choice = q.option("allow_once")
	}
	if choice != "" {
		if !q.call.ended { // on record before the agent hears it, and runs it
			if err := r.t.start(q.call); err != nil {
				return err
			}
		}
		r.reply(ctx, q.id, selectedPermission(choice))
		return nil
	}
	q.call.refused = true
	r.refused = q.call.summary()
	if choice = q.option("reject_once", "reject_always"); choice != "" {
		r.reply(ctx, q.id, selectedPermission(choice))
	} else {
		r.reply(ctx, q.id, canceledPermission())
	}
	if plan := q.call.plan(); plan != "" && (r.turn.Mode == "plan" || r.turn.Mode == "ask") {
		return r.t.say(q.call.id, plan) // it is what was asked for; Claude Code ends the turn with it
	}
	if !permanent {
		return nil
	}
	return r.t.emit(assistant.Notice{Text: "The agent accepts only a permanent permission for this, so it was denied: " + q.call.summary()})
}

// withdraw ends a request that the agent took back.
func (r *run) withdraw(ctx context.Context, params json.RawMessage) {
	var w struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if !decoded(params, &w) {
		return
	}
	if q := r.asks[string(w.RequestID)]; q != nil {
		r.takeBack(ctx, q)
	}
}

func (r *run) withdrawAll(ctx context.Context) {
	for _, q := range r.asks {
		r.takeBack(ctx, q)
	}
}

func (r *run) takeBack(ctx context.Context, q *ask) {
	q.cancel()
	delete(r.asks, string(q.id))
	q.call.asking--
	q.call.refused = true
	r.reply(ctx, q.id, canceledPermission())
}

// reply answers a request, also at the end of ctx. Should the agent not read, the queue of the
// connection holds the answer; should that be full, the agent is hung and the
// answer is lost on it.
func (r *run) reply(ctx context.Context, id json.RawMessage, answer permissionAnswer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startAfter)
	defer cancel()
	if err := r.agent.conn.answer(ctx, id, answer); err != nil {
		r.agent.log.DebugContext(ctx, "the agent did not accept an answer", "err", err)
	}
}

// permissionAnswer is the answer to session/request_permission.
type permissionAnswer struct {
	Outcome struct {
		Outcome string `json:"outcome"`
		Option  string `json:"optionId,omitempty"`
	} `json:"outcome"`
}

func selectedPermission(id string) (a permissionAnswer) {
	a.Outcome.Outcome, a.Outcome.Option = "selected", id
	return a
}

func canceledPermission() (a permissionAnswer) {
	a.Outcome.Outcome = string(sdk.StopReasonCancelled)
	return a
}

// detail returns the exact effect of a call as CommonMark: its command, its changes, else its
// input. Gemini CLI says what it runs in the title only. It is empty if that is too long to be
// shown whole.
func (c *call) detail() string {
	var blocks []string
	command, plan := c.command(), c.plan()
	switch {
	case command != "":
		blocks = append(blocks, fenced("sh", command))
	case plan != "":
		blocks = append(blocks, fenced("", plan))
	case !present(c.input) && brief(c.title) != c.title:
		blocks = append(blocks, fenced("", c.title))
	}
	for _, p := range c.question() {
		switch {
		case p.diff:
			blocks = append(blocks, fenced("diff", p.text))
		case command == "" || len(blocks) == 1:
			blocks = append(blocks, fenced("", p.text))
		}
	}
	if input := c.besideCommand(); present(input) {
		blocks = append(blocks, fenced("json", string(input)))
	}
	if len(blocks) == 0 {
		return "The agent gave no details."
	}
	if text := strings.Join(blocks, "\n\n"); len(text) <= maxDetail {
		return text
	}
	return ""
}

// question returns what is shown of the content: that of the request, and the changes that were
// announced unless the request has its own.
func (c *call) question() []part {
	told, changes := partsOf(c.asked), false
	for _, p := range told {
		changes = changes || p.diff
	}
	reason := len(told) > 0
	for _, p := range partsOf(c.content) {
		if !reason || p.diff && !changes {
			told = append(told, p)
		}
	}
	return told
}

// besideCommand returns what of the input a command or a plan does not show, such as its
// arguments or the folder that it runs in; all of it without either.
func (c *call) besideCommand() json.RawMessage {
	var w map[string]json.RawMessage
	if c.command() == "" && c.plan() == "" || json.Unmarshal(c.input, &w) != nil {
		return c.input
	}
	shown := "command"
	if commandLine(w[shown]) == "" {
		shown = "cmd"
	}
	if c.command() == "" {
		shown = "plan"
	}
	delete(w, shown)
	delete(w, "description") // what it is for
	var rest bytes.Buffer
	encoder := json.NewEncoder(&rest)
	encoder.SetEscapeHTML(false) // a person reads it
	if encoder.Encode(w) != nil {
		return c.input
	}
	return bytes.TrimSpace(rest.Bytes())
}

// fenced returns text as a code block that it cannot leave.
func fenced(language, text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + text + "\n" + fence
}
