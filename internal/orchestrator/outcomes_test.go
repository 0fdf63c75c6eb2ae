package orchestrator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/commit"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/heavytest"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// outcome is how a turn can end.
type outcome struct {
	steps     []ot.Step // of the model, for the message
	configure func(c *orchestrator.Config)
	act       func(w *ot.World) (acted bool) // what people and others do, asked again and again while something is open

	shown   string   // what the person reads in the end, once
	besides []string // what else they read, each once
	maybe   []string // what else they may read
	state   sessions.EntryState
	run     sessions.RunStatus
	session sessions.Status
	did     []string // what the tools did

	waits    time.Duration // at least so long until the end, without interruptions
	requests int           // to the model, without interruptions; 0: one
	silent   bool          // nothing is streamed
	final    bool          // an error like many others
	tools    bool          // a tool runs
}

const asked = "please do it"

// worked begins the card of a turn that used tools; the answer is a message of its own.
const worked = "✔ Worked for"

// over is what the placeholder says when the last word is a message of its own.
var over = []string{worked, "✔ Answered after", "✖ Tried for"}

const theAnswer = "The answer is forty-two."

// times repeats a step.
func times(n int, s ot.Step) []ot.Step { return slices.Repeat([]ot.Step{s}, n) }

// fails is the outcome of an error that is final.
func fails(kind fault.Kind, shown string) outcome {
	return outcome{
		steps: []ot.Step{ot.Fail("", &fault.Error{Kind: kind, Err: errors.New("the provider said so")})}, silent: true,
		final: kind != fault.Unauthorized && kind != fault.Internal,
		shown: "✖ " + shown, state: sessions.EntryFailed, run: sessions.RunFailed, session: sessions.Failed,
	}
}

// passes is the outcome of an error that passes.
func passes(err error, waits time.Duration) outcome {
	return outcome{
		steps: []ot.Step{ot.Fail("It begins ", err), ot.Say(theAnswer)}, waits: waits, requests: 2,
		shown: theAnswer, state: sessions.EntryDone, run: sessions.RunCompleted, session: sessions.Completed,
	}
}

// overflow is what a model says of an array that is too long for it.
func overflow() error { return assistant.Overflow(0, errors.New("too many tokens")) }

// TestAnOverflowRepeatsNothing: the first turn of a session goes on from what it has done.
func TestAnOverflowRepeatsNothing(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Call(ot.WriteTool, "one"), ot.Fail("", overflow()), ot.Say("It is done."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		w.Chat.Find("It is done.")
		if all := w.Model.Requests(); len(all) != 3 || len(all[2].Array) != 3 {
			t.Errorf("there are %d requests, the last one with %d messages", len(all), len(all[len(all)-1].Array))
		}
	})
}

// TestALongTurnKeepsItsRequest, also where what it did since fills the window many times.
func TestALongTurnKeepsItsRequest(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.MaxRounds, c.ContextTokens = 70, 500 }
		var steps []ot.Step
		for n := range 70 {
			steps = append(steps, ot.Call(ot.WriteTool, fmt.Sprint("step ", n)))
		}
		w.Model.On("hello", append(steps, ot.Say("It is done."))...)
		w.Start()
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		w.Chat.Say("/approve a-1")
		w.Pass(5 * time.Second)
		w.Chat.Find("It is done.")
		all := w.Model.Requests()
		if last := all[len(all)-1].Array; len(last) == 0 || !strings.Contains(last[0].PlainText(), "hello") {
			t.Errorf("the last request has %d messages and not what was asked for", len(last))
		}
	})
}

