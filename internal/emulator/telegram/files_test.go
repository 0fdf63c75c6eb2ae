package telegram_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/emulator/telegram"
)

func document(name, data string) models.InputFile {
	return &models.InputFileUpload{Filename: name, Data: strings.NewReader(data)}
}

func TestDocumentIsInTheLedger(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, telegram.Options{})
	s.AddChat(telegram.Chat{ID: -100, Type: telegram.Supergroup, IsForum: true})
	asked := s.Person(42).In(-100).InTopic(7).Says("hi")
	b, ctx := library(t, s), deadline(t)
	sent, err := b.SendDocument(ctx, &bot.SendDocumentParams{
		ChatID: int64(-100), MessageThreadID: 7, Document: document("a.diff", "+x\n"), Caption: "see 😀 this",
		CaptionEntities: []models.MessageEntity{{Type: models.MessageEntityTypeBold, Offset: 4, Length: 2}},
		ReplyParameters: &models.ReplyParameters{MessageID: asked.MessageID, AllowSendingWithoutReply: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := sent.Document; d == nil || d.FileName != "a.diff" || d.FileSize != 3 || sent.Caption != "see 😀 this" || sent.Text != "" {
		t.Errorf("answered %+v", sent)
	}
	m := s.ChatView(-100).Last()
	if m.ID != sent.ID || m.ThreadID != 7 || m.ReplyTo != asked.MessageID || m.Text != "see 😀 this" || len(m.Entities) != 1 {
		t.Errorf("ledger %+v", m)
	}
	if d := m.Document; d == nil || d.Name != "a.diff" || d.Size != 3 || string(d.Data) != "+x\n" {
		t.Errorf("document %+v", m.Document)
	}
	if f, err := b.GetFile(ctx, &bot.GetFileParams{FileID: sent.Document.FileID}); err != nil || f.FileSize != 3 {
		t.Errorf("getFile %+v, %v", f, err)
	}
	_, err = b.EditMessageText(ctx, &bot.EditMessageTextParams{ChatID: int64(-100), MessageID: sent.ID, Text: "x"})
	if err == nil || !strings.Contains(err.Error(), "there is no text in the message to edit") {
		t.Errorf("editing it: %v", err)
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	s.Person(42).Says("hi")
	b, ctx := library(t, s), deadline(t)
	if r, err := a.try("sendDocument", map[string]any{"chat_id": 42}); err != nil || r.Code != 400 || !strings.HasSuffix(r.Description, "there is no document in the request") {
		t.Errorf("without a document: %+v, %v", r, err)
	}
	bold := []models.MessageEntity{{Type: models.MessageEntityTypeBold, Offset: 0, Length: 9}}
	for want, p := range map[string]*bot.SendDocumentParams{
		"file must be non-empty":                   {ChatID: 42, Document: document("a", "")},
		"message caption is too long":              {ChatID: 42, Document: document("a", "x"), Caption: strings.Repeat("ä", 1025)},
		"can't parse entities":                     {ChatID: 42, Document: document("a", "x"), Caption: "short", CaptionEntities: bold},
		"chat not found":                           {ChatID: 43, Document: document("a", "x")},
		"message thread not found":                 {ChatID: 42, MessageThreadID: 9, Document: document("a", "x")},
		"message to be replied not found":          {ChatID: 42, Document: document("a", "x"), ReplyParameters: &models.ReplyParameters{MessageID: 99}},
		"wrong file identifier/HTTP URL specified": {ChatID: 42, Document: &models.InputFileString{Data: "https://example.com/a"}},
	} {
		if _, err := b.SendDocument(ctx, p); !errors.Is(err, bot.ErrorBadRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	large := &models.InputFileUpload{Filename: "a", Data: bytes.NewReader(make([]byte, 50<<20+1))}
	if _, err := b.SendDocument(ctx, &bot.SendDocumentParams{ChatID: 42, Document: large}); err == nil || !strings.Contains(err.Error(), "413") {
		t.Errorf("a file that is too large: %v", err)
	}
	if got := s.ChatView(42).FromBot(); len(got) != 0 {
		t.Errorf("posted %+v", got)
	}
	if _, err := b.SendDocument(ctx, &bot.SendDocumentParams{ChatID: 42, Document: document("a", "x"), Caption: strings.Repeat("ä", 1024)}); err != nil {
		t.Errorf("the longest caption: %v", err)
	}
}

func TestDocumentsCountForTheLimits(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, telegram.Options{Limits: &telegram.Limits{PerChat: 1, Enforce: true}})
	s.Person(42).Says("hi")
	b, ctx := library(t, s), deadline(t)
	if _, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: 42, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	_, err := b.SendDocument(ctx, &bot.SendDocumentParams{ChatID: 42, Document: document("a", "x")})
	if !bot.IsTooManyRequestsError(err) {
		t.Errorf("the second message: %v", err)
	}
}

func TestMenuOfOneChat(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	s.Person(42).Says("hi")
	b, ctx := library(t, s), deadline(t)
	set := func(name string, scope models.BotCommandScope) error {
		_, err := b.SetMyCommands(ctx, &bot.SetMyCommandsParams{Commands: []models.BotCommand{{Command: name, Description: "d"}}, Scope: scope})
		return err
	}
	if err := errors.Join(set("all", &models.BotCommandScopeAllPrivateChats{}), set("mine", &models.BotCommandScopeChat{ChatID: 42})); err != nil {
		t.Fatal(err)
	}
	name := func(chat int64) string {
		if menu := s.ChatMenu(chat); len(menu) == 1 {
			return menu[0].Command
		}
		return ""
	}
	if got := name(42); got != "mine" {
		t.Errorf("menu of the chat: %q", got)
	}
	if got := name(7); got != "all" {
		t.Errorf("menu of others: %q", got)
	}
	if err := set("x", &models.BotCommandScopeChat{ChatID: 77}); err == nil || !strings.Contains(err.Error(), "chat not found") {
		t.Errorf("menu of an unknown chat: %v", err)
	}
	if r, err := a.try("deleteMyCommands", map[string]any{"scope": map[string]any{"chat_id": "42", "type": "chat"}}); err != nil || !r.OK {
		t.Errorf("deleting: %+v, %v", r, err)
	}
	if got := name(42); got != "all" {
		t.Errorf("menu after deleting: %q", got)
	}
	if r, _ := a.try("setMyCommands", map[string]any{"commands": []any{}, "scope": map[string]any{"type": "moon"}}); r.OK {
		t.Error("an unknown scope was taken")
	}
}
