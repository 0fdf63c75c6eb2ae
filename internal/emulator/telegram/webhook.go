package telegram

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/pattern"
)

const secretHeader = "X-Telegram-Bot-Api-Secret-Token" //nolint:gosec // the name of a header

var secretPattern = pattern.Lazy(`^[A-Za-z0-9_-]{0,256}$`)

// webhook delivers updates by POST: one after the other for each chat, several
// chats at once. The lock of the platform guards queues and the last error.
type webhook struct {
	updates     *Updates
	url, secret string
	limit       int
	slots       chan struct{}
	ctx         context.Context // ends with the webhook
	cancel      context.CancelFunc
	queues      map[int64][]*queued
	lastError   string
	lastErrorAt time.Time
}

// webhookBackoff is the delay of the real server.
func webhookBackoff(attempt int) time.Duration {
	if attempt <= 1 {
		return 50 * time.Millisecond
	}
	limit := 60*time.Second + rand.N(60*time.Second) //nolint:gosec // spreads retries, guards nothing
	return min(time.Second<<min(attempt-2, 10), limit)
}

func (u *Updates) setWebhook(r *request) (any, *apiError) {
	p := r.p
	if p["url"] == "" {
		return u.deleteWebhook(r)
	}
	to, err := url.Parse(p["url"])
	if err != nil || to.Host == "" {
		return nil, badRequest("bad webhook: Failed to resolve host: Name or service not known")
	}
	if to.Scheme != "https" && !isLoopback(to) {
		return nil, badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	}
	if !secretPattern.MatchString(p["secret_token"]) {
		return nil, badRequest("secret token contains unallowed characters")
	}
	limit := int(p.int("max_connections", 40))
	if limit < 1 || limit > 100 {
		return nil, badRequest("max_connections must be between 1 and 100")
	}
	if refused := u.setAllowed(p); refused != nil {
		return nil, refused
	}
	u.killPoll("terminated by setWebhook request")
	u.closeHook(p.bool("drop_pending_updates"))
	hook := &webhook{
		updates: u, url: p["url"], secret: p["secret_token"], limit: limit,
		slots: make(chan struct{}, limit), queues: map[int64][]*queued{},
	}
	// Not the context of the call: the webhook lives until it is replaced.
	hook.ctx, hook.cancel = context.WithCancel(context.Background())
	u.hook = hook
	for _, waiting := range u.queue.pending {
		hook.hand(waiting)
	}
	return true, nil
}

func isLoopback(u *url.URL) bool {
	switch u.Hostname() {
	case "127.0.0.1", "localhost", "::1":
		return true
	}
	return false
}

func (u *Updates) deleteWebhook(r *request) (any, *apiError) {
	u.closeHook(r.p.bool("drop_pending_updates"))
	return true, nil
}

// endHook ends the webhook for good.
func (u *Updates) endHook() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closeHook(false)
}

// closeHook ends the webhook and, if wanted, forgets what waits. The lock must be
// held.
func (u *Updates) closeHook(drop bool) {
	if u.hook != nil {
		u.hook.cancel()
		u.hook = nil
	}
	if drop {
		u.queue.forget(len(u.queue.pending))
	}
}

func (u *Updates) webhookInfo(*request) (any, *apiError) {
	info := struct {
		URL                  string   `json:"url"`
		HasCustomCertificate bool     `json:"has_custom_certificate"`
		PendingUpdateCount   int      `json:"pending_update_count"`
		LastErrorDate        int64    `json:"last_error_date,omitempty"`
		LastErrorMessage     string   `json:"last_error_message,omitempty"`
		MaxConnections       int      `json:"max_connections,omitempty"`
		AllowedUpdates       []string `json:"allowed_updates,omitempty"`
	}{PendingUpdateCount: len(u.queue.pending), AllowedUpdates: u.allowed}
	if h := u.hook; h != nil {
		info.URL, info.MaxConnections, info.LastErrorMessage = h.url, h.limit, h.lastError
		if h.lastError != "" {
			info.LastErrorDate = h.lastErrorAt.Unix()
		}
	}
	return info, nil
}

// hand puts an update into its chat's queue and starts to deliver if nobody
// does. The lock must be held.
func (h *webhook) hand(u *queued) {
	waiting, busy := h.queues[u.chatID]
	h.queues[u.chatID] = append(waiting, u)
	if !busy {
		h.updates.Go(func() { h.drain(u.chatID) }) // ends with the webhook
	}
}

// drain delivers the updates of one chat in order until there are no more.
func (h *webhook) drain(chatID int64) {
	all := h.updates
	for {
		all.mu.Lock()
		waiting := h.queues[chatID]
		if len(waiting) == 0 || h.ctx.Err() != nil {
			delete(h.queues, chatID)
			all.mu.Unlock()
			return
		}
		u := waiting[0]
		all.mu.Unlock()

		confirmed, err := h.deliver(u)
		if err != nil {
			continue // the webhook has ended
		}
		all.mu.Lock()
		h.queues[chatID] = h.queues[chatID][1:]
		all.queue.remove(u.id, confirmed)
		all.unlock()
	}
}

// deliver delivers one update, as often as it takes, and reports whether the bot
// confirmed it before it expired. The error is that of the webhook's context.
func (h *webhook) deliver(u *queued) (confirmed bool, err error) {
	all := h.updates
	for attempt := 1; ; attempt++ {
		select {
		case h.slots <- struct{}{}:
		case <-h.ctx.Done():
			return false, h.ctx.Err()
		}
		pause, err := h.post(u)
		<-h.slots
		if err == nil {
			return true, nil
		}
		if h.ctx.Err() != nil {
			return false, h.ctx.Err()
		}
		all.mu.Lock()
		h.lastError, h.lastErrorAt = err.Error(), all.opts.Now()
		all.unlock()
		if pause == 0 {
			pause = all.opts.WebhookBackoff(attempt)
		}
		if all.opts.Now().Add(pause).After(u.expires) {
			return false, nil
		}
		if err := emulator.Sleep(h.ctx, pause); err != nil {
			return false, err
		}
	}
}

// post sends an update once. On failure it returns how long the bot asked to
// wait, if it did.
func (h *webhook) post(u *queued) (pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(h.ctx, time.Minute)
	defer cancel()
	header := http.Header{}
	if h.secret != "" {
		header.Set(secretHeader, h.secret)
	}
	resp, body, err := h.updates.Submit(ctx, h.url, header, u.body) //nolint:bodyclose // Submit closes it
	if resp == nil {
		return 0, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return time.Duration(min(max(seconds, 0), 3600)) * time.Second,
			fmt.Errorf("Wrong response from the webhook: %s", resp.Status) //nolint:staticcheck // the server's wording
	}
	if err == nil {
		h.updates.reply(h.ctx, body)
	}
	return 0, nil
}
