// Package anthropic asks Anthropic's Messages API, or any server that speaks it.
// It keeps no state between requests: the whole message array goes out with each
// one.
//
// Prompt caching is on. A request marks the last tool, the system prompt and the
// last two user turns as ends of a prefix, and the same array is sent byte for
// byte the same every time, so that each round of a tool loop reads what the
// round before it wrote. The marks themselves are no part of the prefix.
//
// Thinking is kept with its signature and sent back as it was, to the model that
// wrote it only. What the provider redacted is kept too: as a
// messages.Thinking without text whose Signature is "redacted:" and the opaque
// data.
//
// Nothing of the provider's wording reaches a person: errors are classified in
// this package, and their texts are our own.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/modelhttp"
	"remote-agent/internal/fault"
)

// Name is what conversations of this assistant are stored under.
const Name assistant.Name = "anthropic"

// ThinkingAdaptive is a Config.ThinkingBudget that leaves to the model how much
// it thinks. The newest models take no other.
const ThinkingAdaptive = -1

const (
	defaultBaseURL     = "https://api.anthropic.com"
	defaultIdleTimeout = 90 * time.Second
	defaultMaxTokens   = 16384 // below the limit of every current model
	minThinkingBudget  = 1024  // the API's

	// maxPauses is how often the API may interrupt an answer to have the request
	// sent again with what came so far.
	maxPauses = 8
)

// Config says which API to ask.
type Config struct {
	APIKey  string // may be empty if BaseURL is set
	BaseURL string // of any compatible API, with or without /v1; empty means Anthropic's
	Model   string

	// MaxTokens is the longest answer, thinking included. Zero means 16,384, and
	// the thinking budget on top of that.
	MaxTokens int

	// ThinkingBudget is how many tokens the model may think: 0 turns thinking
	// off, ThinkingAdaptive leaves it to the model; else at least 1,024 and less
	// than MaxTokens.
	ThinkingBudget int

	// Effort is how much the model does for an answer, thinking included: low,
	// medium, high, xhigh or max, as far as the model has it. Empty leaves it to
	// the API.
	Effort string

	// IdleTimeout is the longest silence of the API between two bytes of an answer; pings
	// count as bytes. Zero means 90 s. It is also what Anthropic's own API, which answers at
	// once, has for the first byte; others have modelhttp.FirstByte.
	IdleTimeout time.Duration

	// HTTPClient is used with its transport and its own timeout, but without
	// its redirect policy: redirects are refused, because the conversation
	// would follow them. Nil means a client made for many streams at once.
	HTTPClient *http.Client

	Log *slog.Logger // nil means no log
}

// Model asks the API. It is safe for concurrent use.
type Model struct {
	http      *http.Client
	address   string
	model     atomic.Pointer[string]
	maxTokens int
	thinking  int
	effort    string
	first     time.Duration // the longest silence before an answer
	idle      time.Duration
	key       string
	public    bool // the API is Anthropic's own
	log       *slog.Logger
	forms     sync.Map // by the name of the model, the form that it takes

	encodings modelhttp.Encodings
}

var _ assistant.Model = (*Model)(nil)

