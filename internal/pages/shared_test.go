package pages_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestAPageIsMadeOnceForAllWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, state, made := pages.NewShared(), 0, 0
		broken := errors.New("broken")
		get := func(ctx context.Context, who string) (string, error) {
			page, err := s.Get(ctx, who, func(ctx context.Context) ([]byte, error) {
				made++
				if state < 0 {
					return nil, broken
				}
				return []byte(fmt.Sprint(who, state)), ctx.Err()
			})
			return string(page), err
		}
		if page, err := get(t.Context(), "a"); page != "a0" || err != nil {
			t.Fatalf("%q, %v", page, err)
		}
		began := time.Now()
		gone, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 20 {
			time.Sleep(5 * time.Millisecond)
			state = i + 1
			ctx, want, wants := t.Context(), "a20", error(nil)
			if i < 2 { // the one for whom it is made, and one who waits for it
				ctx = gone
			}
			if i == 1 {
				want, wants = "", context.Canceled
			}
			all.Go(func() {
				if page, err := get(ctx, "a"); page != want || !errors.Is(err, wants) {
					t.Errorf("request %d: %q, %v", i, page, err)
				}
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		if took := time.Since(began); made != 2 || took > 250*time.Millisecond {
			t.Errorf("made %d times, in %v", made, took)
		}
		if page, _ := get(t.Context(), "b"); page != "b20" || time.Since(began) > 250*time.Millisecond {
			t.Errorf("somebody else got %q", page)
		}
		state = -1
		if _, err := get(t.Context(), "a"); !errors.Is(err, broken) {
			t.Errorf("an error became %v", err)
		}
	})
}

// What is made once for several has the token of each in its forms, and is nobody
// else's.
func TestASharedPageIsSignedForEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)(t))
	w.fill()
	page := func(who signin.Account) (text, token string) {
		t.Helper()
		b := w.as(who)
		own := tokenField.FindStringSubmatch(b.get("/account"))[1]
		b.header.Set("Bot-Part", "main")
		r := b.send("GET", "/", nil)
		if r.Code != http.StatusOK {
			t.Fatalf("%s: %d", who, r.Code)
		}
		m := tokenField.FindStringSubmatch(r.Body.String())
		if m == nil || m[1] != own {
			t.Errorf("%s: the form has %v, the session %s", who, m, own)
		}
		return r.Body.String(), own
	}
	first, one := page(ann)
	second, two := page(ann)
	if one == two || strings.ReplaceAll(first, one, "") == "" || !strings.Contains(second, "Today, everyone") {
		t.Errorf("tokens %s and %s", one, two)
	}
	if mine, _ := page(bob); !strings.Contains(mine, "Today, you") {
		t.Errorf("somebody else's page:\n%s", mine)
	}
}

// Whoever asks at the same moment as others gets the page of their own account.
func TestASharedPageIsOfThoseWhoSeeTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, storetest.SQLite(t)(t))
		w.fill()
		dan := signin.Account{Platform: "telegram", ID: "44"}
		w.roles[dan] = sessions.User
		ask := func(who signin.Account) func() string {
			b := w.as(who)
			b.header.Set("Bot-Part", "main")
			return func() string { return b.send("GET", "/", nil).Body.String() }
		}
		others := map[signin.Account]func() string{bob: ask(bob), cat: ask(cat), dan: ask(dan)}
		owner, second := ask(ann), ask(ann)
		if page := owner(); !strings.Contains(page, "Today, everyone") {
			t.Fatalf("the page of an owner:\n%s", page)
		}
		var all sync.WaitGroup
		all.Go(func() { second() }) // it is made for them, a moment later
		synctest.Wait()
		for who, get := range others {
			all.Go(func() {
				page := get()
				if want := who == bob; !strings.Contains(page, "Today, you") || strings.Contains(page, "/sessions/") != want {
					t.Errorf("%s got the page of somebody else", who)
				}
			})
		}
		all.Wait()
	})
}

// What only its sender sees is not in the page of another owner who asks at the same moment.
func TestASharedPageKeepsAWhisper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, storetest.SQLite(t)(t))
		s := w.fill()
		dan := signin.Account{Platform: "telegram", ID: "99"}
		w.roles[dan] = sessions.Owner
		e := sessions.Entry{ConversationID: s.conversation.ID, Lane: sessions.LaneTurn, State: sessions.EntryWaiting, AcceptedAt: w.now, In: messages.Inbound{
			Event: "w", Kind: messages.KindMessage, Conversation: s.conversation.Key, Sender: messages.Sender{ID: "99", Name: "Dan"}, Text: "hush", Whispered: true}}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Inbox().InsertEntry(ctx, &e)
			return err
		})
		own, other := w.as(dan), w.as(ann)
		own.header.Set("Bot-Part", "main")
		other.header.Set("Bot-Part", "main")
		wants(t, own.get("/"), "hush")
		var all sync.WaitGroup
		all.Go(func() { wants(t, own.get("/"), "hush") })
		synctest.Wait()
		all.Go(func() {
			if strings.Contains(other.get("/"), "hush") {
				t.Error("another owner reads it")
			}
		})
		all.Wait()
	})
}
