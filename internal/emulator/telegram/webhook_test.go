package telegram_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"remote-agent/internal/emulator/telegram"
)

func utf16Slice(text string, offset, length int) string {
	return string(utf16.Decode(utf16.Encode([]rune(text))[offset : offset+length]))
}

// hook receives updates and answers as told.
type hook struct {
	mu      sync.Mutex
	secrets []string
	ids     map[int64][]int64 // by chat, in order of arrival
	answer  func(id int64, try int) (status int, body string)
	tries   map[int64]int
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var u struct {
		ID      int64 `json:"update_id"`
		Message struct {
			Chat struct {
				ID int64 `json:"id"`
			} `json:"chat"`
		} `json:"message"`
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &u)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secrets = append(h.secrets, r.Header.Get("X-Telegram-Bot-Api-Secret-Token"))
	h.tries[u.ID]++
	h.ids[u.Message.Chat.ID] = append(h.ids[u.Message.Chat.ID], u.ID)
	status, text := h.answer(u.ID, h.tries[u.ID])
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func startHook(t *testing.T, answer func(id int64, try int) (int, string)) (*hook, string) {
	t.Helper()
	h := &hook{ids: map[int64][]int64{}, tries: map[int64]int{}, answer: answer}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return h, server.URL
}

func TestWebhookKeepsOrderAndRetries(t *testing.T) {
	t.Parallel()
	h, target := startHook(t, func(id int64, try int) (int, string) {
		if id == 2 && try < 3 {
			return http.StatusServiceUnavailable, ""
		}
		return http.StatusOK, ""
	})
	s, a := setup(t, telegram.Options{WebhookBackoff: func(int) time.Duration { return time.Millisecond }})
	waiting := s.Person(1).Says("before the webhook")
	a.ok("setWebhook", map[string]any{"url": target, "secret_token": "s3cret"})
	s.Person(1).Says("two")
	s.Person(1).Says("three")
	s.Person(9).Says("other chat")
	if err := s.WaitFor(deadline(t), func() bool { return len(s.Pending()) == 0 }); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	equal(t, "chat 1", h.ids[1], []int64{1, 2, 2, 2, 3})
	equal(t, "chat 9", h.ids[9], []int64{4})
	for _, secret := range h.secrets {
		if secret != "s3cret" {
			t.Errorf("secret %q", secret)
		}
	}
	if !s.Acknowledged(waiting.UpdateID) || !s.Acknowledged(2) {
		t.Error("2xx acknowledges")
	}
}

func TestWebhookAnswerIsExecuted(t *testing.T) {
	t.Parallel()
	_, target := startHook(t, func(int64, int) (int, string) {
		return http.StatusOK, `{"method":"sendMessage","chat_id":1,"text":"echoed"}`
	})
	s, a := setup(t, telegram.Options{})
	a.ok("setWebhook", map[string]any{"url": target})
	s.Person(1).Says("hi")
	m, err := s.WaitText(deadline(t), 1, func(text string) bool { return text == "echoed" })
	if err != nil {
		t.Fatalf("%v (%+v)", err, m)
	}
}

func TestWebhookIsDeleted(t *testing.T) {
	t.Parallel()
	_, target := startHook(t, func(int64, int) (int, string) { return http.StatusInternalServerError, "" })
	s, a := setup(t, telegram.Options{})
	a.refused("An HTTPS URL must be provided", "setWebhook", map[string]any{"url": "http://example.org/"})
	a.refused("unallowed characters", "setWebhook", map[string]any{"url": target, "secret_token": "a b"})
	a.ok("setWebhook", map[string]any{"url": target})
	s.Person(1).Says("hi")
	var info struct {
		Pending int    `json:"pending_update_count"`
		Error   string `json:"last_error_message"`
	}
	read := func() bool {
		return json.Unmarshal(a.ok("getWebhookInfo", nil).Result, &info) == nil && info.Error != ""
	}
	if err := s.WaitFor(deadline(t), read); err != nil || info.Pending != 1 {
		t.Fatalf("%v, %+v", err, info)
	}
	a.ok("deleteWebhook", map[string]any{})
	equal(t, "the update is still there", a.updates(nil), []int64{1})
	a.ok("deleteWebhook", map[string]any{"drop_pending_updates": true})
	equal(t, "dropped", s.Forgotten(), []int64{1})
}
