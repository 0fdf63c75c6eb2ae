//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/live"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

const ann, eve = "test/ann", "test/eve"

// sayInChat says something in the browser, as ann does.
func (b bundle) sayInChat(t *testing.T, chat, id, text string, files ...messages.PostedFile) {
	t.Helper()
	p := messages.Posted{Chat: chat, ID: messages.MessageID(id), Author: ann, Text: text, Files: files}
	if err := b.Say(t.Context(), p, []byte(`"`+id+`"`)); err != nil {
		t.Fatal(err)
	}
}

// postInChat posts something of the program there.
func (b bundle) postInChat(t *testing.T, chat, delivery, text string) messages.MessageID {
	t.Helper()
	id, err := b.Post(t.Context(), messages.Posted{Chat: chat, Delivery: messages.DeliveryID(delivery), Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// posted returns what stands in a chat, up to limit messages.
func (b bundle) posted(t *testing.T, chat string, limit int) (list []messages.Posted) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = tx.Board().Posted(ctx, chat, limit)
		return err
	})
	return list
}

func texts(list []messages.Posted) string {
	var all []string
	for _, p := range list {
		all = append(all, p.Text)
	}
	return strings.Join(all, " ")
}

// chats returns the ids of an account's chats.
func (b bundle) chats(t *testing.T, account string) (ids []string) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.Board().Chats(ctx, account, 0, 100)
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		return err
	})
	return ids
}

// untaken returns what waits, as chat/id.
func (b bundle) untaken(t *testing.T, chat, behind string, limit int) string {
	t.Helper()
	var all []string
	err := b.Untaken(t.Context(), chat, behind, limit, func(chat string, id messages.MessageID, event []byte) {
		if string(event) != `"`+string(id)+`"` {
			t.Errorf("the event of %s is %s", id, event)
		}
		all = append(all, chat+"/"+string(id))
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func (b bundle) counted(t *testing.T, table string) (n int) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = store.Count(ctx, tx, "SELECT count(*) FROM "+table)
		return err
	})
	return n
}

func TestWhatIsSaidInTheBrowserStandsOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		file := messages.PostedFile{Name: "a.txt", MediaType: "text/plain", Data: []byte("content")}
		b.sayInChat(t, "c1", "m1", "one", file)
		b.sayInChat(t, "c1", "m1", "one, changed", file)
		b.sayInChat(t, "c1", "m2", "two")
		list := b.posted(t, "c1", 10)
		if texts(list) != "one two" || list[0].Author != ann || list[0].Delivery != "" || len(list[0].Files) != 1 || list[0].Seq != 1 || list[1].Seq != 2 {
			t.Fatalf("there stands %+v", list)
		}
		if f := list[0].Files[0]; f.Name != "a.txt" || f.Size != 7 || f.Data != nil {
			t.Errorf("with the file %+v", f)
		}
		wantKind(t, b.Say(t.Context(), messages.Posted{Chat: "c1", ID: "m3", Author: eve, Text: "mine"}, []byte(`{}`)), fault.NotFound)
		if got := texts(b.posted(t, "c1", 10)); got != "one two" {
			t.Errorf("after somebody else spoke there: %s", got)
		}
		if got := b.chats(t, eve); len(got) != 0 {
			t.Errorf("who spoke into a foreign chat has the chats %v", got)
		}
	})
}

