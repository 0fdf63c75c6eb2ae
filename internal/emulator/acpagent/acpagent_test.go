package acpagent_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"remote-agent/internal/emulator/acpagent"
)

func TestMain(m *testing.M) {
	acpagent.Hijack(os.Args)
	goleak.VerifyTestMain(m)
}

// client talks to an agent in this process.
type client struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Scanner
	exit chan int
}

func dial(t *testing.T, s acpagent.Script) client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := client{t: t, in: inW, out: bufio.NewScanner(outR), exit: make(chan int, 1)}
	go func() {
		code := acpagent.Run(t.Context(), s, inR, outW, io.Discard)
		_ = outW.Close()
		_ = inR.Close()
		c.exit <- code
	}()
	t.Cleanup(func() {
		_ = inW.Close()
		_, _ = io.Copy(io.Discard, outR)
	})
	return c
}

func (c client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next message in its canonical form.
func (c client) next() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the agent says nothing more: %v", c.out.Err())
	}
	var m any
	if err := json.Unmarshal(c.out.Bytes(), &m); err != nil {
		c.t.Fatalf("%q: %v", c.out.Text(), err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// open makes a session and returns its id.
func (c client) open() string {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}`)
	var m struct{ Result struct{ SessionID string } }
	if err := json.Unmarshal([]byte(c.next()), &m); err != nil || m.Result.SessionID == "" {
		c.t.Fatalf("no session: %v", err)
	}
	return m.Result.SessionID
}

func (c client) prompt(session, text string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[{"type":"text","text":"` + text + `"}]}}`)
}

