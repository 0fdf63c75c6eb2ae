package slack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, opts slack.Options) *slack.Server {
	t.Helper()
	s := slack.New(opts)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func timeout(t *testing.T) context.Context {
	t.Helper()
	ctx := waittest.Context(t.Context(), t)
	return ctx
}

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) pass(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// client is an HTTP client whose connections do not outlive the test.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

type answer map[string]any

func (a answer) code() string { s, _ := a["error"].(string); return s }

// call calls a method with a form.
func call(t *testing.T, s *slack.Server, method string, args ...string) answer {
	t.Helper()
	form := url.Values{"token": {s.BotToken()}}
	for i := 0; i+1 < len(args); i += 2 {
		form.Set(args[i], args[i+1])
	}
	resp, err := client(t).PostForm(s.APIURL()+method, form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out answer
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// must is call for calls that work.
func must(t *testing.T, s *slack.Server, method string, args ...string) answer {
	t.Helper()
	out := call(t, s, method, args...)
	if out["ok"] != true {
		t.Fatalf("%s: %v", method, out)
	}
	return out
}

// hit is one request to the bot.
type hit struct {
	path   string
	header http.Header
	body   []byte
}

func (h hit) event(t *testing.T) (inner, outer map[string]any) {
	t.Helper()
	if err := json.Unmarshal(h.body, &outer); err != nil {
		t.Fatal(err)
	}
	inner, _ = outer["event"].(map[string]any)
	return inner, outer
}

func (h hit) payload(t *testing.T) map[string]any {
	t.Helper()
	form, err := url.ParseQuery(string(h.body))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(form.Get("payload")), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// receiver is a bot that takes deliveries over HTTP.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	hits   []hit
	answer func(n int, h hit, w http.ResponseWriter) // nil acknowledges
}

func receive(t *testing.T, s *slack.Server, answer func(n int, h hit, w http.ResponseWriter)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		h := hit{req.URL.Path, req.Header, body}
		r.mu.Lock()
		r.hits = append(r.hits, h)
		n := len(r.hits)
		r.mu.Unlock()
		if r.answer != nil {
			r.answer(n, h, w)
		}
	}))
	t.Cleanup(func() { s.Close(); r.Close() })
	s.UseHTTP(slack.Endpoints{Events: r.URL + "/events", Commands: r.URL + "/commands", Interactions: r.URL + "/interactions"})
	return r
}

func (r *receiver) all() []hit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]hit(nil), r.hits...)
}

func settle(t *testing.T, s *slack.Server) {
	t.Helper()
	if err := s.WaitIdle(timeout(t)); err != nil {
		t.Fatalf("deliveries %v are still on their way: %v", s.Pending(), err)
	}
}