func TestWhatThePostsOfTheProgramDo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		ctx := t.Context()
		b.sayInChat(t, "c1", "m1", "question")
		first := b.postInChat(t, "c1", "d1", "answer")
		if again := b.postInChat(t, "c1", "d1", "answer, sent again"); again != first {
			t.Errorf("sent again it is %s, not %s", again, first)
		}
		button := []messages.Button{{ID: "b", Label: "Press"}}
		if err := b.Repost(ctx, messages.Posted{Chat: "c1", ID: first, Text: "edited", Buttons: button}); err != nil {
			t.Fatal(err)
		}
		list := b.posted(t, "c1", 10)
		if texts(list) != "question edited" || len(list[1].Buttons) != 1 || list[1].Delivery != "d1" {
			t.Errorf("there stands %+v", list)
		}
		for name, p := range map[string]messages.Posted{
			"what a person said": {Chat: "c1", ID: "m1"}, "one of another chat": {Chat: "c2", ID: first}, "none": {Chat: "c1", ID: "none"},
		} {
			t.Log(name)
			wantKind(t, b.Repost(ctx, p), fault.NotFound)
			if err := b.Unpost(ctx, p.Chat, p.ID); err != nil {
				t.Errorf("taking back %s: %v", name, err)
			}
		}
		for _, mark := range []struct {
			id   messages.MessageID
			mark string
		}{{"m1", "done"}, {first, "failed"}} {
			if err := b.MarkPosted(ctx, "c1", mark.id, mark.mark); err != nil {
				t.Error(err)
			}
		}
		if list = b.posted(t, "c1", 10); len(list) != 2 || list[0].Mark != "done" || list[1].Mark != "" {
			t.Errorf("marked: %+v", list)
		}
		for range 2 {
			if err := b.Unpost(ctx, "c1", first); err != nil {
				t.Error(err)
			}
		}
		if got := texts(b.posted(t, "c1", 10)); got != "question" {
			t.Errorf("taken back, there stands %s", got)
		}
		_, err := b.Post(ctx, messages.Posted{Chat: "none", Delivery: "d2", Text: "answer"})
		wantKind(t, err, fault.Gone)
	})
}

func TestWhatWasNotTakenIsVisitedInOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for _, m := range []string{"b/b1", "a/a1", "b/b2", "a/a2", "c/c1"} {
			chat, id, _ := strings.Cut(m, "/")
			b.sayInChat(t, chat, id, "x")
		}
		b.postInChat(t, "a", "d1", "answer")
		for _, c := range []struct {
			chat, behind string
			limit        int
			want         string
		}{
			{"", "", 10, "a/a1 a/a2 b/b1 b/b2 c/c1"}, {"", "", 3, "a/a1 a/a2 b/b1"}, {"", "a", 10, "b/b1 b/b2 c/c1"}, {"b", "", 10, "b/b1 b/b2"}, {"b", "b", 10, ""}, {"d", "", 10, ""},
		} {
			if got := b.untaken(t, c.chat, c.behind, c.limit); got != c.want {
				t.Errorf("of %q behind %q, %d: %s, want %s", c.chat, c.behind, c.limit, got, c.want)
			}
		}
		if err := b.Took(t.Context(), "a1", "b2", "none"); err != nil {
			t.Fatal(err)
		}
		b.sayInChat(t, "a", "a1", "x") // again
		if got := b.untaken(t, "", "", 10); got != "a/a2 b/b1 c/c1" {
			t.Errorf("when some was taken, there is %s", got)
		}
	})
}

func TestTheLastMessagesOfAChat(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for i := range 5 {
			b.sayInChat(t, "c1", fmt.Sprint("m", i), fmt.Sprint(i), messages.PostedFile{Name: fmt.Sprint("f", i)})
		}
		list := b.posted(t, "c1", 2)
		if texts(list) != "3 4" || list[0].Seq != 4 || len(list[0].Files) != 1 || list[0].Files[0].Name != "f3" || list[1].Files[0].Name != "f4" {
			t.Errorf("the last two are %+v", list)
		}
		b.sayInChat(t, "c2", "other", "title of another chat")
		b.postInChat(t, "c1", "d1", "later")
		var list2 []messages.Chat
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			list2, err = tx.Board().Chats(ctx, ann, 0, 100)
			return err
		})
		i := slices.IndexFunc(list2, func(c messages.Chat) bool { return c.ID == "c1" })
		if len(list2) != 2 || list2[i].Title != "0" || list2[1-i].Title != "title of another chat" || list2[i].Account != ann || time.Since(list2[i].ChangedAt) > time.Minute {
			t.Errorf("chats: %+v", list2)
		}
	})
}

