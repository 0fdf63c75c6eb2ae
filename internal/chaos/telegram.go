package chaos

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/emulator/telegram"
)

const telegramToken = "4711:chaos-token"

// onTelegram is Telegram with people in private chats and, every fourth, in a group.
type onTelegram struct {
	server *telegram.Server
}

func newTelegram(r *run) (platform, error) {
	p := &onTelegram{}
	p.server = telegram.New(telegram.Options{
		Now: r.clock, Token: telegramToken, BotUsername: "chaos_bot", KeepCalls: -1, KeepEdits: -1,
		OnChange: func(c telegram.Change) {
			if c.Message.FromBot {
				r.seen(c.Message.Text, c.Kind == telegram.ChangeSent)
			}
		},
	})
	calls := &calls{run: r}
	p.server.InjectFunc(func(c telegram.Call) telegram.Fault {
		if c.Method == "getUpdates" { // its answers are cut by each kill
			r.moments.come(delivered)
			return telegram.Fault{}
		}
		f := calls.next(c.Method, c.Method == "sendMessage")
		return faultOf(f, telegram.FloodWait(time.Second), telegram.ServerError(503))
	})
	if err := p.server.Start(); err != nil {
		return nil, fmt.Errorf("start the emulated Telegram: %w", err)
	}
	return p, nil
}

func (p *onTelegram) environ() []string {
	return []string{
		"TELEGRAM_BOT_TOKEN=" + telegramToken, "TELEGRAM_API_URL=" + p.server.URL(), "TELEGRAM_ALLOWED_USER_IDS=*",
		"TELEGRAM_SEND_RATE=0", "TELEGRAM_CHAT_SEND_RATE=0",
	}
}

func (*onTelegram) hook(string)                     {}
func (*onTelegram) introduce(context.Context) error { return nil }
func (*onTelegram) again(float64)                   {} // every kill leaves updates that were taken and not confirmed
func (*onTelegram) lifetime() int                   { return 60 }
func (p *onTelegram) odd() int                      { return len(p.server.Violations()) }
func (p *onTelegram) close()                        { p.server.Close() }

func (*onTelegram) chat(conversation int) (chat, person int64) {
	person = int64(1000 + conversation)
	if conversation%4 == 3 {
		return -person, person
	}
	return person, person
}

func (p *onTelegram) say(conversation int, text string) receipt {
	chat, person := p.chat(conversation)
	if chat < 0 {
		text = "@chaos_bot " + text
	}
	sent := p.server.Person(person).In(chat).Says(text)
	return func() bool { return p.server.Acknowledged(sent.UpdateID) }
}

func (p *onTelegram) shown(conversation int) (texts []string) {
	chat, _ := p.chat(conversation)
	for _, m := range p.server.ChatView(chat).FromBot() {
		texts = append(texts, m.Text)
	}
	return texts
}