func blocks(t *testing.T, list ...any) string {
	t.Helper()
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type m = map[string]any

func section(text string) m {
	return m{"type": "section", "text": m{"type": "mrkdwn", "text": text}}
}

func markdown(text string) m { return m{"type": "markdown", "text": text} }

func buttons(elements ...any) m {
	return m{"type": "actions", "block_id": "acts", "elements": elements}
}

func button(id, value string) m {
	return m{"type": "button", "action_id": id, "value": value, "text": m{"type": "plain_text", "text": strings.ToUpper(id)}}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{NoEcho: true, Events: []string{}})
	ann := s.User("U1").In("C1")
	root := ann.Says("root")
	reply := ann.InThread(root.TS).Says("reply")
	gone := ann.Says("gone")
	ann.Deletes(gone.TS)
	s.AddChannel(slack.Channel{ID: "C3", Archived: true})
	mine := must(t, s, "chat.postMessage", "channel", "C1", "text", "mine")["ts"].(string)
	must(t, s, "reactions.add", "channel", "C1", "timestamp", root.TS, "name", "eyes")
	stream := must(t, s, "chat.startStream", "channel", "C1", "thread_ts", root.TS, "recipient_team_id", "T1", "recipient_user_id", "U1",
		"markdown_text", "one")["ts"].(string)
	many := make([]any, 51)
	for i := range many {
		many[i] = m{"type": "divider"}
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, test := range map[string]struct {
		method string
		args   []string
		want   string
	}{
		"unknown method":        {"chat.nothing", nil, "unknown_method"},
		"sessions are off":      {"agents.sessions.setStatus", []string{"channel_id", "C1", "thread_ts", root.TS, "status", "processing"}, "unknown_method"},
		"wrong token":           {"auth.test", []string{"token", "xoxb-wrong"}, "invalid_auth"},
		"no token":              {"auth.test", []string{"token", ""}, "not_authed"},
		"app token":             {"auth.test", []string{"token", s.AppToken()}, "not_allowed_token_type"},
		"bot token for sockets": {"apps.connections.open", nil, "not_allowed_token_type"},
		"unknown channel":       {"chat.postMessage", []string{"channel", "C9", "text", "x"}, "channel_not_found"},
		"archived":              {"chat.postMessage", []string{"channel", "C3", "text", "x"}, "is_archived"},
		"no text":               {"chat.postMessage", []string{"channel", "C1", "text", " \n"}, "no_text"},
		"blocks are no JSON":    {"chat.postMessage", []string{"channel", "C1", "blocks", "{"}, "invalid_blocks_format"},
		"unknown block":         {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, m{"type": "nope"})}, "invalid_blocks"},
		"agent block":           {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, m{"type": "alert"})}, "invalid_blocks"},
		"51 blocks":             {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, many...)}, "invalid_blocks"},
		"long section":          {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, section(long(3001)))}, "invalid_blocks"},
		"empty section":         {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, section(""))}, "invalid_blocks"},
		"long header":           {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, m{"type": "header", "text": m{"type": "plain_text", "text": long(151)}})}, "invalid_blocks"},
		"long markdown":         {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, markdown(long(6001)), markdown(long(6000)))}, "msg_blocks_too_long"},
		"whole message":         {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, markdown(long(11000)), section(long(2300)))}, "msg_blocks_too_long"},
		"doubled action":        {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, buttons(button("a", "1"), button("a", "2")))}, "invalid_blocks"},
		"long button":           {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, buttons(button("a", long(2001))))}, "invalid_blocks"},
		"doubled block_id":      {"chat.postMessage", []string{"channel", "C1", "blocks", blocks(t, buttons(button("a", "")), buttons(button("b", "")))}, "invalid_blocks"},
		"long markdown_text":    {"chat.postMessage", []string{"channel", "C1", "markdown_text", long(12001)}, "msg_too_long"},
		"markdown and text":     {"chat.postMessage", []string{"channel", "C1", "markdown_text", "x", "text", "y"}, "markdown_text_conflict"},
		"metadata":              {"chat.postMessage", []string{"channel", "C1", "text", "x", "metadata", `{"event_type":"x"}`}, "invalid_metadata_schema"},
		"metadata is no JSON":   {"chat.postMessage", []string{"channel", "C1", "text", "x", "metadata", `x`}, "invalid_metadata_format"},
		"thread is an answer":   {"chat.postMessage", []string{"channel", "C1", "text", "x", "thread_ts", reply.TS}, "thread_not_found"},
		"thread never was":      {"chat.postMessage", []string{"channel", "C1", "text", "x", "thread_ts", "1.000001"}, "thread_not_found"},
		"thread is no ts":       {"chat.postMessage", []string{"channel", "C1", "text", "x", "thread_ts", "today"}, "invalid_thread_ts"},
		"long update":           {"chat.update", []string{"channel", "C1", "ts", mine, "text", long(4001)}, "msg_too_long"},
		"update of nothing":     {"chat.update", []string{"channel", "C1", "ts", "1.000001", "text", "x"}, "message_not_found"},
		"update of others":      {"chat.update", []string{"channel", "C1", "ts", root.TS, "text", "x"}, "cant_update_message"},
		"update of a stream":    {"chat.update", []string{"channel", "C1", "ts", stream, "text", "x"}, "streaming_state_conflict"},
		"empty update":          {"chat.update", []string{"channel", "C1", "ts", mine}, "no_text"},
		"delete of others":      {"chat.delete", []string{"channel", "C1", "ts", root.TS}, "cant_delete_message"},
		"whisper to a stranger": {"chat.postEphemeral", []string{"channel", "C1", "user", "U8", "text", "x"}, "user_not_found"},
		"reacted twice":         {"reactions.add", []string{"channel", "C1", "timestamp", root.TS, "name", "eyes"}, "already_reacted"},
		"no reaction":           {"reactions.remove", []string{"channel", "C1", "timestamp", root.TS, "name", "x"}, "no_reaction"},
		"reaction name":         {"reactions.add", []string{"channel", "C1", "timestamp", root.TS, "name", "👀"}, "invalid_name"},
		"reaction on nothing":   {"reactions.add", []string{"channel", "C1", "timestamp", "1.000001", "name", "x"}, "message_not_found"},
		"stream without thread": {"chat.startStream", []string{"channel", "C1"}, "invalid_arguments"},
		"stream for no team":    {"chat.startStream", []string{"channel", "C1", "thread_ts", root.TS}, "missing_recipient_team_id"},
		"stream for nobody":     {"chat.startStream", []string{"channel", "C1", "thread_ts", root.TS, "recipient_team_id", "T1"}, "missing_recipient_user_id"},
		"stream for a stranger": {"chat.startStream", []string{"channel", "C1", "thread_ts", root.TS, "recipient_team_id", "T1", "recipient_user_id", "U8"}, "user_not_found"},
		"append nothing":        {"chat.appendStream", []string{"channel", "C1", "ts", stream}, "markdown_text_or_chunks_required"},
		"append chunks":         {"chat.appendStream", []string{"channel", "C1", "ts", stream, "chunks", `[{"type":"markdown_text","text":"x"}]`}, "streaming_mode_mismatch"},
		"append both":           {"chat.appendStream", []string{"channel", "C1", "ts", stream, "chunks", `[]`, "markdown_text", "x"}, "cannot_provide_both_markdown_text_and_chunks"},
		"append too much":       {"chat.appendStream", []string{"channel", "C1", "ts", stream, "markdown_text", long(12000)}, "msg_too_long"},
		"append to a message":   {"chat.appendStream", []string{"channel", "C1", "ts", mine, "markdown_text", "x"}, "message_not_in_streaming_state"},
		"append to others":      {"chat.appendStream", []string{"channel", "C1", "ts", root.TS, "markdown_text", "x"}, "message_not_owned_by_app"},
		"stop a message":        {"chat.stopStream", []string{"channel", "C1", "ts", mine}, "message_not_in_streaming_state"},
		"status of no thread":   {"assistant.threads.setStatus", []string{"channel_id", "C1", "thread_ts", reply.TS, "status", "x"}, "invalid_thread_ts"},
		"replies of nothing":    {"conversations.replies", []string{"channel", "C1", "ts", "1.000001"}, "thread_not_found"},
		"bad cursor":            {"conversations.history", []string{"channel", "C1", "cursor", "x"}, "invalid_cursor"},
		"bad limit":             {"conversations.history", []string{"channel", "C1", "limit", "5000"}, "invalid_limit"},
		"unknown user":          {"users.info", []string{"user", "U8"}, "user_not_found"},
		"unknown file":          {"files.completeUploadExternal", []string{"files", `[{"id":"F9"}]`}, "file_not_found"},
		"unknown trigger":       {"views.open", []string{"trigger_id", "x", "view", `{"type":"modal","title":{"type":"plain_text","text":"T"},"blocks":[{"type":"divider"}]}`}, "invalid_trigger_id"},
		"modal without title":   {"views.open", []string{"trigger_id", "x", "view", `{"type":"modal","blocks":[{"type":"divider"}]}`}, "invalid_arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := call(t, s, test.method, test.args...); got.code() != test.want {
				t.Errorf("got %v, want %q", got, test.want)
			}
		})
	}
}

