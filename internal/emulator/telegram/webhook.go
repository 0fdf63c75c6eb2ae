package telegram

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/pattern"
)

const secretHeader = "X-Telegram-Bot-Api-Secret-Token" //nolint:gosec // the name of a header

var secretPattern = pattern.Lazy(`^[A-Za-z0-9_-]{0,256}$`)

// webhook delivers updates by POST: one after the other for each chat, several
// chats at once. The server's lock guards queues and the last error.
type webhook struct {
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

func (s *Server) setWebhook(p params) (any, *apiError) {
	if p["url"] == "" {
		return s.deleteWebhook(p)
	}
	u, err := url.Parse(p["url"])
	if err != nil || u.Host == "" {
		return nil, badRequest("bad webhook: Failed to resolve host: Name or service not known")
	}
	if u.Scheme != "https" && !isLoopback(u) {
		return nil, badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	}
	if !secretPattern.MatchString(p["secret_token"]) {
		return nil, badRequest("secret token contains unallowed characters")
	}
	limit := int(p.int("max_connections", 40))
	if limit < 1 || limit > 100 {
		return nil, badRequest("max_connections must be between 1 and 100")
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.setAllowed(p); refused != nil {
		return nil, refused
	}
	s.killPoll("terminated by setWebhook request")
	s.closeHook()
	if p.bool("drop_pending_updates") {
		s.queue.forget(len(s.queue.pending))
	}
	hook := &webhook{
		url: p["url"], secret: p["secret_token"], limit: limit,
		slots: make(chan struct{}, limit), queues: map[int64][]*queued{},
	}
	// Not the context of the call: the webhook lives until it is replaced.
	hook.ctx, hook.cancel = context.WithCancel(context.Background())
	s.hook = hook
	for _, waiting := range s.queue.pending {
		s.hand(hook, waiting)
	}
	s.Notify()
	return true, nil
}

func isLoopback(u *url.URL) bool {
	switch u.Hostname() {
	case "127.0.0.1", "localhost", "::1":
		return true
	}
	return false
}

func (s *Server) deleteWebhook(p params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeHook()
	if p.bool("drop_pending_updates") {
		s.queue.forget(len(s.queue.pending))
	}
	s.Notify()
	return true, nil
}

// endHook ends the webhook for good.
func (s *Server) endHook() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeHook()
}

// closeHook ends the webhook. The lock must be held.
func (s *Server) closeHook() {
	if s.hook != nil {
		s.hook.cancel()
		s.hook = nil
	}
}

func (s *Server) webhookInfo() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := struct {
		URL                  string   `json:"url"`
		HasCustomCertificate bool     `json:"has_custom_certificate"`
		PendingUpdateCount   int      `json:"pending_update_count"`
		LastErrorDate        int64    `json:"last_error_date,omitempty"`
		LastErrorMessage     string   `json:"last_error_message,omitempty"`
		MaxConnections       int      `json:"max_connections,omitempty"`
		AllowedUpdates       []string `json:"allowed_updates,omitempty"`
	}{PendingUpdateCount: len(s.queue.pending), AllowedUpdates: s.allowed}
	if h := s.hook; h != nil {
		info.URL, info.MaxConnections, info.LastErrorMessage = h.url, h.limit, h.lastError
		if h.lastError != "" {
			info.LastErrorDate = h.lastErrorAt.Unix()
		}
	}
	return info
}

// hand puts an update into its chat's queue and starts to deliver if nobody
// does. The lock must be held.
func (s *Server) hand(h *webhook, u *queued) {
	waiting, busy := h.queues[u.chatID]
	h.queues[u.chatID] = append(waiting, u)
	if !busy {
		s.Go(func() { s.drain(h, u.chatID) }) // ends with the webhook
	}
}

// drain delivers the updates of one chat in order until there are no more.
func (s *Server) drain(h *webhook, chatID int64) {
	for {
		s.mu.Lock()
		waiting := h.queues[chatID]
		if len(waiting) == 0 || h.ctx.Err() != nil {
			delete(h.queues, chatID)
			s.mu.Unlock()
			return
		}
		u := waiting[0]
		s.mu.Unlock()

		confirmed, err := s.deliverUpdate(h, u)
		if err != nil {
			continue // the webhook has ended
		}
		s.mu.Lock()
		h.queues[chatID] = h.queues[chatID][1:]
		s.queue.remove(u.id, confirmed)
		s.mu.Unlock()
		s.Notify()
	}
}

// deliverUpdate delivers one update, as often as it takes, and reports whether the bot
// confirmed it before it expired. The error is that of the webhook's context.
func (s *Server) deliverUpdate(h *webhook, u *queued) (confirmed bool, err error) {
	for attempt := 1; ; attempt++ {
		select {
		case h.slots <- struct{}{}:
		case <-h.ctx.Done():
			return false, h.ctx.Err()
		}
		pause, err := s.post(h, u)
		<-h.slots
		if err == nil {
			return true, nil
		}
		if h.ctx.Err() != nil {
			return false, h.ctx.Err()
		}
		s.mu.Lock()
		h.lastError, h.lastErrorAt = err.Error(), s.opts.Now()
		s.mu.Unlock()
		s.Notify()
		if pause == 0 {
			pause = s.opts.WebhookBackoff(attempt)
		}
		if s.opts.Now().Add(pause).After(u.expires) {
			return false, nil
		}
		if err := emulator.Sleep(h.ctx, pause); err != nil {
			return false, err
		}
	}
}

// post sends an update once. On failure it returns how long the bot asked to
// wait, if it did.
func (s *Server) post(h *webhook, u *queued) (pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(h.ctx, time.Minute)
	defer cancel()
	header := http.Header{}
	if h.secret != "" {
		header.Set(secretHeader, h.secret)
	}
	resp, body, err := s.Submit(ctx, h.url, header, u.body) //nolint:bodyclose // Submit closes it
	if resp == nil {
		return 0, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return time.Duration(min(max(seconds, 0), 3600)) * time.Second,
			fmt.Errorf("Wrong response from the webhook: %s", resp.Status) //nolint:staticcheck // the server's wording
	}
	if err == nil {
		s.executeReply(h.ctx, body)
	}
	return 0, nil
}

// executeReply carries out the method that a webhook's answer may name.
func (s *Server) executeReply(ctx context.Context, body []byte) {
	p := params{}
	if platformapi.AddJSON(p, body) != nil || p["method"] == "" {
		return
	}
	method := p["method"]
	delete(p, "method")
	call := Call{Method: method, ChatID: p.int("chat_id", 0), Params: p, At: s.opts.Now(), FromWebhook: true}
	var refused *apiError
	switch strings.ToLower(method) {
	case "getupdates", "setwebhook", "deletewebhook", "getme", "getfile", "getchat", "getmycommands", "getwebhookinfo":
		refused = badRequest("method is not available in a webhook reply")
	default:
		_, refused = s.dispatch(ctx, method, p, nil)
	}
	s.log(call, refused, false)
}
