package inbox

import (
	"regexp"
	"strings"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// TestCodesDiffer: two strangers with one code would be one to the owner who lets them in.
func TestCodesDiffer(t *testing.T) {
	t.Parallel()
	form, seen, letters := regexp.MustCompile("^[B-Z]{3}-[B-Z]{3}$"), make(map[string]bool), make(map[rune]bool)
	for range 200 {
		code := newCode()
		if !form.MatchString(code) || seen[code] {
			t.Errorf("%q, which came before: %v", code, seen[code])
		}
		seen[code] = true
		for _, l := range code {
			letters[l] = true
		}
	}
	if len(letters) != len(codeLetters)+1 {
		t.Errorf("the codes have %d letters", len(letters)-1)
	}
}

// TestWhatAStrangerReads: where an owner is asked, their code; who they are if they ask for that,
// or can tell an owner nothing else; and why a code of the operator did nothing.
func TestWhatAStrangerReads(t *testing.T) {
	t.Parallel()
	const id, expired = "`42`", "That code has expired or was already used."
	waiting := sessions.Pairing{State: sessions.PairingWaiting, Code: "WDJ-BMJ"}
	for name, tt := range map[string]struct {
		text    string
		p       sessions.Pairing
		reads   []string
		doesNot []string
	}{
		"NobodyIsAsked": {"hello", sessions.Pairing{}, []string{"Ask its owner to let you in", id}, []string{expired, "code"}},
		"OldCode":       {"/start sesame", sessions.Pairing{}, []string{expired, "Ask its owner to let you in", id}, nil},
		"Waiting":       {"hello", waiting, []string{"**WDJ-BMJ**", "waiting for an owner"}, []string{expired, id}},
		"WhoAmI":        {"/whoami", waiting, []string{"**WDJ-BMJ**", "waiting for an owner", id}, []string{expired}},
		"Declined":      {"hello", sessions.Pairing{State: sessions.PairingDenied, Code: "WDJ-BMJ"}, []string{"declined", id}, []string{"WDJ-BMJ"}},
	} {
		in := messages.Inbound{Kind: messages.KindMessage, Private: true, Sender: messages.Sender{ID: "42"}, Text: tt.text}
		text := strangerText(in, tt.p)
		for _, part := range append([]string{"This is a private bot."}, tt.reads...) {
			if !strings.Contains(text, part) {
				t.Errorf("%s: there is no %q in %q", name, part, text)
			}
		}
		for _, part := range tt.doesNot {
			if strings.Contains(text, part) {
				t.Errorf("%s: %q is in %q", name, part, text)
			}
		}
	}
}

// TestWhoIsToldAgain: who asks who they are, and who gives a code, alone with the bot.
func TestWhoIsToldAgain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"/whoami": true, "/start sesame": true, "/start": false, "/status": false, "whoami": false, "hello": false} {
		in := messages.Inbound{Kind: messages.KindMessage, Private: true, Text: text}
		if got := wantsAnswer(in); got != want {
			t.Errorf("%q: %v", text, got)
		}
		if in.Private = false; wantsAnswer(in) {
			t.Errorf("%q is answered again where others read", text)
		}
	}
}

// TestOwnersDecideByCommandsWithoutButtons: the card says how.
func TestOwnersDecideByCommandsWithoutButtons(t *testing.T) {
	t.Parallel()
	p := sessions.Pairing{Platform: "telegram", UserID: "42", Name: "Stan", Code: "WDJ-BMJ"}
	for _, buttons := range []bool{true, false} {
		text := cardText(p, "/", platform.Capabilities{Buttons: buttons})
		for _, how := range []string{"`/people allow WDJ-BMJ`", "`/people allow WDJ-BMJ read-only`", "`/people deny WDJ-BMJ`"} {
			if got := strings.Contains(text, how); got == buttons {
				t.Errorf("with buttons: %v, it says %q", buttons, text)
			}
		}
		if !strings.Contains(text, "`Stan`") || !strings.Contains(text, "Telegram, ID `42`, code **WDJ-BMJ**") {
			t.Errorf("it says %q", text)
		}
	}
}
