package github

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// What tests need of the inside.
var (
	Sign          = sign
	HandledEvents = handled
	ButtonsOf     = buttonsOf
	QuietTitle    = quietTitle
	Invisible     = invisible
	IsBranch      = isBranch
	Units         = platform.UTF16Len
)

// Hears has an adapter hear what time it is at GitHub, as each answer tells it.
func Hears(a *Adapter, now time.Time) {
	a.client.clock.Learn(&http.Response{Header: http.Header{"Date": {now.UTC().Format(http.TimeFormat)}}})
}

// MaxComment is what GitHub takes.
const MaxComment = maxComment

// Order reads a text for the bot.
func (a *Adapter) Order(body string) (string, bool) { return a.translator.order(body) }

// Attachments finds the files in a text.
func (a *Adapter) Attachments(repo, body string) []messages.Attachment {
	return a.attachments(repo, body)
}

// Defused renders a text of the model.
func (a *Adapter) Defused(markdown string) string { return a.sender.render.defused(markdown) }

// PullBody renders the description of a pull request.
func (a *Adapter) PullBody(body string, number int) string {
	return a.sender.render.pullBody(body, number)
}

// Translate reads a webhook.
func (a *Adapter) Translate(ctx context.Context, event string, guid messages.EventID, raw []byte) ([]messages.Inbound, string) {
	r := a.translator.translate(ctx, event, guid, raw)
	return r.Events, r.Reason
}

// Swept is how many repositories a sweep reads.
func (a *Adapter) Swept(ctx context.Context) (int, error) {
	all, err := a.poller.repositories(ctx)
	return len(all), err
}

// Pauses makes lookups call f instead of waiting.
func (a *Adapter) Pauses(f func(d time.Duration)) {
	a.pause = func(ctx context.Context, d time.Duration) error { f(d); return ctx.Err() }
}

// KeyRoundTrip reads a key and writes it again.
func KeyRoundTrip(id string) (string, error) {
	p, err := parseKey(messages.ConversationKey{Platform: Name, ID: id})
	return p.key().ID, err
}

// PostRoundTrip reads a message's id and writes it again.
func PostRoundTrip(id messages.MessageID) (messages.MessageID, bool) {
	p, ok := parsePost(id)
	return p.message(), ok
}

// CodeIn reports which bytes of a text are code.
func CodeIn(markdown string) []bool {
	p := read(markdown)
	out := make([]bool, len(markdown))
	for i := range out {
		out[i] = p.is(i, isCode)
	}
	return out
}

// Limiter gives tests the rates.
type Limiter struct{ *exchange.Budget }

// NewLimiter returns one.
func NewLimiter() Limiter { return Limiter{newBudget(nil, "")} }

// WaitFor waits for a call about a comment: a POST makes content.
func (l Limiter) WaitFor(ctx context.Context, method string) error {
	return l.Wait(ctx, "1", costOf(1, httptest.NewRequest(method, "/repos/a/b/issues/1/comments", nil))...)
}

// InDefinition reports whether what is at i defines an address, so that it is not
// shown.
func InDefinition(markdown string, i int) bool {
	for _, d := range read(markdown).refs {
		if i >= d.from && i < d.to {
			return true
		}
	}
	return false
}

// InQuiet reports whether what is at i of a text is not HTML to the parser.
func InQuiet(markdown string, i int) bool { return !read(markdown).is(i, isHTML) }

// KnowApp asks GitHub who the App is.
func KnowApp(ctx context.Context, a *Adapter) error {
	_, err := a.askSelf(ctx)
	return err
}
