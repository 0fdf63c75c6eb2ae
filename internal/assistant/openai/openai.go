// Package openai asks any model API that speaks OpenAI's Chat Completions. It
// keeps no state between requests: the whole message array goes out with each
// one, and nothing is stored at the provider.
//
// Nothing of the provider's wording reaches a person: errors are classified in
// this package, and their texts are our own.
package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	api "github.com/sashabaranov/go-openai"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/modelhttp"
	"remote-agent/internal/fault"
)

// Name is what conversations of this assistant are stored under.
const Name assistant.Name = "openai"

const (
	defaultBaseURL     = "https://api.openai.com/v1"
	defaultIdleTimeout = 90 * time.Second

	// settleTimeout is how long a stream may go on after the finish reason, for
	// the usage. Some servers keep it open.
	settleTimeout = 5 * time.Second
)

// Config says which API to ask.
type Config struct {
	APIKey  string // may be empty if BaseURL is set
	BaseURL string // of any compatible API, with its version; empty means OpenAI's
	Model   string

	// IdleTimeout is the longest silence of the API between two bytes of an answer;
	// keep-alive comments count as bytes. Zero means 90 s. The first byte has
	// modelhttp.FirstByte.
	IdleTimeout time.Duration

	// HTTPClient is used with its transport and its own timeout, but without
	// its redirect policy: redirects are refused, because the conversation
	// would follow them. Nil means a client made for many streams at once.
	HTTPClient *http.Client

	Log *slog.Logger // nil means no log
}

// Model asks the API. It is safe for concurrent use.
type Model struct {
	client *api.Client

	encodings modelhttp.Encodings
	tools     toolTexts
	http      *http.Client
	model     atomic.Pointer[string]
	forms     sync.Map // by the name of the model, the form that it wants
	idle      time.Duration
	base, key string
	public    bool // the API is OpenAI's own
	log       *slog.Logger
}

var _ assistant.Model = (*Model)(nil)

// New checks c and does no I/O. Its errors are fault.Invalid and name the
// option to change.
func New(c Config) (*Model, error) {
	key := strings.TrimSpace(c.APIKey)
	base, err := words.Address(c.BaseURL)
	if err != nil {
		return nil, err
	}
	base = cmp.Or(base, defaultBaseURL)
	if err := words.Check(key, c.BaseURL, c.Model); err != nil {
		return nil, err
	}
	m := &Model{
		http: modelhttp.Client(c.HTTPClient),
		idle: c.IdleTimeout, base: base, key: key, public: base == defaultBaseURL, log: c.Log,
	}
	m.SetModel(c.Model)
	if m.idle <= 0 {
		m.idle = defaultIdleTimeout
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	cfg := api.DefaultConfig(key)
	cfg.BaseURL = base
	cfg.HTTPClient = sender{m.http}
	// The idle timeout is what bounds a stream of keep-alives, not their number.
	cfg.EmptyMessagesLimit = math.MaxUint32
	m.client = api.NewClientWithConfig(cfg)
	return m, nil
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base+"/models", nil)
	if err != nil {
		return nil, err
	}
	if m.key != "" {
		req.Header.Set("Authorization", "Bearer "+m.key)
	}
	return modelhttp.Models(m.http, req)
}

// Complete implements assistant.Model. Beyond its contract:
//
//   - An answer cut at the model's output limit is kept, with a visible note at
//     its end and without its calls. One without any text is fault.Exhausted.
//   - The provider's content filter is fault.Invalid.
//   - An answer without text and calls is fault.Unavailable: another try may
//     bring one.
//   - Each call of the message has an id; one that the API left out is made up.
//   - Reasoning is yielded as ThoughtDelta and is no part of the message: the API
//     has no place for it. Some models refuse a request without it all the same,
//     as DeepSeek's and Kimi's. Such a request is sent once more, and from then on
//     the model gets back what it thought. The same goes for Mistral's models, which
//     refuse the ids that other models gave to calls and what a person says directly behind the
//     results of tools, and for servers that refuse to be asked for the usage.
func (m *Model) Complete(ctx context.Context, r assistant.Request) iter.Seq2[assistant.Event, error] {
	return assistant.Events(func(emit assistant.Emit) error {
		c := completion{model: m, request: r, name: cmp.Or(r.Model, m.Model()), emit: emit, started: time.Now()}
		err := c.do(ctx)
		return emit.Failed(err, c.answer.used(r), cmp.Or(c.answer.model, c.name))
	})
}

// completion is one request.
type completion struct {
	model    *Model
	request  assistant.Request
	name     string // of the model that is asked
	emit     assistant.Emit
	answer   answer
	form     form
	exchange *exchange // of the last request
	started  time.Time
}

