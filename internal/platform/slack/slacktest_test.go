package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/slack-go/slack/slacktest"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform/platformtest"
	"remote-agent/internal/platform/slack"
	"remote-agent/internal/waittest"
)

// The Slack library's own fake server knows nothing of our emulator. Events
// arrive over its socket, are acknowledged, and answered through its Web API.
func TestSocketModeAgainstSlacktest(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var posted []string
	server := slacktest.NewTestServer(func(c slacktest.Customize) {
		c.Handle("/chat.postMessage", func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			posted = append(posted, r.FormValue("channel")+" "+r.FormValue("thread_ts")+" "+r.FormValue("text"))
			_, _ = fmt.Fprint(w, `{"ok":true,"channel":"C1","ts":"1700000000.000100"}`)
		})
	})
	server.Start()
	t.Cleanup(server.Stop)

	a, err := slack.New(slack.Config{BotToken: botToken, AppToken: appToken, APIURL: server.GetAPIURL(), Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	sink := &platformtest.Sink{}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.Run(ctx, sink); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	account, err := a.Check(ctx)
	if err != nil {
		t.Fatal(err)
	}

	send := func(envelope, kind string, payload map[string]any) {
		raw, err := json.Marshal(map[string]any{"envelope_id": envelope, "type": kind, "accepts_response_payload": false, "payload": payload})
		if err != nil {
			t.Fatal(err)
		}
		server.SendToWebsocket(string(raw))
	}
	server.SendToWebsocket(`{"type":"hello","num_connections":1,"connection_info":{"app_id":"A1"}}`)
	send("e-1", "events_api", map[string]any{
		"type": "event_callback", "team_id": account.ID, "event_id": "Ev1",
		"event": map[string]any{"type": "app_mention", "channel": "C1", "user": "U1", "text": "<@W012A3CDE> hello", "ts": "1699999999.000100"},
	})
	send("e-2", "slash_commands", map[string]any{
		"command": "/agent", "text": "why?", "trigger_id": "1.2.3", "team_id": account.ID, "channel_id": "C1", "user_id": "U1", "user_name": "ann",
	})
	acknowledged := map[string]bool{}
	late := waittest.Late(t)
	for len(acknowledged) < 2 {
		select {
		case raw := <-server.SeenFeed:
			var ack struct {
				Envelope string `json:"envelope_id"`
			}
			if json.Unmarshal([]byte(raw), &ack) == nil && ack.Envelope != "" {
				acknowledged[ack.Envelope] = true
			}
		case <-late:
			t.Fatalf("acknowledged %v, heard %+v", acknowledged, sink.Events())
		}
	}
	heard := map[string]messages.Inbound{}
	for _, e := range sink.Events() {
		heard[e.Text] = e
	}
	mention, ok := heard["hello"]
	if _, asked := heard["why?"]; !ok || !asked || len(heard) != 2 {
		t.Fatalf("heard %+v", heard)
	}
	if _, err := a.Send(ctx, messages.Outbound{Conversation: mention.Conversation, Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(posted, "|"); got != "C1 1699999999.000100 hi" {
		t.Errorf("posted %q", got)
	}
}
