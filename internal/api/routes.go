package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"remote-agent/internal/apikey"
	"remote-agent/internal/store"
)

// route is one thing that can be asked. The document (docs/openapi.yaml) has the
// same routes, parameters and answers.
type route struct {
	id     string // operationId of the document
	method string
	path   string // behind Prefix; a part in braces is a parameter
	scope  apikey.Scope
	params []param
	yaml   bool                                                   // it answers with the document
	handle func(a *API, ctx context.Context, c call) (any, error) //nolint:revive // method expressions have it first
}

func (r route) media() string {
	if r.yaml {
		return mediaYAML
	}
	return mediaJSON
}

// fits reports whether an escaped path is one of the route, and returns its
// parameters.
func (r route) fits(path string) (args map[string]string, ok bool) {
	want, got := strings.Split(r.path, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	for i, part := range want {
		name, isParam := strings.CutPrefix(part, "{")
		if !isParam {
			if part != got[i] {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(got[i])
		if err != nil || value == "" {
			return nil, false
		}
		if args == nil {
			args = make(map[string]string)
		}
		args[strings.TrimSuffix(name, "}")] = value
	}
	return args, true
}

// routes returns all routes.
func routes() []route {
	limit := param{name: "limit", kind: whole, min: 1, max: maxPage, usual: int64(usualPage)}
	next := param{name: "cursor", kind: cursor}
	whose := param{name: "person", kind: person, required: true}
	id := func(name string, k kind) param { return param{name: name, kind: k, inPath: true, required: true} }
	paged := func(params ...param) []param { return append(params, limit, next) }
	return []route{
		{id: "getIndex", method: http.MethodGet, path: "", handle: (*API).index},
		{id: "getDocument", method: http.MethodGet, path: "/openapi.yaml", yaml: true, handle: (*API).document},

		{id: "listConversations", method: http.MethodGet, path: "/conversations", scope: apikey.SessionsRead, handle: (*API).listConversations,
			params: paged(param{name: "platform", kind: text})},
		{id: "getConversation", method: http.MethodGet, path: "/conversations/{conversation_id}", scope: apikey.SessionsRead, handle: (*API).getConversation,
			params: []param{id("conversation_id", rowID)}},
		{id: "deleteConversation", method: http.MethodDelete, path: "/conversations/{conversation_id}", scope: apikey.SessionsWrite, handle: (*API).deleteConversation,
			params: []param{id("conversation_id", rowID)}},

		{id: "listSessions", method: http.MethodGet, path: "/sessions", scope: apikey.SessionsRead, handle: (*API).listSessions,
			params: paged(
				param{name: "conversation", kind: place},
				param{name: "agent", kind: text},
				param{name: "status", kind: choice, words: []string{"running", "completed", "failed"}},
				param{name: "active", kind: flag},
				param{name: "since", kind: moment},
				param{name: "until", kind: moment})},
		{id: "getSession", method: http.MethodGet, path: "/sessions/{session_id}", scope: apikey.SessionsRead, handle: (*API).getSession,
			params: []param{id("session_id", rowID)}},
		{id: "deleteSession", method: http.MethodDelete, path: "/sessions/{session_id}", scope: apikey.SessionsWrite, handle: (*API).deleteSession,
			params: []param{id("session_id", rowID)}},
		{id: "forkSession", method: http.MethodPost, path: "/sessions/{session_id}/fork", scope: apikey.SessionsWrite, handle: (*API).forkSession,
			params: []param{id("session_id", rowID), {name: "n", kind: whole, min: 1, max: store.MaxFork}}},

		{id: "listMessages", method: http.MethodGet, path: "/messages", scope: apikey.SessionsRead, handle: (*API).listMessages,
			params: paged(
				param{name: "session", kind: rowID},
				param{name: "conversation", kind: place},
				param{name: "agent", kind: text},
				param{name: "q", kind: text},
				param{name: "order", kind: choice, words: []string{"asc", "desc"}},
				param{name: "offset", kind: whole, max: maxOffset})},

		{id: "listRuns", method: http.MethodGet, path: "/runs", scope: apikey.SessionsRead, handle: (*API).listRuns,
			params: paged(
				param{name: "session", kind: rowID, required: true},
				param{name: "status", kind: choice, words: []string{"running", "completed", "failed", "stopped", "interrupted"}})},

		{id: "listToolCalls", method: http.MethodGet, path: "/tool-calls", scope: apikey.SessionsRead, handle: (*API).listToolCalls,
			params: paged(
				param{name: "session", kind: rowID, required: true},
				param{name: "status", kind: choice, words: []string{"pending", "executing", "completed", "failed"}})},
		{id: "getToolCall", method: http.MethodGet, path: "/tool-calls/{tool_call_id}", scope: apikey.SessionsRead, handle: (*API).getToolCall,
			params: []param{id("tool_call_id", number)}},

		{id: "listMemories", method: http.MethodGet, path: "/memories", scope: apikey.MemoriesRead, handle: (*API).listMemories,
			params: paged(whose)},
		{id: "deleteMemories", method: http.MethodDelete, path: "/memories", scope: apikey.MemoriesWrite, handle: (*API).deleteMemories,
			params: []param{whose}},
		{id: "getMemory", method: http.MethodGet, path: "/memories/{memory_id}", scope: apikey.MemoriesRead, handle: (*API).getMemory,
			params: []param{id("memory_id", number), whose}},
		{id: "deleteMemory", method: http.MethodDelete, path: "/memories/{memory_id}", scope: apikey.MemoriesWrite, handle: (*API).deleteMemory,
			params: []param{id("memory_id", number), whose}},

		{id: "listAgents", method: http.MethodGet, path: "/agents", scope: apikey.AgentsRead, handle: (*API).listAgents,
			params: paged(param{name: "group", kind: text})},
		{id: "getAgent", method: http.MethodGet, path: "/agents/{agent_id}", scope: apikey.AgentsRead, handle: (*API).getAgent,
			params: []param{id("agent_id", rowID)}},
		{id: "deleteAgent", method: http.MethodDelete, path: "/agents/{agent_id}", scope: apikey.AgentsWrite, handle: (*API).deleteAgent,
			params: []param{id("agent_id", rowID)}},

		{id: "getUsage", method: http.MethodGet, path: "/usage", scope: apikey.UsageRead, handle: (*API).usage,
			params: []param{
				{name: "by", kind: choice, required: true, words: []string{"person", "codebase", "model", "day", "conversation"}},
				{name: "person", kind: person},
				{name: "conversation", kind: place},
				{name: "since", kind: moment},
				{name: "until", kind: moment},
				limit,
			}},
	}
}

// page is a page of a list.
type page struct {
	Items      []any   `json:"items"`
	NextCursor *string `json:"next_cursor"` // null on the last page
}

// cut makes a page of up to limit rows from one row more, if it is there: show and after
// make what is served, and the cursor behind it, of the one at an index.
func cut(rows, limit int, show func(int) any, after func(int) *string) page {
	p := page{Items: make([]any, min(rows, limit))}
	for i := range p.Items {
		p.Items[i] = show(i)
	}
	if rows > limit {
		p.NextCursor = after(limit - 1)
	}
	return p
}

type indexBody struct {
	Version  string   `json:"version"`
	Key      keyBody  `json:"key"`
	Document string   `json:"document"`
	Lists    []string `json:"lists"`
}

type keyBody struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Scopes    []apikey.Scope `json:"scopes"`
	ExpiresAt *time.Time     `json:"expires_at"`
}

// index says that the API works, and what the key may do.
func (a *API) index(_ context.Context, c call) (any, error) {
	body := indexBody{
		Version: a.config.Version, Document: Prefix + "/openapi.yaml",
		Key: keyBody{ID: c.key.ID, Name: c.key.Name, Scopes: c.key.Scopes, ExpiresAt: when(c.key.ExpiresAt)},
	}
	for _, r := range a.routes {
		if strings.HasPrefix(r.id, "list") || r.id == "getUsage" {
			body.Lists = append(body.Lists, Prefix+r.path)
		}
	}
	return body, nil
}

func (a *API) document(context.Context, call) (any, error) {
	return document{mediaType: mediaYAML, content: a.config.Document()}, nil
}

// when is a time that may not be there.
func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// maybe is a text that may not be there.
func maybe(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