func TestSpeaksTheProtocol(t *testing.T) {
	t.Parallel()
	c := dial(t, acpagent.Script{Load: true, Resume: true})
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	if got := c.next(); !strings.Contains(got, `"protocolVersion":1`) || !strings.Contains(got, `"loadSession":true`) || !strings.Contains(got, `"resume":{}`) {
		t.Errorf("initialize: %s", got)
	}
	session := c.open()
	c.prompt(session, "hello")
	for _, want := range []string{`"You said: "`, `"hello"`, `"stopReason":"end_turn"`} {
		if got := c.next(); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	c.send(`{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"` + session + `","cwd":"/tmp"}}`)
	for _, want := range []string{`"user_message_chunk"`, `replayed answer to: hello`, `"id":3`} {
		if got := c.next(); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":4,"method":"session/resume","params":{"sessionId":"nobody"}}`:             `"code":-32002`,
		`{"jsonrpc":"2.0","id":4,"method":"session/new","params":{"cwd":"relative"}}`:                    `"code":-32602`,
		`{"jsonrpc":"2.0","id":4,"method":"no/such","params":{}}`:                                        `"code":-32601`,
		`{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"sessionId":"nobody","prompt":[]}}`: `"code":-32002`,
		`nonsense`: `"code":-32700`,
		`{"jsonrpc":"2.0","id":4,"method":"session/set_mode","params":{"sessionId":"` + session + `"}}`: `"result":{}`,
	} {
		c.send(line)
		if got := c.next(); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	_ = c.in.Close()
	if code := <-c.exit; code != 0 {
		t.Errorf("exit %d at the end of stdin", code)
	}
}

// TestAuthenticate: nothing goes before it where the agent is locked.
func TestAuthenticate(t *testing.T) {
	t.Parallel()
	c := dial(t, acpagent.Script{Locked: true, Ways: []acpagent.Way{{ID: "key", Name: "Key"}}})
	for _, step := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`, `"authMethods":[{"id":"key","name":"Key"}]`},
		{`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp"}}`, `"code":-32000`},
		{`{"jsonrpc":"2.0","id":2,"method":"authenticate","params":{"methodId":"other"}}`, `"code":-32602`},
		{`{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"x"}}`, `"code":-32000`},
		{`{"jsonrpc":"2.0","id":4,"method":"authenticate","params":{"methodId":"key"}}`, `"result":{}`},
		{`{"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/tmp"}}`, `"sessionId"`},
	} {
		c.send(step.line)
		if got := c.next(); !strings.Contains(got, step.want) {
			t.Errorf("%s: %s, want %s", step.line, got, step.want)
		}
	}
}

// TestToolAndCancel: a permission decides whether the tool runs, and a turn that
// waits for session/cancel gets it.
func TestToolAndCancel(t *testing.T) {
	t.Parallel()
	c := dial(t, acpagent.Does(
		acpagent.Step{Tool: &acpagent.Tool{ID: "1", Title: "rm", Ask: acpagent.Options("allow_once", "reject_once"), Output: "gone"}},
		acpagent.Step{AwaitCancel: true}, acpagent.Step{Stop: &acpagent.Stop{Reason: acpagent.Canceled, Tokens: map[string]int64{"inputTokens": 7}}}))
	session := c.open()
	c.prompt(session, "go")
	_ = c.next() // the call
	if got := c.next(); !strings.Contains(got, `"optionId":"id-allow_once"`) {
		t.Fatalf("permission: %s", got)
	}
	c.send(`{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"id-allow_once"}}}`)
	for _, want := range []string{`"in_progress"`, `"completed"`} {
		if got := c.next(); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + session + `"}}`)
	if got := c.next(); !strings.Contains(got, `"stopReason":"`+acpagent.Canceled+`"`) || !strings.Contains(got, `"inputTokens":7`) {
		t.Errorf("end: %s", got)
	}
}

func TestExitsAsToldTo(t *testing.T) {
	t.Parallel()
	c := dial(t, acpagent.Script{Start: []acpagent.Step{{Line: "noise"}, {Exit: new(3)}}})
	if !c.out.Scan() || c.out.Text() != "noise" {
		t.Errorf("output %q", c.out.Text())
	}
	if code := <-c.exit; code != 3 {
		t.Errorf("exit %d, want 3", code)
	}
}

// TestCommand plays a script as a program: it survives as JSON, and sessions and
// records outlive the process.
func TestCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := acpagent.Script{
		Resume: true, State: dir, Record: filepath.Join(dir, "record"),
		Turns: []acpagent.Turn{{Match: "x", Steps: []acpagent.Step{{Usage: &acpagent.Usage{Used: 1, Size: 2, Cost: new(0.5)}}}}},
	}
	argv, err := acpagent.Command(dir, script)
	if err != nil {
		t.Fatal(err)
	}
	play := func(lines ...string) string {
		t.Helper()
		cmd := exec.Command(argv[0], argv[1:]...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		answers := bufio.NewScanner(out)
		text := ""
		for _, line := range lines {
			_, _ = io.WriteString(in, line+"\n")
			for answers.Scan() {
				text += answers.Text() + "\n"
				if strings.Contains(answers.Text(), `"id":`) {
					break
				}
			}
		}
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return text
	}
	var opened struct{ Result struct{ SessionID string } }
	if err := json.Unmarshal([]byte(play(`{"id":1,"method":"session/new","params":{"cwd":"/tmp"}}`)), &opened); err != nil {
		t.Fatal(err)
	}
	id := opened.Result.SessionID
	got := play(`{"id":1,"method":"session/resume","params":{"sessionId":"`+id+`","cwd":"/tmp"}}`,
		`{"id":2,"method":"session/prompt","params":{"sessionId":"`+id+`","prompt":[{"type":"text","text":"x"}]}}`)
	if !strings.Contains(got, `"amount":0.5`) || !strings.Contains(got, "end_turn") {
		t.Errorf("the second process: %s", got)
	}
	record, err := os.ReadFile(script.Record)
	if err != nil || strings.Count(string(record), `{"started":`) != 2 || !strings.Contains(string(record), "session/resume") {
		t.Errorf("record %q, %v", record, err)
	}
	if code := acpagent.Main(filepath.Join(dir, "nothing"), nil, io.Discard, io.Discard); code != 2 {
		t.Errorf("a script that is not there: exit %d", code)
	}
}
