package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/commit"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/tool"
	"remote-agent/internal/wording"
)

// maxRule is the longest request of an agent, in bytes, that can be allowed from
// now on: a person has to take it in.
const maxRule = 500

// Tools hands out the tools of turns.
type Tools interface {
	// Open returns the tools of a turn: the same ones, in the same order, for
	// every turn of a session as far as possible. The caller closes the box.
	Open(ctx context.Context, t ToolTurn) (*tool.Box, error)

	// Missing returns which tools the profile of an opened turn names that there
	// are none of here. Those that only lack a codebase are not among them.
	Missing(t ToolTurn) []string
}

// ToolTurn says what the tools of a turn work on.
type ToolTurn struct {
	Conversation sessions.Conversation
	Entry        sessions.Entry // what is answered
	Dir          string         // the worktree, or the folder in it; empty without a codebase
	Tree         string         // the top of that worktree
	GitData      string         // git's data of its repository, to read; empty: none

	// Profile is the agent profile of the turn, nil for none: only the tools that it
	// names are offered, and those of its own MCP servers besides.
	Profile *profile.Profile

	// ProfileServersOnly is set for an assistant with tools of its own: besides these it is
	// offered only those of the profile's MCP servers.
	ProfileServersOnly bool
}

// host is what a running turn gets from the program: tools, and the people who
// decide about them. It lives as long as one run of a turn.
type host struct {
	r     *run
	p     *progress
	box   *tool.Box
	mode  approval.Mode
	agent bool // the assistant has tools of its own
	limit *turnLimit

	rounds  int64    // requests of earlier runs of this turn
	sofar   int64    // and of this one
	missing []string // tools that the profile names and that are gone

	mu       sync.Mutex // guards all below
	effects  map[string]tool.Effect
	recorded assistant.Usage // of this run, that is on record
	gallery  assistant.Gallery
}

var _ assistant.Host = (*host)(nil)

// openHost gets the tools of a turn ready. The turn runs without tools where
// nothing hands them out.
func (r *run) openHost(ctx context.Context, a assistant.Assistant, p *progress, limit *turnLimit) (*host, error) {
	h := &host{r: r, p: p, limit: limit, effects: make(map[string]tool.Effect), mode: r.mode()}
	_, h.agent = a.(assistant.Agent)
	box, err := tool.NewBox()
	if err != nil {
		return nil, err
	}
	h.box = box
	brings := r.d.begun.profile
	_, uses := a.(assistant.ToolUser)
	if r.w.o.config.Tools == nil || !uses && (!h.agent || brings == nil || len(brings.MCPServers) == 0) {
		return h, nil
	}
	turn := ToolTurn{
		Conversation: r.w.conv, Entry: r.d.entry, Profile: brings, ProfileServersOnly: h.agent,
		Dir: r.d.begun.work.Dir, Tree: r.d.begun.work.Tree, GitData: r.d.begun.work.GitData,
	}
	h.box, err = r.w.o.config.Tools.Open(ctx, turn)
	if err != nil {
		return nil, fmt.Errorf("open the tools: %w", err)
	}
	if brings != nil {
		h.missing = r.w.o.config.Tools.Missing(turn)
	}
	h.box.OnPanic(func(name string, value any, stack []byte) {
		r.w.o.config.Log.ErrorContext(ctx, "a tool panicked", "tool", name, "panic", fmt.Sprint(value), "stack", string(stack))
	})
	return h, nil
}

// mode returns how much may happen in a turn without asking. A turn that makes a
// plan only reads, and so does one of someone who may only ask.
func (r *run) mode() approval.Mode {
	if r.d.begun.role == sessions.Reader {
		return approval.ModeAsk
	}
	if p := r.d.begun.prompt; p != nil && p.Meta.Produces == sessions.Plan {
		return approval.ModeAsk
	}
	mode, err := approval.ParseMode(r.w.conv.Settings.Mode)
	if err != nil {
		mode = r.w.o.config.Mode
	}
	return capped(mode, r.d.begun.profile)
}

// modeName is the mode of a turn as assistants know it.
func (r *run) modeName() string {
	if p := r.d.begun.prompt; p != nil && p.Meta.Produces == sessions.Plan {
		return "plan"
	}
	mode := r.mode()
	if mode == approval.ModeAuto && r.d.begun.role != sessions.Owner {
		mode = approval.ModeEdit
	}
	return string(mode)
}