// TestATurnThatOverflowsGoesOn as long as it gets anywhere in between, with what was said before
// it, and its requests count together.
func TestATurnThatOverflowsGoesOn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.MaxRounds = 6 }
		full := ot.Fail("", overflow())
		work := func(what string) ot.Step { return ot.Call(ot.WriteTool, what+strings.Repeat(" word", 2000)) }
		w.Model.On("earlier", ot.Say(strings.Repeat("What I said. ", 30)))
		w.Model.On("hello", work("one"), work("two"), full, work("three"), full, full, work("four"), work("five"), full, work("six"),
			ot.Say("It is done."), full, full)
		w.Start()
		w.Chat.Say("earlier")
		w.Pass(5 * time.Second)
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		w.Chat.Find("Continue this turn? It has made 6 model requests.")
		w.Chat.Say("/approve a-1")
		w.Pass(5 * time.Second)
		w.Chat.Find("It is done.")
		all := w.Model.Requests()
		if last := all[len(all)-1].Array; !strings.Contains(last[0].PlainText(), "earlier") || len(last) != 15 {
			t.Errorf("the last request has %d messages and begins with %.40q", len(last), last[0].PlainText())
		}
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		p := w.Chat.Find("too long for the model, even when shortened. Start a new session with /new; nothing is deleted.")
		if strings.Contains(p.Text, "try again") || len(p.Buttons) > 0 {
			t.Errorf("the same again is offered: %q with %q", p.Text, labels(p))
		}
	})
}

// TestAWindowThatIsTooSmallIsRemembered checks that what does not fit a model is sent to it once
// in an hour, whatever conversation it is from, and that a picture says nothing of texts.
func TestAWindowThatIsTooSmallIsRemembered(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		withFiles(w, nil)
		full, more := ot.Fail("", overflow()), ot.Say(strings.Repeat("What I said. ", 400))
		w.Model.On("tell me more", more, more, more)
		w.Model.On("what is this", full, ot.Say("A picture."))
		w.Model.On("hello", full, ot.Say("It is done."), ot.Say("Again."), ot.Say("And again."))
		sent := func(text string, options ...ot.Option) (sizes []int) {
			before := len(w.Model.Requests())
			w.Chat.Say(text, options...)
			w.Settle()
			for _, r := range w.Model.Requests()[before:] {
				sizes = append(sizes, messages.EstimateAll(r.Array))
			}
			return sizes
		}
		w.Start()
		for _, room := range []string{"one", "two", "three"} {
			sent("tell me more", ot.In(room))
		}
		if got := sent("what is this", ot.In("pictures"), attach(png1("a.png"))); len(got) != 2 {
			t.Errorf("the picture was sent in %d requests", len(got))
		}
		whole := sent("hello", ot.In("one"))
		if len(whole) != 2 || whole[0] < 1000 || whole[1] > whole[0]/2 {
			t.Fatalf("sent %v tokens", whole)
		}
		if got := sent("hello", ot.In("two")); len(got) != 1 || got[0] > whole[0]/2 {
			t.Errorf("sent %v tokens to the model that did not take %d", got, whole[0])
		}
		w.Pass(time.Hour)
		if got := sent("hello", ot.In("three")); len(got) != 1 || got[0] != whole[0] {
			t.Errorf("sent %v tokens after an hour", got)
		}
	})
}

