// Package openai answers turns with any model API that speaks OpenAI's Chat
// Completions. It keeps no state between turns: the whole message array goes
// out with each one, and nothing is stored at the provider.
//
// Nothing of the provider's wording reaches a person: errors are classified in
// this package, and their texts are our own.
package openai

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
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

	// IdleTimeout is the longest silence of the API, before the first byte and
	// between two; keep-alive comments count as bytes. Zero means 90 s.
	IdleTimeout time.Duration

	// HTTPClient is used with its transport and its own timeout, but without
	// its redirect policy: redirects are refused, because the conversation
	// would follow them. Nil means a client made for many streams at once.
	HTTPClient *http.Client

	Log *slog.Logger // nil means no log
}

// Assistant asks the API. It is safe for concurrent use.
type Assistant struct {
	client *api.Client
	http   *http.Client
	model  string
	idle   time.Duration
	key    string
	public bool // the API is OpenAI's own
	log    *slog.Logger
}

var _ assistant.Assistant = (*Assistant)(nil)

// New checks c and does no I/O. Its errors are fault.Invalid and name the
// option to change.
func New(c Config) (*Assistant, error) {
	key := strings.TrimSpace(c.APIKey)
	base, err := baseURL(c.BaseURL)
	if err != nil {
		return nil, err
	}
	switch {
	case key == "" && c.BaseURL == "":
		return nil, fault.New(fault.Invalid, "OPENAI_API_KEY is not set. Set it, or OPENAI_BASE_URL for an API that needs no key.")
	case strings.ContainsFunc(key, notHeaderRune):
		return nil, fault.New(fault.Invalid, "OPENAI_API_KEY holds a space, a line break or another character that a key cannot have.")
	case strings.TrimSpace(c.Model) == "":
		return nil, fault.New(fault.Invalid, "OPENAI_MODEL is empty. Set it to a model of the API, such as gpt-5-mini.")
	}
	a := &Assistant{
		http: httpClient(c.HTTPClient), model: strings.TrimSpace(c.Model),
		idle: c.IdleTimeout, key: key, public: base == defaultBaseURL, log: c.Log,
	}
	if a.idle <= 0 {
		a.idle = defaultIdleTimeout
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	cfg := api.DefaultConfig(key)
	cfg.BaseURL = base
	cfg.HTTPClient = a.http
	// The idle timeout is what bounds a stream of keep-alives, not their number.
	cfg.EmptyMessagesLimit = math.MaxUint32
	a.client = api.NewClientWithConfig(cfg)
	return a, nil
}

func baseURL(raw string) (string, error) {
	raw = strings.TrimRight(strings.TrimSpace(raw), "/")
	if raw == "" {
		return defaultBaseURL, nil
	}
	u, err := url.Parse(raw)
	switch {
	// The value may hold a password, so the text does not repeat it.
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", fault.New(fault.Invalid, "OPENAI_BASE_URL is not a URL like https://api.example.com/v1.")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", fault.New(fault.Invalid, "OPENAI_BASE_URL must not hold a user, a query or a fragment. A key belongs into OPENAI_API_KEY.")
	}
	return raw, nil
}

func notHeaderRune(c rune) bool { return c <= ' ' || c > '~' }

// Name implements assistant.Assistant.
func (a *Assistant) Name() assistant.Name { return Name }

// Model implements assistant.Assistant.
func (a *Assistant) Model() string { return a.model }

// CloseIdleConnections closes the connections that no turn uses.
func (a *Assistant) CloseIdleConnections() { a.http.CloseIdleConnections() }

// Run implements assistant.Assistant. Beyond its contract:
//
//   - An answer cut at the model's output limit is kept, with a visible note at
//     its end. One without any text is fault.Exhausted.
//   - The provider's content filter is fault.Invalid.
//   - No tools are offered. If the model calls one all the same, nothing runs:
//     its message and an error result for each call are yielded, so that the
//     record stays true, and the turn fails with fault.Unsupported.
//   - An empty answer is fault.Unavailable: another try may bring one.
func (a *Assistant) Run(ctx context.Context, turn assistant.Turn) iter.Seq2[assistant.Event, error] {
	return func(yield func(assistant.Event, error) bool) {
		r := run{assistant: a, turn: turn, yield: yield, started: time.Now()}
		if err := r.do(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped means that the caller stopped ranging and must not be called.
var errStopped = errors.New("the caller stopped")

// run is one turn.
type run struct {
	assistant *Assistant
	turn      assistant.Turn
	yield     func(assistant.Event, error) bool
	answer    answer
	started   time.Time
}

func (r *run) do(ctx context.Context) error {
	req, err := r.request()
	if err != nil {
		return err
	}
	x := newExchange(r.assistant.idle)
	streamCtx := x.start(ctx)
	defer x.stop()

	stream, err := r.assistant.client.CreateChatCompletionStream(streamCtx, req)
	if err != nil {
		return r.assistant.classify(ctx, x, err)
	}
	defer func() { _ = stream.Close() }()
	for {
		chunk, err := stream.Recv()
		if err != nil {
			switch {
			case ctx.Err() != nil, x.failure != nil:
			case r.answer.finish != "":
				// What comes after the finish reason is only the usage.
				return r.finish(ctx)
			case streamCtx.Err() != nil:
				err = context.Cause(streamCtx)
			case errors.Is(err, io.EOF):
				return r.finish(ctx)
			}
			return r.assistant.classify(ctx, x, err)
		}
		delta := r.answer.add(chunk)
		if r.answer.finish != "" {
			x.setIdle(min(settleTimeout, r.assistant.idle))
		}
		if delta == "" {
			continue
		}
		// A caller that takes its time is no silence of the API.
		x.pause()
		if !r.yield(assistant.TextDelta{Text: delta}, nil) {
			return errStopped
		}
		x.alive()
	}
}

func (r *run) request() (api.ChatCompletionRequest, error) {
	if len(r.turn.Array) == 0 {
		return api.ChatCompletionRequest{}, fault.New(fault.Invalid, "There is nothing to answer.")
	}
	model := r.turn.Model
	if model == "" {
		model = r.assistant.model
	}
	req := api.ChatCompletionRequest{
		Model:         model,
		Messages:      toWire(r.turn.System, r.turn.Array),
		Stream:        true,
		StreamOptions: &api.StreamOptions{IncludeUsage: true},
	}
	if r.assistant.public {
		// Other servers refuse fields that they do not know.
		req.User = r.turn.Conversation
	}
	return req, nil
}

// finish ends the turn by the finish reason of its answer.
func (r *run) finish(ctx context.Context) error {
	text := r.answer.text.String()
	empty := strings.TrimSpace(text) == ""
	r.assistant.log.DebugContext(ctx, "model answered",
		"conversation", r.turn.Conversation, "run", r.turn.Run, "model", r.answer.model,
		"finish_reason", string(r.answer.finish), "duration", time.Since(r.started))
	switch reason := r.answer.finish; {
	case reason == "":
		return &fault.Error{
			Kind: fault.Unavailable, Public: "The model's answer was cut off before it was complete.",
			Err: errors.New("the stream ended without a finish reason"),
		}
	case reason == api.FinishReasonContentFilter:
		return fault.New(fault.Invalid, "The model provider's content filter stopped this answer. Please put it another way.")
	case reason == finishOverflow, reason == api.FinishReasonLength && empty && r.answer.usage.OutputTokens == 0:
		return overflow(0, errors.New("the model stopped at its limit without output"))
	case reason == api.FinishReasonLength && empty:
		return fault.New(fault.Exhausted, "The model used up its output limit before it wrote an answer. Ask for something smaller.")
	case reason == finishError, reason == finishNoResources:
		return &fault.Error{
			Kind: fault.Unavailable, Public: "The model broke off its answer.",
			Err: errors.New("finish reason " + string(reason)),
		}
	case reason == api.FinishReasonLength:
		// Calls cut at the limit have unfinished arguments and are left out.
		note := "\n\n*(cut off here: the model reached its output limit)*"
		if strings.Count("\n"+text, "\n```")%2 == 1 {
			note = "\n```" + note
		}
		r.answer.text.WriteString(note)
		r.answer.calls = nil
		if !r.yield(assistant.TextDelta{Text: note}, nil) {
			return errStopped
		}
	case len(r.answer.calls) > 0:
		return r.refuseCalls()
	case empty:
		return fault.New(fault.Unavailable, "The model sent an empty answer.")
	}
	if !r.yield(assistant.MessageDone{Message: r.answer.message()}, nil) {
		return errStopped
	}
	r.yield(assistant.Finished{Usage: r.answer.usage, Model: r.answer.model}, nil)
	return nil
}

// refuseCalls ends a turn in which the model called tools that it was not
// offered.
func (r *run) refuseCalls() error {
	msg := r.answer.message()
	results := messages.Message{Role: messages.RoleTool}
	var names []string
	for _, b := range msg.Blocks {
		if c, ok := b.(messages.ToolCall); ok {
			names = append(names, messages.SafeName(c.Name))
			results.Blocks = append(results.Blocks, messages.ToolResult{
				CallID: c.ID, Name: c.Name, Content: "not run: there are no tools in this conversation", IsError: true,
			})
		}
	}
	for _, m := range []messages.Message{msg, results} {
		if !r.yield(assistant.MessageDone{Message: m}, nil) {
			return errStopped
		}
	}
	return fault.Newf(fault.Unsupported, "The model wanted to use a tool (%s), but there are no tools here. Nothing was run.",
		strings.Join(names, ", "))
}
