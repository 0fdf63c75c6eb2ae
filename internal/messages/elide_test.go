package messages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"remote-agent/internal/messages"
)

// newest is how many results Elide never touches.
const newest = 4

// resultsOf returns the results of an array, in order.
func resultsOf(msgs []messages.Message) []messages.ToolResult {
	var all []messages.ToolResult
	for _, m := range msgs {
		for _, b := range m.Blocks {
			if r, ok := b.(messages.ToolResult); ok {
				all = append(all, r)
			}
		}
	}
	return all
}

// worked returns the array of one turn with a call and a result of each of the
// given lengths.
func worked(lengths ...int) []messages.Message {
	array := []messages.Message{user("go on")}
	for i, n := range lengths {
		id := fmt.Sprint("call_", i)
		array = append(array, call(id), result(id, strings.Repeat(fmt.Sprint(i), n)))
	}
	return array
}

func TestElideLeavesWhatFits(t *testing.T) {
	t.Parallel()
	array := worked(3000, 3000, 3000, 3000, 3000, 3000)
	for _, budget := range []int{messages.EstimateAll(array), messages.EstimateAll(array) + 1, 1 << 40} {
		got := messages.Elide(array, budget)
		if len(got) != len(array) || &got[0] != &array[0] {
			t.Errorf("an array that fits %d tokens was copied", budget)
		}
	}
	if got := messages.Elide(nil, 0); len(got) != 0 {
		t.Errorf("nothing became %d messages", len(got))
	}
}

func TestElideTakesTheOldestFirstAndNoMoreThanItHasTo(t *testing.T) {
	t.Parallel()
	array := worked(3000, 10, 3000, 3000, 3000, 3000, 3000, 3000)
	whole := messages.EstimateAll(array)
	kept := func(got []messages.Message) string {
		var b strings.Builder
		for i, r := range resultsOf(got) {
			mark := "-"
			if r.Content == resultsOf(array)[i].Content {
				mark = "+"
			}
			b.WriteString(mark)
		}
		return b.String()
	}
	for _, tt := range []struct {
		less int    // tokens to save
		want string // which results are kept
	}{
		{0, "++++++++"},
		{1, "-+++++++"},
		{900, "-+++++++"},
		{1000, "-+-+++++"},  // a short one saves nothing
		{2000, "-+--++++"},  // all but the newest four
		{20000, "-+--++++"}, // even if that is not enough
	} {
		if got := kept(messages.Elide(array, whole-tt.less)); got != tt.want {
			t.Errorf("saving %d tokens keeps %s, want %s", tt.less, got, tt.want)
		}
	}
}

func TestElideSaysWhatItLeftOut(t *testing.T) {
	t.Parallel()
	array := worked(5000, 10, 10, 10, 10)
	array[2].Blocks[0] = messages.ToolResult{CallID: "call_0", Name: "bash", Content: strings.Repeat("é", 2500), IsError: true}
	got := resultsOf(messages.Elide(array, 100))[0]
	if got.CallID != "call_0" || got.Name != "bash" || !got.IsError {
		t.Errorf("the result lost more than its content: %+v", got)
	}
	if !strings.Contains(got.Content, "5000 bytes") || len(got.Content) > 200 {
		t.Errorf("content is %q", got.Content)
	}
	again := messages.Elide(messages.Elide(array, 100), 100)
	if diff := cmp.Diff(got, resultsOf(again)[0]); diff != "" {
		t.Errorf("a note was left out in turn (-once +twice):\n%s", diff)
	}
}

func TestElideCopiesResultsOfOneMessage(t *testing.T) {
	t.Parallel()
	var calls, answers []messages.Block
	for i := range 6 {
		id := fmt.Sprint("call_", i)
		calls = append(calls, messages.ToolCall{ID: id, Name: "read", Arguments: "{}"})
		answers = append(answers, answered(id, strings.Repeat("x", 1000)))
	}
	array := []messages.Message{user("a"), {Role: messages.RoleAssistant, Blocks: calls}, results(answers...)}
	before := messages.NewArray(array...).Clone().Messages()
	got := resultsOf(messages.Elide(array, 0))
	for i, r := range got {
		if elided := len(r.Content) < 1000; elided != (i < 2) {
			t.Errorf("result %d: elided is %v", i, elided)
		}
	}
	if diff := cmp.Diff(before, array); diff != "" {
		t.Errorf("the original changed (-before +after):\n%s", diff)
	}
}

