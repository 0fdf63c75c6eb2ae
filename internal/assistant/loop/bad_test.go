package loop_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

func TestBadCallsAreAnsweredWithoutAsking(t *testing.T) {
	t.Parallel()
	huge := `{"content":"` + strings.Repeat("x", 10<<20) + `"}`
	tests := map[string]struct {
		call messages.ToolCall
		want string // part of the result
		args string // part of what is kept of the arguments
	}{
		"unknown tool":        {call("a", "nothing", `{}`), `there is no tool "nothing". The tools are: look, peek, change.`, `{}`},
		"no name":             {call("a", "", `{}`), `there is no tool "tool"`, `{}`},
		"almost a name":       {call("a", "loo k", `{}`), `there is no tool "loo_k"`, `{}`},
		"a name with a break": {call("a", "change\n", `{}`), `there is no tool "change_"`, `{}`},
		"an endless name":     {call("a", strings.Repeat("n", 10<<20), `{}`), `there is no tool`, `{}`},
		"no JSON":             {call("a", "change", `{"path":`), `not valid JSON (unexpected end of JSON input, at byte 8)`, `{"path":`},
		"two values":          {call("a", "change", `{} {}`), `not valid JSON`, `{} {}`},
		"a list":              {call("a", "change", `[1]`), `not a JSON object`, `[1]`},
		"a text":              {call("a", "change", `"{}"`), `not a JSON object`, `"{}"`},
		"10 MB":               {call("a", "change", huge), `the arguments are 10485774 bytes long, the limit is 1048576`, `… (cut)`},
		"10 MB of spaces":     {call("a", "change", "{}"+strings.Repeat(" ", 10<<20)), `the limit is 1048576`, `… (cut)`},
		"deep":                {call("a", "change", strings.Repeat(`{"a":`, 100_000)), `not valid JSON`, `{"a":`},
		"invalid UTF-8":       {call("a", "change", "{\"a\":\xff}"), `not valid JSON`, "{\"a\":\uFFFD}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, h := says(calls(tt.call), text("I see.")), host()
			got := run(t.Context(), m, turn(h))
			if got.err != nil || len(got.messages) != 3 {
				t.Fatalf("run: %v, %d messages", got.err, len(got.messages))
			}
			if asked := h.Asked(); len(asked) > 0 {
				t.Errorf("Permit was asked about %d calls", len(asked))
			}
			r := got.results()[0]
			if !r.IsError || !strings.Contains(r.Content, tt.want) || len(r.Content) > 1000 {
				t.Errorf("result %+v, want %q", r, tt.want)
			}
			kept := got.messages[0].Blocks[0].(messages.ToolCall) //nolint:errcheck,forcetypeassert // an answer of one call
			if kept.Name != messages.SafeName(kept.Name) || !strings.Contains(kept.Arguments, tt.args) || len(kept.Arguments) > 1<<20 {
				t.Errorf("the call is kept as %.200q %.200q", kept.Name, kept.Arguments)
			}
			open := messages.OpenCalls(append(turn(nil).Array, got.messages[0]))
			if again := run(t.Context(), says(text("x")), turn(h, got.messages[0])); again.err != nil || len(h.Ran()) > 0 {
				t.Errorf("after a restart %d calls were open, %d ran, error %v", len(open), len(h.Ran()), again.err)
			}
		})
	}
}

func TestInvalidUTF8InsideArgumentsIsReplaced(t *testing.T) {
	t.Parallel()
	h := host()
	got := run(t.Context(), says(calls(call("a", "change", "{\"a\":\"\xff\x00\"}")), calls(call("b", "change", "{\"a\":\"\xff\"}")), text("Done.")), turn(h))
	if got.err != nil {
		t.Fatal(got.err)
	}
	for _, c := range append(h.Ran(), h.Asked()...) {
		if !utf8.ValidString(c.Arguments) || !json.Valid([]byte(c.Arguments)) {
			t.Errorf("a tool got %q", c.Arguments)
		}
	}
	if ran := names(h.Ran()); !slices.Contains(ran, "b") {
		t.Errorf("ran %v, want the call whose arguments are JSON after the repair", ran)
	}
}

func TestMissingArgumentsAreAnEmptyObject(t *testing.T) {
	t.Parallel()
	h := host()
	if got := run(t.Context(), says(calls(call("a", "change", ""), call("b", "look", "null"), call("c", "peek", " \n")), text("Done.")), turn(h)); got.err != nil {
		t.Fatal(got.err)
	}
	ran := h.Ran()
	for _, c := range ran {
		if c.Arguments != "{}" {
			t.Errorf("%s got %q", c.Name, c.Arguments)
		}
	}
	if len(ran) != 3 {
		t.Errorf("ran %+v", ran)
	}
}