func TestDeletedThread(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{NoEcho: true, Events: []string{}})
	ann := s.User("U1").In("C1")
	kept, lost := ann.Says("kept"), ann.Says("lost")
	ann.InThread(kept.TS).Says("answer")
	ann.Deletes(kept.TS)
	s.DeleteThread("C1", lost.TS)
	a := must(t, s, "chat.postMessage", "channel", "C1", "text", "a", "thread_ts", kept.TS)
	b := must(t, s, "chat.postMessage", "channel", "C1", "text", "b", "thread_ts", lost.TS)
	if got := s.Thread("C1", kept.TS); got.Root.Subtype != "tombstone" || len(got.Messages) != 3 {
		t.Errorf("thread with a tombstone: %+v", got)
	}
	if got := a["message"].(map[string]any)["thread_ts"]; got != kept.TS {
		t.Errorf("answer under a tombstone: thread %v", got)
	}
	// The real platform posts it in the channel.
	if got := b["message"].(map[string]any)["thread_ts"]; got != nil {
		t.Errorf("answer to a deleted thread: thread %v", got)
	}
}

func TestTokensAndScopes(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{Team: slack.Team{Scopes: []string{"chat:write", "channels:history"}}})
	s.User("U1").In("C1").Says("x")
	got := call(t, s, "reactions.add", "channel", "C1", "timestamp", "1.000001", "name", "x")
	want := answer{"ok": false, "error": "missing_scope", "needed": "reactions:write", "provided": "chat:write,channels:history"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, code := range []string{"token_revoked", "account_inactive", "invalid_auth"} {
		s.RefuseToken(code)
		if got := call(t, s, "auth.test"); got.code() != code {
			t.Errorf("refused with %v, want %s", got, code)
		}
	}
}

