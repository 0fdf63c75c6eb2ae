package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/modelapi"
)

// play carries out a response. It returns an error if the client, or the
// server, went away before the end.
func (s *Server) play(ctx context.Context, w http.ResponseWriter, req Request, r Response) error {
	maps.Copy(w.Header(), r.header)
	if r.fail != nil {
		playError(w, r)
		return nil
	}
	out := &answer{id: "chatcmpl-" + strconv.Itoa(req.N), created: req.At, req: req, response: r, w: w}
	if req.Stream {
		modelapi.BeginStream(w)
		return out.stream(ctx)
	}
	return out.whole(ctx)
}

func playError(w http.ResponseWriter, r Response) {
	if r.body != "" {
		modelapi.WritePage(w, r.fail.Status, r.body)
		return
	}
	writeError(w, r.fail)
}

// answer is one answer on its way.
type answer struct {
	id       string
	created  time.Time
	req      Request
	response Response
	w        http.ResponseWriter
	buf      bytes.Buffer
	text     strings.Builder
	calls    []toolCallDelta
	size     int // bytes of text and arguments
}

// The forms of the API.
type (
	chunk struct {
		ID                string        `json:"id"`
		Object            string        `json:"object"`
		Created           int64         `json:"created"`
		Model             string        `json:"model"`
		SystemFingerprint string        `json:"system_fingerprint"`
		Choices           []chunkChoice `json:"choices"`
	}
	usageChunk struct {
		chunk
		Usage *Usage `json:"usage"`
	}
	chunkChoice struct {
		Index        int       `json:"index"`
		Delta        delta     `json:"delta"`
		Logprobs     *struct{} `json:"logprobs"`
		FinishReason *string   `json:"finish_reason"`
	}
	delta struct {
		Role      string          `json:"role,omitempty"`
		Content   *string         `json:"content,omitempty"`
		ToolCalls []toolCallDelta `json:"tool_calls,omitempty"`
	}
)

func (a *answer) stream(ctx context.Context) error {
	if !a.response.noRole {
		empty := ""
		if err := a.send(delta{Role: "assistant", Content: &empty}, nil); err != nil {
			return err
		}
	}
	for _, step := range a.response.steps {
		ended, err := a.step(ctx, step)
		if ended || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	reason := a.finishReason()
	if err := a.send(delta{}, &reason); err != nil {
		return err
	}
	if a.includeUsage() {
		if err := a.event(usageChunk{chunk: a.chunk(), Usage: a.usage()}); err != nil {
			return err
		}
	}
	a.line("[DONE]")
	return a.flush()
}

// step carries out one step of a stream and reports whether the answer ends
// with it.
func (a *answer) step(ctx context.Context, step Step) (ended bool, err error) {
	a.take(step)
	switch step.kind {
	case stepText:
		return false, a.send(delta{Content: &step.text}, nil)
	case stepCall:
		return false, a.send(delta{ToolCalls: []toolCallDelta{step.call}}, nil)
	case stepPause:
		return false, emulator.Sleep(ctx, step.wait)
	case stepGate:
		return false, step.gate.Pass(ctx)
	case stepKeepAlive:
		for range step.n {
			a.buf.WriteString(": keep-alive" + a.newline() + a.newline())
		}
		return false, a.flush()
	case stepRaw:
		a.buf.WriteString(step.text)
		return false, a.flush()
	case stepError:
		b, err := json.Marshal(map[string]any{"error": step.fail})
		if err != nil {
			return true, err
		}
		a.line(string(b))
		return true, a.flush()
	case stepReset:
		emulator.Reset(a.w)
	case stepCut:
	}
	return true, nil
}

// take adds a step to what was said.
func (a *answer) take(step Step) {
	switch step.kind {
	case stepText:
		a.size += len(step.text)
		if !a.req.Stream {
			a.text.WriteString(step.text)
		}
	case stepCall:
		a.size += len(step.call.Function.Arguments)
		for len(a.calls) <= step.call.Index {
			a.calls = append(a.calls, toolCallDelta{})
		}
		c := &a.calls[step.call.Index]
		if step.call.ID != "" {
			c.ID, c.Type, c.Function.Name = step.call.ID, step.call.Type, step.call.Function.Name
		}
		c.Function.Arguments += step.call.Function.Arguments
	case stepPause, stepGate, stepKeepAlive, stepRaw, stepCut, stepReset, stepError:
	}
}

func (a *answer) finishReason() string {
	switch {
	case a.response.finish != "":
		return a.response.finish
	case len(a.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (a *answer) usage() *Usage {
	if a.response.usage != nil {
		return a.response.usage
	}
	prompt, completion := a.req.tokens(), a.size/4+1
	return &Usage{prompt, completion, prompt + completion}
}

func (a *answer) includeUsage() bool {
	return a.req.StreamOptions != nil && a.req.StreamOptions.IncludeUsage
}

func (a *answer) chunk(choices ...chunkChoice) chunk {
	if choices == nil {
		choices = []chunkChoice{}
	}
	return chunk{
		ID: a.id, Object: "chat.completion.chunk", Created: a.created.Unix(), Model: a.req.Model,
		SystemFingerprint: "fp_emulator", Choices: choices,
	}
}

// send streams one delta.
func (a *answer) send(d delta, reason *string) error {
	c := a.chunk(chunkChoice{Delta: d, FinishReason: reason})
	if a.includeUsage() {
		return a.event(usageChunk{chunk: c})
	}
	return a.event(c)
}

func (a *answer) event(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	a.line(string(b))
	return a.flush()
}

func (a *answer) line(data string) {
	a.buf.WriteString("data:")
	if !a.response.tight {
		a.buf.WriteByte(' ')
	}
	a.buf.WriteString(data)
	a.buf.WriteString(a.newline())
	a.buf.WriteString(a.newline())
}

func (a *answer) newline() string {
	if a.response.crlf {
		return "\r\n"
	}
	return "\n"
}

func (a *answer) flush() error { return modelapi.Flush(a.w, &a.buf) }

// whole answers in one piece.
func (a *answer) whole(ctx context.Context) error {
	for _, step := range a.response.steps {
		a.take(step)
		var err error
		switch step.kind {
		case stepPause:
			err = emulator.Sleep(ctx, step.wait)
		case stepGate:
			err = step.gate.Pass(ctx)
		case stepError:
			writeError(a.w, step.fail)
			return nil
		case stepCut:
			panic(http.ErrAbortHandler)
		case stepReset:
			emulator.Reset(a.w)
		case stepText, stepCall, stepKeepAlive, stepRaw:
		}
		if err != nil {
			return err
		}
	}
	type message struct {
		Role      string          `json:"role"`
		Content   *string         `json:"content"`
		Refusal   *string         `json:"refusal"`
		ToolCalls []toolCallWhole `json:"tool_calls,omitempty"`
	}
	m := message{Role: "assistant"}
	if text := a.text.String(); text != "" || len(a.calls) == 0 {
		m.Content = &text
	}
	for _, c := range a.calls {
		m.ToolCalls = append(m.ToolCalls, toolCallWhole{ID: c.ID, Type: c.Type, Function: c.Function})
	}
	modelapi.WriteJSON(a.w, http.StatusOK, map[string]any{
		"id": a.id, "object": "chat.completion", "created": a.created.Unix(), "model": a.req.Model,
		"choices": []any{map[string]any{
			"index": 0, "message": m, "logprobs": nil, "finish_reason": a.finishReason(),
		}},
		"usage": a.usage(),
	})
	return nil
}

// toolCallWhole is a call in an answer that is not streamed.
type toolCallWhole struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}
