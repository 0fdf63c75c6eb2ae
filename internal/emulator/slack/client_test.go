package slack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

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

// TestClientVerifiesSignatures lets an independent implementation check what the
// emulator signs.
func TestClientVerifiesSignatures(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{})
	r := receive(t, s, nil)
	ann := s.User("U1").In("C1")
	ann.Mentions("hi")
	ann.Slash("/agent", "x & y")
	ann.Shortcut("id")
	settle(t, s)
	verify := func(header http.Header, body []byte) error {
		v, err := slackgo.NewSecretsVerifier(header, s.SigningSecret())
		if err != nil {
			return err
		}
		if _, err := v.Write(body); err != nil {
			return err
		}
		return v.Ensure()
	}
	hits := r.all()
	if len(hits) != 4 {
		t.Fatalf("%d deliveries", len(hits))
	}
	for _, h := range hits {
		if err := verify(h.header, h.body); err != nil {
			t.Errorf("%s: %v", h.path, err)
		}
	}
	body := []byte(`{"type":"event_callback"}`)
	for name, header := range slack.BadSignatures(s.SigningSecret(), time.Now(), body) {
		// The client takes the first of several headers.
		if strings.HasPrefix(name, "doubled") {
			continue
		}
		if verify(header, body) == nil {
			t.Errorf("%s: verified", name)
		}
	}
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
	s.SetScopes("chat:write")
	if err := api(t, s).GetFileContext(t.Context(), s.URL()+"/files-pri/F00000009/a.txt", io.Discard); err == nil {
		t.Error("a download without the scope or the file worked")
	}
}

