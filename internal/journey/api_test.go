package journey_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
)

func (w *world) newKey(name string, scopes ...string) string {
	w.t.Helper()
	return strings.TrimSpace(w.operator("create a key", func(env app.Env) error {
		return app.CreateKey(w.t.Context(), w.config(), env, app.KeyRequest{Name: name, Scopes: scopes})
	}))
}

// calls asks the API and returns the status and the JSON.
func (w *world) calls(method, path, token string) (status int, body map[string]any) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx(), method, "http://"+w.addr+"/api/v1"+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Cache-Control") != "no-store" {
		w.t.Errorf("%s %s lacks headers of security: %v", method, path, resp.Header)
	}
	if json.Unmarshal(raw, &body) != nil {
		body = map[string]any{"plain": string(raw)}
	}
	return resp.StatusCode, body
}

// items asks for a list that has to be there.
func (w *world) items(path, token string) (list []map[string]any) {
	w.t.Helper()
	status, body := w.calls("GET", path, token)
	if status != http.StatusOK {
		w.t.Fatalf("GET %s: %d %v", path, status, body)
	}
	rows, _ := body["items"].([]any)
	for _, row := range rows {
		one, _ := row.(map[string]any)
		list = append(list, one)
	}
	return list
}

// What people said in a chat is read, searched and deleted by programs with a
// key, and by nobody else; keys outlive a restart and end when they are revoked.
func TestProgramsReadAndDeleteWhatWasSaid(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		if status, body := w.calls("GET", "", "rak_aaaaaaaaaa_"+strings.Repeat("a", 52)); status != http.StatusNotFound || body["plain"] != "Not Found\n" {
			t.Errorf("before there is a key: %d %v", status, body)
		}
		reader := w.newKey("dashboard", "sessions:read", "memories:read")
		cleaner := w.newKey("cleaner", "sessions:write")

		w.ai.Enqueue(openai.Calls(openai.Call{Name: "remember", Arguments: `{"text":"Prefers ` + canary + `"}`}), openai.Text("noted in the zanzibar file"))
		w.says(ann, "remember what I prefer")
		w.seesText(ann, "zanzibar")
		w.says(bob, "hello there")
		w.sees(bob, "an answer", func(texts []string) bool { return len(texts) > 0 })

		chat := url.QueryEscape("telegram/" + itoa(ann))
		sessions := w.items("/sessions?conversation="+chat, reader)
		if len(sessions) != 1 || sessions[0]["title"] != "remember what I prefer" || sessions[0]["active"] != true {
			t.Fatalf("sessions: %v", sessions)
		}
		id := fmt.Sprint(sessions[0]["id"])
		calls := w.items("/tool-calls?session="+id, reader)
		if len(calls) != 1 || calls[0]["tool_name"] != "remember" || calls[0]["status"] != "completed" || !strings.Contains(fmt.Sprint(calls[0]["request"]), canary) {
			t.Errorf("tool calls: %v", calls)
		}
		said := w.items("/messages?conversation="+chat, reader)
		if len(said) != 4 || said[0]["text"] != "remember what I prefer" || said[3]["text"] != "noted in the zanzibar file" {
			t.Errorf("messages: %v", said)
		}
		if found := w.items("/messages?q=zanzibar", reader); len(found) != 1 || found[0]["session_id"] != id {
			t.Errorf("found: %v", found)
		}
		if known := w.items("/memories?person="+chat, reader); len(known) != 1 || !strings.Contains(fmt.Sprint(known[0]["text"]), canary) {
			t.Errorf("memories: %v", known)
		}
		if status, body := w.calls("DELETE", "/sessions/"+id, reader); status != http.StatusForbidden || body["scope"] != "sessions:write" {
			t.Errorf("deleting with a key that reads: %d %v", status, body)
		}

		w.restart()
		if len(w.items("/sessions", reader)) != 2 {
			t.Error("after a restart the sessions are not there")
		}
		shown := w.hang()
		w.says(ann, "and now something long")
		w.seesText(ann, shown)
		if status, body := w.calls("DELETE", "/sessions/"+id, cleaner); status != http.StatusConflict {
			t.Errorf("deleting while it works: %d %v", status, body)
		}
		w.says(ann, "/stop")
		w.seesText(ann, "Stopped")
		w.deletes(id, cleaner)
		if status, body := w.calls("DELETE", "/sessions/"+id, cleaner); status != http.StatusNotFound {
			t.Errorf("deleting again: %d %v", status, body)
		}
		if left := w.items("/messages?conversation="+chat, reader); len(left) != 0 {
			t.Errorf("messages after deleting: %v", left)
		}
		if found := w.items("/messages?q=zanzibar", reader); len(found) != 0 {
			t.Errorf("found after deleting: %v", found)
		}
		w.ai.Script(counting)
		w.says(ann, "do you remember?")
		w.seesText(ann, "answered [1 messages]")
		w.settles()

		t.Log("a program forks what was said, and deletes the conversation")
		last := fmt.Sprint(w.items("/sessions?active=true&conversation="+chat, reader)[0]["id"])
		if status, body := w.calls("POST", "/sessions/"+last+"/fork?n=2", reader); status != http.StatusForbidden || body["scope"] != "sessions:write" {
			t.Errorf("forking with a key that reads: %d %v", status, body)
		}
		for _, want := range []int{http.StatusCreated, http.StatusOK} {
			if status, body := w.calls("POST", "/sessions/"+last+"/fork?n=2", cleaner); status != want || body["of"] != 2.0 {
				t.Errorf("forking: %d %v, want %d", status, body, want)
			}
		}
		w.says(ann, "and in the fork?")
		w.seesText(ann, "answered [3 messages]")
		w.settles()
		home := fmt.Sprint(w.items("/sessions?conversation="+chat, reader)[0]["conversation_id"])
		if status, body := w.calls("DELETE", "/conversations/"+home, cleaner); status != http.StatusOK {
			t.Errorf("deleting the conversation: %d %v", status, body)
		}
		if left := fmt.Sprint(w.rows("SELECT data, raw FROM inbound_events WHERE conversation_id IS NULL"), w.rows("SELECT content FROM agent_messages")); strings.Contains(left, "fork?") {
			t.Errorf("its text is still there: %s", left)
		}
		w.says(ann, "once more")
		w.sees(ann, "a second beginning", func(texts []string) bool {
			return strings.Count(strings.Join(texts, "\n"), "answered [1 messages]") == 2
		})

		printed := w.operator("revoke a key", func(env app.Env) error { return app.RevokeKey(t.Context(), w.config(), env, cleaner[4:14]) })
		if !strings.Contains(printed, "revoked") {
			t.Errorf("revoking prints %q", printed)
		}
		if status, body := w.calls("GET", "", cleaner); status != http.StatusUnauthorized || body["code"] != "key_revoked" {
			t.Errorf("with a revoked key: %d %v", status, body)
		}
		if status, _ := w.calls("GET", "", reader); status != http.StatusOK {
			t.Errorf("with the other key: %d", status)
		}
		w.with(map[string]string{"API": "off"}).restart()
		if status, body := w.calls("GET", "", reader); status != http.StatusNotFound {
			t.Errorf("with API=off: %d %v", status, body)
		}
	})
}

// deletes deletes a session as soon as it has come to rest.
func (w *world) deletes(id, token string) {
	w.t.Helper()
	for ctx := w.ctx(); ; {
		status, body := w.calls("DELETE", "/sessions/"+id, token)
		if status == http.StatusOK {
			return
		}
		if status != http.StatusConflict && status != http.StatusTooManyRequests || ctx.Err() != nil {
			w.t.Fatalf("deleting: %d %v", status, body)
		}
	}
}
