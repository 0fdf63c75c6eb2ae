//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// listing returns what a filter lists, as "session number/message number".
func (b bundle) listing(tb testing.TB, number map[string]int, f store.MessageFilter) (names []string, all []store.ListedMessage) {
	tb.Helper()
	err := b.InRead(tb.Context(), func(tx *store.Tx) error {
		var err error
		all, err = tx.Search().ListMessages(tb.Context(), f)
		return err
	})
	if err != nil {
		tb.Fatalf("list %+v: %v", f, err)
	}
	for _, m := range all {
		names = append(names, fmt.Sprintf("%d/%d", number[m.SessionID], m.Seq))
	}
	return names, all
}

// fillListing stores sessions of two conversations and two profiles whose
// messages all have the same time, of one to three rows each, and returns the
// number of each session and the messages of each, in order.
func (b bundle) fillListing(t *testing.T) (number map[string]int, here sessions.Conversation, want []string) {
	t.Helper()
	here, there := b.conversation(t, "here"), b.conversation(t, "there")
	number = make(map[string]int)
	for i := range 7 {
		c := here
		if i == 3 {
			c = there
		}
		var s sessions.Session
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			s, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo", AgentName: []string{"writer", "tester"}[i%2]})
			if err != nil {
				return err
			}
			if err := tx.Sessions().DeactivateSession(ctx, s.ID, "test"); err != nil {
				return err
			}
			// By the clock nothing tells one session or message from the next.
			return store.Exec(ctx, tx, `UPDATE remote_agent_sessions SET started_at = '2026-11-21T00:00:00.000Z' WHERE id = $1`, s.ID)
		})
		number[s.ID] = i
		for k := range i {
			m := textOf(messages.RoleUser, fmt.Sprintf("message %d of session %d", k, i))
			for range k % 3 {
				m.Blocks = append(m.Blocks, messages.Attachment{Name: "a.txt", Text: "more"})
			}
			b.say(t, s.ID, "run", m)
			want = append(want, fmt.Sprintf("%d/%d", i, k+1))
		}
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `UPDATE agent_messages SET created_at = 1000`)
	})
	return number, here, want
}

func TestMessagesAreListedInOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		number, here, want := b.fillListing(t)
		backward := slices.Clone(want)
		slices.Reverse(backward)
		var inHere, tester, third []string
		for _, name := range want {
			if name[0] != '3' {
				inHere = append(inHere, name)
			}
			if (name[0]-'0')%2 == 1 {
				tester = append(tester, name)
			}
			if name[0] == '3' {
				third = append(third, name)
			}
		}
		session := map[int]string{}
		for id, n := range number {
			session[n] = id
		}
		for name, tt := range map[string]struct {
			filter store.MessageFilter
			want   []string
		}{
			"All":           {store.MessageFilter{}, want},
			"Newest":        {store.MessageFilter{Desc: true}, backward},
			"Conversation":  {store.MessageFilter{ConversationID: here.ID}, inHere},
			"Agent":         {store.MessageFilter{Agent: "tester"}, tester},
			"AgentAndChat":  {store.MessageFilter{Agent: "tester", ConversationID: here.ID}, []string{"1/1", "5/1", "5/2", "5/3", "5/4", "5/5"}},
			"NobodyLikeIt":  {store.MessageFilter{Agent: "nobody"}, nil},
			"Session":       {store.MessageFilter{SessionID: session[3]}, third},
			"SessionNewest": {store.MessageFilter{SessionID: session[3], Desc: true, Limit: 2}, []string{"3/3", "3/2"}},
			"ElsewhereNone": {store.MessageFilter{SessionID: session[3], ConversationID: here.ID}, nil},
			"Limit":         {store.MessageFilter{Limit: 4}, want[:4]},
			"Offset":        {store.MessageFilter{Limit: 4, Offset: 5}, want[5:9]},
			"OffsetNewest":  {store.MessageFilter{Limit: 4, Offset: 5, Desc: true}, backward[5:9]},
			"OffsetBeyond":  {store.MessageFilter{Offset: 1000}, nil},
		} {
			got, all := b.listing(t, number, tt.filter)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			for _, m := range all {
				if len(m.Blocks) != 1+int(m.Seq-1)%3 || m.RunID != "run" || m.At.Unix() != 1000 {
					t.Errorf("%s: message %+v is not whole", name, m)
				}
			}
		}
		wholePages(t, b, number, here.ID, inHere)
		refusedListings(t, b, session[3])
	})
}

