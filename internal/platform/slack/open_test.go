package slack_test

import (
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/slack"
)

func TestOpenAThread(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.answer("chat.postMessage", `{"ok":true,"ts":"1700000000.000100"}`)
	b.api.answer("chat.getPermalink", `{"ok":true,"permalink":"https://acme.slack.com/archives/C1/p1700000000000100"}`)
	at := func(id string) messages.ConversationKey {
		return messages.ConversationKey{Platform: slack.Name, ID: id}
	}
	open := func(beside string) (messages.ConversationKey, error) {
		return b.Open(t.Context(), platform.Opening{Delivery: "d", Beside: at(beside), Title: "Fork: <!channel> & all"})
	}
	for _, beside := range []string{"T1/C1/1600000000.000100", "T1/C1"} {
		key, err := open(beside)
		if err != nil || key != at("T1/C1/1700000000.000100") {
			t.Fatalf("beside %s: %s, %v", beside, key, err)
		}
	}
	for _, c := range b.api.made("chat.postMessage") {
		text := c.form.Get("text")
		if c.form.Get("thread_ts") != "" || strings.Contains(text, "<!channel>") || !strings.Contains(c.form.Get("metadata"), `"delivery":"d"`) {
			t.Errorf("posted %v", c.form)
		}
	}
	if got := b.Link(t.Context(), at("T1/C1/1700000000.000100")); got != "https://acme.slack.com/archives/C1/p1700000000000100" {
		t.Errorf("the address is %q", got)
	}
	if got := b.Link(t.Context(), at("T1/D1")); got != "" {
		t.Errorf("a direct message has the address %q", got)
	}
	b.api.answer("chat.postMessage", `{"ok":false,"error":"restricted_action"}`)
	if _, err := open("T1/C1"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("where it may not post: %v", err)
	}
	if _, err := open("fork~x"); !fault.Is(err, fault.Invalid) {
		t.Errorf("beside what is no conversation: %v", err)
	}
}
