package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/messages"
)

// group is a store of events that takes a second for a transaction and refuses one that
// has a bad event.
type group struct {
	mu    sync.Mutex
	taken []string
}

var errBad = errors.New("bad")

func (g *group) store(ctx context.Context, events []messages.Inbound) (plan []accepted, err error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var names []string
	for _, in := range events {
		if in.Text == "panic" {
			panic("bad")
		}
		if in.Text == "bad" {
			err = errBad
		}
		names = append(names, string(in.Event))
		var a accepted
		a.entry.In = in
		plan = append(plan, a)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken = append(g.taken, strings.Join(names, "+"))
	if err != nil {
		return nil, err
	}
	return plan, nil
}

// crowded has n calls come at once, of two events each, as change wants them, and
// returns what their callers heard.
func crowded(t *testing.T, g *group, n int, change func(call int, in *messages.Inbound)) (heard []error) {
	t.Helper()
	var company together
	heard = make([]error, n)
	var calls sync.WaitGroup
	for call := range n {
		synctest.Wait() // in this order
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		calls.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					heard[call] = fmt.Errorf("panic: %v", r)
				}
			}()
			events := []messages.Inbound{{Event: messages.EventID(fmt.Sprint(call, "a"))}, {Event: messages.EventID(fmt.Sprint(call, "b"))}}
			change(call, &events[1])
			if events[1].Text == "gone" {
				time.AfterFunc(time.Second+time.Millisecond, cancel)
			}
			plan, err := company.join(ctx, events, g.store)
			if heard[call] = err; err == nil && (len(plan) != 2 || plan[0].entry.In.Event != events[0].Event || plan[1].entry.In.Event != events[1].Event) {
				heard[call] = fmt.Errorf("heard of %+v", plan)
			}
		})
	}
	calls.Wait()
	if company.running != 0 || company.waiting != nil {
		t.Errorf("%d are said to run, and %d to wait", company.running, len(company.waiting))
	}
	return heard
}

func TestCallsOfACrowdShareATransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, begin := &group{}, time.Now()
		heard := crowded(t, g, 104, func(int, *messages.Inbound) {})
		if err := errors.Join(heard...); err != nil {
			t.Error(err)
		}
		// Four alone, the 100 others in groups of fifty calls with a hundred events.
		if took := time.Since(begin); took != 2*time.Second || len(g.taken) != mostAlone+2 {
			t.Errorf("%d transactions in %v, want %d in 2s", len(g.taken), took, mostAlone+2)
		}
		if got := strings.Count(strings.Join(g.taken, "+"), "+") + 1; got != 208 {
			t.Errorf("%d events were stored, want 208", got)
		}
	})
}

// TestNobodyFailsInCompany: what is wrong with one call fails that one.
func TestNobodyFailsInCompany(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]struct {
		text string
		call int
		want string
	}{
		"ABadEvent":             {"bad", 7, "bad"},
		"ABadEventOfWhoLeads":   {"bad", 4, "bad"},
		"WhoLeadsIsGone":        {"gone", 4, "context canceled"},
		"WhoLeadsPanics":        {"panic", 4, "panic: bad"},
		"SomebodyPanicsAnother": {"panic", 0, "panic: bad"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := &group{}
				heard := crowded(t, g, 10, func(call int, in *messages.Inbound) {
					if call == what.call {
						in.Text = what.text
					}
				})
				for call, err := range heard {
					if call == what.call {
						if err == nil || err.Error() != what.want {
							t.Errorf("the call to blame heard %v, want %s", err, what.want)
						}
					} else if err != nil {
						t.Errorf("call %d heard %v", call, err)
					}
				}
			})
		})
	}
}

func TestWavesKeepConversationsAndPeopleInOrder(t *testing.T) {
	t.Parallel()
	event := func(talk, who string) messages.Inbound {
		return messages.Inbound{Conversation: messages.ConversationKey{Platform: "chat", ID: talk}, Sender: messages.Sender{ID: messages.UserID(who)}}
	}
	events := []messages.Inbound{
		event("b", "ann"), event("a", "bob"), event("b", "bob"), event("c", "cat"), event("b", "ann"), event("d", "cat"),
	}
	if got, want := fmt.Sprint(waves(events)), "[[1 0 3] [2 5] [4]]"; got != want {
		t.Errorf("waves are %s, want %s", got, want)
	}
	events[3].Kind = messages.KindMigrated
	if got, want := fmt.Sprint(waves(events)), "[[0] [1] [2] [3] [4] [5]]"; got != want {
		t.Errorf("around a migration waves are %s, want %s", got, want)
	}
	if got := slices.Concat(waves(nil)...); len(got) > 0 {
		t.Errorf("nothing makes the waves %v", got)
	}
}
