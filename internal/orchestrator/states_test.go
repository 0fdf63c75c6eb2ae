package orchestrator_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"remote-agent/internal/fault"
	"remote-agent/internal/heavytest"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store"
)

// pickedUp is how long anything that is due may wait for somebody, from the start of a
// process on or from when it is due.
const pickedUp = 5 * time.Second

// move is a step of a plan: what happens in the world of one process after another.
type move struct {
	kind  string
	n     int           // which commit or call, from 1
	room  string        // where something is said
	after time.Duration // how long it takes
}

func (m move) String() string {
	return fmt.Sprintf("%s(%d %s %v)", m.kind, m.n, m.room, m.after)
}

// plan is what happens from the first start to the last one. It is drawn before the
// world begins, because rapid knows nothing of bubbles.
type plan struct {
	kind  string // of the platform
	slots int
	moves []move
}

// A life ends with one of these: by the n-th commit from now on, with a call of the
// platform before or after its effect, at once, or in order.
var ends = []string{"dies at commit", "dies before call", "dies after call", "dies now", "stops", "stops while spoken to"}

var acts = []string{"says", "says", "says", "commands", "commands", "stops a turn", "asks to run", "allows", "is slow", "fails once", "says early", "lookup unsure", "send unsure", "limited", "answer lost", "passes", "passes"}

func drawPlan(t *rapid.T) plan {
	p := plan{
		kind:  rapid.SampledFrom([]string{"edits", "idempotent", "streams idempotent", "late placeholder", "plain", "gated"}).Draw(t, "platform"),
		slots: rapid.SampledFrom([]int{1, 10}).Draw(t, "slots"),
	}
	for range rapid.IntRange(1, 4).Draw(t, "lives") {
		end := drawMove(t, ends)
		if strings.HasPrefix(end.kind, "dies at") || strings.HasPrefix(end.kind, "dies before") || strings.HasPrefix(end.kind, "dies after") {
			p.moves = append(p.moves, end) // armed before what follows
		}
		for range rapid.IntRange(1, 4).Draw(t, "acts") {
			p.moves = append(p.moves, drawMove(t, acts))
		}
		if end.kind == "dies now" || strings.HasPrefix(end.kind, "stops") {
			p.moves = append(p.moves, end)
		}
		p.moves = append(p.moves, move{kind: "starts"})
	}
	return p
}

func drawMove(t *rapid.T, kinds []string) move {
	return move{
		kind: rapid.SampledFrom(kinds).Draw(t, "kind"), n: rapid.IntRange(1, 8).Draw(t, "n"),
		room:  rapid.SampledFrom([]string{ot.Room, "team"}).Draw(t, "room"),
		after: time.Duration(rapid.IntRange(0, 30).Draw(t, "after")) * 100 * time.Millisecond,
	}
}

// TestWhateverIsLeftIsPickedUp walks the states that docs/architecture.md lists under
// "Who picks up what": processes die at any commit and around any call of the platform,
// and the last one that starts has to pick up all they have left, within 5 s of its start
// or of the moment that it is due, and to bring each answer out once.
func TestWhateverIsLeftIsPickedUp(t *testing.T) {
	t.Parallel()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue { // more with -rapid.checks
		_ = checks.Value.Set(strconv.Itoa(heavytest.Size(15, 60)))
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		var wrong string
		ot.Run(t, func(w *ot.World) { wrong = p.play(w) })
		if wrong != "" {
			rt.Fatalf("%s\nplan: %v", wrong, p)
		}
	})
}

// trip is a plan on its way.
type trip struct {
	w     *ot.World
	said  int
	early []move // said to the next process before it works
}

func (p plan) play(w *ot.World) (wrong string) {
	tr := &trip{w: w}
	p.world(w, tr)
	w.Model.On(" ", echo)
	w.Model.On("please run", ot.Call(ot.ExecuteTool, "it"), echo)
	w.Model.On("slow", ot.Later(2*time.Second, echo))
	w.Model.On("fails", ot.Fail("Well ", errUnavailable), echo)
	w.Start()
	for _, m := range p.moves { // the last one is a start
		tr.move(m)
	}
	return unattended(w)
}

// echo answers with all that was said since the last answer.
func echo(r *ot.Requested) (messages.Message, error) {
	said := ""
	for _, m := range slices.Backward(r.Array) {
		if m.Role != messages.RoleUser {
			break
		}
		said = m.PlainText() + "\n" + said
	}
	return ot.Say("re: " + said)(r)
}

