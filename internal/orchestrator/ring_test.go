package orchestrator_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
)

const longAnswer = "The retry policy is set in client.go, in the function that makes a request, and the three tries that it has are half a second apart from each other, as the comment above it says."

// rang returns what each message said that notified somebody, as it did so.
func rang(w *ot.World) []string {
	var out []string
	for _, p := range w.Chat.Posts(ot.Room) {
		if !p.Silent {
			out = append(out, p.Texts[0])
		}
	}
	return out
}

// TestWhatRings sees to it that a phone rings once for a message, with the answer, and
// not at all while its owner surely watches.
func TestWhatRings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		step  ot.Step
		say   string
		rings string   // how what rings begins; empty: nothing does
		whole bool     // it rings with all of its text
		want  []string // what stands in the end
	}{
		"AtOnce":      {step: ot.Say(longAnswer), want: []string{longAnswer}},
		"WhileSeen":   {step: ot.Later(4*time.Second, ot.Say(longAnswer)), want: []string{longAnswer}},
		"AtTheEnd":    {step: ot.Later(5*time.Second, ot.Say(longAnswer)), rings: "The retry policy is set in client.go", want: []string{"✔ Worked for 5 s", longAnswer}},
		"Later":       {step: ot.Later(6*time.Second, ot.Say(longAnswer)), rings: "The retry policy is set in client.go", want: []string{"✔ Worked for 6 s", longAnswer}},
		"LaterShort":  {step: ot.Later(6*time.Second, ot.Say("It is red.")), rings: "It is …", want: []string{"✔ Worked for 6 s", "It is red."}},
		"LaterWord":   {step: ot.Later(6*time.Second, ot.Say("Eleven.")), rings: "Ele…", want: []string{"✔ Worked for 6 s", "Eleven."}},
		"LaterNumber": {step: ot.Later(6*time.Second, ot.Say("4")), rings: "4 …", want: []string{"✔ Worked for 6 s", "4"}},
		"LaterFailed": {
			step:  ot.Later(6*time.Second, ot.Fail("", fault.New(fault.Invalid, "The model has no such thing."))),
			rings: "✖ The model has no such thing.", want: []string{"✖ Tried for 6 s", "✖ The model has no such thing."},
		},
		"Command": {say: "/whoami", rings: "You are", whole: true, want: []string{"You are"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				say := "please do it"
				if tt.say != "" {
					say = tt.say
				} else {
					w.Model.On(say, tt.step)
				}
				w.Start()
				w.Chat.Say(say)
				w.Pass(30 * time.Second)
				w.Chat.Want(tt.want...)
				got := rang(w)
				switch {
				case tt.rings == "" && len(got) > 0, tt.rings != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.rings)):
					t.Errorf("it rang with %q, want %q", got, tt.rings)
				case tt.rings != "" && tt.whole != slices.Contains(w.Chat.Texts(ot.Room), got[0]):
					t.Errorf("it rang with %q, of %q", got, w.Chat.Texts(ot.Room))
				}
			})
		})
	}
}

// TestCommandsAreAnsweredByOneCall gives commands quickly, one after another.
func TestCommandsAreAnsweredByOneCall(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		for range 5 {
			w.Chat.Say("/whoami")
		}
		w.Settle()
		if calls := w.Chat.Calls(); len(calls) != 5 || slices.ContainsFunc(calls, func(a ot.Asked) bool { return a.What != "send" }) {
			t.Errorf("five commands made the calls %+v", calls)
		}
	})
}

// TestLateAnswerThatMayHaveArrived loses the platform's answer to the message that a
// late answer begins with: what is left behind is the beginning of it.
func TestLateAnswerThatMayHaveArrived(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		lost := 0
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if a.What == "send" && strings.HasPrefix(a.Text, "The retry") && lost == 0 {
				lost++
				return ot.Reaction{Done: true, Err: &fault.Error{Kind: fault.Unavailable, Uncertain: true, Err: errors.New("reset")}}
			}
			return ot.Reaction{}
		}
		w.Model.On("please do it", ot.Later(6*time.Second, ot.Say(longAnswer)))
		w.Start()
		w.Chat.Say("please do it")
		w.Pass(time.Minute)
		w.Chat.Want("✔ Worked for 6 s", longAnswer)
		if strays := w.Chat.Strays(ot.Room); strays != 1 || lost != 1 {
			t.Errorf("%d messages were left behind after %d lost answers", strays, lost)
		}
	})
}

// TestStandingTaskRings answers what nobody has just written: nobody watches.
func TestStandingTaskRings(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("please do it", ot.Say(longAnswer))
		w.Start()
		w.Chat.Say("please do it", ot.With(func(in *messages.Inbound) { in.Schedule = 1 }))
		w.Pass(10 * time.Second)
		w.Chat.Want(longAnswer)
		if got := rang(w); len(got) != 1 || strings.HasPrefix(got[0], platform.Placeholder) {
			t.Errorf("it rang with %q", got)
		}
	})
}