// form is what differs between models and servers in what they take, in bits; see
// asksFor.
type form int

const (
	reasons form = 1 << iota // with the model's reasoning
	short                    // with short ids of calls
	bare                     // without being asked for the usage
	bridged                  // with something of the model between results of tools and what a person said
)

func (c *completion) do(ctx context.Context) error {
	if known, ok := c.model.forms.Load(c.name); ok {
		c.form, _ = known.(form)
	}
	first := c.form
	for {
		c.answer = answer{reasons: c.form&reasons != 0}
		err := c.ask(ctx)
		if err == nil && c.form != first { // else the field may be what is refused: an error can also repeat what somebody wrote
			c.model.forms.Store(c.name, c.form)
		}
		wanted := c.wanted(err)
		if c.form|wanted == c.form || c.answer.text.Len() > 0 {
			return err
		}
		c.form |= wanted
		c.model.log.InfoContext(ctx, "the model wants the request in another form, asking again",
			"conversation", c.request.Conversation, "run", c.request.Run, "model", c.name, "err", err)
	}
}

// ask sends the request and takes its answer in.
func (c *completion) ask(ctx context.Context) error {
	req, err := c.wire()
	if err != nil {
		return err
	}
	fields, err := c.encoded()
	if err != nil {
		return fmt.Errorf("encode the conversation: %w", err)
	}
	x := newExchange(c.model.idle)
	streamCtx := x.Start(ctx)
	c.exchange = x
	defer x.Stop()

	stream, err := c.model.client.CreateChatCompletionStream(context.WithValue(streamCtx, fieldsKey{}, fields), req)
	if err != nil {
		return c.model.classify(ctx, x, err)
	}
	defer func() { _ = stream.Close() }()
	for {
		chunk, err := stream.Recv()
		if err != nil {
			switch {
			case ctx.Err() != nil, x.failure != nil:
			case c.answer.finish != "":
				// What comes after the finish reason is only the usage.
				return c.finish(ctx)
			case streamCtx.Err() != nil:
				err = context.Cause(streamCtx)
			case errors.Is(err, io.EOF):
				return c.finish(ctx)
			}
			return c.model.classify(ctx, x, err)
		}
		text, thought := c.answer.add(chunk)
		c.answer.usage.CostUSD = x.cost
		if c.answer.finish != "" {
			x.SetIdle(min(settleTimeout, c.model.idle))
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
}

// finish ends the request by the finish reason of its answer.
func (c *completion) finish(ctx context.Context) error {
	if rest := c.answer.inline.rest(); rest != "" {
		c.answer.text.WriteString(rest)
		if err := c.emit(assistant.TextDelta{Text: rest}); err != nil {
			return err
		}
	}
	text := c.answer.text.String()
	empty := strings.TrimSpace(text) == ""
	c.model.log.DebugContext(ctx, "model answered",
		"conversation", c.request.Conversation, "run", c.request.Run, "model", c.answer.model,
		"finish_reason", string(c.answer.finish), "duration", time.Since(c.started))
	switch reason := c.answer.finish; {
	case reason == "":
		return modelhttp.CutOff(errors.New("the stream ended without a finish reason"))
	case strings.HasPrefix(string(reason), string(api.FinishReasonContentFilter)): // Gemini adds why
		return fault.New(fault.Invalid, "The model provider's content filter stopped this answer.")
	case reason == finishOverflow, reason == api.FinishReasonLength && c.answer.nothing():
		return assistant.Overflow(0, errors.New("the model stopped at its limit without output"))
	case reason == api.FinishReasonLength && empty:
		return fault.New(fault.Exhausted, "The model used up its output limit before it wrote an answer. Ask for something smaller.")
	case reason == finishError, reason == finishNoResources, strings.HasPrefix(string(reason), finishBadCall):
		return &fault.Error{
			Kind: fault.Unavailable, Public: "The model's answer was cut off.",
			Err: errors.New("finish reason " + string(reason)),
		}
	case reason == api.FinishReasonLength:
		// Calls cut at the limit have unfinished arguments and are left out.
		note := assistant.CutNote(text)
		c.answer.text.WriteString(note)
		c.answer.calls = nil
		if err := c.emit(assistant.TextDelta{Text: note}); err != nil {
			return err
		}
	case empty && len(c.answer.calls) == 0:
		return assistant.ErrEmpty
	}
	if err := c.emit(assistant.MessageDone{Message: c.answer.message(c.name)}); err != nil {
		return err
	}
	return c.emit(assistant.Finished{Usage: c.answer.usage, Model: c.answer.model})
}
