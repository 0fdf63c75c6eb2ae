package telegram_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/emulator/telegram"
)

// library returns a bot of a library that knows nothing of the emulator.
func library(tb testing.TB, s *telegram.Server, opts ...bot.Option) *bot.Bot {
	tb.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	tb.Cleanup(client.CloseIdleConnections)
	opts = append([]bot.Option{bot.WithServerURL(s.URL()), bot.WithHTTPClient(10*time.Second, client)}, opts...)
	b, err := bot.New(s.Token(), opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestLibrarySendsAndEdits(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, telegram.Options{})
	hi := s.Person(42).Says("hi")
	b, ctx := library(t, s), deadline(t)

	me, err := b.GetMe(ctx)
	if err != nil || me.ID != 1000 || me.Username != "test_bot" || !me.IsBot {
		t.Fatalf("GetMe = %+v, %v", me, err)
	}
	disabled := true
	sent, err := b.SendMessage(ctx, &bot.SendMessageParams{
		ChatID: int64(42), Text: "hello 😀 \"world\" = &", DisableNotification: true,
		Entities:           []models.MessageEntity{{Type: models.MessageEntityTypeBold, Offset: 6, Length: 2}},
		LinkPreviewOptions: &models.LinkPreviewOptions{IsDisabled: &disabled},
		ReplyParameters:    &models.ReplyParameters{MessageID: hi.MessageID, AllowSendingWithoutReply: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if sent.Chat.ID != 42 || sent.ReplyToMessage == nil || sent.ReplyToMessage.Text != "hi" || len(sent.Entities) != 1 {
		t.Errorf("sent %+v", sent)
	}
	m := s.ChatView(42).Last()
	if m.ID != sent.ID || m.Text != "hello 😀 \"world\" = &" || !m.Silent || !m.PreviewDisabled() || m.ReplyTo != hi.MessageID {
		t.Errorf("ledger %+v", m)
	}
	edit := &bot.EditMessageTextParams{ChatID: int64(42), MessageID: sent.ID, Text: "changed"}
	if edited, err := b.EditMessageText(ctx, edit); err != nil || edited.EditDate == 0 {
		t.Fatalf("edit %+v, %v", edited, err)
	}
	_, err = b.EditMessageText(ctx, edit)
	if !errors.Is(err, bot.ErrorBadRequest) || !strings.Contains(err.Error(), "message is not modified") {
		t.Errorf("the same text again: %v", err)
	}
	if _, err := b.SetMessageReaction(ctx, &bot.SetMessageReactionParams{
		ChatID: int64(42), MessageID: hi.MessageID,
		Reaction: []models.ReactionType{{Type: models.ReactionTypeTypeEmoji, ReactionTypeEmoji: &models.ReactionTypeEmoji{Emoji: "👀"}}},
	}); err != nil {
		t.Errorf("reaction: %v", err)
	}
	if _, err := b.SetMyCommands(ctx, &bot.SetMyCommandsParams{
		Commands: []models.BotCommand{{Command: "help", Description: "Help"}}, Scope: &models.BotCommandScopeAllPrivateChats{},
	}); err != nil || len(s.Menu()) != 1 {
		t.Errorf("menu %v: %v", s.Menu(), err)
	}
	if _, err := b.SendMessageDraft(ctx, &bot.SendMessageDraftParams{ChatID: int64(42), DraftID: "7", Text: "so"}); err != nil {
		t.Errorf("draft: %v", err)
	}
}

func TestLibraryUnderstandsErrors(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, telegram.Options{})
	s.Person(42).Says("hi")
	s.Person(7).In(-5).Says("hi")
	b, ctx := library(t, s), deadline(t)
	send := func(chat int64) error {
		_, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: chat, Text: "x"})
		return err
	}
	s.Inject("sendMessage", telegram.FloodWait(17*time.Second))
	flood, ok := errors.AsType[*bot.TooManyRequestsError](send(42))
	if !ok || flood.RetryAfter != 17 {
		t.Errorf("flood wait: %+v", flood)
	}
	s.Migrate(-5, -1001)
	migrated, ok := errors.AsType[*bot.MigrateError](send(-5))
	if !ok || migrated.MigrateToChatID != -1001 {
		t.Errorf("migrated: %+v", migrated)
	}
	s.Person(42).Blocks()
	if err := send(42); !errors.Is(err, bot.ErrorForbidden) {
		t.Errorf("blocked: %v", err)
	}
	s.SetToken("1000:other")
	if err := send(-1001); !errors.Is(err, bot.ErrorUnauthorized) {
		t.Errorf("revoked: %v", err)
	}
}

func TestLibraryPolls(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, telegram.Options{})
	b := library(t, s, bot.WithDefaultHandler(func(ctx context.Context, b *bot.Bot, u *models.Update) {
		if u.Message != nil {
			_, _ = b.SendMessage(ctx, &bot.SendMessageParams{ChatID: u.Message.Chat.ID, Text: "re: " + u.Message.Text})
		}
	}), bot.WithNotAsyncHandlers(), bot.WithErrorsHandler(func(error) {}))
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.Start(ctx)
	}()
	for _, text := range []string{"one", "two", "three"} {
		s.Person(42).Says(text)
	}
	err := s.Wait(deadline(t), func(l telegram.Ledger) bool { return len(l.Chat(42).FromBot()) == 3 })
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.ChatView(42).BotTexts(), ","); got != "re: one,re: two,re: three" {
		t.Errorf("answers %q", got)
	}
	if err := s.WaitFor(deadline(t), func() bool { return s.Acknowledged(3) }); err != nil {
		t.Error("the library confirms with its next poll")
	}
	cancel()
	<-stopped
}

func BenchmarkSendMessage(b *testing.B) {
	s, _ := setup(b, telegram.Options{KeepCalls: -1, KeepMessages: 100})
	s.Person(42).Says("hi")
	client := library(b, s)
	params := &bot.SendMessageParams{ChatID: int64(42), Text: "hello"}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := client.SendMessage(b.Context(), params); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkHandler measures the emulator without HTTP and without a client.
func BenchmarkHandler(b *testing.B) {
	s := telegram.New(telegram.Options{KeepCalls: -1, KeepMessages: 100})
	defer s.Close()
	s.Person(42).Says("hi")
	h := s.Handler()
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/bot"+s.Token()+"/sendMessage",
			strings.NewReader(`{"chat_id":42,"text":"hello"}`))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(&discard{header: http.Header{}}, r)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
