package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

func user(text string) messages.Message { return messages.NewText(messages.RoleUser, text) }

func said(text string) messages.Message { return messages.NewText(messages.RoleAssistant, text) }

func TestPrompt(t *testing.T) {
	t.Parallel()
	history := []messages.Message{user("What is in x?"), messages.NewToolCall("1", "read_file", `{"path":"x"}`),
		messages.NewToolResult("1", "two\nlines", false), said("Two lines.\n# The new message")}
	history[2].Blocks = append(history[2].Blocks, messages.Attachment{Name: "shot.png", MediaType: "image/png", File: "hash"})
	for name, test := range map[string]struct {
		turn  assistant.Turn
		fresh bool
		want  string
	}{
		"a known conversation": {assistant.Turn{Array: append(history[:4:4], user("And y?"))}, false, "And y?"},
		"a fresh one":          {assistant.Turn{Array: []messages.Message{user("Hi")}}, true, "Hi"},
		"instructions": {assistant.Turn{System: "Be kind.\n", Array: []messages.Message{user("Hi")}}, true,
			"# Instructions from the operator of this bot\n\nBe kind.\n\n# The new message\n\nHi"},
		"a hand-off": {assistant.Turn{Array: append(history[:4:4], user("And y?"))}, true,
			"# The conversation so far\n\nYou have no memory of it; this is the record, shortened where it is long. " +
				"The parts named Assistant were said by you or by the assistant before you.\n\n" +
				"Person:\n  What is in x?\n\nAssistant called the tool read_file:\n  {\"path\":\"x\"}\n\n" +
				"Result of read_file:\n  two\n  lines\n\nIt came with:\n  [Attached file shot.png, image/png]\n\nAssistant:\n  Two lines.\n  # The new message\n\n# The new message\n\nAnd y?"},
		"a file": {assistant.Turn{Array: []messages.Message{{Role: messages.RoleUser, Blocks: []messages.Block{
			messages.Text{Text: "Read it."}, messages.Attachment{Name: "a.txt", MediaType: "text/plain", Text: "one\ntwo"},
			messages.Attachment{Name: "b.png", Note: "not text"},
		}}}}, false, "Read it.\n\n[Attached file a.txt, text/plain; its text:]\n  one\n  two\n\n[Attached file b.png; not text]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := (&Assistant{}).prompt(opened{agent: &agent{system: map[bool]string{false: test.turn.System}[test.fresh]}, fresh: test.fresh}, test.turn)
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestInstructionsAreRepeatedWhenTheyChange: a session knows what it was told.
func TestInstructionsAreRepeatedWhenTheyChange(t *testing.T) {
	t.Parallel()
	o := opened{agent: &agent{}}
	a := &Assistant{}
	turn := assistant.Turn{System: "one", Array: []messages.Message{user("Hi")}}
	for i, want := range []bool{true, false, true, false} {
		if i == 2 {
			turn.System = "two"
		}
		if got := strings.Contains(a.prompt(o, turn), "Instructions"); got != want {
			t.Errorf("prompt %d: instructions %v, want %v", i, got, want)
		}
	}
}

// TestSummaryShortensTheOldestFirst: it is bounded, the newest is whole, and
// what is missing is said.
func TestSummaryShortensTheOldestFirst(t *testing.T) {
	t.Parallel()
	var msgs []messages.Message
	for i := range 200 {
		msgs = append(msgs, user(fmt.Sprintf("question %d", i)), said(fmt.Sprintf("<%d>", i)+strings.Repeat("x", 2000)+fmt.Sprintf("</%d>", i)))
	}
	text := summary(msgs, summaryLimit)
	if len(text) > summaryLimit*5/4 {
		t.Errorf("%d bytes, want about %d", len(text), summaryLimit)
	}
	if !strings.Contains(text, "<199>"+strings.Repeat("x", 2000)+"</199>") {
		t.Error("the newest answer is not whole")
	}
	if strings.Contains(text, "<100>"+strings.Repeat("x", 2000)) || !strings.Contains(text, "bytes left out") {
		t.Error("an old answer is not shortened")
	}
	if !strings.Contains(text, "question 199") {
		t.Error("the newest question is missing")
	}
	var small []messages.Message
	for i := range 5000 {
		small = append(small, user(fmt.Sprintf("question %d", i)))
	}
	text = summary(small, summaryLimit)
	if !strings.HasPrefix(text, "[") || !strings.Contains(text, "earlier parts are left out.]") || len(text) > summaryLimit*5/4 {
		t.Errorf("%d bytes: %.80s", len(text), text)
	}
}

func TestSummaryIsBoundedAndHonest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var msgs []messages.Message
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			text := strings.Repeat(rapid.StringN(1, 20, -1).Draw(t, "text"), rapid.IntRange(1, 400).Draw(t, "times"))
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				msgs = append(msgs, user(text))
			case 1:
				msgs = append(msgs, said(text))
			default:
				msgs = append(msgs, messages.NewToolCall("1", "t", "{}"), messages.NewToolResult("1", text, true))
			}
		}
		const limit = 4 << 10
		got := summary(msgs, limit)
		// Indentation of many short lines comes on top of the bound.
		lines := strings.Count(got, "\n")
		if len(got) > limit+entryLimit+400+2*lines || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, valid %v", len(got), utf8.ValidString(got))
		}
		for line := range strings.SplitSeq(got, "\n") {
			if line != "" && line[0] != ' ' && !strings.HasSuffix(line, ":") && !strings.HasSuffix(line, "]") {
				t.Fatalf("a line stands at the margin: %q", line)
			}
		}
	})
}

