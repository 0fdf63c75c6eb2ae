package loop_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// camera is a host whose tools show another picture each time.
func camera() (assistant.Host, *int) {
	h, n := host(), 0
	h.Do = func(_ context.Context, c messages.ToolCall) messages.ToolResult {
		return messages.ToolResult{CallID: c.ID, Name: c.Name, Content: "[image]"}
	}
	h.Shows = func(messages.ToolCall) []messages.Attachment {
		n++
		return []messages.Attachment{{Name: fmt.Sprint(n), MediaType: "image/png", Width: 1, Height: 1, Size: 4, File: fmt.Sprint("hash", n), Data: fmt.Sprint("data", n)}}
	}
	return h, &n
}

// pictures returns the data of what a request shows of tools.
func pictures(r assistant.Request) (all []string) {
	for _, m := range r.Array {
		for at, b := range m.Blocks {
			if _, is := b.(messages.ToolResult); !is {
				continue
			}
			for _, a := range messages.FilesOf(m, at) {
				all = append(all, a.Data)
			}
		}
	}
	return all
}

// TestWhatAToolShows is in the message of its result, and the model gets it with that. Calls whose
// text is the same but whose picture is not lead somewhere.
func TestWhatAToolShows(t *testing.T) {
	t.Parallel()
	const look = `look {"path":"x"}`
	m := rounds([]string{look}, []string{look}, []string{look}, []string{look})
	h, n := camera()
	got := run(t.Context(), m, turn(h))
	if got.err != nil || *n != 4 {
		t.Fatalf("%d calls ran: %v", *n, got.err)
	}
	if shown := fmt.Sprint(pictures(m.requests[4])); shown != "[data1 data2 data3 data4]" {
		t.Errorf("the last request shows %s", shown)
	}
	stored := got.messages[1]
	if files := messages.FilesOf(stored, 0); stored.Role != messages.RoleTool || len(files) != 1 || files[0].File != "hash1" {
		t.Errorf("to be stored: %+v", stored)
	}

	t.Log("the same picture again and again leads nowhere, also behind a restart")
	again := host()
	again.Shows = func(messages.ToolCall) []messages.Attachment { return []messages.Attachment{{File: "hash"}} }
	same := func() *model { return rounds([]string{look}, []string{look}, []string{look}) }
	before := run(t.Context(), same(), turn(again)).messages[:2]
	run(t.Context(), same(), turn(again, before...))
	if n := len(again.Ran()); n != 2+1 {
		t.Errorf("the same call ran %d times", n)
	}
}

// TestManyPicturesOfATurn stay within what a request holds.
func TestManyPicturesOfATurn(t *testing.T) {
	t.Parallel()
	var list [][]string
	for i := range 25 {
		list = append(list, []string{fmt.Sprintf(`look {"n":%d}`, i)})
	}
	m := rounds(list...)
	h, _ := camera()
	if got := run(t.Context(), m, turn(h)); got.err != nil {
		t.Fatal(got.err)
	}
	for i, want := range map[int]int{20: 20, 21: 10, 22: 11, 25: 14} {
		shown := 0
		for _, data := range pictures(m.requests[i]) {
			if data != "" {
				shown++
			}
		}
		if all := pictures(m.requests[i]); shown != want || all[len(all)-1] != fmt.Sprint("data", i) {
			t.Errorf("request %d shows %d pictures, want %d: %q", i, shown, want, all)
		}
	}
}

// TestAModelThatCannotSeeWhatAToolShows is asked again without, and not shown what comes later. The
// person is told once.
func TestAModelThatCannotSeeWhatAToolShows(t *testing.T) {
	t.Parallel()
	m := &model{}
	m.script = func(n int, r assistant.Request) answer {
		switch {
		case strings.Join(pictures(r), "") != "":
			return answer{err: assistant.Blind(fault.New(fault.Invalid, "no image input"))}
		case len(r.Array) < 7:
			return calls(call("", "look", fmt.Sprintf(`{"n":%d}`, n)))
		}
		return text("I cannot see it.")
	}
	h, _ := camera()
	a := loop.New(m, loop.Config{})
	for _, want := range []int{5, 9} { // requests so far: only the second one was refused
		var notices []assistant.Notice
		for event, err := range a.Run(t.Context(), turn(h)) {
			if err != nil {
				t.Fatal(err)
			}
			if n, is := event.(assistant.Notice); is {
				notices = append(notices, n)
			}
		}
		if len(notices) != 1 || !notices[0].Once || !strings.Contains(notices[0].Text, "/model") {
			t.Errorf("notices %+v", notices)
		}
		if len(m.requests) != want {
			t.Errorf("%d requests, want %d", len(m.requests), want)
		}
		for _, at := range []int{2, 4, 6} {
			for _, a := range messages.FilesOf(m.requests[want-1].Array[at], 0) {
				if a.Note != "this model cannot look at it" || a.File == "" {
					t.Errorf("the model reads %+v", a)
				}
			}
		}
	}
}
