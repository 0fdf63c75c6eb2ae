package slack

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"remote-agent/internal/messages"
)

// What tests need of the inside.
var (
	Defused = defused
	MaxText = maxText
)

// MethodTable are the methods with their scopes.
func MethodTable() map[string][]string {
	table := make(map[string][]string)
	for _, m := range methods {
		table[m[0]] = strings.Fields(m[1])
	}
	return table
}

// Plain is plain without names.
func Plain(text string) string { return plain(text, nil) }

// Translate reads a payload of any kind.
func (a *Adapter) Translate(ctx context.Context, kind string, payload []byte) ([]messages.Inbound, string, error) {
	r, err := a.translator.translate(ctx, payloadKind(kind), payload)
	return r.Events, r.Reason, err
}

// Runs reports whether Run has come so far that it looks after streams.
func (a *Adapter) Runs() bool { return a.streams.set.isKept() }

// OpenSocketsTogether makes all connections of Socket Mode open at once.
func (a *Adapter) OpenSocketsTogether() { a.gap = 0 }

// DialerRefuses returns why the dialer for Slack itself connects to no such address.
// It sends nothing.
func DialerRefuses(address string) error {
	u, err := url.Parse(strings.Replace(address, "ws", "http", 1)) // as the library passes it
	if err != nil {
		return err
	}
	_, err = dialer(defaultAPIURL).Proxy(&http.Request{URL: u})
	return err
}

// KeyRoundTrip reads a key and writes it again.
func KeyRoundTrip(id string) (string, error) {
	p, err := parseKey(messages.ConversationKey{Platform: Name, ID: id})
	return makeKey(p).ID, err
}

// Limiter gives tests the limiter.
type Limiter struct{ l *limiter }

// NewLimiter returns one.
func NewLimiter() Limiter { return Limiter{newLimiter(nil, "")} }

// Try and the others are those of the limiter.
func (l Limiter) Try(method, who string) error { return l.l.try(context.Background(), method, who) }

// Wait waits.
func (l Limiter) Wait(ctx context.Context, method, channel string) error {
	return l.l.wait(ctx, method, channel)
}

// Block blocks.
func (l Limiter) Block(method, channel string, d time.Duration) { l.l.block(method, channel, d) }

// WithoutMention takes the mentions of a user out of a text.
func WithoutMention(text, user string) string { return withoutMention(text, user) }

// WithoutSecrets takes the credentials out of a payload.
func WithoutSecrets(payload []byte) []byte { return withoutSecrets(payload) }