func TestClientWebAPI(t *testing.T) {
	t.Parallel()
	ctx := timeout(t)
	s := start(t, slack.Options{NoEcho: true, AgentSessions: true})
	c := api(t, s)
	root := s.User("U1").In("C1").Says("root")
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	me, err := c.AuthTestContext(ctx)
	check("auth", err)
	if me.TeamID != "T1" || me.UserID != "UBOT1" || me.BotID != "BBOT1" || !strings.Contains(me.Header.Get("X-OAuth-Scopes"), "chat:write") {
		t.Errorf("auth %+v", me)
	}
	meta := slackgo.SlackMetadata{EventType: "reply", EventPayload: map[string]any{"delivery_id": "d1"}}
	_, ts, err := c.PostMessageContext(ctx, "C1", slackgo.MsgOptionTS(root.TS), slackgo.MsgOptionText("hello", false),
		slackgo.MsgOptionBlocks(slackgo.NewMarkdownBlock("", "**hello**")), slackgo.MsgOptionMetadata(meta),
		slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl())
	check("post", err)
	replies, more, _, err := c.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{ChannelID: "C1", Timestamp: root.TS, IncludeAllMetadata: true})
	check("replies", err)
	if len(replies) != 2 || more || replies[1].Metadata.EventPayload["delivery_id"] != "d1" || replies[0].ReplyCount != 1 {
		t.Errorf("replies %+v", replies)
	}
	replies, _, _, err = c.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{ChannelID: "C1", Timestamp: root.TS})
	check("replies", err)
	if replies[1].Metadata.EventType != "" {
		t.Error("metadata that was not asked for")
	}
	_, _, _, err = c.UpdateMessageContext(ctx, "C1", ts, slackgo.MsgOptionText("edited", false))
	check("update", err)
	check("react", c.AddReactionContext(ctx, "eyes", slackgo.NewRefToMessage("C1", root.TS)))
	got, err := c.GetReactionsContext(ctx, slackgo.NewRefToMessage("C1", root.TS), slackgo.NewGetReactionsParameters())
	check("reactions", err)
	if len(got.Reactions) != 1 || got.Reactions[0].Name != "eyes" {
		t.Errorf("reactions %+v", got)
	}
	check("unreact", c.RemoveReactionContext(ctx, "eyes", slackgo.NewRefToMessage("C1", root.TS)))
	_, err = c.PostEphemeralContext(ctx, "C1", "U1", slackgo.MsgOptionText("psst", false))
	check("ephemeral", err)
	if seen := s.Channel("C1").SeenBy("U1"); len(seen) != 1 || seen[0].Plain != "psst" {
		t.Errorf("ephemerals %+v", seen)
	}
	check("status", c.SetAssistantThreadsStatusContext(ctx, slackgo.AssistantThreadsSetStatusParameters{ChannelID: "C1", ThreadTS: root.TS, Status: "thinks"}))
	check("title", c.SetAssistantThreadsTitleContext(ctx, slackgo.AssistantThreadsSetTitleParameters{ChannelID: "C1", ThreadTS: root.TS, Title: "T"}))
	prompts := slackgo.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: "C1", ThreadTS: root.TS}
	prompts.AddPrompt("a", "b")
	check("prompts", c.SetAssistantThreadsSuggestedPromptsContext(ctx, prompts))
	session, err := c.SetAgentSessionStatusContext(ctx, slackgo.AgentSessionSetStatusParameters{ChannelID: "C1", ThreadTS: root.TS, Status: "processing"})
	check("session", err)
	if view := s.Thread("C1", root.TS); session.AgentStatus != "processing" || view.Status != "thinks" || view.Title != "T" || len(view.Prompts) != 1 || view.Session.Status != "processing" {
		t.Errorf("thread %+v", view)
	}
	_, stream, err := c.StartStreamContext(ctx, "C1", slackgo.MsgOptionTS(root.TS), slackgo.MsgOptionRecipientTeamID("T1"), slackgo.MsgOptionRecipientUserID("U1"))
	check("start", err)
	_, _, err = c.AppendStreamContext(ctx, "C1", stream, slackgo.MsgOptionChunks(slackgo.NewMarkdownTextChunk("streamed"), slackgo.NewTaskUpdateChunk("1", "task")))
	check("append", err)
	_, _, err = c.StopStreamContext(ctx, "C1", stream)
	check("stop", err)
	if got := s.Channel("C1").Message(stream).Plain; got != "[] task\nstreamed" {
		t.Errorf("stream %q", got)
	}
	_, _, err = c.DeleteMessageContext(ctx, "C1", ts)
	check("delete", err)
	clientReads(t, s, c)
	clientFiles(t, s, c, root.TS)

	s.Inject("chat.postMessage", slack.RateLimited(2*time.Second), slack.ServerError(502))
	var limited *slackgo.RateLimitedError
	if _, _, err := c.PostMessageContext(ctx, "C1", slackgo.MsgOptionText("x", false)); !errors.As(err, &limited) || limited.RetryAfter != 2*time.Second {
		t.Errorf("limited: %v", err)
	}
	var status slackgo.StatusCodeError
	if _, _, err := c.PostMessageContext(ctx, "C1", slackgo.MsgOptionText("x", false)); !errors.As(err, &status) || status.Code != 502 {
		t.Errorf("server error: %v", err)
	}
	s.SetScopes("chat:write")
	var refused slackgo.SlackErrorResponse
	if _, err := c.GetUserInfoContext(ctx, "U1"); !errors.As(err, &refused) || refused.Needed != "users:read" {
		t.Errorf("scope: %v", err)
	}
}

func clientReads(t *testing.T, s *slack.Server, c *slackgo.Client) {
	t.Helper()
	ctx := timeout(t)
	s.AddUser(slack.User{ID: "U2", Name: "bob", RealName: "Bob B"})
	if u, err := c.GetUserInfoContext(ctx, "U2"); err != nil || u.RealName != "Bob B" || u.TeamID != "T1" {
		t.Errorf("user %+v: %v", u, err)
	}
	if b, err := c.GetBotInfoContext(ctx, slackgo.GetBotInfoParameters{Bot: "BBOT1"}); err != nil || b.UserID != "UBOT1" {
		t.Errorf("bot %+v: %v", b, err)
	}
	if ch, err := c.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: "C1"}); err != nil || !ch.IsChannel || !ch.IsMember {
		t.Errorf("channel %+v: %v", ch, err)
	}
	if ch, _, _, err := c.OpenConversationContext(ctx, &slackgo.OpenConversationParameters{Users: []string{"U2"}}); err != nil || ch.ID != "DU2" {
		t.Errorf("direct conversation %+v: %v", ch, err)
	}
	if h, err := c.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{ChannelID: "C1"}); err != nil || len(h.Messages) != 1 {
		t.Errorf("history %+v: %v", h, err)
	}
	if _, err := c.PublishViewContext(ctx, slackgo.PublishViewContextRequest{UserID: "U2", View: slackgo.HomeTabViewRequest{
		Type: slackgo.VTHomeTab, Blocks: slackgo.Blocks{BlockSet: []slackgo.Block{slackgo.NewSectionBlock(slackgo.NewTextBlockObject("mrkdwn", "home", false, false), nil, nil)}},
	}}); err != nil || s.Home("U2").Plain != "home" {
		t.Errorf("home %+v: %v", s.Home("U2"), err)
	}
}

