//nolint:thelper // these run tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// talk is a part that stores a message in a conversation of its own.
func talk(ctx context.Context, tx *store.Tx, id string) error {
	c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key(id), "demo")
	if err != nil {
		return err
	}
	e := sessions.Entry{ConversationID: c.ID, In: inbound(id, id)}
	fresh, err := tx.Inbox().InsertEntry(ctx, &e)
	if err == nil && !fresh {
		err = errors.New("not fresh: " + id)
	}
	return err
}

func TestPartsAbreastDoWhatTheyDoOneByOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.conversation(t, "part-1") // there is one that is not created
		done := 0
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			done = 0
			return tx.Abreast(ctx, 5, func(i int) error {
				err := talk(ctx, tx, fmt.Sprint("part-", i))
				done++
				return err
			})
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			rows, err := store.Rows(ctx, tx, `
				SELECT c.platform_conversation_id, CAST(c.inbox_seq AS TEXT), e.event_id
				FROM inbound_events e JOIN remote_agent_conversations c ON c.id = e.conversation_id ORDER BY 1`, 3)
			want := "[[part-0 1 part-0] [part-1 1 part-1] [part-2 1 part-2] [part-3 1 part-3] [part-4 1 part-4]]"
			if got := fmt.Sprint(rows); err == nil && got != want {
				t.Errorf("stored %s, want %s", got, want)
			}
			return err
		})
		if done != 5 {
			t.Errorf("%d parts came to their end, want 5", done)
		}
	})
}

// TestPartsAbreastWaitTogether: what five parts ask at the same moment is one question.
func TestPartsAbreastWaitTogether(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	s, err := store.Open(t.Context(), store.Options{URL: storetest.PostgresMigratedURL(t), Log: storetest.Log(t), Trace: func(statement string) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, strings.Fields(statement)[0])
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // only read
	asked = nil
	bundle{s}.do(t, func(ctx context.Context, tx *store.Tx) error {
		return tx.Abreast(ctx, 5, func(i int) error { return talk(ctx, tx, fmt.Sprint("part-", i)) })
	})
	want := slices.Concat([]string{"begin"},
		slices.Repeat([]string{"SELECT"}, 5), slices.Repeat([]string{"INSERT"}, 5), slices.Repeat([]string{"INSERT"}, 5),
		slices.Repeat([]string{"UPDATE"}, 5), []string{"commit"})
	if !slices.Equal(asked, want) {
		t.Errorf("asked\n%q, want\n%q", asked, want)
	}
}

func TestAPartThatFailsEndsTheOthers(t *testing.T) {
	t.Parallel()
	invalid := fault.New(fault.Invalid, "no")
	for name, fail := range map[string]func(ctx context.Context, tx *store.Tx) error{
		"ByItself": func(context.Context, *store.Tx) error { return invalid },
		"InTheDatabase": func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `SELECT nothing FROM nowhere`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b bundle) {
				begun, ended := 0, 0
				err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
					return tx.Abreast(ctx, 3, func(i int) error {
						begun++
						defer func() { ended++ }()
						if err := talk(ctx, tx, fmt.Sprint("part-", i)); err != nil || i != 1 {
							return errors.Join(err, store.Exec(ctx, tx, `UPDATE inbound_events SET error = 'x'`))
						}
						return fail(ctx, tx)
					})
				})
				if err == nil || name == "ByItself" && !errors.Is(err, invalid) {
					t.Errorf("the error is %v", err)
				}
				if begun != ended {
					t.Errorf("%d parts began and %d ended", begun, ended)
				}
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					n, err := store.Count(ctx, tx, `SELECT count(*) FROM inbound_events`)
					if n != 0 {
						t.Errorf("%d events are stored of a transaction that failed", n)
					}
					return err
				})
			})
		})
	}
}

func TestPanicOfAPartEndsTheOthersAndIsPassedOn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		begun, ended := 0, 0
		func() {
			defer func() {
				if r := recover(); r != "part" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = b.try(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Abreast(ctx, 3, func(i int) error {
					begun++
					defer func() { ended++ }()
					if err := talk(ctx, tx, fmt.Sprint("part-", i)); err != nil || i != 1 {
						return err
					}
					panic("part")
				})
			})
		}()
		if begun != ended {
			t.Errorf("%d parts began and %d ended", begun, ended)
		}
		b.conversation(t, "later") // the connection is not lost
	})
}
