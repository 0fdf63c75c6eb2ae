//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package api_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"remote-agent/internal/api"
)

func TestBadRequests(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		cursorOf := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
		session := "session=" + w.done.ID
		messagesCursor := url.QueryEscape(w.get(api.Prefix+"/messages?limit=1&"+session).at(t, "next_cursor").(string))
		for _, c := range []struct{ target, parameter, detail string }{
			{"/sessions?limit=0", "limit", "a whole number from 1 to 200"},
			{"/sessions?limit=201", "limit", "a whole number from 1 to 200"},
			{"/sessions?limit=-1", "limit", "a whole number"},
			{"/sessions?limit=%2B5", "limit", "a whole number"},
			{"/sessions?limit=5.0", "limit", "a whole number"},
			{"/sessions?limit=99999999999999999999", "limit", "a whole number"},
			{"/sessions?limit=", "limit", "empty"},
			{"/sessions?limit=5&limit=5", "limit", "more than once"},
			{"/sessions?status=done", "status", "running, completed, failed"},
			{"/sessions?active=1", "active", "true or false"},
			{"/sessions?since=yesterday", "since", "2026-11-21T14:00:00Z"},
			{"/sessions?since=2026-11-21", "since", "2026-11-21T14:00:00Z"},
			{"/sessions?until=0000-01-01T00:00:00Z", "until", "a time such as"},
			{"/sessions?until=0001-01-01T00:00:00Z", "until", "after 0001-01-01T00:00:00Z"},
			{"/sessions?since=0001-01-01T01:00:00%2B01:00", "since", "after 0001-01-01T00:00:00Z"},
			{"/messages?q=a%00b", "q", "without NUL"},
			{"/messages?q=%ff", "q", "in UTF-8"},
			{"/sessions?conversation=42", "conversation", "platform/id"},
			{"/sessions?conversation=/42", "conversation", "platform/id"},
			{"/sessions?conversation=telegram/%00", "conversation", "platform/id"},
			{"/sessions?agent=" + strings.Repeat("a", 401), "agent", "at most 400 bytes"},
			{"/sessions?agent=%ff", "agent", "a text"},
			{"/sessions?cursor=nonsense", "cursor", "not a cursor of this list"},
			{"/sessions?cursor=" + cursorOf("s|2026-11-21T14:00:00Z"), "cursor", "not a cursor of this list"},
			{"/sessions?cursor=" + cursorOf("s|now|"+missingID), "cursor", "not a cursor of this list"},
			{"/sessions?cursor=" + cursorOf("s|2026-11-21T14:00:00Z|1' OR '1'='1"), "cursor", "not a cursor of this list"},
			{"/sessions?cursor=" + cursorOf("c|"+missingID), "cursor", "not a cursor of this list"},
			{"/sessions?order=asc", "order", "Unknown parameter; expected conversation, agent, status"},
			{"/sessions/" + w.done.ID + "?x=1", "x", "expected none"},
			{"/sessions/1", "session_id", "0198c2d1"},
			{"/sessions/%27%20OR%201=1", "session_id", "an id such as"},
			{"/tool-calls?cursor=" + cursorOf("r|1") + "&" + session, "cursor", "not a cursor of this list"},
			{"/conversations?cursor=" + cursorOf("c|nothing"), "cursor", "not a cursor of this list"},
			{"/conversations/telegram%2F42", "conversation_id", "an id such as"},
			{"/messages", "session", "Specify a session or a conversation"},
			{"/messages?session=1", "session", "an id such as"},
			{"/messages?offset=-1&" + session, "offset", "from 0 to 100000"},
			{"/messages?offset=1&cursor=" + messagesCursor + "&" + session, "offset", "not both"},
			{"/messages?order=desc&cursor=" + messagesCursor + "&" + session, "order", "order differs"},
			{"/messages?order=up&" + session, "order", "asc, desc"},
			{"/messages?cursor=" + cursorOf("m||"+missingID+"/1") + "&" + session, "cursor", "start again"},
			{"/messages?cursor=" + cursorOf("m||x") + "&" + session, "cursor", "start again"},
			{"/messages?q=...", "q", "no word"},
			{"/messages?q=a&session=" + w.done.ID, "session", "A search covers all sessions"},
			{"/messages?q=a&order=desc", "order", "A search"},
			{"/messages?q=a&offset=1", "offset", "A search"},
			{"/messages?q=a&agent=x", "agent", "A search"},
			{"/messages?q=a&cursor=" + messagesCursor, "cursor", "not a cursor of this list"},
			{"/messages?q=a&cursor=" + cursorOf("q|-1"), "cursor", "not a cursor of this list"},
			{"/runs", "session", "missing"},
			{"/runs?session=" + w.done.ID + "&status=pending", "status", "running, completed, failed, stopped, interrupted"},
			{"/tool-calls", "session", "missing"},
			{"/tool-calls?session=" + w.done.ID + "&status=ok", "status", "pending, executing, completed, failed"},
			{"/tool-calls/0", "tool_call_id", "an ID"},
			{"/tool-calls/c1", "tool_call_id", "an ID"},
			{"/tool-calls/99999999999999999999", "tool_call_id", "an ID"},
			{"/memories", "person", "telegram/42"},
			{"/memories?person=42", "person", "telegram/42"},
			{"/memories?person=telegram/" + strings.Repeat("4", 300), "person", "telegram/42"},
			{"/memories/1", "person", "telegram/42"},
			{"/agents/reviewer", "agent_id", "an id such as"},
			{"/agents?cursor=" + cursorOf("a|x"), "cursor", "not a cursor of this list"},
			{"/sessions?%zz=1", "", "escape them with %"},
			{"/sessions?a;b", "", "separate parameters with &"},
			{"/sessions?" + strings.Repeat("x", 9000), "", "longer than"},
		} {
			w.clock(w.now.Load().Add(time.Second))
			r := w.send("GET", api.Prefix+c.target, w.token)
			detail, _ := r.at(t, "detail").(string)
			parameter, _ := r.at(t, "parameter").(string)
			if r.status != http.StatusBadRequest || parameter != c.parameter || !strings.Contains(detail, c.detail) {
				t.Errorf("GET %.100s: %d %s, want 400 about %q with %q", c.target, r.status, r.body, c.parameter, c.detail)
			}
			if got := r.header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("GET %.100s: %s", c.target, got)
			}
		}
	})
}

