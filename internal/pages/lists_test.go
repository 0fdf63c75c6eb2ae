//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
)

// A list that fits on its page leads to no other one, and with one more it does.
func TestAListThatFitsHasNoMore(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		session := func(i int) {
			w.do(func(ctx context.Context, tx *store.Tx) error {
				c, _, err := tx.Conversations().GetOrCreateConversation(ctx, messages.ConversationKey{Platform: "slack", ID: fmt.Sprint(i)}, "demo")
				if err == nil {
					_, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo", UserPrompt: "x"})
				}
				return err
			})
		}
		for _, c := range []struct {
			path, more string
			fits       int
			add        func(i int)
		}{
			{"/sessions?platform=slack", "Older sessions", 50, session},
			{"/memory", "Older memories", 50, func(i int) {
				if _, err := (&remembering{w}).Remember(t.Context(), ann, uuid.NewString(), fmt.Sprintf("thing%d", i)); err != nil {
					t.Fatal(err)
				}
			}},
			{"/costs?by=model", "The first 100 are shown", 100, func(i int) { w.used(s, ann.String(), fmt.Sprintf("m%d", i), 0, 1, 1) }},
			{"/", "Only the first 50 are shown", 49, func(i int) { // and one of fill
				e := sessions.Entry{ConversationID: s.conversation.ID, In: messages.Inbound{Event: messages.EventID(fmt.Sprintf("n%d", i)), Kind: messages.KindMessage,
					Conversation: s.conversation.Key, Sender: messages.Sender{ID: "42"}, Text: "x"}}
				w.do(func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Inbox().InsertEntry(ctx, &e)
					return err
				})
			}},
			{"/queue", "Schedules (the next 100)", 100, func(i int) {
				w.do(func(ctx context.Context, tx *store.Tx) error {
					c, _, err := tx.Conversations().GetOrCreateConversation(ctx, messages.ConversationKey{Platform: "telegram", ID: fmt.Sprint(i)}, "demo")
					if err != nil {
						return err
					}
					return tx.Tasks().SaveSchedule(ctx, &sessions.Schedule{AgentID: s.profile, ConversationID: c.ID, CreatedBy: "telegram/42", CreatedAt: w.now, NextAt: w.now.Add(time.Hour)})
				})
			}},
		} {
			b := w.as(ann)
			for i := range c.fits {
				c.add(i)
			}
			if strings.Contains(b.get(c.path), c.more) {
				t.Errorf("%s with %d says that there are more", c.path, c.fits)
			}
			c.add(c.fits)
			wants(t, b.get(c.path), c.more)
		}
	})
}

// An owner finds every browser, however many are signed in, to sign it out.
func TestEveryBrowserIsListed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		b := w.as(ann)
		w.do(func(ctx context.Context, tx *store.Tx) error {
			for i := range 201 {
				s, _ := signin.NewSession(bob, fmt.Sprintf("Firefox %d.", i), w.now.Add(time.Duration(-i)*time.Second), signin.SessionLife)
				if err := tx.SignIn().InsertWebSession(ctx, s); err != nil {
					return err
				}
			}
			return nil
		})
		older := regexp.MustCompile(`href="(/account\?until=[0-9]+)"`)
		seen, page := map[string]int{}, ""
		for next := "/account"; next != ""; {
			page, next = b.get(next), ""
			if len(page) > 100<<10 {
				t.Errorf("a page has %d bytes", len(page))
			}
			for _, m := range regexp.MustCompile(`Firefox \d+\.`).FindAllString(page, -1) {
				seen[m]++
			}
			if m := older.FindStringSubmatch(page); m != nil {
				next = m[1]
			}
		}
		if len(seen) != 201 {
			t.Errorf("%d of 201 are listed", len(seen))
		}
		wants(t, page, "Firefox 200.")
	})
}

// A filter that a page does not have is refused, with those that it has: a list that is not
// filtered would be taken for one that is.
func TestAFilterThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.settings = settingsOf
		b := w.as(ann)
		for path, want := range map[string]string{
			"/sessions": "state", "/sessions/" + s.session.ID: "tab", "/costs": "since", "/audit": "kind", "/people": "after", "/memory": "before", "/queue": "turns",
			"/backups": "before", "/repos": "after", "/agents": "after", "/agents/new": "from", "/settings": "show",
		} {
			r := b.send("GET", path+"?status=failed", nil)
			if r.Code != http.StatusBadRequest {
				t.Errorf("%s: status %d", path, r.Code)
			}
			wants(t, r.Body.String(), "status", want)
		}
	})
}

// What was taken back stays to be read, and is marked.
func TestWhatWasTakenBackIsMarked(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.do(func(ctx context.Context, tx *store.Tx) error {
			seqs, err := tx.Messages().AppendMessages(ctx, s.session.ID, "", messages.NewText(messages.RoleAssistant, "that holds"), messages.NewText(messages.RoleAssistant, "that does not"))
			if err != nil {
				return err
			}
			return tx.Messages().WithdrawMessages(ctx, s.session.ID, seqs[1])
		})
		before, after, _ := strings.Cut(w.as(ann).get("/sessions/"+s.session.ID), "that holds")
		if strings.Contains(before, "taken back") || !strings.Contains(after, "Assistant, taken back") || !strings.Contains(after, "that does not") {
			t.Errorf("what holds is marked, or what was taken back is not:\n%s", after)
		}
	})
}

// The link to older sessions leads on if the session that it names was deleted meanwhile,
// or to the newest if nobody knows where that was.
func TestOlderSessionsThanADeletedOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b := w.as(ann)
		for before, listed := range map[string]bool{
			"00000000-0000-7000-8000-000000000001": false, // of 1970
			"e677d21f-d000-7000-8000-000000000001": true,  // of 9999
			"ffffffff-ffff-7000-8000-000000000001": true,  // of no year that is written
			"5b1e3c52-9f2a-4c43-9d2e-0a1b2c3d4e5f": true,  // of no time
		} {
			for _, words := range []string{"", "&q=that"} {
				page := b.get("/sessions?before=" + before + words)
				if words == "" && strings.Contains(page, "/sessions/"+s.session.ID) != listed {
					t.Errorf("behind %s: listed %v", before, !listed)
				}
			}
		}
	})
}
