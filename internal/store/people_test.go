//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/commit"
	"remote-agent/internal/store/storetest"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

const annsSlack = "slack/UANN"

func (b bundle) join(tb testing.TB, host, guest string) (j memory.Joined) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		j, err = tx.Persons().JoinPeople(ctx, memory.Account{Name: host, LinkedAt: time.Now()}, memory.Account{Name: guest, LinkedAt: time.Now()})
		return err
	})
	return j
}

// known lists the memories of an account as "number text", the oldest first.
func (b bundle) known(tb testing.TB, account string) (list []string) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		all, err := tx.Memories().List(ctx, account, 0, 100, time.Now())
		slices.Reverse(all)
		list = nil
		for _, m := range all {
			list = append(list, fmt.Sprint(m.Number, " ", m.Text))
		}
		return err
	})
	return list
}

func of(account string) func(*memory.Fact) { return func(f *memory.Fact) { f.Person = account } }

func TestTwoAccountsBecomeOnePerson(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.learn(t, told("likes green tea"))
		b.learn(t, told("works at night"))
		b.learn(t, told("has a dog", of(annsSlack)))
		b.learn(t, told("Likes green tea.", of(annsSlack), func(f *memory.Fact) { f.Origin = memory.ByPerson }))
		b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsSlack}, RunID: someRun, Text: "deployed", Sources: []string{"slack"}})
		b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: "deployed", Sources: []string{"telegram"}})
		b.learn(t, told("knows Go", of(bobsID)))
		elsewhere := b.project(t, "other")
		b.learn(t, told("works at night", of(annsSlack), func(f *memory.Fact) { f.Codebase = elsewhere }))

		j := b.join(t, annsID, annsSlack)
		if diff := cmp.Diff(memory.Joined{Moved: 2, Same: 2, FirstMoved: 4}, j); diff != "" {
			t.Errorf("joined (-want +got):\n%s", diff)
		}
		want := []string{"1 likes green tea", "2 works at night", "3 deployed", "5 has a dog", "8 works at night"}
		for _, account := range []string{annsID, annsSlack} {
			if diff := cmp.Diff(want, b.known(t, account)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", account, diff)
			}
			for _, e := range []memory.Embedding{{}, memorytest.Embedding("a dog")} {
				q := memory.Query{Scope: memory.Scope{Person: account}, Text: "a dog", Embedding: e}
				if got := recalled(b.recall(t, q)); len(got) != 1 {
					t.Errorf("%s recalls %v", account, got)
				}
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for other, want := range map[string]bool{annsSlack: true, bobsID: false, "slack/UNEW": false} {
				if same, err := tx.People().SamePerson(ctx, annsID, other); same != want || err != nil {
					t.Errorf("%s is the same person: %v, %v", other, same, err)
				}
			}
			tea, err := tx.Memories().Memory(ctx, annsSlack, 1)
			if err != nil || tea.Confidence != 0.6 || tea.AccessCount != 2 || tea.Origin != memory.ByPerson {
				t.Errorf("what both said is %+v, %v", tea, err)
			}
			deployed, err := tx.Memories().Memory(ctx, annsSlack, 3)
			if err != nil || deployed.Confidence != 1.5 || !slices.Equal(deployed.Sources, []string{"telegram", "slack"}) {
				t.Errorf("what happened to both is %+v, %v", deployed, err)
			}
			return nil
		})
		if diff := cmp.Diff([]string{"1 knows Go"}, b.known(t, bobsID)); diff != "" {
			t.Errorf("Bob (-want +got):\n%s", diff)
		}
		// Learned from either account it is the same fact; a new one has a new number.
		if out := b.learn(t, told("HAS a dog!")); out.Operation != memory.UpdateSimilar || out.Memory.Number != 5 {
			t.Errorf("again: %+v", out)
		}
		if out := b.learn(t, told("sings", of(annsSlack))); out.Memory.Number <= 8 { // 4 of hers there, behind 4
			t.Errorf("a number was used again: %+v", out.Memory)
		}
		if err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Persons().JoinPeople(ctx, memory.Account{Name: annsSlack}, memory.Account{Name: annsID})
			return err
		}); !fault.Is(err, fault.Conflict) {
			t.Errorf("linked again: %v", err)
		}
	})
}