func TestJSONArguments(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{NoEcho: true})
	s.User("U1").In("C1").Says("x")
	post := func(method, body, auth string) answer {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.APIURL()+method, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", auth)
		resp, err := client(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var out answer
		if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	bearer := "Bearer " + s.BotToken()
	got := post("chat.postMessage", `{"channel":"C1","blocks":[{"type":"markdown","text":"**hi**"}],"unfurl_links":false}`, bearer)
	if got["ok"] != true || got["warning"] != "missing_charset" {
		t.Errorf("JSON without a charset: %v", got)
	}
	if m := s.Channel("C1").FromBot()[0]; m.Plain != "**hi**" || m.UnfurlLinks == nil || *m.UnfurlLinks || m.UnfurlMedia != nil {
		t.Errorf("message %+v", m)
	}
	if got := post("chat.postMessage", `{"channel":"C1","text":"x","token":"`+s.BotToken()+`"}`, ""); got.code() != "not_authed" {
		t.Errorf("token in JSON: %v", got)
	}
	if got := post("conversations.replies", `{"channel":"C1","ts":"1.000001"}`, bearer); got.code() != "channel_not_found" {
		t.Errorf("a reading method with JSON: %v", got)
	}
}

func TestUpdateKeepsWhatItShould(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{NoEcho: true})
	s.User("U1").In("C1").Says("x")
	meta := `{"event_type":"reply","event_payload":{"delivery_id":"d1"}}`
	ts := must(t, s, "chat.postMessage", "channel", "C1", "text", "one &amp; two", "blocks", blocks(t, section("*hi* <https://x.example|there>")),
		"metadata", meta)["ts"].(string)
	get := func() slack.Message { return s.Channel("C1").Message(ts) }
	if got := get(); got.Plain != "*hi* there" || got.MetadataField("delivery_id") != "d1" {
		t.Errorf("posted %+v", got)
	}
	must(t, s, "chat.update", "channel", "C1", "ts", ts, "text", "three &lt;4")
	if got := get(); got.Plain != "three <4" || got.Blocks != nil || got.MetadataField("delivery_id") != "d1" || !got.Edited || got.Edits != 1 {
		t.Errorf("edited %+v", got)
	}
	must(t, s, "chat.update", "channel", "C1", "ts", ts, "blocks", blocks(t, section("five")), "metadata", "{}")
	if got := get(); got.Plain != "five" || got.Metadata != nil || len(got.History) != 2 || got.Text != "three &lt;4" {
		t.Errorf("edited again %+v", got)
	}
}

