package telegram_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-telegram/bot"

	"remote-agent/internal/emulator/telegram"
)

// TestManyChatsAtOnce lets people write and the bot answer in many chats at
// the same time, while others look.
func TestManyChatsAtOnce(t *testing.T) {
	t.Parallel()
	const chats, rounds = 16, 20
	s, _ := setup(t, telegram.Options{})
	b, ctx := library(t, s), deadline(t)
	var wg sync.WaitGroup
	for id := int64(1); id <= chats; id++ {
		wg.Go(func() {
			for n := range rounds {
				s.Person(id).Says(strconv.Itoa(n))
				m, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: id, Text: "…"})
				if err != nil {
					t.Error(err)
					return
				}
				edit := &bot.EditMessageTextParams{ChatID: id, MessageID: m.ID, Text: "re " + strconv.Itoa(n)}
				if _, err := b.EditMessageText(ctx, edit); err != nil {
					t.Error(err)
				}
			}
		})
	}
	err := s.Wait(ctx, func(l telegram.Ledger) bool {
		for id := int64(1); id <= chats; id++ {
			texts := l.Chat(id).BotTexts()
			if len(texts) != rounds || texts[rounds-1] != fmt.Sprint("re ", rounds-1) {
				return false
			}
		}
		return true
	})
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for n := range rounds {
		want = append(want, "re "+strconv.Itoa(n))
	}
	for id := int64(1); id <= chats; id++ {
		if got := s.ChatView(id).BotTexts(); strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("chat %d: %v", id, got)
		}
	}
	if got := s.Count("sendMessage") + s.Count("editMessageText"); got != 2*chats*rounds {
		t.Errorf("%d calls", got)
	}
}
