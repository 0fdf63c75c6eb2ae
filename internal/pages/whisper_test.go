//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"strings"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
)

// What only its sender sees in the chat is nobody else's on the pages, either: not an owner's.
func TestAWhisperThatWaitsIsOfItsSender(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		dan := signin.Account{Platform: "telegram", ID: "99"}
		w.roles[dan] = sessions.User
		e := sessions.Entry{ConversationID: s.conversation.ID, Lane: sessions.LaneTurn, State: sessions.EntryWaiting, AcceptedAt: w.now, In: messages.Inbound{
			Event: "w", Kind: messages.KindMessage, Conversation: s.conversation.Key, Sender: messages.Sender{ID: "99", Name: "Dan"}, Text: "/clone https://git.example.com/hush", Whispered: true}}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Inbox().InsertEntry(ctx, &e)
			return err
		})
		wants(t, w.as(dan).get("/"), "/clone https://git.example.com/hush")
		failed, why := sessions.EntryFailed, "no"
		dead := e
		dead.ID, dead.State, dead.In.Event, dead.In.Text = "", "", "d", "/clone https://git.example.com/hush2"
		w.do(func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Inbox().InsertEntry(ctx, &dead); err != nil {
				return err
			}
			if err := tx.Inbox().UpdateEntry(ctx, dead.ID, sessions.EntryUpdate{State: &failed, Error: &why}); err != nil {
				return err
			}
			for _, state := range []messages.DeliveryState{messages.DeliveryPending, messages.DeliveryFailed} {
				answer := messages.Delivery{ConversationID: s.conversation.ID, EventID: dead.ID, Text: "hush3", OnlyFor: "99", FileName: "hush4.patch", File: []byte("x"), State: state}
				if err := tx.Deliveries().AddDelivery(ctx, &answer); err != nil {
					return err
				}
			}
			return nil
		})
		for path, who := range map[string][]signin.Account{"/": {ann, bob}, "/queue": {ann}, "/sessions/" + s.session.ID + "?tab=events": {ann, bob}} {
			for _, who := range who {
				page := w.as(who).get(path)
				if !strings.Contains(path, "tab") {
					wants(t, page, "A message that only its sender sees")
				}
				if strings.Contains(page, "hush") {
					t.Errorf("%s reads it on %s", who, path)
				}
			}
		}
		if n := strings.Count(w.as(ann).get("/queue"), "An answer that only one person sees"); n != 2 {
			t.Errorf("the queue has %d answers for one person", n)
		}
		w.roles[dan] = sessions.Owner
		wants(t, w.as(dan).get("/queue"), "hush", "hush2")
	})
}