// New checks c and does no I/O. Its errors are fault.Invalid and name the option
// to change.
func New(c Config) (*Model, error) {
	key := strings.TrimSpace(c.APIKey)
	base, err := baseURL(c.BaseURL)
	if err != nil {
		return nil, err
	}
	if err := words.Check(key, c.BaseURL, c.Model); err != nil {
		return nil, err
	}
	if err := c.checkLimits(); err != nil {
		return nil, err
	}
	m := &Model{
		http: modelhttp.Client(c.HTTPClient), address: base + "/v1/messages",
		maxTokens: c.MaxTokens, thinking: c.ThinkingBudget, effort: c.Effort,
		idle: c.IdleTimeout, key: key, public: base == defaultBaseURL, log: c.Log,
	}
	m.SetModel(c.Model)
	m.maxTokens = cmp.Or(m.maxTokens, defaultMaxTokens+max(m.thinking, 0))
	if m.idle <= 0 {
		m.idle = defaultIdleTimeout
	}
	if m.first = modelhttp.FirstByte; m.public {
		m.first = m.idle
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	return m, nil
}

func (c Config) checkLimits() error {
	efforts := []string{"low", "medium", "high", "xhigh", "max"}
	switch {
	case c.MaxTokens < 0:
		return fault.New(fault.Invalid, "ANTHROPIC_MAX_TOKENS is negative. Set it to the longest answer in tokens, or 0 for the default.")
	case c.ThinkingBudget != 0 && c.ThinkingBudget != ThinkingAdaptive && c.ThinkingBudget < minThinkingBudget:
		return fault.Newf(fault.Invalid, "ANTHROPIC_THINKING_TOKENS must be 0 (off), %d (the model decides) or at least %d tokens.",
			ThinkingAdaptive, minThinkingBudget)
	case c.MaxTokens > 0 && c.ThinkingBudget >= c.MaxTokens:
		return fault.New(fault.Invalid, "ANTHROPIC_THINKING_TOKENS must be less than ANTHROPIC_MAX_TOKENS, which holds the thinking and the answer.")
	case c.Effort != "" && !slices.Contains(efforts, c.Effort):
		return fault.Newf(fault.Invalid, "ANTHROPIC_EFFORT must be empty or one of %s.", strings.Join(efforts, ", "))
	}
	return nil
}

// baseURL returns the address of the API without the /v1 that its paths begin with.
func baseURL(raw string) (string, error) {
	base, err := words.Address(raw)
	if err != nil || base == "" {
		return defaultBaseURL, err
	}
	return strings.TrimRight(strings.TrimSuffix(base, "/v1"), "/"), nil
}

// Name implements assistant.Model.
func (m *Model) Name() assistant.Name { return Name }

// Model implements assistant.Model.
func (m *Model) Model() string { return *m.model.Load() }

// SetModel changes the model of requests that name none, from the next one on.
func (m *Model) SetModel(name string) { m.model.Store(new(strings.TrimSpace(name))) }

// CloseIdleConnections closes the connections that no request uses.
func (m *Model) CloseIdleConnections() { m.http.CloseIdleConnections() }

// Models implements assistant.Lister.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(m.address, "messages")+"models?limit=1000", nil)
	if err != nil {
		return nil, err
	}
	m.identify(req)
	return modelhttp.Models(m.http, req)
}

// Complete implements assistant.Model. Beyond its contract:
//
//   - An answer cut at the output limit is kept, with a visible note at its end
//     and without its calls. One without any text is fault.Exhausted.
//   - A refusal, or the provider's content filter, is fault.Invalid.
//   - An answer without text and calls is fault.Unavailable: another try may
//     bring one.
//   - Each call of the message has an id; one that the API left out is made up.
//   - A turn that the API pauses is continued, at most 8 times, and comes out as
//     one message.
//   - If the API does not take the thinking in the array back (a stored text that
//     changed, a name that stands for another model now), the request is sent
//     once more without any, so that the conversation is not stuck.
//   - A model that refuses the thinking or the effort that is set is asked once more,
//     for the other kind of thinking, then for none, or without an effort. What it took is
//     what it gets from then on.
func (m *Model) Complete(ctx context.Context, r assistant.Request) iter.Seq2[assistant.Event, error] {
	return assistant.Events(func(emit assistant.Emit) error {
		c := completion{model: m, request: r, name: cmp.Or(r.Model, m.Model()), emit: emit, started: time.Now()}
		err := c.do(ctx)
		return emit.Failed(err, c.answer.used(r), cmp.Or(c.answer.model, c.name))
	})
}

// completion is one request, with what continues it.
type completion struct {
	model   *Model
	request assistant.Request
	name    string // of the model that is asked
	emit    assistant.Emit
	answer  answer
	started time.Time

	requestID string // of the last request
}

func (c *completion) do(ctx context.Context) error {
	if len(c.request.Array) == 0 {
		return fault.New(fault.Invalid, "There is nothing to answer.")
	}
	params, err := c.begin(ctx)
	for range maxPauses {
		if err != nil || c.answer.stop != stopPauseTurn {
			break
		}
		if so := c.answer.raw(); len(so.Content) > 0 {
			params.Messages = append(params.Messages, so)
		}
		err = c.ask(ctx, params)
	}
	if err != nil {
		return err
	}
	return c.finish(ctx)
}