func (h *host) close() {
	if err := h.box.Close(); err != nil {
		h.r.w.o.config.Log.Warn("could not close the tools of a turn", "err", err)
	}
}

// Tools implements assistant.Host.
func (h *host) Tools() []messages.ToolSpec { return h.box.Specs() }

// Permit implements assistant.Host.
func (h *host) Permit(ctx context.Context, call messages.ToolCall) (assistant.Verdict, error) {
	effect, err := h.box.Effect(ctx, call)
	if err != nil {
		return assistant.Verdict{Reason: fault.Public(err)}, nil
	}
	h.mu.Lock()
	h.effects[call.ID] = effect
	h.mu.Unlock()
	if effect.Kind == assistant.KindRead {
		return assistant.Verdict{Allow: true}, nil
	}
	question := approval.Approval{
		CallID: call.ID, Tool: call.Name, Arguments: plainText(call.Arguments), Kind: effect.Kind,
		Title: effect.Summary, Detail: effect.Detail, Rule: effect.Rule,
	}
	if h.agent {
		return h.judgeAndWait(ctx, question)
	}
	asked, err := h.judge(ctx, question, 0)
	if err == nil && asked.waits {
		return assistant.Verdict{}, fmt.Errorf("%w: %s", assistant.ErrWaiting, asked.approval.Name())
	}
	return asked.verdict, err
}

// judge applies the mode and the rules to a call and asks a person where they do
// not decide.
func (h *host) judge(ctx context.Context, a approval.Approval, hold holdFor) (ruling, error) {
	var result ruling
	err := h.r.w.hold(ctx, func(tx port.Tx) (err error) {
		result = ruling{}
		ruled := false
		if !h.r.mayRule() {
			a.Rule = ""
		}
		if a.Rule != "" {
			if ruled, err = tx.Questions().HasRule(ctx, h.r.w.conv.CodebaseID, a.Tool, a.Rule); err != nil {
				return err
			}
		}
		verdict, reason := approval.Judge(h.mode, a.Kind, h.r.d.begun.role == sessions.Owner, ruled)
		switch verdict {
		case approval.Allow:
			result.verdict.Allow, result.verdict.Always = true, ruled
			return nil
		case approval.Refuse:
			result.verdict.Reason = reason
			if h.r.d.begun.role == sessions.Reader {
				result.verdict.Reason = "not run: the person who asks has read-only access. Say what you would do; somebody else can ask you to do it."
			}
			return nil
		case approval.Ask:
		}
		if reason, notice := h.r.w.o.unshown(a.Detail); reason != "" { // nobody allows what they cannot see whole
			result.verdict.Reason = reason
			result.deliveries, err = h.r.addNotices(ctx, tx, notice+wording.Literal(wording.Head(h.r.w.o.redact(a.Title), 300)))
			return err
		}
		result, err = h.r.consult(ctx, tx, a, hold)
		return err
	})
	if err == nil && !result.waits {
		h.r.sendTold(ctx, result.deliveries)
	}
	return result, err
}

// mayRule reports whether something can be allowed from now on: a rule is about the files of
// the codebase, not about what a pull request makes of them.
func (r *run) mayRule() bool { return r.w.conv.CodebaseID != "" && !foreign(r.d.entry) }

// foreign reports whether somebody else decides what is in the worktree of a
// turn: it is about a pull request.
func foreign(entry sessions.Entry) bool {
	r := entry.In.Repository
	return r != nil && (r.Existing || r.ReadOnly)
}

// Parallel implements assistant.Host.
func (h *host) Parallel(call messages.ToolCall) bool {
	return h.effect(call).Kind == assistant.KindRead
}

// Kind says what a call does, for the card.
func (h *host) Kind(call messages.ToolCall) assistant.PermissionKind { return h.effect(call).Kind }

// Describe implements assistant.Host.
func (h *host) Describe(call messages.ToolCall) string {
	return h.r.w.o.redact(h.effect(call).Summary)
}

func (h *host) effect(call messages.ToolCall) tool.Effect {
	h.mu.Lock()
	e, ok := h.effects[call.ID]
	h.mu.Unlock()
	if !ok { // a failed one still has its name as summary
		e, _ = h.box.Effect(h.r.w.ctx, call)
	}
	return e
}

