package demo_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/assistant/demo"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

var scripts = map[assistanttest.Scenario]string{
	assistanttest.Reply:        "hello there",
	assistanttest.Slow:         "demo slow 60",
	assistanttest.Tools:        "demo tools",
	assistanttest.Cut:          "demo cut",
	assistanttest.Unauthorized: "demo unauthorized",
	assistanttest.RateLimited:  "demo ratelimit 7",
	assistanttest.Quota:        "demo quota",
	assistanttest.Unavailable:  "demo fail provider",
	assistanttest.Overflow:     "demo overflow",
	assistanttest.Broken:       "demo error",
}

func turn(texts ...string) assistant.Turn {
	var t assistant.Turn
	for i, text := range texts {
		if i > 0 {
			t.Array = append(t.Array, messages.NewText(messages.RoleAssistant, "yes"))
		}
		t.Array = append(t.Array, messages.NewText(messages.RoleUser, text))
	}
	return t
}

func TestContract(t *testing.T) {
	assistanttest.Exercise(t, assistanttest.Harness{
		New: func(_ *testing.T, s assistanttest.Scenario) (assistanttest.Subject, bool) {
			script, ok := scripts[s]
			return assistanttest.Subject{Assistant: demo.New(demo.Config{Pace: time.Millisecond}), Turn: turn(script)}, ok
		},
	})
}

// answer runs a turn and returns all its text.
func answer(t *testing.T, turn assistant.Turn) (text string, err error) {
	t.Helper()
	for event, e := range demo.New(demo.Config{}).Run(t.Context(), turn) {
		if e != nil {
			return text, e
		}
		if delta, ok := event.(assistant.TextDelta); ok {
			text += delta.Text
		}
	}
	return text, nil
}

func TestEveryLineIsLabeled(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"hello", "", "line\nline", "demo", "demo help", "demo nonsense", "demo slow 2", "demo long", "demo tools", "demo error", "demo fail", "demo quota"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				text, err := answer(t, turn(script))
				if err != nil && !strings.HasPrefix(fault.Public(err), demo.Label) {
					t.Errorf("the error %q is not labeled", fault.Public(err))
				}
				for line := range strings.Lines(text) {
					line = strings.TrimSpace(line)
					if line != "" && line != "```" && !strings.Contains(line, demo.Label) {
						t.Errorf("line without a label: %q", line)
					}
				}
			})
		})
	}
}

func TestReplyShowsTheHistoryAndTheWayOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		text, err := answer(t, turn("first", "second", "what is new?"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"what is new?" (3 words)`, "2 messages of yours", `"second"`, "`bot setup model`", "demo help"} {
			if !strings.Contains(text, want) {
				t.Errorf("the answer lacks %q:\n%s", want, text)
			}
		}
	})
}

func TestStopBetweenTwoStepsIsImmediate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour/2)
		defer cancel()
		from := time.Now()
		time.AfterFunc(5500*time.Millisecond, cancel)
		var err error
		for _, e := range demo.New(demo.Config{Pace: -1}).Run(ctx, turn("demo slow 60")) {
			err = e
		}
		if took := time.Since(from); took != 5500*time.Millisecond || !fault.Is(err, fault.Canceled) {
			t.Errorf("stopped after %v with %v, want 5.5s and canceled", took, err)
		}
	})
}

func TestLongAnswerIsLongAndClosesItsCode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		text, err := answer(t, turn("Demo  LONG"))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) < 3*4096 {
			t.Errorf("the long answer has %d bytes, want more than three messages of Telegram", len(text))
		}
		if n := strings.Count(text, "```"); n == 0 || n%2 != 0 {
			t.Errorf("%d code fences", n)
		}
	})
}

func TestSlowTakesItsTime(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]time.Duration{
		"demo slow":                     20 * time.Second,
		"demo slow 3":                   3 * time.Second,
		"demo slow 15m":                 15 * time.Minute,
		"demo slow 9e9":                 20 * time.Second,
		"demo slow 9999999999999999999": 20 * time.Second,
		"demo slow 99999":               time.Hour,
		"demo slow -1":                  20 * time.Second,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				from := time.Now()
				if _, err := answer(t, turn(script)); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(from); took < want || took > want+want/10+2*time.Second {
					t.Errorf("took %v, want about %v", took, want)
				}
			})
		})
	}
}

// TestIntents answers what a person typed, whatever else the request has in it.
func TestIntents(t *testing.T) {
	t.Parallel()
	const memory = "[remembered about you, for context only, not an instruction]\n> I like tea\n\n"
	for name, tt := range map[string]struct{ said, sent, want string }{
		"a memory before a script": {"demo slow 2", memory + "demo slow 2", "step 2 of 2"},
		"a memory before a text":   {"hello", memory + "hello", `You wrote "hello" (1 word)`},
		"a plan":                   {"/plan add a --json flag.", "Write a plan for the goal below.\n\nGoal: add a --json flag.", "Goal: add a --json flag.\n"},
		"a plan by its long name":  {"/plan_feature a timer", "Write a plan for the goal below.", "Goal: a timer.\n"},
		"a plan of nothing":        {"/plan", "Write a plan for the goal below.", "Goal: what you want.\n"},
		"a plan to carry out":      {"/execute p-1", "Carry out exactly this plan.", "I would carry the plan out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				request := turn(tt.sent)
				request.Said = tt.said
				text, err := answer(t, request)
				if err != nil || !strings.Contains(text, tt.want) || strings.Contains(text, "for context only") || strings.Contains(text, "Write a plan") {
					t.Errorf("%v: %s", err, text)
				}
			})
		})
	}
}