// drawWork draws a repaired array in which tools returned much and little.
func drawWork(t *rapid.T) []messages.Message {
	array := drawHistory(t)
	for turn := range rapid.IntRange(0, 3).Draw(t, "turns of work") {
		array = append(array, user(fmt.Sprint("turn ", turn)))
		for round := range rapid.IntRange(0, 4).Draw(t, "rounds of work") {
			calls := messages.Message{Role: messages.RoleAssistant}
			answers := messages.Message{Role: messages.RoleTool}
			for i := range rapid.IntRange(1, 3).Draw(t, "calls of a round") {
				id := fmt.Sprintf("w%d_%d_%d", turn, round, i)
				size := rapid.SampledFrom([]int{0, 10, 199, 200, 201, 600}).Draw(t, "size")
				calls.Blocks = append(calls.Blocks, messages.ToolCall{ID: id, Name: "read", Arguments: "{}"})
				answers.Blocks = append(answers.Blocks, messages.ToolResult{
					CallID: id, Name: "read", Content: strings.Repeat("y", size), IsError: rapid.Bool().Draw(t, "error"),
				})
			}
			array = append(array, calls, answers)
		}
	}
	return messages.Repair(array)
}

func TestElideKeepsTheArrayValidAndFitsOrKeepsTheNewestFour(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawWork(t)
		before := messages.NewArray(in...).Clone().Messages()
		budget := rapid.IntRange(0, messages.EstimateAll(in)+10).Draw(t, "budget")
		got := messages.Elide(in, budget)
		if diff := cmp.Diff(before, in, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("Elide changed its input (-before +after):\n%s", diff)
		}
		checkRules(t, got)
		if diff := cmp.Diff(messages.Repair(got), got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("there was something to repair (-repaired +elided):\n%s", diff)
		}
		checkElided(t, in, got, budget)
		if diff := cmp.Diff(got, messages.Elide(got, budget), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("Elide is not idempotent (-once +twice):\n%s", diff)
		}
	})
}

// checkElided checks what was left out: nothing but contents of old results, the
// oldest first, and no more than the budget asks for.
func checkElided(t *rapid.T, in, got []messages.Message, budget int) {
	t.Helper()
	onlyShape := cmp.Transformer("shape", func(r messages.ToolResult) messages.ToolResult {
		r.Content = ""
		return r
	})
	if diff := cmp.Diff(in, got, onlyShape, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("more than contents changed (-before +after):\n%s", diff)
	}
	was, is := resultsOf(in), resultsOf(got)
	last := -1 // the newest one that was left out
	for i := range was {
		if was[i].Content == is[i].Content {
			continue
		}
		last = i
		if i >= len(was)-newest {
			t.Fatalf("result %d of %d was left out", i+1, len(was))
		}
		if len(is[i].Content) >= len(was[i].Content) {
			t.Fatalf("%d bytes became %d", len(was[i].Content), len(is[i].Content))
		}
	}
	for i := range last {
		if was[i].Content == is[i].Content && len(was[i].Content) > 200 {
			t.Fatalf("result %d was left out before the older %d", last+1, i+1)
		}
	}
	fits := messages.EstimateAll(got) <= budget
	if !fits {
		for i := range max(len(was)-newest, 0) {
			if len(is[i].Content) > 200 {
				t.Fatalf("%d tokens, budget %d, and result %d still has %d bytes", messages.EstimateAll(got), budget, i+1, len(is[i].Content))
			}
		}
	}
	if fits && last >= 0 {
		saved := messages.EstimateTokens(results(was[last])) - messages.EstimateTokens(results(is[last]))
		if messages.EstimateAll(got)+saved <= budget {
			t.Fatalf("result %d need not have been left out", last+1)
		}
	}
}

