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

	"remote-agent/internal/approval"
	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// place adds a conversation with a session in which somebody wrote.
func (w *world) place(platform, id string, from messages.Sender) (c sessions.Conversation, s sessions.Session) {
	w.t.Helper()
	w.do(func(ctx context.Context, tx *store.Tx) error {
		var err error
		key := messages.ConversationKey{Platform: messages.Platform(platform), ID: id}
		if c, _, err = tx.Conversations().GetOrCreateConversation(ctx, key, "demo"); err != nil {
			return err
		}
		if s, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo", UserPrompt: "in " + id}); err != nil {
			return err
		}
		e := sessions.Entry{ConversationID: c.ID, SessionID: s.ID, In: messages.Inbound{
			Event: messages.EventID("by " + id + string(from.ID) + string(from.Platform)), Kind: messages.KindMessage, Conversation: key, Sender: from, Text: "x"}}
		if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
			return err
		}
		_, err = tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: s.ID, EntryID: e.ID}, messages.NewText(messages.RoleUser, "hello"))
		return err
	})
	return c, s
}

// Who wrote in a conversation from elsewhere, as in the browser, sees it; their namesake
// on its platform does not.
func TestAnAccountIsThatOfItsPlatform(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		namesake := signin.Account{Platform: "slack", ID: bob.ID}
		w.roles[namesake] = sessions.User
		c, s := w.place("slack", "C1", messages.Sender{ID: bob.ID, Platform: bob.Platform, Name: "Bob"})
		page := w.as(bob).get("/sessions/" + s.ID)
		wants(t, page, "<h2>Bob ", "hello")
		if r := w.as(namesake).send("GET", "/sessions/"+s.ID, nil); r.Code != http.StatusNotFound {
			t.Errorf("slack/42 sees what telegram/42 wrote: %d", r.Code)
		}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			for from, want := range map[messages.Sender]int{{ID: bob.ID, Platform: bob.Platform}: 1, {ID: bob.ID}: 0} {
				in := messages.Inbound{Conversation: c.Key, Sender: from}
				all, here, _, err := tx.Inbox().WaitingOf(ctx, in, c.ID, 10)
				if err != nil {
					return err
				}
				if all != want || here != want {
					t.Errorf("of %+v %d wait, %d here", from, all, here)
				}
			}
			refused := sessions.Entry{State: sessions.EntryRefused, Error: "overflow", In: messages.Inbound{Event: "r", Conversation: c.Key, Sender: messages.Sender{ID: bob.ID, Platform: bob.Platform}}}
			if _, err := tx.Inbox().InsertEntry(ctx, &refused); err != nil {
				return err
			}
			for from, want := range map[messages.Sender]bool{{ID: bob.ID, Platform: bob.Platform}: true, {ID: bob.ID}: false} {
				told, err := tx.Inbox().RefusedSince(ctx, messages.Inbound{Conversation: c.Key, Sender: from}, "overflow", time.Time{})
				if err != nil {
					return err
				}
				if told != want {
					t.Errorf("%+v was told: %v", from, told)
				}
			}
			return nil
		})
	})
}

// What others wait for does not hide what somebody may decide, and what is said a hundred
// times in one session does not hide another one.
func TestFullPagesHaveAllThatIsTheirs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		others, loud := w.place("telegram", "99", messages.Sender{ID: "99", Name: "Dan"})
		own, quiet := w.place("telegram", "42", messages.Sender{ID: "42", Name: "Bob"})
		w.do(func(ctx context.Context, tx *store.Tx) error {
			ask := func(c sessions.Conversation, tool string, expires time.Time) error {
				a := approval.Approval{ConversationID: c.ID, CallID: tool, Tool: tool, Arguments: "{}", Title: tool, Requester: "telegram/1", ExpiresAt: expires}
				return tx.Questions().InsertApproval(ctx, &a)
			}
			for i := range 230 {
				if err := ask(others, fmt.Sprint("of-others-", i), w.now.Add(time.Hour)); err != nil {
					return err
				}
			}
			for i := range 60 {
				if err := ask(own, fmt.Sprint("expired-", i), w.now.Add(-time.Hour)); err != nil {
					return err
				}
			}
			if err := ask(own, "the-own-one", w.now.Add(time.Hour)); err != nil {
				return err
			}
			if err := tx.Proposals().InsertPlan(ctx, &plan.Plan{ConversationID: own.ID, Goal: "the own plan", Text: "1.", Requester: "telegram/42"}); err != nil {
				return err
			}
			if _, err := tx.Messages().AppendMessages(ctx, quiet.ID, "", messages.NewText(messages.RoleAssistant, "zucchini")); err != nil {
				return err
			}
			var list []messages.Message
			for range 1200 {
				list = append(list, messages.NewText(messages.RoleAssistant, "zucchini"))
			}
			_, err := tx.Messages().AppendMessages(ctx, loud.ID, "", list...)
			return err
		})
		for _, who := range []signin.Account{ann, bob} {
			b := w.as(who)
			found := b.get("/sessions?q=zucchini")
			wants(t, found, quiet.ID)
			if who == bob {
				page := b.get("/approvals")
				if wants(t, page, "the-own-one", "the own plan"); strings.Contains(page, "of-others") || strings.Contains(page, "expired-") || strings.Contains(found, loud.ID) {
					t.Error("bob sees what is not theirs, or is over")
				}
			}
		}
	})
}

func TestCodeInLinesIsShownAsCode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w2 := newWorld(t, w.Store, func(c *pages.Config) {
			c.About.Platforms = func() []pages.Light {
				return []pages.Light{{Name: "slack", Detail: "`bot setup slack` connects it, or `" + evilName + "`"}, {Name: "x", Detail: "one ` alone"}}
			}
		})
		page := w2.as(ann).get("/")
		wants(t, page, "<code>bot setup slack</code> connects it", "one ` alone")
		clean(t, "/", page)
	})
}

// A search goes on until everything was found, however much is said in between.
func TestASearchGoesOn(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"SQLite", "Postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const all = 300
			w := newWorld(t, storetest.Used(t, kind, all), func(c *pages.Config) { c.PublicURL = "" })
			for who, of := range map[signin.Account]int{ann: all, {Platform: "github", ID: "9"}: all / 15} {
				if w.roles[who] == "" {
					w.roles[who] = sessions.User
				}
				found, b := map[string]bool{}, w.as(who)
				for target := "/sessions?q=tenth"; target != ""; {
					page := b.get(target)
					for _, m := range sessionLink.FindAllStringSubmatch(page, -1) {
						found[m[1]] = true
					}
					target = ""
					if m := furtherLink.FindStringSubmatch(page); m != nil {
						target = strings.ReplaceAll(m[1], "&amp;", "&")
					}
				}
				if len(found) != of {
					t.Errorf("%s finds %d of %d sessions", who, len(found), of)
				}
			}
		})
	}
}

var furtherLink = regexp.MustCompile(`href="(/sessions\?before=[^"]*)"`)