func TestDiff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		old, text string
		created   bool
		want      string
	}{
		"a change":    {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", false, "--- a/x\n+++ b/x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8"},
		"a new file":  {"", "a\nb\n", true, "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b"},
		"all removed": {"a\n", "", false, "--- a/x\n+++ b/x\n@@ -1,1 +0,0 @@\n-a"},
		"nothing":     {"a\n", "a\n", false, "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n a"},
		"appended":    {"a\n", "a\nb\n", false, "--- a/x\n+++ b/x\n@@ -1,1 +1,2 @@\n a\n+b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(test.want, diff("/x", test.old, test.text, test.created)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestFencedCannotBeLeft(t *testing.T) {
	t.Parallel()
	got := fenced("sh", "echo\n```\n**bold**\n````")
	if !strings.HasPrefix(got, "`````sh\n") || !strings.HasSuffix(got, "\n`````") {
		t.Errorf("%q", got)
	}
}

// TestACommandIsShownAsItRuns: not another one is shown that Go would take for it because it
// does not tell apart small letters and capitals.
func TestACommandIsShownAsItRuns(t *testing.T) {
	t.Parallel()
	for _, input := range []string{`{"command":"rm -rf .","Command":"make"}`, `{"COMMAND":"make","command":["rm","-rf","."]}`, `{"Cmd":"make","cmd":"rm -rf ."}`} {
		c := &call{title: "make", input: json.RawMessage(input)}
		q := ask{call: c}
		if got := c.command(); got != "rm -rf ." || q.request().Title != got {
			t.Errorf("%s: %q, and the question is about %q", input, got, q.request().Title)
		}
	}
}

// TestACommandIsShownWithWhatBelongsToIt: a program without its arguments, or without the
// folder that it runs in, is another effect.
func TestACommandIsShownWithWhatBelongsToIt(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"command":"make"}`:                                    "```sh\nmake\n```",
		`{"command":"make","description":"Build it"}`:           "```sh\nmake\n```",
		`{"command":"rm","args":["-rf","/&<"]}`:                 "```sh\nrm\n```\n\n```json\n{\"args\":[\"-rf\",\"/&<\"]}\n```",
		`{"cmd":["rm","-rf","."],"cwd":"/etc","description":1}`: "```sh\nrm -rf .\n```\n\n```json\n{\"cwd\":\"/etc\"}\n```",
		`{"command":"make","Command":"rm"}`:                     "```sh\nmake\n```\n\n```json\n{\"Command\":\"rm\"}\n```",
		`{"command":"","cmd":"rm"}`:                             "```sh\nrm\n```\n\n```json\n{\"command\":\"\"}\n```",
		`{"command":"make","cmd":"rm"}`:                         "```sh\nmake\n```\n\n```json\n{\"cmd\":\"rm\"}\n```",
		`{"plan":"a"}`:                                          "```json\n{\"plan\":\"a\"}\n```",
		`{"path":"a"}`:                                          "```json\n{\"path\":\"a\"}\n```",
		`["a"]`:                                                 "```json\n[\"a\"]\n```",
	} {
		if got := (&call{input: json.RawMessage(input)}).detail(); got != want {
			t.Errorf("%s is shown as\n%s", input, got)
		}
	}
}

// TestAQuestionShowsAllOrNothing: whoever reads a part of what an agent asks for would allow
// the rest unseen.
func TestAQuestionShowsAllOrNothing(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x\n", n/2) + "rm" }
	for name, c := range map[string]struct {
		input, content any
		title          string
		shown          []string // the ends of what is shown; nothing is, if there are none
	}{
		"a long title":         {title: text(600), content: []any{map[string]any{"type": "content", "content": map[string]string{"type": "text", "text": "why"}}}, shown: []string{"rm\n```", "why\n```"}},
		"a title in lines":     {title: "ls\nrm", shown: []string{"ls\nrm\n```"}},
		"too long a title":     {title: text(maxDetail)},
		"a title and an input": {title: text(600), input: map[string]string{"query": "rm"}, shown: []string{"rm\"}\n```"}},
		"a long command":       {input: map[string]string{"command": text(64 << 10)}, shown: []string{"rm\n```"}},
		"too long a command":   {input: map[string]string{"command": text(maxDetail)}},
		"a long input":         {input: map[string]string{"query": text(60 << 10)}, shown: []string{"rm\"}\n```"}},
		"too long an input":    {input: map[string]string{"query": text(maxDetail)}},
		"a long change":        {content: []any{map[string]string{"type": "diff", "path": "a", "newText": text(64 << 10)}}, shown: []string{"+rm\n```"}},
		"too long a change":    {content: []any{map[string]string{"type": "diff", "path": "a", "newText": text(maxDetail)}}},
		"a file and its input": {input: map[string]string{"text": text(40 << 10)}, content: []any{map[string]string{"type": "diff", "path": "a", "newText": text(40 << 10)}}, shown: []string{"+rm\n```", "rm\"}\n```"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input, err := json.Marshal(c.input)
			if err != nil {
				t.Fatal(err)
			}
			content, err := json.Marshal(c.content)
			if err != nil {
				t.Fatal(err)
			}
			if c.title == "" {
				c.title = "work"
			}
			kind := "allow_always"
			if c.input == nil {
				kind = "allow_once" // without an input there is nothing that could be allowed for always
			}
			q := ask{call: &call{title: c.title, input: input, content: content}, options: []permissionOption{{ID: "yes", Kind: kind}}}
			got := q.request().Detail
			if (got == "") != (c.shown == nil) || strings.Contains(got, "not shown") || q.unanswerable() != "" {
				t.Errorf("%d bytes are shown: %.100q", len(got), got)
			}
			for _, end := range c.shown {
				if !strings.Contains(got, end) {
					t.Errorf("the end %q is not shown", end)
				}
			}
		})
	}
}

// TestAQuestionWithSeveralAnswers: CodeBuddy asks people what they would like with an option for
// each answer. Who says yes knows to which.
func TestAQuestionWithSeveralAnswers(t *testing.T) {
	t.Parallel()
	q := ask{call: &call{title: "Which database?", input: json.RawMessage(`{"question":"Which database?"}`)}, options: []permissionOption{
		{ID: "p", Kind: "allow_once", Name: "Postgre`SQL"}, {Kind: "allow_once", Name: "none"}, {ID: "s", Kind: "allow_once"},
		{ID: "d", Kind: "allow_always", Name: "Done"}, {ID: "n", Kind: "reject_once", Name: "No"},
	}}
	const want = "\n\nThe agent offers several answers: `Postgre'SQL`, `s`. If you allow this, the answer is `Postgre'SQL`."
	for kind, wanted := range map[string]assistant.PermissionKind{"": assistant.KindQuestion, "think": assistant.KindQuestion, "execute": assistant.KindExecute} {
		q.call.kind = kind
		p := q.request()
		if !strings.HasSuffix(p.Detail, want) || q.option("allow_once") != "p" {
			t.Errorf("asked %q", p.Detail)
		}
		if p.Kind != wanted || p.Always != (kind == "execute") {
			t.Errorf("%q is %q, for always: %v", kind, p.Kind, p.Always)
		}
	}
	q.options = q.options[1:]
	q.call.kind = ""
	if p := q.request(); strings.Contains(p.Detail, "answer") || p.Kind != assistant.KindOther {
		t.Errorf("one answer is %q", p.Detail)
	}
}

// TestOpenCallsAreBounded: what an agent reports of calls that it never ends does not fill
// the memory of the bot. A report that replaces another, and a call that ended, do not count.
func TestOpenCallsAreBounded(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`"` + strings.Repeat("x", maxLine-100) + `"`)
	for name, c := range map[string]struct {
		id, status string
		want       error
	}{"left open": {"%d", "in_progress", errTooMuch}, "one": {"one", "in_progress", nil}, "ended": {"%d", "completed", nil}} {
		tr := transcript{suffix: "s", emit: func(assistant.Event) error { return nil }}
		var err error
		for i := 0; i < 2*maxHeld/maxLine && err == nil; i++ {
			err = tr.apply(update{Kind: "tool_call", ToolCallID: strings.Replace(c.id, "%d", strconv.Itoa(i), 1), Status: c.status, RawInput: large})
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestAllThatIsKeptOfCallsIsBounded: also output of a terminal and ids, and of an ended call
// its names.
func TestAllThatIsKeptOfCallsIsBounded(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", maxLine-100)
	for name, of := range map[string]func(u *update){
		"terminal": func(u *update) { u.Meta.Terminal.Data = large },
		"title":    func(u *update) { u.Title = large },
		"id":       func(u *update) { u.ToolCallID, u.Status = large+u.ToolCallID, "completed" },
	} {
		tr := transcript{suffix: "s", emit: func(assistant.Event) error { return nil }}
		var err error
		for i := 0; i < 2*maxHeld/maxLine && err == nil; i++ {
			u := update{Kind: "tool_call", ToolCallID: strconv.Itoa(i), Status: "in_progress"}
			of(&u)
			err = tr.apply(u)
		}
		if !errors.Is(err, errTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tr := transcript{suffix: "s", emit: func(assistant.Event) error { return nil }}
	u := update{Kind: "tool_call", ToolCallID: "1", Status: "completed", Title: large, Name: large, ToolKind: large}
	u.Meta.ClaudeCode.ToolName = large
	if err := tr.apply(u); err != nil {
		t.Fatal(err)
	}
	if c := tr.calls["1"]; len(c.title)+len(c.name)+len(c.kind) > 3*maxTitle {
		t.Errorf("%d bytes are kept of its names", len(c.title)+len(c.name)+len(c.kind))
	}
}

func TestTailDropsTheHalfLine(t *testing.T) {
	t.Parallel()
	var kept Tail
	_, _ = kept.Write([]byte("whole"))
	if got := kept.String(); got != "whole" {
		t.Errorf("%q", got)
	}
	_, _ = kept.Write([]byte(strings.Repeat("secret", stderrTail)))
	_, _ = kept.Write([]byte("\nnext\nlast"))
	if got := kept.String(); got != "next\nlast" {
		t.Errorf("%q", got)
	}
}

// FuzzUpdates gives the mapping whatever an agent may send. The events stay in
// order: a call is told once, before it starts; a result follows its call.
func FuzzUpdates(f *testing.F) {
	f.Add(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}` + "\n" + `{"sessionUpdate":"tool_call","toolCallId":"1","rawInput":{"command":["a"]},"status":"completed"}`)
	f.Add(`{"sessionUpdate":"tool_call_update","toolCallId":"1","content":[{"type":"diff","path":"x","newText":"y"}],"status":"failed"}`)
	f.Add(`{"sessionUpdate":"plan","entries":[{"content":"x","status":"completed"}]}` + "\n" + `{"sessionUpdate":"usage_update","used":1,"size":-1,"cost":{"amount":1e300,"currency":"USD"}}`)
	f.Add(`{"sessionUpdate":"tool_call","toolCallId":"1","_meta":{"terminal_exit":{"exit_code":1},"claudeCode":7}}`)
	f.Fuzz(func(t *testing.T, text string) {
		told, started, ended := map[string]bool{}, map[string]bool{}, map[string]bool{}
		tr := transcript{suffix: "s", emit: func(e assistant.Event) error {
			switch e := e.(type) {
			case assistant.ToolStarted:
				if !told[e.ID] || started[e.ID] || ended[e.ID] {
					t.Errorf("start of %q", e.ID)
				}
				started[e.ID] = true
			case assistant.ToolFinished:
				if !started[e.ID] {
					t.Errorf("finish of %q", e.ID)
				}
			case assistant.MessageDone:
				for _, b := range e.Message.Blocks {
					switch b := b.(type) {
					case messages.ToolCall:
						if told[b.ID] || b.ID != messages.SafeID(b.ID) || b.Name != messages.SafeName(b.Name) {
							t.Errorf("call %+v", b)
						}
						told[b.ID] = true
					case messages.ToolResult:
						if !told[b.CallID] || ended[b.CallID] {
							t.Errorf("result of %q", b.CallID)
						}
						ended[b.CallID] = true
					case messages.Text, messages.Thinking, messages.Attachment:
					}
				}
			case assistant.TextDelta:
				if e.Text == "" {
					t.Error("an empty delta")
				}
			case assistant.ThoughtDelta, assistant.PlanUpdated, assistant.Notice, assistant.FileMade, assistant.Resumable, assistant.UsageUpdated, assistant.Finished:
			}
			return nil
		}}
		r := &run{agent: &agent{session: "s"}, t: tr}
		for line := range strings.SplitSeq(text, "\n") {
			if err := r.take(t.Context(), arrival{update: []byte(`{"sessionId":"s","update":` + line + `}`)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.t.closeAll(); err != nil {
			t.Fatal(err)
		}
		for id := range told {
			if !ended[id] {
				t.Errorf("call %q has no result", id)
			}
		}
	})
}

// TestAnswerWithUsageOfAnotherForm: what is not settled in the protocol fails no turn that is done.
func TestAnswerWithUsageOfAnotherForm(t *testing.T) {
	t.Parallel()
	for raw, used := range map[string]int{
		`{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7},"_meta":{"quota":{"model_usage":[{"model":"m"}]}}}`: 7,
		`{"stopReason":"end_turn","usage":{"inputTokens":"3","totalTokens":7},"_meta":{"quota":{"model_usage":[{"model":"m"}]}}}`:                0,
		`{"stopReason":"end_turn","usage":[7],"_meta":{"quota":{"model_usage":[{"model":"m"},{"model":"n"}]},"x":7}}`:                            0,
		`{"stopReason":"end_turn","usage":null,"_meta":{"quota":{"model_usage":[{"model":"m"}]}}}`:                                               0,
	} {
		var a promptAnswer
		if err := json.Unmarshal([]byte(raw), &a); err != nil || a.StopReason != "end_turn" || a.Model != "m" || (a.Usage != nil) != (used > 0) || used > 0 && a.Usage.TotalTokens != used {
			t.Errorf("%s: %+v, %v", raw, a, err)
		}
	}
	for _, raw := range []string{`{"stopReason":"refusal"}`, `{"stopReason":"refusal","usage":1e99,"_meta":7}`} {
		var a promptAnswer
		if err := json.Unmarshal([]byte(raw), &a); err != nil || a != (promptAnswer{StopReason: "refusal"}) {
			t.Errorf("%s: %+v, %v", raw, a, err)
		}
	}
}

// TestAReplayBehindTheAnswer: Gemini CLI answers session/load and goes on with the replay. The turn
// begins behind it, and no agent that never pauses holds it up for long.
func TestAReplayBehindTheAnswer(t *testing.T) {
	t.Parallel()
	for name, updates := range map[string]int{"long": 50, "endless": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, said := io.Pipe()
				heard, out := io.Pipe()
				g := &agent{a: &Assistant{config: Config{InitTimeout: 10 * time.Second}}, canLoad: true}
				g.conn = connect(g, out, in)
				var replay sync.WaitGroup
				replay.Go(func() {
					_, _ = bufio.NewReader(heard).ReadSlice('\n')
					_, err := io.WriteString(said, `{"id":1,"result":{}}`+"\n")
					for n := 0; err == nil && n < updates; n++ {
						time.Sleep(100 * time.Millisecond)
						_, err = io.WriteString(said, `{"method":"session/update"}`+"\n")
					}
				})
				began := time.Now()
				_, err := g.reopen(t.Context(), "s")
				want := min(time.Duration(updates)*100*time.Millisecond+replayPause, 10*time.Second)
				if took := time.Since(began); err != nil || took != want {
					t.Errorf("the session is open after %s, want %s: %v", took, want, err)
				}
				_ = in.Close()
				_ = heard.Close()
				replay.Wait()
				g.conn.wait()
			})
		})
	}
}

// talker is a process of which only stderr matters.
type talker struct {
	Process
	Tail
}

func (p *talker) StderrTail() string { return p.String() }

// TestAStartThatIsHeardOnStderr: who says there that it is at work has more time, within bounds.
func TestAStartThatIsHeardOnStderr(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines   int // on stderr, one every 20 s
		answers bool
		gaveUp  time.Duration
	}{
		"silent":             {gaveUp: time.Minute},
		"it has said once":   {lines: 1, gaveUp: 2 * time.Minute},
		"it downloads":       {lines: 10, answers: true},
		"it is never silent": {lines: 100, gaveUp: maxInit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, said := io.Pipe()
				heard, out := io.Pipe()
				process := &talker{}
				g := &agent{a: &Assistant{config: Config{InitTimeout: defaultInit}}, process: process, began: time.Now()}
				g.conn = connect(g, out, in)
				g.conn.busy = g.busy
				var starting sync.WaitGroup
				over, stop := context.WithCancel(t.Context())
				starting.Go(func() {
					_, _ = bufio.NewReader(heard).ReadSlice('\n')
					for n := 0; n < test.lines && over.Err() == nil; n++ {
						_, _ = fmt.Fprintf(process, "%d\n", n)
						time.Sleep(20 * time.Second)
					}
					if test.answers {
						_, _ = io.WriteString(said, `{"id":1,"result":{"protocolVersion":1}}`+"\n")
					}
				})
				err := g.conn.call(t.Context(), defaultInit, "initialize", nil, nil)
				if took := time.Since(g.began); test.answers != (err == nil) || !test.answers && (took != test.gaveUp || !errors.Is(err, errSilent)) {
					t.Errorf("after %s: %v", took, err)
				}
				stop()
				_ = in.Close()
				_ = heard.Close()
				starting.Wait()
				g.conn.wait()
			})
		})
	}
}

// TestAFullContextIsSaidSo, as the providers say it behind opencode, Goose or Qwen Code: else
// whoever reads that something went wrong tries again for ever.
func TestAFullContextIsSaidSo(t *testing.T) {
	t.Parallel()
	a, err := New(Config{Name: "mine", Command: []string{"mine"}, Scratch: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for text, full := range map[string]bool{
		"input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000":              true,
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).": true,
		"Your request exceeded model token limit: 262144":                                         true,
		"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]":   true,
		"the request exceeds the available context size, try increasing it":                       true,
		"ValidationException: Input is too long for requested model.":                             true,
		"context_length_exceeded": true,
		"This model's maximum prompt length is 131072 but the request contains 140000 tokens.": true,
		"Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000":        false,
		"max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens":     false,
	} {
		err := (&agent{a: a}).refused(atPrompt, &sdk.RequestError{Code: -32603, Message: "Internal error", Data: map[string]string{"details": text}})
		if strings.Contains(fault.Public(err), "/new") != full {
			t.Errorf("%s: %v", text, err)
		}
	}
}