// A cursor goes on in the list that gave it and in no other.
func TestCursorsAreOfOneList(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		targets := []string{
			"/conversations?", "/sessions?", "/messages?session=" + w.done.ID, "/messages?q=panic", "/runs?session=" + w.done.ID,
			"/tool-calls?session=" + w.done.ID, "/memories?person=" + ann, "/agents?",
		}
		for _, from := range targets {
			w.clock(w.now.Load().Add(time.Second))
			next, ok := w.get(api.Prefix+from+"&limit=1").at(t, "next_cursor").(string)
			if !ok {
				t.Fatalf("%s has one page", from)
			}
			for _, to := range targets {
				w.clock(w.now.Load().Add(time.Second))
				r := w.send("GET", api.Prefix+to+"&cursor="+url.QueryEscape(next), w.token)
				if to == from {
					if r.status != http.StatusOK {
						t.Errorf("%s refuses its own cursor: %d %s", to, r.status, r.body)
					}
				} else if r.status != http.StatusBadRequest || r.at(t, "parameter") != "cursor" || !strings.Contains(r.at(t, "detail").(string), "not a cursor of this list") {
					t.Errorf("%s with a cursor of %s: %d %s", to, from, r.status, r.body)
				}
			}
		}
	})
}

// What is not exactly a path of ours is not there, whatever it would be cleaned
// up to; and nobody is sent elsewhere.
func TestPaths(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		for _, path := range []string{
			"/", "/sessions/", "//sessions", "/./sessions", "/x/../sessions", "/Sessions", "/%73essions", "/sessions%2F" + w.done.ID,
			"/sessions/" + w.done.ID + "/", "/sessions/" + w.done.ID + "/messages", "/sessions//", "/openapi.yml", "/openapi.json",
		} {
			w.clock(w.now.Load().Add(time.Second))
			r := w.send("GET", api.Prefix+path, w.token)
			if r.status != http.StatusNotFound || r.at(t, "code") != "not_found" || r.header.Get("Location") != "" {
				t.Errorf("GET %s: %d %v %s", path, r.status, r.header, r.body)
			}
			if r := w.send("GET", api.Prefix+path, ""); r.status != http.StatusUnauthorized {
				t.Errorf("GET %s without a key: %d; a stranger learns which paths there are", path, r.status)
			}
		}
	})
}