func TestPeopleWithSeveralAccountsJoin(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for i, account := range []string{"a/1", "b/1", "c/1", "d/1"} {
			b.learn(t, told(fmt.Sprintf("thing number%d of mine", i), of(account), wordsOnly))
		}
		b.join(t, "a/1", "b/1")
		b.join(t, "c/1", "d/1")
		b.join(t, "b/1", "d/1")
		want := b.known(t, "a/1")
		if len(want) != 4 {
			t.Errorf("all know %v", want)
		}
		for _, account := range []string{"b/1", "c/1", "d/1"} {
			if diff := cmp.Diff(want, b.known(t, account)); diff != "" {
				t.Errorf("%s (-a +it):\n%s", account, diff)
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			list, err := tx.Persons().Accounts(ctx, "c/1")
			if len(list) != 4 {
				t.Errorf("accounts %+v", list)
			}
			return err
		})
	})
}

func TestOffOfEitherCounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SetMemoryOn(ctx, annsSlack, false) })
		if j := b.join(t, annsID, annsSlack); !j.Off {
			t.Errorf("joined %+v", j)
		}
		if _, err := b.tryLearn(t, told("anything")); !fault.Is(err, fault.Forbidden) {
			t.Errorf("learned: %v", err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SetMemoryOn(ctx, annsID, true) })
		b.learn(t, told("something", of(annsSlack)))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.Memories().ForgetMemories(ctx, annsID)
			if n != 1 {
				t.Errorf("forgot %d", n)
			}
			return err
		})
	})
}

func TestAnAccountLeaves(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.learn(t, told("one"))
		b.learn(t, told("two", of(annsSlack)))
		b.join(t, annsID, annsSlack)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Memories().SetMemoryOn(ctx, annsSlack, false); err != nil {
				return err
			}
			return tx.Persons().LeavePerson(ctx, annsID)
		})
		if got := b.known(t, annsID); len(got) != 0 {
			t.Errorf("who left knows %v", got)
		}
		if got := b.known(t, annsSlack); len(got) != 2 {
			t.Errorf("who stayed knows %v", got)
		}
		if _, err := b.tryLearn(t, told("anything")); !fault.Is(err, fault.Forbidden) {
			t.Errorf("memory was off, and who left learned: %v", err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Memories().SetMemoryOn(ctx, annsID, true); err != nil {
				return err
			}
			list, err := tx.Persons().Accounts(ctx, annsSlack)
			if len(list) != 0 {
				t.Errorf("one account alone: %+v", list)
			}
			return err
		})
		if out := b.learn(t, told("three")); out.Memory.Number <= 2 {
			t.Errorf("a number that the account has seen was used again: %d", out.Memory.Number)
		}
		if err := b.try(t, func(ctx context.Context, tx *store.Tx) error { return tx.Persons().LeavePerson(ctx, annsID) }); !fault.Is(err, fault.NotFound) {
			t.Errorf("left twice: %v", err)
		}
		// And back again: nothing is lost or doubled.
		b.join(t, annsSlack, annsID)
		if got := b.known(t, annsID); len(got) != 3 {
			t.Errorf("joined again: %v", got)
		}
	})
}

// Somebody learns while the account is linked: it ends with the person.
func TestLearningWhileAccountsAreLinked(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		var wg sync.WaitGroup
		const facts = 20
		for i := range facts {
			wg.Go(func() {
				f := told(fmt.Sprintf("subject%d", i), wordsOnly)
				if i%2 == 1 {
					f.Person = annsSlack
				}
				if _, err := b.tryLearn(t, f); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { b.join(t, annsID, annsSlack) })
		wg.Wait()
		if a, s := b.known(t, annsID), b.known(t, annsSlack); len(a) != facts || !slices.Equal(a, s) {
			t.Errorf("%d and %d of %d facts:\n%v\n%v", len(a), len(s), facts, a, s)
		}
	})
}