func outcomes() map[string]outcome {
	unavailable := fault.New(fault.Unavailable, "The model does not answer.")
	return map[string]outcome{
		"Answer": {
			steps: []ot.Step{ot.Say(theAnswer)}, shown: theAnswer,
			state: sessions.EntryDone, run: sessions.RunCompleted, session: sessions.Completed,
		},
		"RetryAfter":   passes(&fault.Error{Kind: fault.RateLimited, RetryAfter: 40 * time.Second}, 40*time.Second),
		"Unavailable":  passes(unavailable, time.Second),
		"Conflict":     passes(fault.New(fault.Conflict, ""), time.Second),
		"Unauthorized": fails(fault.Unauthorized, "The bot is not set up correctly"),
		"Invalid":      fails(fault.Invalid, "That is not valid."),
		"NotFound":     fails(fault.NotFound, "Not found."),
		"Forbidden":    fails(fault.Forbidden, "You are not allowed to do that here."),
		"Exhausted":    fails(fault.Exhausted, "A limit has been reached."),
		"Unsupported":  fails(fault.Unsupported, "That is not possible here."),
		"Gone":         fails(fault.Gone, "That no longer exists."),
		"Canceled":     fails(fault.Canceled, "Stopped."),
		"Internal":     fails(fault.Internal, "Something went wrong in the bot."),
		"Panic": {
			steps: []ot.Step{ot.Panic()}, silent: true,
			shown: "✖ Something went wrong in the bot.", state: sessions.EntryFailed, run: sessions.RunFailed, session: sessions.Failed,
		},
		"NeverAvailable": {
			steps: []ot.Step{ot.Fail("Once more I ", unavailable)}, requests: 5, waits: 15 * time.Second,
			shown: "✖ The model does not answer. Tried 5 times.", state: sessions.EntryFailed, run: sessions.RunFailed, session: sessions.Failed,
		},
		"Uncertain": {
			steps: []ot.Step{ot.Fail("", &fault.Error{Kind: fault.Unavailable, Uncertain: true})}, silent: true,
			shown: "✖ The service is not responding right now.", state: sessions.EntryFailed, run: sessions.RunFailed, session: sessions.Failed,
		},
		"Stop": {
			steps: []ot.Step{ot.Hold("I think that ", ot.Say(theAnswer))},
			act: func(w *ot.World) bool {
				if w.Model.Held() == 0 || w.States("/stop") != "" {
					return false
				}
				w.Pass(2 * time.Second)
				w.Chat.Say("/stop")
				return true
			},
			shown: "⏹ Stopped after", maybe: []string{"⏹ Stopped.", "⏹ Stopping."}, // the latter if another process had the turn, and this one not yet
			state: sessions.EntryStopped, run: sessions.RunStopped, session: sessions.Completed,
		},
		"Shutdown": {
			steps: []ot.Step{ot.Hold("I think that ", ot.Say(theAnswer)), ot.Say(theAnswer)}, requests: 2, waits: 30 * time.Second,
			act: func(w *ot.World) bool {
				if w.Model.Held() == 0 {
					return false
				}
				w.Process().Shutdown()
				w.Pass(31 * time.Second)
				return true
			},
			shown: theAnswer, state: sessions.EntryDone, run: sessions.RunCompleted, session: sessions.Completed,
		},
		"LostLease": {
			steps: []ot.Step{ot.Hold("I think that ", ot.Say(theAnswer)), ot.Say(theAnswer)}, requests: 2,
			act: func(w *ot.World) bool {
				if w.Model.Held() == 0 {
					return false
				}
				w.Pass(time.Second) // the placeholder is on record
				steal(w, 8*time.Second)
				w.Pass(6 * time.Second) // the next renewal
				return true
			},
			shown: theAnswer, state: sessions.EntryDone, run: sessions.RunCompleted, session: sessions.Completed,
		},
		"Limit": {
			steps: []ot.Step{ot.Hold("I think that ", ot.Say(theAnswer))}, waits: time.Minute,
			configure: func(c *orchestrator.Config) { c.TurnTimeout = time.Minute },
			shown:     "✖ Stopped: this took longer than the limit of 1m0s", maybe: []string{"✔ Worked for 1:00"}, state: sessions.EntryFailed, run: sessions.RunFailed, session: sessions.Failed,
		},
		"Approval": {
			steps: []ot.Step{ot.Call(ot.ExecuteTool, "make it so"), ot.Say(theAnswer)}, requests: 2, tools: true,
			act: func(w *ot.World) bool {
				if len(w.Rows(`SELECT number FROM approvals WHERE state = 'waiting'`)) == 0 || w.States("/approve a-1") != "" {
					return false
				}
				w.Pass(time.Minute)
				w.Chat.Say("/approve a-1")
				return true
			},
			shown: theAnswer, besides: []string{"a-1: run `make it so`?", "a-1: ✔ Approved"}, maybe: []string{worked}, did: []string{"run make it so"}, waits: time.Minute,
			state: sessions.EntryDone, run: sessions.RunCompleted, session: sessions.Completed,
		},
		"Denial": {
			steps: []ot.Step{ot.Call(ot.ExecuteTool, "make it so"), ot.Say(theAnswer)}, requests: 2,
			act: func(w *ot.World) bool {
				if len(w.Rows(`SELECT number FROM approvals WHERE state = 'waiting'`)) == 0 || w.States("/deny a-1") != "" {
					return false
				}
				w.Chat.Say("/deny a-1")
				return true
			},
			shown: theAnswer, besides: []string{"a-1: run `make it so`?", "a-1: ✖ Denied"}, maybe: []string{worked},
			state: sessions.EntryDone, run: sessions.RunCompleted, session: sessions.Completed,
		},
		"ToolWithoutAsking": {
			steps: []ot.Step{ot.Call(ot.WriteTool, "write it down"), ot.Say(theAnswer)}, requests: 2, tools: true, did: []string{"note write it down"}, maybe: []string{worked},
			shown: theAnswer, state: sessions.EntryDone, run: sessions.RunCompleted, session: sessions.Completed,
		},
		"Overflow": {
			steps: []ot.Step{ot.Fail("", overflow()), ot.Say(theAnswer)}, requests: 2,
			shown: theAnswer, state: sessions.EntryDone, run: sessions.RunCompleted, session: sessions.Completed,
		},
		"OverflowTwice": {
			steps: times(1, ot.Fail("", overflow())), requests: 2, silent: true,
			shown: "✖ This conversation is too long for the model, even when shortened.", state: sessions.EntryFailed, run: sessions.RunFailed, session: sessions.Failed,
		},
	}
}