// wholePages puts pages of any size together, by cursor and by offset, while
// messages are added at the end.
func wholePages(t *testing.T, b bundle, number map[string]int, conversation string, want []string) {
	rapid.Check(t, func(rt *rapid.T) {
		f := store.MessageFilter{ConversationID: conversation, Desc: rapid.Bool().Draw(rt, "desc"), Limit: rapid.IntRange(1, 8).Draw(rt, "limit")}
		byOffset := rapid.Bool().Draw(rt, "by offset")
		expected := slices.Clone(want)
		if f.Desc {
			slices.Reverse(expected)
		}
		var got []string
		for {
			names, all := b.listing(t, number, f)
			got = append(got, names...)
			if len(all) < f.Limit {
				break
			}
			if byOffset {
				f.Offset += len(all)
			} else {
				f.After = all[len(all)-1].Cursor()
			}
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			rt.Fatalf("pages of %d (-want +got):\n%s", f.Limit, diff)
		}
	})
}

func refusedListings(t *testing.T, b bundle, session string) {
	for name, tt := range map[string]struct {
		filter store.MessageFilter
		kind   fault.Kind
	}{
		"OffsetBelowZero":    {store.MessageFilter{Offset: -1}, fault.Invalid},
		"OffsetAndCursor":    {store.MessageFilter{Offset: 1, After: session + "/1"}, fault.Invalid},
		"NoCursor":           {store.MessageFilter{After: "7"}, fault.Invalid},
		"CursorOfNoNumber":   {store.MessageFilter{After: session + "/x"}, fault.Invalid},
		"CursorBelowZero":    {store.MessageFilter{After: session + "/-1"}, fault.Invalid},
		"CursorOfNoSession":  {store.MessageFilter{After: noSuchID + "/1"}, fault.NotFound},
		"NoSessionID":        {store.MessageFilter{SessionID: "x' OR 1=1"}, fault.Invalid},
		"NoSuchSession":      {store.MessageFilter{SessionID: noSuchID}, fault.NotFound},
		"NoConversationID":   {store.MessageFilter{ConversationID: "x"}, fault.Invalid},
		"NoSuchConversation": {store.MessageFilter{ConversationID: noSuchID}, fault.NotFound},
	} {
		err := b.InRead(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Search().ListMessages(t.Context(), tt.filter)
			return err
		})
		if !fault.Is(err, tt.kind) {
			t.Errorf("%s: %v, want %s", name, err, tt.kind)
		}
	}
}

// Of more sessions than one query looks at, none is left out.
func TestMessagesOfManySessionsAreListed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const n = 450
		c := b.conversation(t, "chat")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for range n {
				s, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo"})
				if err != nil {
					return err
				}
				if _, err := tx.Messages().AppendMessages(ctx, s.ID, "", textOf(messages.RoleUser, "hello")); err != nil {
					return err
				}
				if err := tx.Sessions().DeactivateSession(ctx, s.ID, ""); err != nil {
					return err
				}
			}
			return nil
		})
		for _, f := range []store.MessageFilter{{Limit: 1000}, {Limit: 1000, Desc: true}, {Limit: 1000, ConversationID: c.ID}} {
			seen := make(map[string]bool)
			_, all := b.listing(t, nil, f)
			for _, m := range all {
				seen[m.SessionID] = true
			}
			if len(all) != n || len(seen) != n {
				t.Errorf("%+v: %d messages of %d sessions, want %d", f, len(all), len(seen), n)
			}
		}
		_, last := b.listing(t, nil, store.MessageFilter{Offset: n - 1})
		_, newest := b.listing(t, nil, store.MessageFilter{Desc: true, Limit: 1})
		if len(last) != 1 || len(newest) != 1 || last[0].SessionID != newest[0].SessionID {
			t.Errorf("behind an offset of %d is %d messages, the newest is %+v", n-1, len(last), newest)
		}
	})
}
