package telegram_test

import (
	"context"
	"testing"
	"time"

	emulator "remote-agent/internal/emulator/telegram"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// What is tried again before the time that Telegram asked for is refused for longer:
// a sign that the bot is typing, too, and taking a message back.
func TestEveryCallObeysAFlood(t *testing.T) {
	t.Parallel()
	for method, call := range map[string]func(ctx context.Context, b bundle, ref messages.Ref) error{
		"sendChatAction": func(ctx context.Context, b bundle, _ messages.Ref) error { return b.Typing(ctx, key(ann)) },
		"deleteMessage":  func(ctx context.Context, b bundle, ref messages.Ref) error { return b.Delete(ctx, ref) },
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			ref, err := b.sendText(t, "…")
			if err != nil {
				t.Fatal(err)
			}
			b.server.Inject(method, emulator.FloodWait(30*time.Second))
			for range 2 {
				if err := call(t.Context(), b, ref); !fault.Is(err, fault.RateLimited) {
					t.Errorf("a call: %v", err)
				}
			}
			if _, err := b.sendText(t, "an answer"); !fault.Is(err, fault.RateLimited) {
				t.Errorf("a message: %v", err)
			}
			if n := b.server.Count(method) + b.server.Count("sendMessage"); n != 2 {
				t.Errorf("%d calls, want the first message and one that is refused", n)
			}
		})
	}
}
