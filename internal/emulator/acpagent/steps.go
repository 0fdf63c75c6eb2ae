package acpagent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// steps takes the steps for a request. It returns errOver if the request is
// answered by one of them.
func (a *agent) steps(r request, steps []Step) error {
	for _, s := range steps {
		for range max(1, s.Times) {
			if a.ctx.Err() != nil {
				return errOver
			}
			if err := a.step(r, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *agent) step(r request, s Step) error {
	switch {
	case s.Say != "":
		a.update(r.id0(), chunk("agent_message_chunk", strings.NewReplacer("%PROMPT%", r.prompt, "%FILES%", strings.Join(r.files, ", ")).Replace(s.Say)))
	case s.Think != "":
		a.update(r.id0(), chunk("agent_thought_chunk", s.Think))
	case s.Tool != nil:
		return a.tool(r, *s.Tool)
	case s.Plan != nil:
		a.update(r.id0(), map[string]any{"sessionUpdate": "plan", "entries": s.Plan})
	case s.Usage != nil:
		a.update(r.id0(), with(s.Usage, "sessionUpdate", "usage_update"))
	case s.Use != nil:
		return a.use(r, *s.Use)
	case s.Update != nil:
		id := s.Session
		if id == "" {
			id = r.id0()
		}
		a.update(id, s.Update)
	case s.Request != nil:
		return a.asks(r, s.Request)
	case s.AwaitCancel:
		select {
		case <-r.session.canceled:
		case <-a.ctx.Done():
			return errOver
		}
	default:
		return a.misbehave(r, s)
	}
	return nil
}

// misbehave takes the steps that are not of the protocol.
func (a *agent) misbehave(r request, s Step) error {
	switch {
	case s.Line != "":
		a.write([]byte(strings.ReplaceAll(s.Line, "%SESSION%", r.id0()) + "\n"))
	case s.Raw != "":
		a.write([]byte(s.Raw))
	case s.Fill > 0:
		a.write([]byte(strings.Repeat("x", s.Fill)))
	case s.Stderr != "":
		_, _ = io.WriteString(a.stderr, s.Stderr)
	case s.Pause != "":
		return a.pause(s.Pause)
	case s.Touch != "":
		return os.WriteFile(s.Touch, nil, 0o600)
	case s.AwaitFile != "":
		return a.awaitFile(s.AwaitFile)
	case s.Fork != "":
		return a.child(s.Fork)
	case s.Deaf:
		a.goDeaf()
	default:
		return a.end(r, s)
	}
	return nil
}

// end takes the steps after which nothing comes.
func (a *agent) end(r request, s Step) error {
	switch {
	case s.Hang:
		a.hang()
		return errOver
	case s.Exit != nil:
		return exitError(*s.Exit)
	case s.Error != nil:
		a.fail(r, *s.Error)
		return errOver
	case s.Stop != nil:
		a.answer(r, s.Stop.result())
		return errOver
	case s.NoReply:
		return errOver
	}
	return fmt.Errorf("a step says nothing: %+v", s)
}

// hang waits for the end of the agent's life. A timer keeps Go's runtime, which
// without cgo ends a process that waits for nothing, from calling it a deadlock.
func (a *agent) hang() {
	defer time.AfterFunc(time.Hour, func() {}).Stop()
	<-a.ctx.Done()
}

// tool plays a whole tool call.
func (a *agent) tool(r request, t Tool) error {
	kind := t.Kind
	if kind == "" {
		kind = "execute"
	}
	start := map[string]any{
		"sessionUpdate": "tool_call", "toolCallId": t.ID, "title": t.Title, "kind": kind, "status": "pending",
	}
	set(start, "name", t.Name)
	full := map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": t.ID}
	target := start
	if t.Late {
		start["rawInput"] = struct{}{}
		target = full
	}
	if t.Input != nil {
		target["rawInput"] = t.Input
	}
	if t.Content != nil {
		target["content"] = t.Content
	}
	a.update(r.id0(), start)
	if t.Late {
		a.update(r.id0(), full)
	}
	status, output := "completed", t.Output
	if t.Ask != nil || t.AskEmpty {
		outcome, err := a.permission(r, t, kind)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(outcome, "id-allow") {
			status, output = "failed", "refused: "+outcome
			t.Write = ""
		}
	}
	if status == "completed" {
		a.update(r.id0(), map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": t.ID, "status": "in_progress"})
	}
	if t.Write != "" {
		if err := os.WriteFile(filepath.Join(r.session.Dir, t.Write), []byte(output), 0o600); err != nil {
			status, output = "failed", err.Error()
		}
	}
	if t.Endless {
		return nil
	}
	if t.Failed {
		status = "failed"
	}
	done := map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": t.ID, "status": status}
	if output != "" {
		done["content"] = []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": output}}}
		done["rawOutput"] = output
	}
	a.update(r.id0(), done)
	return nil
}

func set(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}

// permission asks for permission and returns the option that was selected, or
// Canceled.
func (a *agent) permission(r request, t Tool, kind string) (string, error) {
	options := []any{}
	for _, o := range t.Ask {
		options = append(options, map[string]any{"optionId": "id-" + o.Kind, "name": o.Kind, "kind": o.Kind})
	}
	call := map[string]any{"toolCallId": t.ID, "title": t.Title, "kind": kind}
	if t.Input != nil {
		call["rawInput"] = t.Input
	}
	answer, err := a.askUntil("session/request_permission", map[string]any{
		"sessionId": r.id0(), "toolCall": call, "options": options,
	}, t.TakeBack)
	if err != nil {
		return "", err
	}
	var result struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(answer.Result, &result)
	if result.Outcome.Outcome == "selected" {
		return result.Outcome.OptionID, nil
	}
	return result.Outcome.Outcome, nil
}

// asks sends a request of the script and waits for the answer, whatever it is.
func (a *agent) asks(r request, raw json.RawMessage) error {
	var q struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(raw), "%SESSION%", r.id0())), &q); err != nil {
		return err
	}
	_, err := a.ask(q.Method, q.Params)
	return err
}

// ask sends a request and waits for its answer.
func (a *agent) ask(method string, params any) (message, error) {
	return a.askUntil(method, params, "")
}

// askUntil is ask, but takes the request back once a file is there.
func (a *agent) askUntil(method string, params any, file string) (message, error) {
	a.mu.Lock()
	a.next++
	id := strconv.Itoa(a.next)
	c := make(chan message, 1)
	a.waiting[id] = c
	a.mu.Unlock()
	a.send(map[string]any{"id": json.RawMessage(id), "method": method, "params": params})
	if file != "" {
		if err := a.awaitFile(file); err != nil {
			return message{}, err
		}
		a.send(map[string]any{"method": "$/cancel_request", "params": map[string]any{"requestId": json.RawMessage(id)}})
	}
	select {
	case m := <-c:
		return m, nil
	case <-a.ctx.Done():
		return message{}, errOver
	}
}

func (r request) id0() string {
	if r.session == nil {
		return ""
	}
	return r.session.ID
}

func chunk(kind, text string) any {
	return map[string]any{"sessionUpdate": kind, "content": map[string]any{"type": "text", "text": text}}
}

// with returns v as an object with one more field.
func with(v any, key, value string) any {
	m := map[string]any{}
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return err.Error()
	}
	m[key] = value
	return m
}

func (a *agent) update(sessionID string, update any) {
	a.send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": sessionID, "update": update}})
}

func (a *agent) answer(r request, result any) {
	a.send(map[string]any{"id": r.id, "result": result})
}

func (a *agent) fail(r request, e Error) { a.send(map[string]any{"id": r.id, "error": e}) }

func (a *agent) send(m map[string]any) {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		a.stop(err)
		return
	}
	a.write(append(line, '\n'))
}

func (a *agent) write(b []byte) {
	a.writing.Lock()
	defer a.writing.Unlock()
	// A client that went away is noticed at the end of stdin.
	if _, err := a.out.Write(b); err != nil && context.Cause(a.ctx) == nil {
		a.cancel(exitError(0))
	}
}