// RunTool implements assistant.Host. What a tool returns goes to the model and
// to the record without the secrets that are known.
func (h *host) RunTool(ctx context.Context, call messages.ToolCall) (messages.ToolResult, []messages.Attachment) {
	begin := time.Now()
	result, note, shown := h.box.Run(ctx, call)
	took := time.Since(begin)
	failpoint.Hit(failpoint.CallRan)
	said, files, failed := h.show(ctx, shown)
	result.IsError = result.IsError || failed
	outcome := "ok"
	if result.IsError {
		outcome = "error"
	}
	h.r.w.o.config.Metrics.ToolRan(call.Name, outcome, took)
	result.Content, result.Summary = h.r.w.o.redact(result.Content)+said, h.r.w.o.redact(note)
	h.p.noteTool(call.ID, result.Summary)
	return result, files
}

// Ask implements assistant.Host: the person is asked in the chat and the agent
// waits. Its process cannot be put aside, so the turn keeps its place; the time
// does not count.
func (h *host) Ask(ctx context.Context, p assistant.Permission) (assistant.Verdict, error) {
	rule := ""
	unseen := tool.Unseen(p.Detail)
	if p.Always && len(p.Call.Arguments) <= maxRule && !strings.ContainsAny(p.Call.Arguments, "\n\r") && unseen == "" {
		rule = ruleOf(p)
	}
	p.Detail = strings.TrimSuffix(p.Detail, approval.Permanent) // it is not an agent's text that says so
	if p.OnlyAlways {
		if rule == "" || !h.r.mayRule() {
			return assistant.Verdict{}, fault.New(fault.Unsupported, "Nobody can allow this for always here.")
		}
		unseen += "\n\n" + approval.Permanent
	}
	if p.Kind == assistant.KindWrite && !h.r.w.o.config.Confined {
		p.Kind = assistant.KindOther // nothing keeps it inside the worktree
	}
	return h.judgeAndWait(ctx, approval.Approval{
		CallID: p.Call.ID, Tool: p.Call.Name, Arguments: plainText(p.Call.Arguments), Kind: p.Kind,
		Title: h.r.w.o.redact(tool.Visible(p.Title)), Detail: p.Detail + unseen, Rule: rule,
	})
}

// judgeAndWait is judge, and waits for the person who is asked: an agent cannot be put aside.
func (h *host) judgeAndWait(ctx context.Context, a approval.Approval) (assistant.Verdict, error) {
	asked, err := h.judge(ctx, a, holdForSender)
	if err != nil || !asked.waits {
		return asked.verdict, err
	}
	defer h.p.waitFor(asked.approval.Name())()
	resume := h.limit.pause()
	defer resume()
	h.r.w.slot.yield(h.r.w.o.slots)
	defer h.r.w.slot.resume(ctx, h.r.w.o.slots)
	h.r.sendTold(ctx, asked.deliveries)
	return h.awaitDecision(ctx, asked.approval.Number)
}

// ruleOf returns the rule that would allow a request of an agent from now on: all that it says,
// not the title that it chose. What a command is said to be for is another text each time, and
// has no effect.
func ruleOf(p assistant.Permission) string {
	var said map[string]json.RawMessage
	if p.Kind != assistant.KindExecute || json.Unmarshal([]byte(p.Call.Arguments), &said) != nil || said["command"] == nil || said["description"] == nil {
		return p.Call.Arguments
	}
	delete(said, "description")
	rule, err := json.Marshal(said)
	if err != nil {
		return p.Call.Arguments
	}
	return string(rule)
}

