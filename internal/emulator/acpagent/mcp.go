package acpagent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Use is a call of a tool of one of the session's MCP servers, which the agent says the result
// of: its text, behind "error: " if that is what it is.
type Use struct {
	Server string          `json:"server"`
	Tool   string          `json:"tool,omitempty"` // empty: it says which servers there are, with their tools
	Input  json.RawMessage `json:"input,omitempty"`
	Cancel string          `json:"cancel,omitempty"` // waits no longer once this file is there
}

// server is an MCP server that a session has.
type server struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	URL     string `json:"url"`
	Headers []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"headers"`

	session string
}

// use calls a tool, and says the result.
func (a *agent) use(r request, u Use) error {
	said := ""
	for i := range r.session.servers {
		s := &r.session.servers[i]
		if u.Tool != "" && s.Name != u.Server {
			continue
		}
		text, err := a.useOf(s, u)
		if err != nil {
			text = "failed: " + err.Error()
		}
		said += text
	}
	if said == "" {
		said = "no such server"
	}
	a.update(r.id0(), chunk("agent_message_chunk", said))
	return nil
}

func (a *agent) useOf(s *server, u Use) (string, error) {
	if err := a.greet(s); err != nil {
		return "", err
	}
	if u.Tool == "" {
		var list struct{ Tools []struct{ Name string } }
		if err := a.post(a.ctx, s, "1", "tools/list", struct{}{}, &list); err != nil {
			return "", err
		}
		names := []string{}
		for _, t := range list.Tools {
			names = append(names, t.Name)
		}
		return fmt.Sprintf("%s has %s. ", s.Name, strings.Join(names, ", ")), nil
	}
	if u.Cancel != "" {
		go func() { // ends with the agent
			if a.awaitFile(u.Cancel) == nil {
				_ = a.post(a.ctx, s, "", "notifications/cancelled", map[string]any{"requestId": 2}, nil) //nolint:misspell // the protocol's spelling
			}
		}()
	}
	var result struct {
		IsError bool
		Content []struct{ Text string }
	}
	params := map[string]any{"name": u.Tool, "arguments": u.Input, "_meta": map[string]any{"progressToken": "p"}}
	if err := a.post(a.ctx, s, "2", "tools/call", params, &result); err != nil {
		return "", err
	}
	text := ""
	if result.IsError {
		text = "error: "
	}
	for _, c := range result.Content {
		text += c.Text
	}
	return text, nil
}

// greet begins a session with a server.
func (a *agent) greet(s *server) error {
	var hello struct{ ProtocolVersion string }
	params := map[string]any{"protocolVersion": "2025-06-18", "capabilities": struct{}{}, "clientInfo": map[string]string{"name": "scripted", "version": "1"}}
	if err := a.post(a.ctx, s, "0", "initialize", params, &hello); err != nil {
		return err
	}
	if hello.ProtocolVersion != "2025-06-18" {
		return fmt.Errorf("the server speaks %q", hello.ProtocolVersion)
	}
	return a.post(a.ctx, s, "", "notifications/initialized", struct{}{}, nil)
}

// post sends a message to a server, without an id a notification, and reads the answer.
func (a *agent) post(ctx context.Context, s *server, id, method string, params, result any) error {
	m := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if id != "" {
		m["id"] = json.RawMessage(id)
	}
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	q.Header.Set("Mcp-Session-Id", s.session)
	for _, h := range s.Headers {
		q.Header.Set(h.Name, h.Value)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if method == "initialize" {
		s.session = answer.Header.Get("Mcp-Session-Id")
	}
	switch {
	case answer.StatusCode >= http.StatusMultipleChoices:
		return errors.New(answer.Status)
	case id == "":
		return nil
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return answered(text, answer.Header.Get("Content-Type"), id, result)
}

// answered finds the answer to a request in what a server sent.
func answered(text []byte, kind, id string, result any) error {
	lines := [][]byte{text}
	if kind == "text/event-stream" {
		lines = nil
		for scanner := bufio.NewScanner(bytes.NewReader(text)); scanner.Scan(); {
			if data, ok := bytes.CutPrefix(scanner.Bytes(), []byte("data: ")); ok {
				lines = append(lines, bytes.Clone(data))
			}
		}
	}
	for _, line := range lines {
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		switch {
		case string(m.ID) != id:
		case m.Error != nil:
			return fmt.Errorf("error %d: %s", m.Error.Code, m.Error.Message)
		default:
			return json.Unmarshal(m.Result, result)
		}
	}
	return errors.New("there is no answer")
}