// world sets up the platform and the process.
func (p plan) world(w *ot.World, tr *trip) {
	switch p.kind {
	case "idempotent":
		w.Chat.Caps.IdempotentSend, w.Chat.Caps.Streaming = true, false
	case "late placeholder":
		w.Chat.Caps.IdempotentSend, w.Chat.Caps.PlaceholderAfter = true, 2*time.Second
	case "streams idempotent":
		w.Chat.Caps.IdempotentSend = true
	case "plain":
		w.Chat.Plain = true
	case "gated": // and so each turn is prepared before it begins
		w.Chat.Caps.OutcomeMarks = true
		w.Chat.Admits = func(context.Context, messages.Inbound) (bool, error) { return true, nil }
	}
	w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = p.slots }
	w.Early = func(*ot.Process) {
		for _, m := range tr.early {
			tr.say("early", m.room)
		}
		tr.early = nil
	}
}

func (tr *trip) say(text, room string) {
	tr.said++
	tr.w.Chat.Say(fmt.Sprintf("%s %d", text, tr.said), ot.In(room))
}

// once has the platform react to the next n-th call that fits.
func (tr *trip) once(n int, r ot.Reaction, fits func(a ot.Asked) bool) {
	var fitting atomic.Int64
	tr.w.Chat.ReactBy(func(a ot.Asked) ot.Reaction {
		if !fits(a) || fitting.Add(1) != int64(n) {
			return ot.Reaction{}
		}
		return r
	})
}

func (tr *trip) move(m move) {
	w := tr.w
	p := w.Process()
	anything := func(ot.Asked) bool { return true }
	switch m.kind {
	case "starts":
		if !p.Dead() {
			p.Kill()
		}
		w.Chat.ReactBy(nil)
		w.Start()
	case "says early":
		tr.early = append(tr.early, m)
	case "says":
		tr.say("hello", m.room)
	case "is slow":
		tr.say("slow", m.room)
	case "fails once":
		tr.say("fails", m.room)
	case "asks to run":
		tr.say("please run", m.room)
	case "commands":
		w.Chat.Say("/whoami", ot.In(m.room))
	case "stops a turn":
		w.Chat.Say("/stop", ot.In(m.room))
	case "allows":
		w.Settle()
		for _, name := range w.Rows(`SELECT number FROM approvals WHERE state = 'waiting'`) {
			w.Chat.Say("/approve a-"+name, ot.From(ot.Olga), ot.In(m.room))
		}
	case "passes":
		w.Pass(m.after)
	case "lookup unsure":
		tr.once(m.n%3+1, ot.Reaction{Err: unsure()}, func(a ot.Asked) bool { return a.Again })
	case "send unsure":
		tr.once(m.n, ot.Reaction{Err: unsure(), Done: m.after/(100*time.Millisecond)%2 == 0}, anything)
	case "limited":
		tr.once(m.n, ot.Reaction{Err: &fault.Error{Kind: fault.RateLimited, RetryAfter: 7 * time.Second}}, anything)
	case "answer lost":
		p.Lose()
	case "dies at commit":
		var commits atomic.Int64
		p.After(func() {
			if commits.Add(1) == int64(m.n) {
				p.Die()
			}
		})
	case "dies before call":
		tr.w.Chat.ReactBy(dying(p, m.n))
	case "dies after call":
		tr.once(m.n, ot.Reaction{Dies: true}, anything)
	case "dies now":
		p.Kill()
	case "stops":
		p.Stop()
	case "stops while spoken to":
		p.Shutdown()
		w.Settle()
		tr.say("late", m.room)
	}
	w.Pass(m.after / 10)
}

func unsure() error { return &fault.Error{Kind: fault.Unavailable, Uncertain: true} }

// dying has a process die with its n-th call, before that has an effect.
func dying(p *ot.Process, n int) func(a ot.Asked) ot.Reaction {
	var calls atomic.Int64
	return func(ot.Asked) ot.Reaction {
		if calls.Add(1) == int64(n) {
			p.Die()
		}
		return ot.Reaction{}
	}
}

