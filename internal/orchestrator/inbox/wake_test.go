package inbox

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/commit"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/queue"
)

// wakeups records who is woken up.
type wakeups struct {
	port.Tx
	commit.LeaseStore
	queue.Queue

	rung []string
}

func (d *wakeups) Leases() commit.LeaseStore { return d }

func (d *wakeups) Offer(_ context.Context, taker string, ids ...string) error {
	d.rung = append(d.rung, taker+": "+strings.Join(ids, " "))
	return nil
}

func (d *wakeups) Enqueue(_ context.Context, _ queue.Tx, jobs ...queue.Job) error {
	for _, j := range jobs {
		d.rung = append(d.rung, fmt.Sprintf("%s %s behind=%v", j.Kind, j.Key, j.Behind))
	}
	return nil
}

// TestEachIsWokenUpOnce: one offer for each process, which names its conversations once and in
// the order in which they are locked, and a job for what falls to nobody else.
func TestEachIsWokenUpOnce(t *testing.T) {
	t.Parallel()
	var plan []accepted
	add := func(talk, taker string, rings, crowd bool) {
		a := accepted{taker: taker, rings: rings, crowd: crowd}
		a.entry.ConversationID = "id of " + talk
		a.entry.In.Conversation = messages.ConversationKey{Platform: "chat", ID: talk}
		plan = append(plan, a)
	}
	add("4", "two", true, false)
	add("6", "one", true, false)
	add("9", "", true, true)
	add("3", "one", true, false)
	add("1", "two", false, false) // a repeated one
	add("8", "", false, false)
	add("2", "two", true, false)
	add("6", "one", true, false)
	add("5", "one", true, false)
	add("7", "", true, false)
	woken := &wakeups{}
	if err := (&Inbox{Config: Config{Queue: woken}}).wakeUp(t.Context(), woken, plan); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"one: id of 3 id of 5 id of 6", "two: id of 2 id of 4", "turn id of 9 behind=true", "turn id of 7 behind=false",
	}
	if got := strings.Join(woken.rung, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("woken up are\n%s", got)
	}
}
