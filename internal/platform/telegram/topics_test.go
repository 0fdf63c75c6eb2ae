package telegram_test

import (
	"strings"
	"testing"

	emulator "remote-agent/internal/emulator/telegram"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/telegram"
)

func TestOpenATopic(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const plain, forum, private = int64(-1001), int64(-1001234567890), int64(7)
	for _, c := range []emulator.Chat{
		{ID: plain, Type: emulator.Supergroup}, {ID: forum, Type: emulator.Supergroup, IsForum: true}, {ID: private, Type: emulator.Private, IsForum: true},
	} {
		b.server.AddChat(c)
	}
	open := func(beside messages.ConversationKey, title string) (messages.ConversationKey, error) {
		return b.Open(t.Context(), platform.Opening{Delivery: "d", Beside: beside, Title: title})
	}
	if _, err := open(key(plain), "a"); !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err), "has no topics") {
		t.Errorf("in a chat without topics: %v", err)
	}
	if _, err := open(key(forum), "a"); !fault.Is(err, fault.Forbidden) || !strings.Contains(fault.Public(err), "administrator") {
		t.Errorf("without the right: %v", err)
	}
	if _, err := open(key(404), "a"); !fault.Is(err, fault.Gone) {
		t.Errorf("in a chat that is not there: %v", err)
	}
	b.server.Person(ann).In(forum).PromotesBot()
	first, err := open(key(forum), strings.Repeat("🍴", 200))
	if err != nil {
		t.Fatal(err)
	}
	second, err := open(first, "beside a topic")
	if err != nil {
		t.Fatal(err)
	}
	topics := b.server.Topics(forum)
	if len(topics) != 2 || len([]rune(topics[0].Name)) != 128 || topics[1].Name != "beside a topic" || first == second {
		t.Fatalf("topics %v under %s and %s", topics, first, second)
	}
	if _, err := b.Send(t.Context(), messages.Outbound{Delivery: "e", Conversation: second, Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	for _, m := range b.server.Ledger().Chat(forum).FromBot() {
		if m.ThreadID != topics[1].ID {
			t.Errorf("%q is in topic %d", m.Text, m.ThreadID)
		}
	}
	own, err := open(key(private), "in private")
	if err != nil {
		t.Errorf("in a private chat with topics: %v", err)
	}

	for conversation, want := range map[messages.ConversationKey]string{
		{Platform: telegram.Name, ID: "-1001234567890:77"}: "https://t.me/c/1234567890/77",
		key(forum): "", own: "", {Platform: "slack", ID: "-1001234567890:77"}: "", {Platform: telegram.Name, ID: "fork~x"}: "",
	} {
		if got := b.Link(t.Context(), conversation); got != want {
			t.Errorf("the address of %s is %q, want %q", conversation, got, want)
		}
	}
}