func TestMethods(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		for _, c := range []struct{ method, path, allow string }{
			{"POST", "/sessions", "GET, HEAD"},
			{"PUT", "/sessions/" + w.done.ID, "GET, HEAD, DELETE"},
			{"OPTIONS", "/memories", "GET, HEAD, DELETE"},
			{"DELETE", "", "GET, HEAD"},
			{"TRACE", "/openapi.yaml", "GET, HEAD"},
		} {
			r := w.send(c.method, api.Prefix+c.path, w.token)
			if r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != c.allow || r.at(t, "code") != "method_not_allowed" {
				t.Errorf("%s %s: %d, Allow %q, %s", c.method, c.path, r.status, r.header.Get("Allow"), r.body)
			}
		}
		head, get := w.send("HEAD", api.Prefix+"/sessions", w.token), w.get(api.Prefix+"/sessions")
		if head.status != http.StatusOK || len(head.body) != 0 || head.header.Get("Content-Length") != get.header.Get("Content-Length") {
			t.Errorf("HEAD: %d %v %s", head.status, head.header, head.body)
		}
	})
}

// No request takes a body, whether or not it says how long that is.
func TestBodiesAreRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		at := api.Prefix + "/sessions/" + w.done.ID
		for name, length := range map[string]int64{"with its length": 2, "in chunks": -1} {
			body := func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), length }
			for method, path := range map[string]string{http.MethodGet: at, http.MethodDelete: at, http.MethodPost: at + "/fork"} {
				if r := w.send(method, path, w.token, body); r.status != http.StatusRequestEntityTooLarge {
					t.Errorf("%s %s: %d %s", method, name, r.status, r.body)
				}
			}
		}
		w.get(at) // it is still there
	})
}

func TestAccept(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		for header, want := range map[string]int{
			"*/*": 200, "application/json": 200, "APPLICATION/JSON;q=0.5": 200, "text/html, application/*;q=0.1": 200, "application/json; charset=utf-8": 200,
			"text/html": 406, "application/json;q=0": 406, "application/json; q=0.0, text/plain": 406, "": 406,
		} {
			if r := w.send("GET", api.Prefix, w.token, accept(header)); r.status != want {
				t.Errorf("Accept %q: %d, want %d", header, r.status, want)
			}
		}
	})
}

func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"", "limit=5&cursor=abc", "conversation=telegram/42&since=2026-11-21T14:00:00%2B01:00", "active=true&active=false", "limit=%zz", "a;b", "until=2026-11-21T14:00:00+01:00",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := api.ParseSessionList(query)
		if err != nil {
			if text := err.Error(); !utf8.ValidString(text) || len(text) > 1000 {
				t.Errorf("the error of %q is %q", query, text)
			}
			if values != nil || errors.Unwrap(err) != nil {
				t.Errorf("%q gives %v and %v", query, values, err)
			}
			return
		}
		if n, ok := values["limit"].(int64); !ok || n < 1 || n > 200 {
			t.Errorf("%q has the limit %v", query, values["limit"])
		}
		for name, value := range values {
			if s, ok := value.(string); ok && (!utf8.ValidString(s) || strings.ContainsRune(s, 0) || len(s) > 400 || s == "") {
				t.Errorf("%q has the %s %q", query, name, s)
			}
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add("c3w")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte("s|2026-11-21T14:00:00Z|" + missingID)))
	f.Fuzz(func(t *testing.T, cursor string) {
		parts, err := api.ReadCursor(cursor)
		if err == nil && cursor != "" && len(parts) != 2 {
			t.Errorf("ReadCursor(%q) = %q", cursor, parts)
		}
	})
}