func TestLinkCodes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Now().Truncate(time.Millisecond)
		save := func(account, hash string, expires time.Time) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Persons().SaveLinkCode(ctx, memory.LinkCode{Account: memory.Account{Name: account, Whispered: true}, Hash: hash, Expires: expires})
			})
		}
		take := func(hash string) (c memory.LinkCode, ok bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				c, ok, err = tx.Persons().TakeLinkCode(ctx, hash, now)
				return err
			})
			return c, ok
		}
		save(annsID, "first", now.Add(time.Minute))
		save(annsID, "second", now.Add(time.Minute))
		if _, ok := take("first"); ok {
			t.Error("a code that was replaced is good")
		}
		c, ok := take("second")
		if want := (memory.LinkCode{Account: memory.Account{Name: annsID, Whispered: true}, Hash: "second", Expires: now.Add(time.Minute).UTC()}); !ok || !cmp.Equal(want, c) {
			t.Errorf("took %v: %s", ok, cmp.Diff(want, c))
		}
		if _, ok := take("second"); ok {
			t.Error("a code was used twice")
		}
		save(annsID, "late", now)
		if _, ok := take("late"); ok {
			t.Error("an expired code is good")
		}
		tries := func(at time.Time) (n int64) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				n, err = tx.Persons().LinkTries(ctx, annsID, at.Add(-time.Hour))
				return err
			})
			return n
		}
		try := func(key string, at time.Time) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Persons().NoteLinkTry(ctx, annsID, key, at.Add(-time.Hour), at)
			})
		}
		try("a", now)
		try("a", now) // the same message
		try("b", now.Add(time.Minute))
		if n := tries(now); n != 2 {
			t.Errorf("%d tries, want 2", n)
		}
		later := now.Add(time.Hour + time.Second)
		if n := tries(later); n != 0 {
			t.Errorf("%d tries an hour later", n)
		}
		try("c", later)
		if n := tries(later); n != 1 {
			t.Errorf("%d tries in the next hour", n)
		}
	})
}

func TestLessons(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Now()
		c, d := b.conversation(t, "c"), b.conversation(t, "d")
		add := func(text, conversation, account string, due time.Time) string {
			e := b.accept(t, map[string]string{c.ID: "c", d.ID: "d"}[conversation], text)
			for range 2 { // the second time changes nothing
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					return storetest.Apply(ctx, tx, conversation, commit.Changes{Lessons: []commit.Lesson{{Entry: e.ID, Account: account, Due: due}}})
				})
			}
			return e.ID
		}
		claim := func(name string, at time.Time) (ids []string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.Lessons().ClaimLessons(ctx, name, at, at.Add(time.Minute), 10)
				ids = nil
				for _, l := range list {
					ids = append(ids, l.EntryID)
				}
				return err
			})
			return ids
		}
		finish := func(name string) (ids []string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				ids, err = tx.Lessons().FinishLessons(ctx, name)
				return err
			})
			return ids
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Memories().SetMemoryOn(ctx, "test/off", false)
		})
		add("off", c.ID, "test/off", now)
		if got := claim("off", now); len(got) != 0 {
			t.Errorf("of somebody who switched memory off: %v", got)
		}
		first := add("one", c.ID, annsID, now)
		second := add("two", c.ID, annsID, now.Add(time.Second)) // goes with the first
		third := add("three", c.ID, bobsID, now.Add(2*time.Second))
		fourth := add("four", d.ID, annsID, now.Add(3*time.Second))
		late := now.Add(4 * time.Second)
		for i, want := range [][]string{{first, second}, {third}, {fourth}, nil} {
			if got := claim(fmt.Sprint("worker", i), late); !cmp.Equal(want, got) {
				t.Errorf("claimed %v, want %v", got, want)
			}
		}
		// The holder died: somebody else gets them, and the dead one learns nothing.
		after := late.Add(2 * time.Minute)
		if got := claim("other", after); !cmp.Equal([]string{first, second}, got) {
			t.Errorf("taken over: %v", got)
		}
		if got := finish("worker0"); len(got) != 0 {
			t.Errorf("the dead one finishes %v", got)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Lessons().ReleaseLessons(ctx, "other", now, true)
		})
		if got := claim("third", after); len(got) != 2 {
			t.Errorf("given back: %v", got)
		}
		// Forgotten meanwhile.
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Memories().ForgetMemories(ctx, annsID)
			return err
		})
		if got := finish("third"); len(got) != 0 {
			t.Errorf("after /forget all: %v", got)
		}
		if got := finish("worker1"); !cmp.Equal([]string{third}, got) {
			t.Errorf("Bob: %v", got)
		}
	})
}

