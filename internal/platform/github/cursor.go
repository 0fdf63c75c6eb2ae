package github

import (
	"context"
	"sync"
	"time"
)

// memoryCursor forgets with the process.
type memoryCursor struct {
	mu     sync.Mutex // guards values
	values map[string]string
}

// Load implements Cursor.
func (m *memoryCursor) Load(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

// Save implements Cursor.
func (m *memoryCursor) Save(_ context.Context, key, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = value
	return nil
}

// maxAge is how far back is looked after the bot was away: as long as GitHub
// keeps deliveries (contract C2). Nobody waits longer for an answer.
const maxAge = 72 * time.Hour

// position returns up to when something was read; fresh if it never was, in
// which case it begins now: what was said before is not for the bot.
func (p *poller) position(ctx context.Context, key string) (at time.Time, err error) {
	text, err := p.cursor.Load(ctx, key)
	if err != nil {
		return at, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	at, bad := time.Parse(time.RFC3339, text)
	if text == "" || bad != nil {
		return now, p.cursor.Save(ctx, key, now.Format(time.RFC3339))
	}
	if oldest := now.Add(-maxAge); at.Before(oldest) {
		at = oldest
	}
	return at, nil
}

func (p *poller) advance(ctx context.Context, key string, from, to time.Time) error {
	if !to.After(from) {
		return nil
	}
	return p.cursor.Save(ctx, key, to.UTC().Format(time.RFC3339))
}