func TestFilesAreOfTheirChat(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.sayInChat(t, "c1", "m1", "one", messages.PostedFile{ID: "m1-0", Name: "a.txt", MediaType: "text/plain", Data: []byte("content")}, messages.PostedFile{ID: "m1-1", Name: "empty"})
		b.sayInChat(t, "c2", "m2", "two")
		f, err := b.OpenPosted(t.Context(), "c1", "m1-0")
		if err != nil || string(f.Data) != "content" || f.Name != "a.txt" || f.MediaType != "text/plain" || f.Size != 7 {
			t.Errorf("opened %+v, %v", f, err)
		}
		if f, err = b.OpenPosted(t.Context(), "c1", "m1-1"); err != nil || len(f.Data) != 0 || f.Size != 0 {
			t.Errorf("the empty one: %+v, %v", f, err)
		}
		for _, at := range [][2]string{{"c2", "m1-0"}, {"c1", "m1-2"}, {"", "m1-0"}} {
			_, err := b.OpenPosted(t.Context(), at[0], at[1])
			wantKind(t, err, fault.NotFound)
		}
	})
}

// talked makes a conversation of the web with two answered messages, in a session that
// has ended each, and returns the conversation and the sessions.
func (b bundle) talked(t *testing.T, chat string) (conv sessions.Conversation, list []sessions.Session) {
	t.Helper()
	key := messages.ConversationKey{Platform: "web", ID: chat}
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		conv, _, err = tx.Conversations().GetOrCreateConversation(ctx, key, "demo")
		return err
	})
	for i := range 2 {
		id := fmt.Sprint(chat, "-said-", i)
		b.sayInChat(t, chat, id, id, messages.PostedFile{Name: "a", Data: []byte("content")})
		s := b.session(t, conv.ID)
		list = append(list, s)
		e := sessions.Entry{ConversationID: conv.ID, In: messages.Inbound{
			Event: messages.EventID(id), Message: messages.MessageID(id), Kind: messages.KindMessage, Conversation: key, Sender: messages.Sender{ID: "ann", Platform: "test"}, Text: id, Raw: []byte("{}")}}
		d := messages.Delivery{ConversationID: conv.ID, Text: "answer", Final: true, State: messages.DeliverySent}
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			if _, err = tx.Inbox().InsertEntry(ctx, &e); err != nil {
				return err
			}
			d.EventID = e.ID
			if err = tx.Deliveries().AddDelivery(ctx, &d); err != nil {
				return err
			}
			return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: new(sessions.EntryDone), SessionID: &s.ID})
		})
		b.say(t, s.ID, e.ID, textOf(messages.RoleUser, id), textOf(messages.RoleAssistant, "answer"))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Sessions().DeactivateSession(ctx, s.ID, "done")
		})
		b.postInChat(t, chat, string(d.ID), fmt.Sprint("answer-", i))
	}
	if err := b.Took(t.Context(), messages.MessageID(chat+"-said-0"), messages.MessageID(chat+"-said-1")); err != nil {
		t.Fatal(err)
	}
	return conv, list
}

func TestADeletedConversationLeavesNothingInTheBrowser(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		conv, _ := b.talked(t, "c1")
		b.talked(t, "c2")
		b.sayInChat(t, "c1", "waits", "not taken")
		var told []live.Topic
		b.OnChange(func(topics ...live.Topic) { told = append(told, topics...) })
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Care().RemoveConversation(ctx, conv.ID)
			return err
		})
		b.OnChange(nil)
		if !slices.Contains(told, live.Chat("c1")) || slices.Contains(told, live.Chat("c2")) {
			t.Errorf("told of are %v", told)
		}
		if got := b.chats(t, ann); !slices.Equal(got, []string{"c2"}) {
			t.Errorf("the chats are %v", got)
		}
		for table, want := range map[string]int{"web_chats": 1, "web_messages": 4, "web_files": 2} {
			if got := b.counted(t, table); got != want {
				t.Errorf("%s has %d rows, want %d", table, got, want)
			}
		}
		_, err := b.Post(t.Context(), messages.Posted{Chat: "c1", Delivery: "late", Text: "answer"})
		wantKind(t, err, fault.Gone)
		if got := b.untaken(t, "", "", 10); got != "" {
			t.Errorf("to be taken is still %s", got)
		}
	})
}