// steal takes the only lease away, as another process does that found it run out, and
// works on nothing.
func steal(w *ot.World, ttl time.Duration) {
	w.T.Helper()
	err := w.Process().Store.InTx(w.T.Context(), func(tx *store.Tx) error {
		ids, err := tx.Lists().ConversationsAt(w.T.Context(), room(ot.Room))
		if err != nil {
			return err
		}
		c, err := tx.Conversations().Conversation(w.T.Context(), ids[0])
		if err != nil {
			return err
		}
		held := sessions.Lease{ConversationID: c.ID, Owner: c.Owner, Epoch: c.Epoch}
		if _, err := tx.Leases().Apply(w.T.Context(), held, commit.Changes{Release: &commit.Release{Anyway: true}}); err != nil {
			return err
		}
		_, _, _, err = tx.Leases().ClaimLease(w.T.Context(), c.ID, "someone else", ttl)
		return err
	})
	if err != nil {
		w.T.Fatalf("taking the lease away: %v", err)
	}
}

// life is what happens to the process on the way to the outcome.
type life struct {
	arm    func(w *ot.World)
	after  bool // the answer is on record by then
	gently bool // it is told to stop, and may finish
	point  failpoint.Point
}

func lives() map[string]life {
	all := map[string]life{
		"Fresh":     {},
		"Restarted": {arm: func(w *ot.World) { w.StopAt(failpoint.BeforeModel, 1) }, gently: true, point: failpoint.BeforeModel},
	}
	for _, p := range append(failpoint.Points(), failpoint.CallRecorded, failpoint.CallBegun, failpoint.CallRan, failpoint.ResultStored) {
		all["Killed/"+string(p)] = life{
			arm: func(w *ot.World) { w.KillAt(p, 1) }, point: p,
			after: p == failpoint.AnswerStored || p == failpoint.SentUnrecorded,
		}
	}
	return all
}

// passesPoint reports whether a turn with an outcome comes to a point.
func (o outcome) passesPoint(p failpoint.Point) bool {
	switch p {
	case failpoint.MidStream:
		return !o.silent
	case failpoint.CallRecorded:
		return o.tools || o.besides != nil
	case failpoint.CallBegun, failpoint.CallRan, failpoint.ResultStored:
		return o.tools
	}
	return true
}

// TestEveryTurnHasOneOutcome takes each way in which a turn can end through each way in
// which a process can. Whatever happens, the person sees one outcome, once, and at most
// one placeholder that was left behind; nothing that was accepted is lost or open, and
// no tool has its effect twice.
//
// Errors that are final take one way whatever their kind: every day two of them are taken
// through every kill, and the others through a restart.
func TestEveryTurnHasOneOutcome(t *testing.T) {
	all := heavytest.Size(0, 1) == 1
	for name, o := range outcomes() {
		t.Run(name, func(t *testing.T) {
			for where, l := range lives() {
				alike := o.final && !all && l.point != "" && !l.gently
				if alike || l.point != "" && !o.passesPoint(l.point) {
					continue
				}
				t.Run(where, func(t *testing.T) {
					ot.Run(t, func(w *ot.World) { o.play(w, l) })
				})
			}
		})
	}
}