func TestPings(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{NoEcho: true})
	s.User("U1").In("C1").Says("x")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"text", "&lt;!channel&gt; fine"}, nil},
		{[]string{"text", "<!channel> <!here|here> <@U1> <!subteam^S1>"}, []string{"!channel", "!here", "@U1", "!subteam^S1"}},
		{[]string{"blocks", blocks(t, section("<!everyone>"))}, []string{"!everyone"}},
		{[]string{"blocks", blocks(t, markdown("a `<!channel>` \\<!here> <@U1>"))}, []string{"@U1"}},
		{[]string{"markdown_text", "```\n<!channel>\n``` <!here>"}, []string{"!here"}},
	} {
		ts := must(t, s, "chat.postMessage", append([]string{"channel", "C1"}, test.args...)...)["ts"].(string)
		if diff := cmp.Diff(test.want, s.Channel("C1").Message(ts).Pings); diff != "" {
			t.Errorf("%v: %s", test.args, diff)
		}
	}
}

func TestPaging(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{NoEcho: true, Events: []string{}})
	ann := s.User("U1").In("C1")
	root := ann.Says("root")
	for range 5 {
		ann.InThread(root.TS).Says("answer")
	}
	ann.InThread(root.TS).Broadcasts("to all")
	ann.Says("second")
	texts := func(method string, args ...string) (out []string) {
		cursor := ""
		for range 10 {
			got := must(t, s, method, append([]string{"channel", "C1", "limit", "3", "cursor", cursor}, args...)...)
			for _, one := range got["messages"].([]any) {
				out = append(out, one.(map[string]any)["text"].(string))
			}
			if got["has_more"] != true {
				return out
			}
			cursor = got["response_metadata"].(map[string]any)["next_cursor"].(string)
		}
		return out
	}
	want := []string{"root", "answer", "answer", "answer", "answer", "answer", "to all"}
	if diff := cmp.Diff(want, texts("conversations.replies", "ts", root.TS)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"second", "to all", "root"}, texts("conversations.history")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"second", "to all"}, texts("conversations.history", "oldest", root.TS)); diff != "" {
		t.Error(diff)
	}
}

func TestStreamLifeAndStop(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := start(t, slack.Options{StreamIdle: 30 * time.Second, Now: c.Now, NoEcho: true})
	r := receive(t, s, nil)
	ann := s.User("U1").In("C1")
	root := ann.Mentions("go")
	begin := func() string {
		return must(t, s, "chat.startStream", "channel", "C1", "thread_ts", root.TS, "recipient_team_id", "T1", "recipient_user_id", "U1")["ts"].(string)
	}
	must(t, s, "assistant.threads.setStatus", "channel_id", "C1", "thread_ts", root.TS, "status", "thinks", "loading_messages", "a,b")
	if got := s.Thread("C1", root.TS); got.Status != "thinks" || len(got.Loading) != 2 {
		t.Errorf("status %+v", got)
	}
	first := begin()
	if got := s.Thread("C1", root.TS).Status; got != "" {
		t.Errorf("status %q after a message", got)
	}
	chunks := `[{"type":"plan_update","title":"Plan"},{"type":"task_update","id":"1","title":"Test","status":"in_progress"},{"type":"markdown_text","text":"Hello"}]`
	must(t, s, "chat.appendStream", "channel", "C1", "ts", first, "chunks", chunks)
	must(t, s, "chat.appendStream", "channel", "C1", "ts", first, "chunks", `[{"type":"task_update","id":"1","title":"Test","status":"complete"}]`)
	must(t, s, "chat.stopStream", "channel", "C1", "ts", first, "blocks", blocks(t, buttons(button("retry", ""))))
	if got := s.Channel("C1").Message(first); got.Plain != "Plan\n[complete] Test\nHello\n[RETRY]" || got.Stream != slack.StreamDone || got.Appends != 2 {
		t.Errorf("stream %+v", got)
	}

	second := begin()
	sent := ann.Stops(root.TS)
	if err := s.WaitSettled(timeout(t), sent); err != nil {
		t.Fatal(err)
	}
	hits := r.all()
	inner, _ := hits[len(hits)-1].event(t)
	if inner["type"] != "agent_session_stopped" || inner["thread_ts"] != root.TS || inner["streaming_message_ts"].([]any)[0] != second {
		t.Errorf("event %v", inner)
	}
	if got := call(t, s, "chat.appendStream", "channel", "C1", "ts", second, "markdown_text", "x"); got.code() != "stopped_by_user" {
		t.Errorf("append after stop: %v", got)
	}
	if got := ann.Stops(root.TS).Deliveries; got != nil {
		t.Errorf("stop with nothing to stop: %v", got)
	}

	third, fourth := begin(), begin()
	c.pass(31 * time.Second)
	if got := call(t, s, "chat.appendStream", "channel", "C1", "ts", third, "markdown_text", "x"); got.code() != "message_not_in_streaming_state" {
		t.Errorf("append after idling: %v", got)
	}
	if got := s.Channel("C1").Message(fourth).Stream; got != slack.StreamKilled {
		t.Errorf("state %q", got)
	}
}