func TestForgettingAPerson(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.learn(t, told("one"))
		b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsSlack}, RunID: someRun, Text: "deployed"})
		b.learn(t, told("knows Go", of(bobsID)))
		b.join(t, annsID, annsSlack)
		c := b.conversation(t, "c")
		e := b.accept(t, "c", "something")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := storetest.Apply(ctx, tx, c.ID, commit.Changes{Lessons: []commit.Lesson{{Entry: e.ID, Account: annsSlack, Due: time.Now()}}}); err != nil {
				return err
			}
			if err := tx.Persons().NoteLinkTry(ctx, annsSlack, "m1", time.Now().Add(-time.Hour), time.Now()); err != nil {
				return err
			}
			return tx.Persons().SaveLinkCode(ctx, memory.LinkCode{Account: memory.Account{Name: annsID}, Hash: "h", Expires: time.Now().Add(time.Hour)})
		})
		if err := b.Say(t.Context(), messages.Posted{Chat: "annschat", ID: "m1", Author: annsSlack, Text: "hello"}, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		var h, left, bob memory.Holdings
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			if h, err = tx.Persons().ForgetPerson(ctx, annsSlack); err != nil {
				return err
			}
			if left, err = tx.Persons().Holdings(ctx, annsID); err != nil {
				return err
			}
			bob, err = tx.Persons().Holdings(ctx, bobsID)
			return err
		})
		if len(h.Accounts) != 2 || h.Facts != 1 || h.Episodes != 1 || h.Lessons != 1 || h.Codes != 1 || !slices.Equal(h.Chats, []string{"annschat"}) {
			t.Errorf("forgot %+v", h)
		}
		if want := (memory.Holdings{Person: annsID, Accounts: []memory.Account{{Name: annsID}}, On: true}); !cmp.Equal(want, left) {
			t.Errorf("left: %s", cmp.Diff(want, left))
		}
		if bob.Facts != 1 {
			t.Errorf("Bob: %+v", bob)
		}
		for _, table := range []string{"memory_lessons", "link_tries"} { // also of accounts that are nobody's now
			if n := b.counted(t, table); n != 0 {
				t.Errorf("%d rows are left in %s", n, table)
			}
		}
	})
}

// A lesson that was put back waits for its time, also when others of the same person are due;
// and none is left of somebody who switches memory off.
func TestALessonThatWasPutBackWaits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Now()
		c := b.conversation(t, "c")
		claim := func(name string) (ids []string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.Lessons().ClaimLessons(ctx, name, now, now.Add(time.Minute), 9)
				ids = nil
				for _, l := range list {
					ids = append(ids, l.EntryID)
				}
				return err
			})
			return ids
		}
		add := func(event string) string {
			e := b.accept(t, "c", event)
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return storetest.Apply(ctx, tx, c.ID, commit.Changes{Lessons: []commit.Lesson{{Entry: e.ID, Account: annsID, Due: now}}})
			})
			return e.ID
		}
		add("1")
		claim("first")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Lessons().ReleaseLessons(ctx, "first", now.Add(time.Hour), true)
		})
		fresh := add("2")
		if got := claim("second"); !slices.Equal(got, []string{fresh}) {
			t.Errorf("claimed %v, want %s", got, fresh)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SetMemoryOn(ctx, annsID, false) })
		if n := b.counted(t, "memory_lessons"); n != 0 {
			t.Errorf("%d lessons are left of somebody whose memory is off", n)
		}
	})
}

// What a person was answered is emptied also where they wrote as a guest from another
// platform.
func TestForgettingEmptiesAnswersElsewhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for event, home := range map[string]messages.Platform{"guest": "telegram", "namesake": ""} {
			e := b.accept(t, "c", event, func(e *sessions.Entry) {
				e.Lane, e.In.Sender = sessions.LaneControl, messages.Sender{ID: "7", Platform: home}
			})
			d := messages.Delivery{ConversationID: e.ConversationID, EventID: e.ID, Text: "you like tea, " + event, State: messages.DeliverySent}
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Deliveries().AddDelivery(ctx, &d) })
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Persons().ForgetPerson(ctx, "telegram/7")
			return err
		})
		if n := b.counted(t, "deliveries WHERE body = ''"); n != 1 || b.counted(t, "deliveries WHERE body LIKE '%namesake'") != 1 {
			t.Errorf("%d answers were emptied, want that of the guest", n)
		}
	})
}
