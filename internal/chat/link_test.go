package chat_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// hand is a desk at which people have accounts on several platforms.
type hand struct{ *desk }

func setupHand(t *testing.T) *hand {
	t.Helper()
	return &hand{setupMemory(t)}
}

// message is a command of an account, in its private chat.
func (h *hand) message(account, text string) sessions.Entry {
	platform, user, _ := strings.Cut(account, "/")
	h.runs++
	e := entry(user, text, true)
	e.ID = fmt.Sprintf(runID, h.runs)
	e.In.Conversation = messages.ConversationKey{Platform: messages.Platform(platform), ID: "chat of " + user}
	return e
}

func (h *hand) handle(e sessions.Entry) (command.Reply, error) {
	h.t.Helper()
	return h.desk.handle(e, h.conversation(e.In.Conversation))
}

func (h *hand) conversation(key messages.ConversationKey) (conv sessions.Conversation) {
	h.t.Helper()
	err := h.db.InTx(h.t.Context(), func(tx *store.Tx) (err error) {
		conv, _, err = tx.Conversations().GetOrCreateConversation(h.t.Context(), key, "demo")
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return conv
}

// told are the notices that wait for an account, with whom they are for.
func (h *hand) told(account string) string {
	h.t.Helper()
	conv := h.conversation(h.message(account, "x").In.Conversation)
	var all []string
	err := h.db.InRead(h.t.Context(), func(tx *store.Tx) error {
		list, err := tx.Deliveries().OpenDeliveries(h.t.Context(), conv.ID, true)
		for _, d := range list {
			all = append(all, string(d.OnlyFor)+": "+d.Text)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

func (h *hand) hears(account, text string, parts ...string) command.Reply {
	h.t.Helper()
	r, err := h.handle(h.message(account, text))
	got := r.Text
	if err != nil {
		got = fault.Public(err)
	}
	for _, p := range parts {
		if !strings.Contains(got, p) {
			h.t.Errorf("%s: %s answers %q; want %q in it", account, text, got, p)
		}
	}
	return r
}

var codeForm = regexp.MustCompile("^`/link ([A-Z2-7]{26})`$")

func (h *hand) code(account string) string {
	h.t.Helper()
	r := h.hears(account, "/link", "keep it secret")
	m := codeForm.FindStringSubmatch(r.Unkept)
	if m == nil {
		h.t.Fatalf("there is no code: %+v", r)
	}
	if strings.Contains(r.Text, m[1]) {
		h.t.Error("the code is in the part of the answer that is stored")
	}
	return m[1]
}

const (
	annHere  = "telegram/42"
	annThere = "slack/UANN"
	eveThere = "slack/UEVE"
)

func TestLinkingTwoAccounts(t *testing.T) {
	t.Parallel()
	h := setupHand(t)
	h.hears(annHere, "/remember I like green tea", "memory 1")
	h.hears(annThere, "/remember My dog is called Rex", "memory 1")
	h.hears(annHere, "/unlink slack/UANN", "No other account")
	code := h.code(annHere)
	h.hears(annHere, "/link "+code, "code belongs to this account")
	e := h.message(annThere, "/link "+strings.ToLower(code[:5]+"-"+code[5:]))
	first, err := h.handle(e)
	if err != nil || !strings.Contains(first.Text, "Linked with `telegram/42`") || !strings.Contains(first.Text, "numbers above 1") {
		t.Errorf("%q, %v", first.Text, err)
	}
	if again, err := h.handle(e); err != nil || !strings.Contains(again.Text, "Linked with `telegram/42`") {
		t.Errorf("after a crash: %q, %v", again.Text, err)
	}
	if told := h.told(annHere); !strings.Contains(told, "`slack/UANN` sent your code") || strings.Count(told, "\n") > 0 {
		t.Errorf("who showed the code was told %q", told)
	}
	h.hears("github/7", "/link "+code, "That code is wrong")
	for _, account := range []string{annHere, annThere} {
		h.hears(account, "/memory", "Memories about you: 2", "green tea", "Rex")
	}
	h.hears(annThere, "/link", "`telegram/42`", "to unlink: `/unlink telegram/42`")
	h.hears(annThere, "/memory off", "off")
	h.hears(annHere, "/memory", "off: none of this is used")
	h.hears(annHere, "/memory on", "on")
	h.hears(annHere, "/unlink `slack/UANN`", "The memories stay here")
	if told := h.told(annThere); !strings.Contains(told, "`telegram/42` unlinked this account") {
		t.Errorf("the account that was unlinked was told %q", told)
	}
	h.hears(annHere, "/memory", "Memories about you: 2")
	h.hears(annThere, "/memory", "No memories about you")
}

func TestCodesAreForOneAccountAlone(t *testing.T) {
	t.Parallel()
	h := setupHand(t)
	inGroup := func(account, text string) string {
		e := h.message(account, text)
		e.In.Private = false
		r, err := h.handle(e)
		if err != nil {
			t.Fatal(err)
		}
		return r.Text + r.Unkept
	}
	if got := inGroup(annHere, "/link"); !strings.Contains(got, "private chat") || codeForm.MatchString(got) {
		t.Errorf("in a group: %q", got)
	}
	if got := inGroup(annHere, "/unlink slack/UANN"); !strings.Contains(got, "private chat") {
		t.Errorf("in a group: %q", got)
	}
	code := h.code(annHere)
	if got := inGroup(annThere, "/link "+code); !strings.Contains(got, "no longer valid") {
		t.Errorf("a code in a group: %q", got)
	}
	h.hears(eveThere, "/link "+code, "That code is wrong") // Eve has read it there

	whispered := h.message(annThere, "/link")
	whispered.In.Private, whispered.In.Whispered = false, true
	r, err := h.handle(whispered)
	m := codeForm.FindStringSubmatch(r.Unkept)
	if err != nil || m == nil {
		t.Fatalf("whispered: %+v, %v", r, err)
	}
	h.hears(annHere, "/link "+m[1], "Linked with `slack/UANN`")
	if told := h.told(annThere); !strings.HasPrefix(told, "UANN: `telegram/42` sent your code") {
		t.Errorf("told %q, want it for one person only", told)
	}
}

func TestGuessingACode(t *testing.T) {
	t.Parallel()
	h := setupHand(t)
	code := h.code(annHere)
	for range 4 {
		h.hears(eveThere, "/link ABCDEFGHIJKLMNOPQRSTUVWXYZ", "That code is wrong, expired")
	}
	h.hears(eveThere, "/link nonsense", "in an hour")
	h.hears(eveThere, "/link "+code, "Too many wrong codes") // the right one, too late
	h.skip.Store(int64(9 * time.Minute))
	h.hears(annThere, "/link "+code, "Linked with")
	late := h.code(annHere)
	h.skip.Store(int64(20 * time.Minute))
	h.hears("github/7", "/link "+late, "That code is wrong")
	h.skip.Store(int64(2 * time.Hour))
	h.hears(eveThere, "/link "+h.code(annHere), "are on the same one") // but Eve and Ann are both in Slack
	if _, err := h.handle(h.message(annHere, "/link a b")); !fault.Is(err, fault.Invalid) {
		t.Errorf("two codes: %v", err)
	}
}
