package loop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// rounds makes one answer of each list of calls, written as "tool arguments",
// and a last answer of text.
func rounds(lists ...[]string) *model {
	var answers []answer
	for _, list := range lists {
		var all []messages.ToolCall
		for _, c := range list {
			name, args, _ := strings.Cut(c, " ")
			all = append(all, call("", name, args))
		}
		answers = append(answers, calls(all...))
	}
	return says(append(answers, text("Done."))...)
}

func TestCallsThatLeadNowhere(t *testing.T) {
	t.Parallel()
	one := func(calls ...string) (lists [][]string) {
		for _, c := range calls {
			lists = append(lists, []string{c})
		}
		return lists
	}
	const (
		look   = `look {"path":"x"}`
		peek   = `peek {}`
		change = `change {"path":"x"}`
		other  = `change {"path":"y"}`
	)
	tests := map[string]struct {
		answers   [][]string
		ran       int
		refused   int // results that say that it leads nowhere
		exhausted bool
	}{
		"twice":                      {one(look, look), 2, 0, false},
		"three times":                {one(look, look, look), 2, 1, false},
		"once more":                  {one(look, look, look, look), 2, 1, true},
		"a change, once more":        {one(change, change, change, change), 2, 1, true},
		"other spaces and order":     {one(`look {"a":1,"b":2}`, `look { "b":2, "a":1 }`, "look {\n\"a\":1,\"b\":2}"), 2, 1, false},
		"other numbers":              {one(`look {"n":1}`, `look {"n":2}`, `look {"n":3}`, `look {"n":4}`), 4, 0, false},
		"something else between":     {one(look, look, peek, look, look), 5, 0, false},
		"a change between":           {one(look, change, look, other, look), 5, 0, false},
		"it gives in":                {one(look, look, look, peek, look), 4, 1, false},
		"several at once":            {[][]string{{look, peek}, {look, peek}, {peek, look}, {look}}, 4, 2, true},
		"changed in the same answer": {[][]string{{look, change, look}, {other, look}}, 5, 0, false},
		"all in one answer":          {[][]string{{look, look, look, look}}, 2, 2, false},
		"in one answer and again":    {[][]string{{look, look, look, look}, {peek, look, change}}, 3, 2, true},
		"unknown tools":              {one(`nothing {}`, `nothing {}`, `nothing {}`, `nothing {}`), 0, 1, true},
		"no JSON":                    {one(`look {`, `look {`, `look {`, `look {`), 0, 1, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host()
			h.Do = func(_ context.Context, c messages.ToolCall) messages.ToolResult {
				return messages.ToolResult{Content: "always " + c.Name}
			}
			got := run(t.Context(), rounds(tt.answers...), turn(h))
			refused, total := 0, 0
			for _, list := range tt.answers {
				total += len(list)
			}
			for _, r := range got.results() {
				if r.IsError && strings.Contains(r.Content, "same result twice") {
					refused++
				}
			}
			if len(h.Ran()) != tt.ran || refused != tt.refused || fault.Is(got.err, fault.Exhausted) != tt.exhausted {
				t.Errorf("%d ran, %d were refused, error %v", len(h.Ran()), refused, got.err)
			}
			if got.err != nil && !tt.exhausted {
				t.Errorf("error %v", got.err)
			}
			if len(got.results()) != total {
				t.Errorf("%d results for %d calls", len(got.results()), total)
			}
		})
	}
}

func TestOtherResultsAreProgress(t *testing.T) {
	t.Parallel()
	h := host()
	var n atomic.Int64
	h.Do = func(context.Context, messages.ToolCall) messages.ToolResult {
		return messages.ToolResult{Content: fmt.Sprint(n.Add(1))}
	}
	same := []string{"look {}"}
	if got := run(t.Context(), rounds(same, same, same, same, same), turn(h)); got.err != nil || len(h.Ran()) != 5 {
		t.Errorf("%d ran, error %v", len(h.Ran()), got.err)
	}
}

func TestPersonIsNotAskedAThirdTime(t *testing.T) {
	t.Parallel()
	h := host()
	h.Decide = func(messages.ToolCall) (assistant.Verdict, error) { return assistant.Verdict{Reason: "no"}, nil }
	same := []string{"change {}"}
	if got := run(t.Context(), rounds(same, same, same), turn(h)); got.err != nil || len(h.Asked()) != 2 {
		t.Errorf("asked %d times, error %v", len(h.Asked()), got.err)
	}
}

func TestSteeringBeginsAnew(t *testing.T) {
	t.Parallel()
	h := host()
	h.Next = func(requests int, _ assistant.Usage) ([]messages.Message, error) {
		if requests == 2 {
			return []messages.Message{messages.NewText(messages.RoleUser, "Try again.")}, nil
		}
		return nil, nil
	}
	same := []string{"look {}"}
	if got := run(t.Context(), rounds(same, same, same, same), turn(h)); got.err != nil || len(h.Ran()) != 4 {
		t.Errorf("%d ran, error %v", len(h.Ran()), got.err)
	}
}

// TestCirclesAreSeenAcrossRuns puts the turn aside after every answer.
func TestCirclesAreSeenAcrossRuns(t *testing.T) {
	t.Parallel()
	h := host()
	parked := false
	h.Next = func(int, assistant.Usage) ([]messages.Message, error) {
		parked = true
		return nil, assistant.ErrWaiting
	}
	tn := turn(h)
	runs := 0
	for ; runs < 10; runs++ {
		parked = false
		got := runConfig(t.Context(), loop.New(rounds([]string{"change {}"}), loop.Config{}), tn)
		tn.Array = append(slices.Clip(tn.Array), got.messages...)
		if !parked {
			if !fault.Is(got.err, fault.Exhausted) {
				t.Errorf("error %v", got.err)
			}
			break
		}
	}
	if len(h.Ran()) != 2 || runs != 3 {
		t.Errorf("%d ran in %d runs", len(h.Ran()), runs)
	}
}

// BenchmarkRound is a request and a tool call on a long history, without what
// the model and the tool take.
func BenchmarkRound(b *testing.B) {
	history := turn(nil).Array
	for i := len(history); i < 200; i++ {
		switch i % 4 {
		case 0:
			history = append(history, messages.NewText(messages.RoleUser, strings.Repeat("question ", 20)))
		case 1:
			history = append(history, messages.NewToolCall(fmt.Sprint("h", i), "look", `{"path":"internal/x.go"}`))
		case 2:
			history = append(history, messages.NewToolResult(fmt.Sprint("h", i-1), strings.Repeat("line of a file\n", 200), false))
		default:
			history = append(history, messages.NewText(messages.RoleAssistant, strings.Repeat("answer ", 50)))
		}
	}
	history = append(history, messages.NewText(messages.RoleUser, "Go."))
	output := strings.Repeat("line of a file\n", 200)
	for _, perRun := range []int{1, 50} {
		b.Run(fmt.Sprintf("%dRounds", perRun), func(b *testing.B) {
			m := &model{script: func(n int, _ assistant.Request) answer {
				if n > perRun {
					return text("Done.")
				}
				return calls(call("", "change", fmt.Sprintf(`{"path":"x","old":"a","new":"b","n":%d}`, n)))
			}}
			h := host()
			h.Do = func(context.Context, messages.ToolCall) messages.ToolResult {
				return messages.ToolResult{Content: output}
			}
			tn := turn(h)
			tn.Array = history
			b.ReportAllocs()
			for b.Loop() {
				m.requests = m.requests[:0]
				for _, err := range loop.New(m, loop.Config{}).Run(b.Context(), tn) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*perRun), "µs/round")
		})
	}
}