// Round implements assistant.Host.
func (h *host) Round(ctx context.Context, requests int, used assistant.Usage) ([]messages.Message, error) {
	var (
		steered []sessions.Entry
		said    []messages.Message
		asked   ruling
	)
	news, err := h.settle(ctx, assistant.Finished{Usage: used}, nil)
	rounds, last := h.rounds+int64(requests), h.r.d.entry.Seq
	h.sofar = rounds
	if n := len(h.r.taken); n > 0 {
		last = h.r.taken[n-1].Seq
	}
	if err != nil || !h.limited(rounds) && news.InboxSeq <= last { // nothing can wait behind the turn
		return nil, err
	}
	err = h.r.w.hold(ctx, func(tx port.Tx) (err error) {
		steered, said = nil, nil
		if asked, err = h.mayGoOn(ctx, tx, rounds); err != nil || asked.waits || asked.denied != nil {
			return err
		}
		steered, said, err = h.r.steer(ctx, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	switch {
	case asked.denied != nil:
		return nil, asked.denied
	case asked.waits:
		return nil, fmt.Errorf("%w: %s", assistant.ErrWaiting, asked.approval.Name())
	}
	for _, e := range steered {
		h.r.w.o.outbox.Unmark(e)
	}
	h.r.taken = append(h.r.taken, steered...)
	h.p.notes(len(steered))
	return said, nil
}

// recall finds out what earlier runs of the turn did: it counts, and is on the
// card.
func (h *host) recall(ctx context.Context) error {
	if !h.r.d.begun.again {
		return nil
	}
	var stored []messages.Message
	err := h.r.w.o.config.Storage.InRead(ctx, func(tx port.Tx) (err error) {
		stored, err = tx.Messages().RunMessages(ctx, h.r.d.entry.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("read what the turn did so far: %w", err)
	}
	h.rounds = 0
	files := 0
	results := make(map[string]messages.ToolResult)
	for _, m := range stored {
		if m.Role == messages.RoleAssistant {
			h.rounds++
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case messages.ToolResult:
				results[b.CallID] = b
			case messages.Attachment:
				files++
			case messages.Text, messages.ToolCall, messages.Thinking:
			}
		}
	}
	h.gallery.Resume(files)
	var done []row
	for _, m := range stored {
		for _, b := range m.Blocks {
			call, ok := b.(messages.ToolCall)
			result, ended := results[call.ID]
			if !ok || !ended {
				continue
			}
			did := row{note: result.Summary, done: true, ok: !result.IsError}
			effect, _ := h.box.Effect(ctx, call) // a failed one still has its name as summary
			if did.kind, did.text = effect.Kind, effect.Summary; h.agent && did.note != "" {
				did.text, did.note = did.note, "" // only an agent knows what a call of its own does
			}
			did.text = h.r.w.o.redact(wording.OneLine(did.text))
			done = append(done, did)
		}
	}
	h.p.update(func(c *card) { c.rows, c.byID = done, make(map[string]int) })
	return nil
}

// settle records what the run has used so far, and in the same transaction what depends
// on that, if anything does.
func (h *host) settle(ctx context.Context, f assistant.Finished, what func(tx port.Tx) error) (news commit.News, err error) {
	c, storage := commit.Changes{Usage: h.unrecorded(f)}, h.r.w.o.config.Storage
	if what == nil {
		news, err = storage.Commit(ctx, h.r.w.lease, c)
	} else {
		err = storage.InTx(ctx, func(tx port.Tx) (err error) {
			if news, err = tx.Leases().Apply(ctx, h.r.w.lease, c); err != nil {
				return err
			}
			return what(tx)
		})
	}
	if err == nil {
		h.mu.Lock()
		h.recorded = f.Usage
		h.mu.Unlock()
	}
	return news, err
}

// plainText is text as the database keeps it, so that the sum over what is
// stored is the sum over what was asked.
func plainText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// redact removes the secrets that are known from a text.
func (o *Turns) redact(text string) string {
	if o.config.Redact == nil || text == "" {
		return text
	}
	return o.config.Redact(text)
}

// redactPart removes the secrets that are known from a text that goes on, also
// those of which only a part is there yet.
func (o *Turns) redactPart(text string) string {
	if o.config.RedactPart == nil {
		return o.redact(text)
	}
	return o.config.RedactPart(text)
}

// redactMessage removes the secrets that are known from what is stored and shown
// of a message. Signed thinking stays as it is: it goes back to its provider only.
// The arguments of an agent's calls are a record; those of a model's calls are
// what runs, and they hold only what the model was given.
func (o *Turns) redactMessage(m messages.Message, agent bool) messages.Message {
	if o.config.Redact == nil {
		return m
	}
	blocks := make([]messages.Block, len(m.Blocks))
	for i, b := range m.Blocks {
		switch b := b.(type) {
		case messages.Text:
			blocks[i] = messages.Text{Text: o.redact(b.Text)}
		case messages.ToolResult:
			b.Content, b.Summary = o.redact(b.Content), o.redact(b.Summary)
			blocks[i] = b
		case messages.ToolCall:
			if agent {
				b.Arguments = o.redact(b.Arguments)
			}
			blocks[i] = b
		case messages.Thinking:
			if b.Signature == "" {
				b.Text = o.redact(b.Text)
			}
			blocks[i] = b
		case messages.Attachment:
			blocks[i] = b
		}
	}
	m.Blocks = blocks
	return m
}