// Somebody deletes what they said in the browser, with what a handoff has put aside of it,
// and nothing that is somebody else's or called alike.
func TestAPersonDeletesTheirChat(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		remove := func(account, chat string) error {
			return b.InTx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Board().RemoveChat(t.Context(), account, chat)
				return err
			})
		}
		old, _ := b.talked(t, "c1")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Conversations().UpdateConversation(ctx, old.ID, sessions.ConversationUpdate{Key: &messages.ConversationKey{Platform: "web", ID: "c1~demo~0123"}})
		})
		b.sayInChat(t, "c1", "after", "after the handoff")
		wantKind(t, remove(ann, "c1"), fault.Conflict) // it would be answered afterwards
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.Conversations().GetOrCreateConversation(ctx, messages.ConversationKey{Platform: "web", ID: "c1"}, "other")
			return err
		})
		if err := b.Took(t.Context(), "after"); err != nil {
			t.Fatal(err)
		}
		b.talked(t, "c12")
		elsewhere := b.conversation(t, "c1~demo~0123") // of another platform
		for _, account := range []string{eve, "", "web/ann"} {
			wantKind(t, remove(account, "c1"), fault.NotFound)
		}
		if got := b.counted(t, "remote_agent_conversations"); got != 4 {
			t.Errorf("there are %d conversations after others have tried", got)
		}
		if err := remove(ann, "c1"); err != nil {
			t.Fatal(err)
		}
		wantKind(t, remove(ann, "c1"), fault.NotFound)
		if got := b.chats(t, ann); !slices.Equal(got, []string{"c12"}) || b.counted(t, "remote_agent_conversations") != 2 || b.counted(t, "web_messages") != 4 {
			t.Errorf("left are %v, %d conversations, %d messages", got, b.counted(t, "remote_agent_conversations"), b.counted(t, "web_messages"))
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Conversations().Conversation(ctx, elsewhere.ID)
			return err
		})
		b.sayInChat(t, "c3", "alone", "never taken by anybody, as before a restore")
		if err := b.Took(t.Context(), "alone"); err != nil {
			t.Fatal(err)
		}
		if err := remove(ann, "c3"); err != nil {
			t.Error(err)
		}
	})
}

// A conversation in which a turn runs is not deleted.
func TestAChatAtWorkStays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		conv, _ := b.talked(t, "c1")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Inbox().InsertEntry(ctx, &sessions.Entry{ConversationID: conv.ID, In: messages.Inbound{
				Event: "running", Kind: messages.KindMessage, Conversation: messages.ConversationKey{Platform: "web", ID: "c1"}, Sender: messages.Sender{ID: "ann", Platform: "test"}, Text: "go"}})
			return err
		})
		err := b.InTx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Board().RemoveChat(t.Context(), ann, "c1")
			return err
		})
		wantKind(t, err, fault.Conflict)
		if got := b.chats(t, ann); len(got) != 1 || b.counted(t, "web_messages") != 4 {
			t.Errorf("left are %v, %d messages", got, b.counted(t, "web_messages"))
		}
	})
}

// A conversation of another platform that has the id of a chat is another one.
func TestOnlyConversationsOfTheBrowserTakeAChatWithThem(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.talked(t, "c1")
		other := b.conversation(t, "c1")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Conversations().DeleteConversation(ctx, other.ID)
		})
		if got := texts(b.posted(t, "c1", 10)); got != "c1-said-0 answer-0 c1-said-1 answer-1" {
			t.Errorf("there stands %s", got)
		}
	})
}