func clientFiles(t *testing.T, s *slack.Server, c *slackgo.Client, root string) {
	t.Helper()
	ctx := timeout(t)
	_, err := c.UploadFileContext(ctx, slackgo.UploadFileParameters{
		Filename: "main.go", Content: "package main", FileSize: 12, Channel: "C1", ThreadTimestamp: root, InitialComment: "code",
	})
	if err != nil {
		t.Fatal(err)
	}
	m := s.Thread("C1", root).Last()
	if m.Plain != "code" || len(m.Files) != 1 || string(m.Files[0].Data) != "package main" {
		t.Errorf("message %+v", m)
	}
	if _, err := c.UploadFileContext(ctx, slackgo.UploadFileParameters{Filename: "a", Content: "x", FileSize: 12, Channel: "C1"}); err == nil {
		t.Error("an upload of the wrong length worked")
	}
}

// socketBot runs the client's Socket Mode until the test ends.
func socketBot(t *testing.T, s *slack.Server, handle func(*socketmode.Client, socketmode.Event)) {
	t.Helper()
	sm := socketmode.New(api(t, s), socketmode.OptionLog(log.New(io.Discard, "", 0)))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = sm.RunContext(ctx) }()
	handled := make(chan struct{})
	go func() {
		defer close(handled)
		for {
			select {
			case e := <-sm.Events:
				handle(sm, e)
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); s.Close(); <-done; <-handled })
}

func TestClientSocketMode(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{NoEcho: true, Retries: []time.Duration{0, 0, 0}})
	seen := make(chan string, 100)
	socketBot(t, s, func(sm *socketmode.Client, e socketmode.Event) {
		switch e.Type {
		case socketmode.EventTypeHello:
			seen <- "hello"
		case socketmode.EventTypeEventsAPI:
			seen <- e.Data.(slackevents.EventsAPIEvent).InnerEvent.Type
			_ = sm.Ack(*e.Request)
		case socketmode.EventTypeSlashCommand:
			seen <- e.Data.(slackgo.SlashCommand).Text
			_ = sm.Ack(*e.Request, map[string]any{"text": "done"})
		case socketmode.EventTypeInteractive:
			cb := e.Data.(slackgo.InteractionCallback)
			seen <- string(cb.Type)
			_ = sm.Ack(*e.Request)
		}
	})
	expect := func(want ...string) {
		t.Helper()
		for _, w := range want {
			select {
			case got := <-seen:
				if got != w {
					t.Fatalf("got %q, want %q", got, w)
				}
			case <-timeout(t).Done():
				t.Fatalf("no %q", w)
			}
		}
	}
	expect("hello")
	ann := s.User("U1").In("C1")
	ann.Mentions("hi")
	expect("app_mention", "message")
	ann.Slash("/agent", "status")
	expect("status")
	if _, err := s.WaitEphemeral(timeout(t), "C1", "U1", func(text string) bool { return text == "done" }); err != nil {
		t.Fatal(err)
	}
	ts := must(t, s, "chat.postMessage", "channel", "C1", "text", "x", "blocks", blocks(t, buttons(button("stop", "1"))))["ts"].(string)
	ann.Clicks(ts, "stop")
	expect("block_actions")
	settle(t, s)
	s.Disconnect("refresh_requested")
	expect("hello")
	ann.Says("after the refresh")
	expect("message")
	settle(t, s)
	s.CutConnections()
	ann.Says("after the cut")
	expect("hello", "message")
	settle(t, s)
	if got := s.ConnectionsOpened(); got != 3 {
		t.Errorf("%d connections", got)
	}
	if unknown, large := s.OddAcks(); unknown != 0 || large != 0 {
		t.Errorf("%d and %d odd acknowledgements", unknown, large)
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
	if unknown, large := s.OddAcks(); unknown != 1 || large != 1 {
		t.Errorf("%d and %d odd acknowledgements", unknown, large)
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