// begin sends the request, in another form each time that the model refuses it for its form.
func (c *completion) begin(ctx context.Context) (*messagesRequest, error) {
	known, _ := c.model.forms.Load(c.name)
	first, _ := known.(form)
	for f := first; ; {
		params, err := c.wire(f)
		if err == nil {
			err = c.ask(ctx, params)
		}
		if err == nil && f != first && !f.forgetful { // else another conversation may be taken as it is
			c.model.forms.Store(c.name, f)
		}
		next := f.after(err, params)
		if next == f || len(c.answer.blocks) > 0 {
			return params, err
		}
		f = next
		c.model.log.WarnContext(ctx, "the model wants the request in another form, asking again",
			"conversation", c.request.Conversation, "run", c.request.Run, "model", c.name, "err", err)
	}
}

// ask sends one request and takes its whole stream in.
func (c *completion) ask(ctx context.Context, r *messagesRequest) error {
	x := newExchange(c.model.first, c.model.idle)
	streamCtx := x.Start(ctx)
	defer x.Stop()

	c.answer.begin()
	body, err := c.model.post(streamCtx, x, r)
	if err == nil {
		defer func() { _ = body.Close() }()
		err = c.take(body, x)
	}
	c.requestID = x.requestID
	switch {
	case errors.Is(err, assistant.ErrStopped):
		return err
	case ctx.Err() != nil:
		return modelhttp.Canceled(ctx)
	case err == nil:
		return nil
	}
	if _, said := errors.AsType[*apiFailure](err); !said && streamCtx.Err() != nil {
		err = context.Cause(streamCtx)
	}
	return c.model.classify(ctx, x, err)
}

// take takes the events of a stream in, up to message_stop.
func (c *completion) take(body io.Reader, x *exchange) error {
	events := newEventReader(body)
	for !c.answer.stopped {
		e, err := events.event()
		if err != nil {
			return err
		}
		text, thought, err := c.answer.add(e)
		if err != nil {
			return err
		}
		if text == "" && thought == "" {
			continue
		}
		// A caller that takes its time is no silence of the API.
		x.Pause()
		if err := c.emit.Deltas(thought, text); err != nil {
			return err
		}
		x.Alive()
	}
	// The connection can be used again if the end of the stream was read.
	x.Settle(settleTimeout)
	_, _ = io.Copy(io.Discard, body)
	return nil
}

// finish ends the request by the stop reason of its answer.
func (c *completion) finish(ctx context.Context) error {
	a := &c.answer
	text, calls := a.text(), a.calls()
	empty := strings.TrimSpace(text) == ""
	c.model.log.DebugContext(ctx, "model answered",
		"conversation", c.request.Conversation, "run", c.request.Run, "model", a.model,
		"stop_reason", string(a.stop), "duration", time.Since(c.started), "request_id", c.requestID)
	switch {
	case a.stop == "" || a.unfinished():
		return modelhttp.CutOff(errors.New("the stream ended without a stop reason or inside a call"))
	case a.stop == stopRefusal:
		return &fault.Error{
			Kind: fault.Invalid, Public: "The model refused this request.",
			Err: errors.New("stop reason refusal: " + c.model.clean(a.refusal)),
		}
	case a.stop == stopOverflow:
		return assistant.Overflow(0, errors.New("the model stopped at the end of its context window"))
	case a.stop == stopPauseTurn:
		return fault.New(fault.Unavailable, "The model interrupted its answer too often.")
	case a.stop == stopMaxTokens && empty:
		return fault.New(fault.Exhausted, "The model used up its output limit (ANTHROPIC_MAX_TOKENS) before it wrote an answer. Ask for something smaller.")
	case a.stop == stopMaxTokens:
		// Calls cut at the limit have unfinished arguments and are left out.
		note := assistant.CutNote(text)
		a.cut(note)
		if err := c.emit(assistant.TextDelta{Text: note}); err != nil {
			return err
		}
	case empty && calls == 0:
		return assistant.ErrEmpty
	}
	if err := c.emit(assistant.MessageDone{Message: a.message(c.name)}); err != nil {
		return err
	}
	return c.emit(assistant.Finished{Usage: a.total(), Model: a.model})
}