// dueSQL lists what somebody has to do and since when: the head of each inbox, unless a
// person has to decide on it, commands, and the first delivery of each outbox that is to
// be sent, and those of commands. What a process before the start at $1 kept to itself is
// nobody's.
const dueSQL = `
	SELECT 'entry ' || json_extract(e.data, '$.text') || ' (' || e.state || ')', max(e.next_ms, e.accepted_ms)
	FROM inbound_events e
	WHERE e.lane = 'turn' AND e.state IN ('waiting', 'running')
		AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.state = 'waiting' AND a.event_id = e.id)
		AND NOT EXISTS (SELECT 1 FROM inbound_events h WHERE h.conversation_id = e.conversation_id
			AND h.lane = 'turn' AND h.state IN ('waiting', 'running') AND h.seq < e.seq)
		AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.conversation_id = e.conversation_id
			AND d.state IN ('pending', 'sending', 'placed') AND d.final)
	UNION ALL
	SELECT 'command ' || json_extract(data, '$.text'), accepted_ms FROM inbound_events WHERE lane = 'control' AND state = 'waiting'
	UNION ALL
	SELECT 'delivery ' || d.body || ' (' || d.state || ')', CASE WHEN d.control AND d.created_ms < $1 THEN d.created_ms ELSE max(d.next_ms, d.created_ms) END
	FROM deliveries d
	WHERE d.state IN ('pending', 'sending', 'placed') AND d.final
		AND (d.control OR NOT EXISTS (SELECT 1 FROM deliveries h WHERE h.conversation_id = d.conversation_id
			AND h.state IN ('pending', 'sending', 'placed') AND h.final AND NOT h.control AND h.seq < d.seq))`

// unattended watches the last process, with which all goes well, until nothing is due any
// more, and says what nobody picked up, or was not told once.
func unattended(w *ot.World) string {
	started := time.Now()
	const look = 500 * time.Millisecond
	seen := make(map[string]time.Time)
	for quiet := 0; quiet < 4; {
		w.Pass(look)
		due := w.Rows(dueSQL, started.UnixMilli())
		if quiet++; len(due) > 0 {
			quiet = 0
		}
		for _, row := range due {
			at := strings.LastIndex(row, "|")
			if _, ok := seen[row]; !ok { // it was behind something else until now
				seen[row] = time.Now().Add(-look)
			}
			since := seen[row]
			if ms, err := strconv.ParseInt(row[at+1:], 10, 64); err == nil && time.UnixMilli(ms).After(since) {
				since = time.UnixMilli(ms)
			}
			if waits := time.Since(since); waits > pickedUp+look {
				return fmt.Sprintf("nobody picked up the %s for %v; open: %q", row[:at], waits, w.Open())
			}
		}
		if time.Since(started) > 10*time.Minute {
			return fmt.Sprintf("never over; open: %q", w.Open())
		}
	}
	return toldOnce(w)
}

// toldOnce compares what people see with what is on record.
func toldOnce(w *ot.World) string {
	for _, row := range w.Rows(`SELECT json_extract(data, '$.text'), json_extract(data, '$.conversation'), state FROM inbound_events WHERE lane = 'turn' AND json_extract(data, '$.kind') = 'message'`) {
		cols := strings.Split(row, "|")
		text, room, state := cols[0], cols[1], cols[2]
		if !strings.HasPrefix(text, "hello") && !strings.HasPrefix(text, "early") && !strings.HasPrefix(text, "late") || state != "done" {
			continue
		}
		shown := 0
		for _, post := range w.Chat.Texts(room) {
			if strings.Contains(post+"\n", text+"\n") {
				shown++
			}
		}
		if shown != 1 && (shown == 0 || !w.Chat.Plain) { // what can neither be looked up nor edited may be sent twice
			return fmt.Sprintf("the answer to %q stands %d times in %s: %q", text, shown, room, w.Chat.Texts(room))
		}
	}
	if n := w.Chat.Unacknowledged(); n > 0 {
		return fmt.Sprintf("%d events were never acknowledged", n)
	}
	return ""
}

// TestQuestionThatIsSettledWhereNothingCanBeEdited: what became of it is a message of its
// own, and what was said behind it is answered.
func TestQuestionThatIsSettledWhereNothingCanBeEdited(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Plain = true
		w.Model.On("please run", ot.Call(ot.ExecuteTool, "it"), ot.Say("It ran."))
		w.Start()
		w.Chat.Say("please run")
		w.Pass(time.Second)
		w.Chat.Say("/stop")
		w.Chat.Say("hello")
		w.Pass(pickedUp)
		w.Chat.Find("re: hello")
		w.Chat.Find("The turn ended; not run")
	})
}