// A stream makes the session of its thread process, and its end makes it active.
func TestStreamsAndSessions(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{AgentSessions: true, NoEcho: true})
	root := s.User("U1").In("C1").Mentions("go")
	ts := must(t, s, "chat.startStream", "channel", "C1", "thread_ts", root.TS, "recipient_team_id", "T1", "recipient_user_id", "U1", "unfurl_links", "false")["ts"].(string)
	if got := s.Thread("C1", root.TS).Session.Status; got != "processing" {
		t.Errorf("the session is %q", got)
	}
	if m := s.Channel("C1").Message(ts); m.Metadata != nil || m.UnfurlLinks == nil || *m.UnfurlLinks {
		t.Errorf("the stream is %+v", m)
	}
	must(t, s, "chat.appendStream", "channel", "C1", "ts", ts, "chunks", `[{"type":"markdown_text","text":"Hello"}]`)
	must(t, s, "chat.stopStream", "channel", "C1", "ts", ts, "chunks", "[]")
	if got := s.Thread("C1", root.TS); got.Session.Status != "active" || got.Texts()[0] != "Hello" {
		t.Errorf("afterwards the session is %q, and people read %q", got.Session.Status, got.Texts())
	}
}

func TestStatusTimesOut(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := start(t, slack.Options{Now: c.Now, NoEcho: true})
	dm := s.User("U1").Says("x")
	must(t, s, "assistant.threads.setStatus", "channel_id", "DU1", "thread_ts", dm.TS, "status", "thinks")
	if got := s.Thread("DU1", dm.TS).Status; got != "thinks" {
		t.Errorf("status %q", got)
	}
	c.pass(2 * time.Minute)
	if got := s.Thread("DU1", dm.TS).Status; got != "" {
		t.Errorf("status %q after two minutes", got)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{NoEcho: true})
	s.User("U1").In("C1").Says("x")
	gate := emulator.NewGate()
	for name, test := range map[string]struct {
		fault   slack.Fault
		applied bool
		check   func(status int, body []byte, err error) bool
	}{
		"refuse":      {slack.Refuse("fatal_error"), false, func(_ int, b []byte, _ error) bool { return strings.Contains(string(b), "fatal_error") }},
		"limited":     {slack.RateLimited(1500 * time.Millisecond), false, func(st int, _ []byte, _ error) bool { return st == 429 }},
		"5xx":         {slack.ServerError(503), false, func(st int, _ []byte, _ error) bool { return st == 503 }},
		"fail after":  {slack.FailAfter("internal_error"), true, func(_ int, b []byte, _ error) bool { return strings.Contains(string(b), "internal_error") }},
		"5xx after":   {slack.ServerErrorAfter(500), true, func(st int, _ []byte, _ error) bool { return st == 500 }},
		"drop before": {slack.Fault{End: platformapi.Before}, false, func(_ int, _ []byte, err error) bool { return err != nil }},
		"drop after":  {slack.Fault{End: platformapi.After}, true, func(_ int, _ []byte, err error) bool { return err != nil }},
		"cut":         {slack.Fault{End: platformapi.Short}, true, func(_ int, _ []byte, err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"truncated":   {slack.Fault{End: platformapi.Truncated}, true, func(_ int, b []byte, err error) bool { return err == nil && !json.Valid(b) }},
		"garbage":     {slack.Fault{End: platformapi.Garbage}, true, func(_ int, b []byte, _ error) bool { return bytes.HasPrefix(b, []byte("<html>")) }},
		"held":        {slack.Fault{Gate: gate}, true, func(st int, _ []byte, _ error) bool { return st == 200 }},
	} {
		before := len(s.Channel("C1").FromBot())
		s.Inject("chat.postMessage", test.fault)
		if name == "held" {
			go func() { <-gate.Reached(); gate.Open() }()
		}
		resp, err := client(t).PostForm(s.APIURL()+"chat.postMessage", url.Values{"token": {s.BotToken()}, "channel": {"C1"}, "text": {"x"}})
		var status int
		var body []byte
		if err == nil {
			status = resp.StatusCode
			body, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if !test.check(status, body, err) {
			t.Errorf("%s: %d %q %v", name, status, body, err)
		}
		if applied := len(s.Channel("C1").FromBot()) > before; applied != test.applied {
			t.Errorf("%s: applied %v", name, applied)
		}
	}
	if got := s.Count("chat.postMessage"); got != 11 {
		t.Errorf("%d calls counted", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	c := newClock()
	limits := slack.PublishedLimits()
	limits.Enforce = true
	s := start(t, slack.Options{Limits: limits, Now: c.Now, NoEcho: true})
	s.User("U1").In("C1").Says("x")
	s.User("U1").In("C2").Says("x")
	for range 5 {
		must(t, s, "chat.postMessage", "channel", "C1", "text", "x")
	}
	if got := call(t, s, "chat.postMessage", "channel", "C1", "text", "x"); got.code() != "ratelimited" {
		t.Errorf("sixth post: %v", got)
	}
	c.pass(time.Second)
	ts := must(t, s, "chat.postMessage", "channel", "C2", "text", "x")["ts"].(string)
	for range 50 {
		must(t, s, "chat.update", "channel", "C2", "ts", ts, "text", "y")
	}
	if got := call(t, s, "chat.update", "channel", "C2", "ts", ts, "text", "y"); got.code() != "ratelimited" {
		t.Errorf("51st update: %v", got)
	}
	c.pass(30 * time.Second)
	_ = call(t, s, "chat.update", "channel", "C2", "ts", ts, "text", "y")
	c.pass(time.Minute)
	must(t, s, "chat.update", "channel", "C2", "ts", ts, "text", "y")
	var rules []string
	for _, v := range s.Violations() {
		rules = append(rules, v.Rule)
	}
	if diff := cmp.Diff([]string{"posts", "rate", "retry_after", "rate"}, rules); diff != "" {
		t.Errorf("violations %v: %s", s.Violations(), diff)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, slack.Options{KeepCalls: 10})
	receive(t, s, nil)
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			ann := s.User("U" + string(rune('1'+i))).In("C1").AtOnce()
			for range 10 {
				sent := ann.Mentions("go")
				ts := must(t, s, "chat.postMessage", "channel", "C1", "text", "done", "thread_ts", sent.TS)["ts"].(string)
				must(t, s, "chat.update", "channel", "C1", "ts", ts, "text", "done!")
				if got := s.Thread("C1", sent.TS).Texts(); len(got) != 1 || got[0] != "done!" {
					t.Errorf("thread %v", got)
				}
			}
		})
	}
	work.Wait()
	settle(t, s)
	if got := s.Lost(); got != nil {
		t.Errorf("lost %v", got)
	}
	if got := len(s.Calls()); got != 10 {
		t.Errorf("%d calls kept", got)
	}
}
