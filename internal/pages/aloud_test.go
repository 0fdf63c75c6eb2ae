//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"regexp"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

var (
	headingLevel = regexp.MustCompile(`<h([1-6])[ >]`)
	nameless     = regexp.MustCompile(`<div[^>]* tabindex="0" role="group">`)
	silent       = regexp.MustCompile(`<a [^>]*></a>`)
)

// Whoever goes from heading to heading misses none: a level follows the one above it. What
// can have the focus has a name.
func TestHeadingsSkipNoLevel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.talks()
		w.connections = platformsOf(w)
		w.do(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Inbox().InsertEntry(ctx, &sessions.Entry{ConversationID: s.conversation.ID, SessionID: s.session.ID, In: messages.Inbound{Event: "only a file", Conversation: s.conversation.Key}})
			return err
		})
		if err := w.Say(t.Context(), messages.Posted{Chat: "c", ID: "m", Author: ann.String(), Text: "hi"}, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		b := w.as(ann)
		for _, path := range append(every(s), "/chat/c", "/sessions/"+s.session.ID+"?tab=plan") {
			last, page := byte('0'), b.get(path)
			if found := nameless.FindString(page) + silent.FindString(page); found != "" {
				t.Errorf("%s has %s", path, found)
			}
			for _, m := range headingLevel.FindAllStringSubmatch(page, -1) {
				if level := m[1][0]; level > last+1 {
					t.Errorf("%s has an h%c behind an h%c", path, level, last)
				}
				last = m[1][0]
			}
		}
	})
}

// A screen reader says what is new in a conversation, and an answer once it is complete.
func TestAnswersAreReadAloud(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.talks()
		w.do(func(ctx context.Context, tx *store.Tx) error {
			conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, messages.ConversationKey{Platform: "web", ID: "c"}, "demo")
			if err != nil {
				return err
			}
			session, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: conv.ID, Assistant: "demo"})
			if err != nil {
				return err
			}
			e := sessions.Entry{ConversationID: conv.ID, Lane: sessions.LaneTurn, In: messages.Inbound{Event: "1", Kind: messages.KindMessage, Conversation: conv.Key, Text: "hi"}}
			if _, err = tx.Inbox().InsertEntry(ctx, &e); err != nil {
				return err
			}
			_, err = tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: session.ID, EntryID: e.ID})
			return err
		})
		for _, chat := range []string{"c", "idle"} {
			if err := w.Say(t.Context(), messages.Posted{Chat: chat, ID: messages.MessageID(chat), Author: ann.String(), Text: "hi"}, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		b := w.as(ann)
		wants(t, b.get("/chat/c"), `<time data-ago="" aria-live="off"`, `id="transcript" role="log" aria-busy="true"`)
		wants(t, b.get("/chat/idle"), `id="transcript" role="log" aria-busy="false"`)
		m := sessionLink.FindStringSubmatch(b.get("/sessions"))
		wants(t, b.get("/sessions/"+m[1]), `id="transcript" role="log" aria-busy="true"`)
	})
}