func TestARemovedSessionTakesItsPartOfTheChat(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		_, list := b.talked(t, "c1")
		for i, want := range []string{"c1-said-1 answer-1", ""} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Care().RemoveSession(ctx, list[i].ID)
				return err
			})
			if got := texts(b.posted(t, "c1", 10)); got != want {
				t.Errorf("without session %d, there stands %q, want %q", i, got, want)
			}
		}
		if got := b.chats(t, ann); len(got) != 0 {
			t.Errorf("an empty chat is listed: %v", got)
		}
		b.sayInChat(t, "c1", "again", "again") // in a tab that is open
		if got := b.chats(t, ann); len(got) != 1 {
			t.Errorf("the chats are %v when it goes on", got)
		}
	})
}

// What retention takes away stands there no more, in whole turns but for the last
// answer, by which the rest of a conversation is measured; what is new stays.
// presses has a button of the last message of a chat pressed, which is settled.
func (b bundle) presses(t *testing.T, chat string) {
	t.Helper()
	list := b.posted(t, chat, 1)
	key := messages.ConversationKey{Platform: "web", ID: chat}
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, key, "demo")
		if err != nil {
			return err
		}
		e := sessions.Entry{ConversationID: conv.ID, In: messages.Inbound{
			Event: "press", Message: list[0].ID, Kind: messages.KindAction, Conversation: key, Sender: messages.Sender{ID: "ann", Platform: "test"}, Raw: []byte("{}")}}
		if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
			return err
		}
		return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: new(sessions.EntryDone)})
	})
}

func TestRetentionKeepsChatsCoherent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.talked(t, "c1")
		b.talked(t, "c2")
		prune := func(before time.Time) {
			for kind := range store.ExpiringKinds {
				b.expire(t, kind, before)
			}
		}
		prune(time.Now().Add(-time.Hour))
		if got := texts(b.posted(t, "c1", 10)); got != "c1-said-0 answer-0 c1-said-1 answer-1" {
			t.Errorf("what is new: %s", got)
		}
		b.presses(t, "c1")
		prune(time.Now().Add(time.Hour))
		for _, chat := range []string{"c1", "c2"} {
			list := b.posted(t, chat, 10)
			if texts(list) != "answer-1" || list[0].Seq != 4 {
				t.Errorf("there stands %+v", list)
			}
		}
		if n := b.counted(t, "web_files"); n != 0 {
			t.Errorf("%d files are left", n)
		}
		b.sayInChat(t, "c1", "more", "more")
		if got := texts(b.posted(t, "c1", 10)); got != "answer-1 more" {
			t.Errorf("when it goes on, there stands %s", got)
		}
	})
}

// What was sent in the browser is kept as long as other files; the message stays.
func TestFilesInTheBrowserGoWithTheirTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		file := func(id, data string) messages.PostedFile {
			return messages.PostedFile{ID: id, Name: id + ".txt", MediaType: "text/plain", Data: []byte(data)}
		}
		b.sayInChat(t, "c1", "m1", "one", file("f1", "content"), file("f2", ""))
		empty := func(before time.Time, want map[string]bool) {
			t.Helper()
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Board().EmptyPosted(ctx, before) })
			for _, f := range b.posted(t, "c1", 9)[0].Files {
				_, err := b.OpenPosted(t.Context(), "c1", f.ID)
				if f.Gone != want[f.ID] || fault.Is(err, fault.NotFound) != want[f.ID] {
					t.Errorf("%+v, opened: %v", f, err)
				}
			}
		}
		empty(time.Now().Add(-time.Hour), nil)
		empty(time.Now().Add(time.Hour), map[string]bool{"f1": true})
		if got := texts(b.posted(t, "c1", 9)); got != "one" {
			t.Errorf("there stands %s", got)
		}
	})
}