func TestOpenCalls(t *testing.T) {
	t.Parallel()
	two := with(bot("let me see"), call("a"), call("b"))
	ids := func(calls []messages.ToolCall) (all []string) {
		for _, c := range calls {
			all = append(all, c.ID)
		}
		return all
	}
	type array = []messages.Message
	for name, tt := range map[string]struct {
		in   array
		want []string
	}{
		"Nothing":              {nil, nil},
		"OnlyAUser":            {array{user("x")}, nil},
		"OnlyResults":          {array{result("a", "1")}, nil},
		"AnswerWithoutCalls":   {array{user("x"), bot("y")}, nil},
		"AllOpen":              {array{user("x"), two}, []string{"a", "b"}},
		"OneAnswered":          {array{user("x"), two, result("a", "1")}, []string{"b"}},
		"TheOtherAnswered":     {array{user("x"), two, result("b", "1")}, []string{"a"}},
		"AnsweredApart":        {array{user("x"), two, result("b", "1"), result("a", "2")}, nil},
		"AnsweredTogether":     {array{user("x"), two, with(result("b", "1"), result("a", "2"))}, nil},
		"AnErrorIsAnAnswer":    {array{user("x"), two, messages.NewToolResult("a", "no", true)}, []string{"b"}},
		"ResultsOfOthers":      {array{user("x"), two, result("c", "1")}, []string{"a", "b"}},
		"ResultBeforeTheCall":  {array{user("x"), result("a", "0"), two}, []string{"a", "b"}},
		"APersonSpokeSince":    {array{user("x"), two, result("a", "1"), user("stop")}, nil},
		"OlderOnesDoNotCount":  {array{user("x"), call("old"), user("y"), two, result("a", "1")}, []string{"b"}},
		"TheModelSpokeSince":   {array{user("x"), two, bot("never mind")}, nil},
		"SecondRound":          {array{user("x"), call("a"), result("a", "1"), call("b")}, []string{"b"}},
		"SecondRoundAnswered":  {array{user("x"), call("a"), result("a", "1"), call("b"), result("b", "2")}, nil},
		"CallsWithoutText":     {array{user("x"), with(call("a"), call("b"))}, []string{"a", "b"}},
		"EmptyMessageOfTools":  {array{user("x"), two, {Role: messages.RoleTool}}, []string{"a", "b"}},
		"ThinkingBeforeTheCal": {array{user("x"), {Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Thinking{Text: "hm"}, messages.ToolCall{ID: "a"}}}}, []string{"a"}},
	} {
		if diff := cmp.Diff(tt.want, ids(messages.OpenCalls(tt.in))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOpenCallsAreThoseThatRepairAnswers holds for every array that a crash can
// leave: what is open is what Repair would call interrupted at its end.
func TestOpenCallsAreThoseThatRepairAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawWork(t)
		in = in[:rapid.IntRange(0, len(in)).Draw(t, "crash")]
		if n := len(in); n > 0 && in[n-1].Role == messages.RoleTool && len(in[n-1].Blocks) > 1 {
			in = append(messages.NewArray(in[:n-1]...).Clone().Messages(), in[n-1]) // the blocks are cut below
			in[n-1].Blocks = in[n-1].Blocks[:rapid.IntRange(1, len(in[n-1].Blocks)).Draw(t, "results")]
		}
		var want []string
		repaired := messages.Repair(in)
		if n := len(repaired); n > 0 && repaired[n-1].Role == messages.RoleTool {
			have := make(map[string]bool)
			for _, r := range resultsOf(in) {
				have[r.CallID] = true
			}
			for _, r := range resultsOf(repaired[n-1:]) {
				if !have[r.CallID] {
					want = append(want, r.CallID)
				}
			}
		}
		var got []string
		for _, c := range messages.OpenCalls(in) {
			got = append(got, c.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("open calls (-want +got):\n%s", diff)
		}
	})
}
