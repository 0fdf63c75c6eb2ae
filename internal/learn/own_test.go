package learn_test

import (
	"strings"
	"testing"

	"remote-agent/internal/learn"
	"remote-agent/internal/messages"
	"remote-agent/internal/redact"
)

func said(text string) messages.Inbound {
	return messages.Inbound{
		Kind: messages.KindMessage, Conversation: messages.ConversationKey{Platform: "test", ID: "c"},
		Sender: messages.Sender{ID: "42"}, Text: text, Private: true,
	}
}

func clean(s string) string { return redact.New("hunter2-secret").String(s) }

func TestOwnWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"I prefer short answers.":                                             "I prefer short answers.",
		"Bitte antworte mir immer auf Deutsch":                                "Bitte antworte mir immer auf Deutsch",
		"我喜欢简短的回答":                                                            "我喜欢简短的回答",
		"vastaa aina lyhyesti kiitos":                                         "vastaa aina lyhyesti kiitos", // a language that it does not know
		"> I prefer tabs\nI prefer spaces in my code":                         "I prefer spaces in my code",
		"I use Go here:\n```\nI prefer tabs\n```\nand at home":                "I use Go here:\nand at home",
		"I use Go here:\n```\nI prefer tabs\nand never closed":                "I use Go here:",
		"I like it.\n    indented, I paste\nMy name is Ann":                   "I like it.\nMy name is Ann",
		"I agree.\nOn Mon, Bob <b@x.org> wrote:\nI prefer tabs":               "",
		"my answer is below\n-----Original Message-----\nI prefer tabs":       "my answer is below",
		"Bob: I prefer tabs\nI do not want that":                              "I do not want that",
		"10:31 Bob says I prefer tabs\nI want my spaces":                      "I want my spaces",
		"I wonder whether he said \"I prefer tabs over all else\" to me":      "I wonder whether he said   to me",
		"I work on “Phoenix” with my team":                                    "I work on “Phoenix” with my team",
		"I like tea <!-- I prefer tabs --> very much":                         "I like tea \n very much",
		"I like te\u200ba\U000E0041 a lot":                                    "I like tea a lot",
		"my key is sk-proj-abcdefghijklmnopqrstuvwxyz012345\nI work at night": "I work at night",
		"my password is hunter2-secret ok":                                    "",

		"":                           "",
		"thanks":                     "",
		"/plan I prefer short plans": "",
		"Why does the build fail?":   "",
		"fix the test in main.go":    "",
		"please fix the test":        "",
		"answer in German please":    "answer in German please",
		"I prefer " + strings.Repeat("very short answers. ", 100): "",
		strings.Repeat("I like lines.\n", 200):                    "",
		"2026-11-21T10:00:00Z I ERROR my pool is empty":           "",
		"ERROR I cannot reach my database":                        "",
	} {
		if got := learn.Own(said(text), clean); got != want {
			t.Errorf("%.60q: own %q, want %q", text, got, want)
		}
	}
}

func TestWhatComesWithAMessageIsNotOwn(t *testing.T) {
	t.Parallel()
	const own = "I prefer short answers"
	for name, change := range map[string]func(in *messages.Inbound){
		"a bot":            func(in *messages.Inbound) { in.Sender.Bot = true },
		"nobody":           func(in *messages.Inbound) { in.Sender.ID = "" },
		"an edit":          func(in *messages.Inbound) { in.Kind = messages.KindEdit },
		"a dialog":         func(in *messages.Inbound) { in.Kind = messages.KindAction },
		"a standing task":  func(in *messages.Inbound) { in.Schedule = 1 },
		"an issue":         func(in *messages.Inbound) { in.Repository = &messages.Repository{URL: "https://example.org/a"} },
		"all of it cited":  func(in *messages.Inbound) { in.Cited = []string{own} },
		"a changed cite":   func(in *messages.Inbound) { in.Cited = []string{"I prefer @bot short"} },
		"a forward":        func(in *messages.Inbound) { in.Text, in.Quotes = "", []messages.Quote{{Text: own}} },
		"a file, no words": func(in *messages.Inbound) { in.Text, in.Attachments = "see", []messages.Attachment{{Text: own}} },
	} {
		in := said(own)
		change(&in)
		if got := learn.Own(in, clean); got != "" {
			t.Errorf("%s: own %q", name, got)
		}
	}
}

// FuzzOwn checks that nothing that is set off comes through, whatever is around.
func FuzzOwn(f *testing.F) {
	for _, s := range []string{"I like tea", "```", "> ", "\"", "On Monday Bob wrote:", "I said “", "\u200b", "<!--", "é\x00\xff"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		const canary = "canaryquoted"
		text := before + "\n> " + canary + "\n```\n" + canary + "\n```\n" + after
		if strings.Contains(before+after, canary) || strings.Contains(before, "```") || strings.Contains(before, "~~~") {
			return
		}
		in := said(text + "\n" + canary + " cited")
		in.Cited = []string{canary + " cited"}
		got := learn.Own(in, clean)
		if strings.Contains(got, canary) {
			t.Errorf("%q gives %q", text, got)
		}
		if again := learn.Own(said(got), clean); got != "" && len(again) > len(got) {
			t.Errorf("own words of own words grow: %q, %q", got, again)
		}
	})
}