func (o outcome) play(w *ot.World, l life) {
	w.Model.On(asked, o.steps...)
	w.Configure = func(c *orchestrator.Config, _ *store.Store) {
		if o.configure != nil {
			o.configure(c)
		}
	}
	w.Start()
	if l.arm != nil {
		l.arm(w)
	}
	began, ends := time.Now(), 0
	w.Chat.Say(asked)
	for over, rounds := false, 0; !over; rounds++ {
		w.Settle()
		switch {
		case w.Process().Dead():
			ends++
			w.Start()
		case o.act != nil && rounds < 50 && o.act(w):
		case len(w.Open()) == 0 && w.Chat.Unacknowledged() == 0:
			over = true
		case rounds > 100:
			w.T.Fatalf("never over; open: %q, shown: %q", w.Open(), w.Chat.Texts(ot.Room))
		default:
			w.Pass(time.Second)
		}
	}
	if l.point != "" && ends == 0 {
		w.T.Fatalf("the process never came to %q", l.point)
	}
	if took := time.Since(began); took < o.waits && l.point == "" {
		w.T.Errorf("it took %v, want at least %v", took, o.waits)
	}
	w.Pass(10 * time.Second) // nothing more comes
	o.check(w, l)
}

func (o outcome) check(w *ot.World, l life) {
	w.T.Helper()
	shown := o.shown
	if l.gently && o.state == sessions.EntryStopped && len(w.Chat.Texts(ot.Room)) > 0 && strings.Contains(w.Chat.Texts(ot.Room)[0], "Stopped before it was done") {
		shown = "⏹ Stopped before it was done." // the next process runs the command, perhaps before the turn goes on
	}
	stands := make(map[string]int)
	for _, text := range w.Chat.Texts(ot.Room) {
		all := slices.Concat(o.besides, []string{shown}, o.maybe, over)
		i := slices.IndexFunc(all, func(part string) bool { return strings.Contains(strings.ReplaceAll(text, "**", ""), part) })
		if i < 0 {
			w.T.Errorf("besides the outcome stands %q", text)
			continue
		}
		stands[all[i]]++
	}
	for _, once := range append(slices.Clone(o.besides), shown) {
		if stands[once] != 1 {
			w.T.Errorf("%q stands %d times in %q, want once", once, stands[once], w.Chat.Texts(ot.Room))
		}
	}
	if strays := w.Chat.Strays(ot.Room); strays > 1 || strays > 0 && l.point == "" {
		w.T.Errorf("%d placeholders were left behind", strays)
	}
	if got := w.States(asked); got != string(o.state) {
		w.T.Errorf("the entry is %q, want %q", got, o.state)
	}
	if got := w.Value(`SELECT count(*) || ' ' || max(status) FROM remote_agent_sessions`); got != "1 "+string(o.session) {
		w.T.Errorf("sessions: %q, want one that is %s", got, o.session)
	}
	runs := strings.Fields(w.Runs())
	if l.gently && o.state == sessions.EntryStopped && !slices.Contains(runs, string(o.run)) {
		runs = append(runs, string(o.run)) // it was stopped before another run of it began
	}
	if n := len(runs) - 1; n < 0 || runs[n] != string(o.run) || slices.ContainsFunc(runs[:n], func(s string) bool { return s != string(sessions.RunInterrupted) }) {
		w.T.Errorf("runs: %q, want %q in the end and nothing but interrupted ones before", runs, o.run)
	}
	o.checkRecord(w, l)
}

func (o outcome) checkRecord(w *ot.World, l life) {
	w.T.Helper()
	requests := 0
	for _, said := range w.Said() {
		if strings.HasPrefix(said, "user|") {
			requests++
		}
	}
	if requests != 1 {
		w.T.Errorf("what the person said is %d times in the session: %q", requests, w.Said())
	}
	answers := 0
	for _, said := range w.Said() {
		if said == "assistant|"+theAnswer {
			answers++
		}
	}
	if want := map[bool]int{true: 1}[o.shown == theAnswer]; answers != want {
		w.T.Errorf("the answer is %d times in the session, want %d: %q", answers, want, w.Said())
	}
	if want := max(o.requests, 1); (l.point == "" || l.after && o.requests == 0) && len(w.Model.Requests()) != want {
		w.T.Errorf("the model was asked %d times, want %d", len(w.Model.Requests()), want)
	}
	did := w.Tools.Did()
	switch {
	case l.point == failpoint.CallBegun: // interrupted before it ran: the model is told so, and decides
		if len(did) != 0 {
			w.T.Errorf("what was interrupted was repeated: %q", did)
		}
	case !slices.Equal(did, o.did):
		w.T.Errorf("the tools did %q, want %q", did, o.did)
	}
}