// TestManyThatWaitAtAStart: one look sees all of them, and none waits for the next.
func TestManyThatWaitAtAStart(t *testing.T) {
	t.Parallel()
	const many = 210
	ot.Run(t, func(w *ot.World) {
		slots(w, 1)
		w.Model.On("hello", ot.Hold("", echo))
		w.Start()
		for i := range many {
			w.Chat.Say("hello", ot.In(fmt.Sprint("room ", i)))
		}
		w.Process().Kill()
		w.Model.On("hello", echo)
		w.Start()
		w.Pass(pickedUp - time.Second)
		for i := range many {
			if room := fmt.Sprint("room ", i); !strings.Contains(strings.Join(w.Chat.Texts(room), " "), "re: ") {
				t.Fatalf("in %s stands %q", room, w.Chat.Texts(room))
			}
		}
	})
}

// TestFoundIsNotShown: what a lookup finds of an answer may be its placeholder, of which
// nobody heard that it was posted. It gets the answer's text.
func TestFoundIsNotShown(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.IdempotentSend = true
		p := w.Start()
		w.Chat.React = func(a ot.Asked) ot.Reaction { // nobody calls yet
			if a.Again { // the answer is on record, and looked up for the first time
				p.Die()
			}
			return ot.Reaction{Err: unsure(), Done: true}
		}
		w.Chat.Say("hello")
		w.Pass(5 * time.Minute)
		if !p.Dead() || w.Chat.Strays(ot.Room) != 1 {
			t.Fatalf("dead: %v, posted: %+v", p.Dead(), w.Chat.Posts(ot.Room))
		}
		w.Chat.ReactBy(nil)
		w.Start()
		w.Pass(pickedUp)
		w.Chat.Want("re: hello")
		if n := len(w.Chat.Posts(ot.Room)); n != 1 {
			t.Errorf("%d messages were posted, want 1", n)
		}
	})
}

// TestFreshAnswerIsNotLookedUp: who has just stored an answer knows that nobody has sent
// it. A lookup is a call that the platform counts.
func TestFreshAnswerIsNotLookedUp(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.IdempotentSend, w.Chat.Caps.Streaming = true, false
		w.Chat.Caps.MaxText = 100
		w.Model.On("hello", ot.Say(strings.Repeat("A long answer. ", 20)))
		w.Model.On("late", ot.Later(6*time.Second, ot.Say("It is late.")))
		w.Model.On("bad", ot.Fail("", fault.New(fault.Invalid, "")))
		w.Start()
		w.Chat.Say("hello")
		w.Chat.Say("late")
		w.Chat.Say("bad")
		w.Chat.Say("/whoami")
		w.Pass(10 * time.Second)
		if n := len(w.Chat.Texts(ot.Room)); n < 5 {
			t.Errorf("%d messages stand there: %q", n, w.Chat.Texts(ot.Room))
		}
		for _, a := range w.Chat.Calls() {
			if a.Again {
				t.Errorf("%q was looked up", a.Text)
			}
		}
	})
}

// TestAStopWaitsForNoTurnOfTheLimit: an answer to a command or a button that waits for the
// platform's rate is left to the next process, or to another replica.
func TestAStopWaitsForNoTurnOfTheLimit(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(w *ot.World){
		"an answer": func(w *ot.World) { w.Chat.Say("/whoami") },
		"a note": func(w *ot.World) {
			w.Chat.Do(func(in *messages.Inbound) { in.Kind, in.Action = messages.KindAction, "gone" })
		},
	} {
		for next, begin := range map[string]func(w *ot.World) *ot.Process{
			"next process": nil,
			"replica":      (*ot.World).Replica,
		} {
			t.Run(name+"/"+next, func(t *testing.T) {
				t.Parallel()
				ot.Run(t, func(w *ot.World) {
					p := w.Start()
					if begin != nil {
						begin(w)
						w.Chat.DeliverTo(p)
					}
					w.Chat.Turn.Store(int64(20 * time.Second))
					ask(w)
					w.Pass(time.Second)
					stopped := time.Now()
					p.Stop()
					if took := time.Since(stopped); took > time.Second {
						t.Errorf("the stop took %v", took)
					}
					told := func() int { return len(w.Chat.Posts(ot.Room)) + len(w.Chat.Notes()) }
					if n := told(); n != 0 {
						t.Fatalf("%d answers were given before their turn", n)
					}
					w.Chat.Turn.Store(0)
					if begin == nil {
						w.Start()
					}
					w.Pass(3 * pickedUp) // a replica's next sweep comes by then
					if n := told(); n != 1 {
						t.Errorf("%d answers, want 1: %q %q", n, w.Chat.Texts(ot.Room), w.Chat.Notes())
					}
				})
			})
		}
	}
}