func TestIDsAreUniqueInTheArray(t *testing.T) {
	t.Parallel()
	m := says(
		calls(call("", "look", `{"n":1}`), call("", "look", `{"n":2}`), call("old", "look", `{"n":3}`), call("x y", "look", `{"n":4}`), call("x y", "look", `{"n":5}`)),
		calls(call("functions.look:0", "look", `{"n":6}`)), calls(call("functions.look:0", "look", `{"n":7}`)),
		text("Done."),
	)
	tn := turn(host(), messages.NewToolCall("old", "look", `{}`), messages.NewToolResult("old", "x", false), messages.NewText(messages.RoleUser, "More."))
	got := run(t.Context(), m, tn)
	if got.err != nil {
		t.Fatal(got.err)
	}
	seen := map[string]bool{"": true, "old": true}
	for _, message := range got.messages {
		for _, b := range message.Blocks {
			if c, ok := b.(messages.ToolCall); ok {
				if seen[c.ID] || messages.SafeID(c.ID) != c.ID {
					t.Errorf("id %q", c.ID)
				}
				seen[c.ID] = true
			}
		}
	}
	if len(seen) != 9 || len(got.results()) != 7 {
		t.Errorf("ids %v, %d results", seen, len(got.results()))
	}
	array := slices.Concat(tn.Array, got.messages)
	array = append(array, messages.NewText(messages.RoleUser, "x"))
	for _, message := range messages.Repair(array) {
		for _, b := range message.Blocks {
			if c, ok := b.(messages.ToolCall); ok && !seen[c.ID] {
				t.Errorf("Repair had to rename a call to %q", c.ID)
			}
		}
	}
}

func TestTooManyCallsInOneAnswer(t *testing.T) {
	t.Parallel()
	var all []messages.ToolCall
	for i := range 1000 {
		all = append(all, call(fmt.Sprint("c", i), "change", fmt.Sprintf(`{"n":%d}`, i)))
	}
	h := host()
	got := run(t.Context(), says(calls(all...), text("Done.")), turn(h))
	if got.err != nil || len(h.Ran()) != 128 || len(got.results()) != 1000 {
		t.Errorf("%d ran, %d results, error %v", len(h.Ran()), len(got.results()), got.err)
	}
}

// TestUnknownNameIsNotMendedToAKnownOne has a name that fits a tool only after
// it was made safe, and the turn put aside before its result.
func TestUnknownNameIsNotMendedToAKnownOne(t *testing.T) {
	t.Parallel()
	h := host()
	h.Specs = append(h.Specs, messages.ToolSpec{Name: "drop_table"})
	h.Decide = func(messages.ToolCall) (assistant.Verdict, error) { return assistant.Verdict{}, assistant.ErrWaiting }
	got := run(t.Context(), says(calls(call("a", "change", `{}`), call("b", "drop table", `{}`))), turn(h))
	if !errors.Is(got.err, assistant.ErrWaiting) || len(got.messages) != 1 {
		t.Fatalf("run: %+v", got)
	}
	h.Decide = nil
	again := run(t.Context(), says(text("Done.")), turn(h, got.messages...))
	if ran := names(h.Ran()); again.err != nil || !slices.Equal(ran, []string{"a"}) {
		t.Errorf("ran %v, error %v", ran, again.err)
	}
}

func TestStoredCallWithoutAnObjectIsAnswered(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "null", "7", "{"} {
		h := host()
		got := run(t.Context(), says(text("Done.")), turn(h, messages.NewToolCall("a", "change", args)))
		if got.err != nil || len(h.Ran()) > 0 || !got.results()[0].IsError {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// FuzzCalls has a model make any two calls: the turn ends, what is yielded needs
// no repair, and a tool gets only JSON objects.
func FuzzCalls(f *testing.F) {
	f.Add("a", "change", `{"path":"x"}`, "a", "look", "")
	f.Add("", "", "\xff", "x y", "change\x00", `{"a":1}{"b":2}`)
	f.Add("call_1", "look", "null", "call_1", "look", ` {"a":{"b":[1e999,"\u0000"]}} `)
	f.Fuzz(func(t *testing.T, id1, name1, args1, id2, name2, args2 string) {
		h := host()
		tn := turn(h)
		got := run(t.Context(), says(calls(call(id1, name1, args1), call(id2, name2, args2)), text("Done.")), tn)
		if got.err != nil || got.finished == nil || len(got.results()) != 2 {
			t.Fatalf("run: %+v", got)
		}
		for _, c := range h.Ran() {
			var object map[string]any
			if err := json.Unmarshal([]byte(c.Arguments), &object); !utf8.ValidString(c.Arguments) || err != nil && !strings.Contains(err.Error(), "number") || object == nil && err == nil {
				t.Errorf("a tool got %q: %v", c.Arguments, err)
			}
		}
		array := slices.Concat(tn.Array, got.messages, []messages.Message{messages.NewText(messages.RoleUser, "x")})
		repaired := messages.Repair(array)
		for _, m := range repaired {
			for _, b := range m.Blocks {
				if c, ok := b.(messages.ToolCall); ok && !slices.Contains(got.messages[0].Blocks, messages.Block(c)) {
					t.Errorf("Repair changed a call to %+v", c)
				}
				if r, ok := b.(messages.ToolResult); ok && r.Content == messages.Interrupted {
					t.Errorf("a call has no result: %+v", r)
				}
			}
		}
	})
}
