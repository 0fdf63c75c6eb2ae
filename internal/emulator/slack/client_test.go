package slack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/waittest"
)

func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return out
}

func api(t *testing.T, s *slack.Server) *slackgo.Client {
	t.Helper()
	return slackgo.New(s.BotToken(), slackgo.OptionAPIURL(s.APIURL()), slackgo.OptionAppLevelToken(s.AppToken()),
		slackgo.OptionHTTPClient(client(t)))
}

func TestClientParsesEvents(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{})
	r := receive(t, s, nil)
	ann := s.User("U1").In("C1")
	sent := ann.Mentions("hi <@U2>")
	ann.InThread(sent.TS).Shares("look", slack.File{Name: "a.txt", MIME: "text/plain", Data: []byte("data")})
	settle(t, s)
	must(t, s, "chat.postMessage", "channel", "C1", "text", "x", "metadata", `{"event_type":"a","event_payload":{"b":"c"}}`)
	settle(t, s)
	for _, h := range r.all() {
		event, err := slackevents.ParseEvent(h.body, slackevents.OptionNoVerifyToken())
		if err != nil {
			t.Fatalf("%v: %s", err, h.body)
		}
		switch e := event.InnerEvent.Data.(type) {
		case *slackevents.AppMentionEvent:
			if e.Channel != "C1" || e.User != "U1" || e.TimeStamp != sent.TS || len(e.Blocks.BlockSet) != 1 {
				t.Errorf("mention %+v", e)
			}
		case *slackevents.MessageEvent:
			if e.Channel != "C1" || e.ChannelType != "channel" {
				t.Errorf("message %+v", e)
			}
			if e.SubType == "file_share" {
				var got bytes.Buffer
				if err := api(t, s).GetFileContext(t.Context(), e.Message.Files[0].URLPrivateDownload, &got); err != nil || got.String() != "data" {
					t.Errorf("file %q: %v", &got, err)
				}
			}
		default:
			t.Errorf("%T", e)
		}
	}
	if err := api(t, s).GetFileContext(t.Context(), s.URL()+"/files-pri/F00000009/a.txt", io.Discard); err == nil {
		t.Error("a download without the file worked")
	}
}

// dial opens a Socket Mode connection by hand and reads the hello.
func dial(t *testing.T, s *slack.Server) *websocket.Conn {
	t.Helper()
	_, u, err := api(t, s).StartSocketModeContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), u, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	t.Cleanup(func() { conn.Close() })
	context.AfterFunc(waittest.Context(t.Context(), t), func() { conn.Close() })
	if _, resp, err := websocket.DefaultDialer.DialContext(t.Context(), u, nil); err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("a connection URL was good twice: %v", err)
	}
	if got := read(t, conn)["type"]; got != "hello" {
		t.Fatalf("first frame %v", got)
	}
	return conn
}

func read(t *testing.T, conn *websocket.Conn) (frame map[string]any) {
	t.Helper()
	if err := conn.ReadJSON(&frame); err != nil {
		t.Fatal(err)
	}
	return frame
}

func TestSocketRedelivery(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{Retries: []time.Duration{0, 0, 0}, AckTimeout: waittest.Scaled(200 * time.Millisecond)})
	conn := dial(t, s)
	sent := s.User("U1").Says("x")
	first := read(t, conn)
	if first["accepts_response_payload"] != false || first["type"] != "events_api" || first["retry_attempt"] != 0.0 {
		t.Errorf("envelope %v", first)
	}
	// An acknowledgement of 20 KiB is not seen, nor is one of something else.
	_ = conn.WriteJSON(map[string]any{"envelope_id": first["envelope_id"], "payload": strings.Repeat("x", 21<<10)})
	_ = conn.WriteJSON(map[string]any{"envelope_id": "other"})
	second := read(t, conn)
	if second["retry_attempt"] != 1.0 || second["retry_reason"] != "timeout" || second["envelope_id"] == first["envelope_id"] {
		t.Errorf("second envelope %v", second)
	}
	if diff := cmp.Diff(first["payload"], second["payload"]); diff != "" {
		t.Error(diff)
	}
	// The connection goes: the next one gets it.
	other := dial(t, s)
	conn.Close()
	third := read(t, other)
	if err := other.WriteJSON(map[string]any{"envelope_id": third["envelope_id"]}); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitSettled(timeout(t), sent); err != nil {
		t.Fatal(err)
	}
	d := s.Delivery(sent.Deliveries[0])
	var errs []string
	for _, a := range d.Attempts {
		errs = append(errs, a.Error)
	}
	if diff := cmp.Diff([]string{"timeout", "connection_closed", ""}, errs); diff != "" || !d.Acked {
		t.Error(diff)
	}
}

func TestSocketSpreads(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{NoEcho: true})
	got := make(chan int, 100)
	for i := range 3 {
		conn := dial(t, s)
		go func() {
			for {
				var frame map[string]any
				if conn.ReadJSON(&frame) != nil {
					return
				}
				got <- i
				_ = conn.WriteJSON(map[string]any{"envelope_id": frame["envelope_id"]})
			}
		}()
	}
	if err := s.WaitFor(timeout(t), func() bool { return s.Connections() == 3 }); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		s.User("U1").Says("x")
	}
	settle(t, s)
	if len(got) != 60 {
		t.Errorf("%d envelopes for 60 events", len(got))
	}
	s.Close()
	each := map[int]int{}
	for range len(got) {
		each[<-got]++
	}
	if len(each) != 3 {
		t.Errorf("envelopes for each connection: %v", each)
	}
}

func TestSocketLimits(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{})
	for range 10 {
		dial(t, s)
	}
	if err := s.WaitFor(timeout(t), func() bool { return s.Connections() == 10 }); err != nil {
		t.Fatal(err)
	}
	_, u, err := api(t, s).StartSocketModeContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), u, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer conn.Close()
	if got := read(t, conn); got["type"] != "disconnect" || got["reason"] != "too_many_websockets" {
		t.Errorf("eleventh connection: %v", got)
	}
	s.RefuseAppToken("token_revoked")
	if _, _, err := api(t, s).StartSocketModeContext(t.Context()); err == nil || err.Error() != "token_revoked" {
		t.Errorf("revoked app token: %v", err)
	}
}

func TestSocketCommandTimesOut(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{AckTimeout: waittest.Scaled(100 * time.Millisecond)})
	conn := dial(t, s)
	s.User("U1").In("C1").Slash("/agent", "x")
	frame := read(t, conn)
	body, err := json.Marshal(frame["payload"])
	if err != nil {
		t.Fatal(err)
	}
	var cmd slackgo.SlashCommand
	if err := json.Unmarshal(body, &cmd); err != nil || cmd.Command != "/agent" || cmd.TeamID != "T1" {
		t.Errorf("command %+v: %v", cmd, err)
	}
	if _, err := s.WaitEphemeral(timeout(t), "C1", "U1", func(text string) bool { return strings.Contains(text, "operation_timeout") }); err != nil {
		t.Error(err)
	}
}
