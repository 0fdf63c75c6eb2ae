package telegram_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/platformapi"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a client that was written for these tests, without a library.
type api struct {
	t      testing.TB
	server *telegram.Server
	client *http.Client
}

type reply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
	header http.Header
}

func setup(tb testing.TB, opts telegram.Options) (*telegram.Server, api) {
	tb.Helper()
	s := telegram.New(opts)
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	tb.Cleanup(func() {
		s.Close()
		client.CloseIdleConnections()
	})
	return s, api{t: tb, server: s, client: client}
}

// try calls a method with a JSON body.
func (a api) try(method string, params map[string]any) (reply, error) {
	body, err := json.Marshal(params)
	if err != nil {
		a.t.Fatal(err)
	}
	resp, err := a.client.Post(a.server.URL()+"/bot"+a.server.Token()+"/"+method, "application/json", bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	var r reply
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return r, err
	}
	r.header = resp.Header
	return r, json.Unmarshal(b, &r)
}

func (a api) call(method string, params map[string]any) reply {
	a.t.Helper()
	r, err := a.try(method, params)
	if err != nil {
		a.t.Fatalf("%s: %v", method, err)
	}
	return r
}

func (a api) ok(method string, params map[string]any) reply {
	a.t.Helper()
	r := a.call(method, params)
	if !r.OK {
		a.t.Fatalf("%s(%v) was refused: %s", method, params, r.Description)
	}
	return r
}

func (a api) refused(description, method string, params map[string]any) reply {
	a.t.Helper()
	r := a.call(method, params)
	if r.OK || !strings.Contains(r.Description, description) {
		a.t.Errorf("%s(%v) = ok %v, %q; want a refusal with %q", method, params, r.OK, r.Description, description)
	}
	return r
}

// updates asks for updates and returns their ids.
func (a api) updates(params map[string]any) []int64 {
	a.t.Helper()
	var list []struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(a.ok("getUpdates", params).Result, &list); err != nil {
		a.t.Fatal(err)
	}
	ids := []int64{}
	for _, u := range list {
		ids = append(ids, u.ID)
	}
	return ids
}

func equal(tb testing.TB, what string, got, want []int64) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%s = %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			tb.Fatalf("%s = %v, want %v", what, got, want)
		}
	}
}

func deadline(tb testing.TB) context.Context {
	tb.Helper()
	return waittest.Context(tb.Context(), tb)
}

func TestUpdatesAreConfirmedByALargerOffset(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	alice := s.Person(42)
	for range 5 {
		alice.Says("hi")
	}
	equal(t, "first batch", a.updates(map[string]any{"limit": 2}), []int64{1, 2})
	if s.Acknowledged(1) {
		t.Error("an update is acknowledged although no larger offset was asked for")
	}
	equal(t, "offset 2 keeps 2", a.updates(map[string]any{"offset": 2}), []int64{2, 3, 4, 5})
	if !s.Acknowledged(1) || s.Acknowledged(2) || s.Acknowledged(6) {
		t.Error("offset 2 must acknowledge exactly update 1")
	}
	equal(t, "far future is served from the head", a.updates(map[string]any{"offset": 1000}), []int64{2, 3, 4, 5})
	equal(t, "negative", a.updates(map[string]any{"offset": -1}), []int64{5})
	equal(t, "forgotten", s.Forgotten(), []int64{2, 3, 4})
	if s.Acknowledged(3) {
		t.Error("a forgotten update is not acknowledged")
	}
	a.updates(map[string]any{"offset": 5})
	s.SetNextUpdateID(1 << 40)
	equal(t, "after a jump", []int64{alice.Says("later").UpdateID}, []int64{1 << 40})
	equal(t, "all", a.updates(map[string]any{"offset": 6}), []int64{1 << 40})
	if s.Acknowledged(77) {
		t.Error("an id that was never used is not acknowledged")
	}
}

func TestRepeatedOffsetIsSlowedDown(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	s.Person(42).Says("one")
	s.Person(42).Says("two")
	equal(t, "first", a.updates(map[string]any{"offset": 1}), []int64{1, 2})
	equal(t, "again at once", a.updates(map[string]any{"offset": 1}), []int64{1})
}

func TestPollWaitsAndIsWoken(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	got := make(chan []int64)
	go func() { got <- a.updates(map[string]any{"timeout": 50}) }()
	sent := s.Person(42).Says("hi")
	equal(t, "woken", <-got, []int64{sent.UpdateID})
}

func TestANewerPollEndsTheOlder(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	old := make(chan reply)
	for range 2 {
		polls := s.Count("getUpdates")
		go func() { old <- a.call("getUpdates", map[string]any{"timeout": 50, "offset": polls}) }()
	}
	r := <-old
	if r.Code != 409 || r.Description != "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running" {
		t.Errorf("the older poll got %d %q", r.Code, r.Description)
	}
	a.ok("setWebhook", map[string]any{"url": "http://127.0.0.1:1/x"})
	if r := <-old; r.Description != "Conflict: terminated by setWebhook request" {
		t.Errorf("the poll got %q", r.Description)
	}
	a.refused("Conflict: can't use getUpdates method while webhook is active", "getUpdates", nil)
}

func TestCloseEndsAPoll(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	done := make(chan error, 1)
	go func() {
		_, err := a.try("getUpdates", map[string]any{"timeout": 50})
		done <- err
	}()
	s.Close()
	<-done
}

func TestAllowedUpdates(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	if id := s.Deliver(telegram.Update{Kind: "message_reaction", Payload: map[string]any{}}); id != 0 {
		t.Error("reactions are not in the default")
	}
	a.updates(map[string]any{"allowed_updates": []string{"message_reaction"}})
	if s.Person(42).Says("hi").UpdateID != 0 {
		t.Error("messages were not asked for")
	}
	a.updates(map[string]any{"offset": 1})
	if s.Deliver(telegram.Update{Kind: "message_reaction", Payload: map[string]any{}}) == 0 {
		t.Error("the setting must persist")
	}
}

func TestUpdatesExpireAfterADay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	s, a := setup(t, telegram.Options{Now: func() time.Time { return now }})
	s.Person(42).Says("old")
	now = now.Add(25 * time.Hour)
	s.Person(42).Says("fresh")
	equal(t, "updates", a.updates(nil), []int64{2})
	equal(t, "forgotten", s.Forgotten(), []int64{1})
}

func TestSendingIsStrict(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	hi := s.Person(42).Says("hi")
	entity := func(kind string, offset, length int) []map[string]any {
		return []map[string]any{{"type": kind, "offset": offset, "length": length}}
	}
	msg := func(more ...any) map[string]any {
		m := map[string]any{"chat_id": 42, "text": "x😀y"}
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		return m
	}
	cases := []struct {
		want   string
		params map[string]any
	}{
		{"message text is empty", msg("text", "")},
		{"text must be non-empty", msg("text", " \n ")},
		{"message is too long", msg("text", strings.Repeat("a", 4097))},
		{"chat_id is empty", map[string]any{"text": "x"}},
		{"chat not found", msg("chat_id", 43)},
		{"can't parse entities", msg("entities", entity("bold", 0, 5))},
		{"can't parse entities", msg("entities", entity("bold", 9, 1))},
		{"can't parse entities", msg("entities", entity("bold", -1, 1))},
		{"ends in a middle", msg("entities", entity("bold", 0, 2))},
		{"begins in a middle", msg("entities", entity("bold", 2, 1))},
		{"unsupported type", msg("entities", entity("nonsense", 0, 1))},
		{"can't find field \"url\"", msg("entities", entity("text_link", 0, 1))},
		{"can't parse entities", msg("entities", "oops")},
		{"can't parse entities", msg("parse_mode", "HTML", "text", "a < b")},
		{"unsupported parse_mode", msg("parse_mode", "rtf")},
		{"message to be replied not found", msg("reply_parameters", map[string]any{"message_id": 99})},
		{"message thread not found", msg("message_thread_id", 7)},
		{"BUTTON_DATA_INVALID", msg("reply_markup", map[string]any{
			"inline_keyboard": []any{[]any{map[string]any{"text": "b", "callback_data": strings.Repeat("d", 65)}}},
		})},
	}
	for _, c := range cases {
		if c.want == "can't parse entities" && c.params["entities"] == "oops" {
			c.want = "can't parse entities JSON object"
		}
		a.refused(c.want, "sendMessage", c.params)
	}
	if got := s.ChatView(42).FromBot(); len(got) != 0 {
		t.Fatalf("refused messages are visible: %v", got)
	}
	a.ok("sendMessage", msg("text", strings.Repeat("😀", 4096)))
	a.ok("sendMessage", msg("entities", entity("bold", 1, 2), "disable_notification", true,
		"link_preview_options", map[string]any{"is_disabled": true}))
	a.ok("sendMessage", msg("reply_parameters", map[string]any{"message_id": 99, "allow_sending_without_reply": true}))
	a.ok("sendMessage", msg("reply_parameters", map[string]any{"message_id": hi.MessageID}))
	got := s.ChatView(42).FromBot()
	if m := got[1]; len(m.Entities) != 1 || !m.Silent || !m.PreviewDisabled() || got[0].PreviewDisabled() {
		t.Errorf("not recorded as sent: %+v", m)
	}
	if got[2].ReplyTo != 0 || got[3].ReplyTo != hi.MessageID {
		t.Errorf("replies to %d and %d", got[2].ReplyTo, got[3].ReplyTo)
	}
}

func TestTextIsCleaned(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	s.Person(42).Says("hi")
	a.ok("sendMessage", map[string]any{
		"chat_id": 42, "text": "\n  a\r\nbold  \n",
		"entities": []any{map[string]any{"type": "bold", "offset": 6, "length": 6}},
	})
	m := s.ChatView(42).Last()
	if m.Text != "a\nbold" || m.Entities[0].Offset != 2 || m.Entities[0].Length != 4 {
		t.Errorf("got %q %+v", m.Text, m.Entities)
	}
}

func TestEditsAndDeletions(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	hi := s.Person(42).Says("hi")
	a.ok("sendMessage", map[string]any{"chat_id": 42, "text": "…"})
	id := s.ChatView(42).Last().ID
	edit := func(text string) map[string]any {
		return map[string]any{"chat_id": 42, "message_id": id, "text": text}
	}
	a.ok("editMessageText", edit("one"))
	a.ok("editMessageText", edit("two"))
	r := a.refused("message is not modified: specified new message content and reply markup are exactly the same as "+
		"a current content and reply markup of the message", "editMessageText", edit("two "))
	if r.Code != 400 {
		t.Errorf("code %d", r.Code)
	}
	a.refused("message can't be edited", "editMessageText", map[string]any{"chat_id": 42, "message_id": hi.MessageID, "text": "x"})
	a.refused("message to edit not found", "editMessageText", map[string]any{"chat_id": 42, "message_id": 99, "text": "x"})
	m := s.ChatView(42).Message(id)
	if m.Text != "two" || m.Edits != 2 || len(m.History) != 2 || m.History[0].Text != "…" || m.History[1].Text != "one" {
		t.Errorf("message %+v", m)
	}
	before := s.Ledger()
	a.ok("deleteMessage", map[string]any{"chat_id": 42, "message_id": id})
	a.refused("message to delete not found", "deleteMessage", map[string]any{"chat_id": 42, "message_id": id})
	a.refused("message to edit not found", "editMessageText", edit("three"))
	if n := len(before.Chat(42).FromBot()); n != 1 {
		t.Errorf("an old ledger changed: %d messages", n)
	}
	if v := s.ChatView(42); len(v.FromBot()) != 0 || len(v.Deleted) != 1 {
		t.Errorf("view %+v", v)
	}
}

func TestMethodsAndTokens(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	if r := a.call("noSuchMethod", nil); r.Code != 404 || r.Description != "Not Found" {
		t.Errorf("unknown method: %+v", r)
	}
	a.ok("GETME", nil)
	resp, err := a.client.PostForm(s.URL()+"/bot1000:wrong/getMe", url.Values{})
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || string(body) != `{"ok":false,"error_code":401,"description":"Unauthorized"}` {
		t.Errorf("wrong token: %d %s", resp.StatusCode, body)
	}
	s.Person(42).Says("hi")
	resp, err = a.client.PostForm(s.URL()+"/bot"+s.Token()+"/sendMessage", url.Values{"chat_id": {"42"}, "text": {"form"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := s.ChatView(42).Last().Text; got != "form" {
		t.Errorf("urlencoded body: %q", got)
	}
}

func TestSmallMethods(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	alice := s.Person(42)
	hi := alice.Says("hi")
	a.ok("sendChatAction", map[string]any{"chat_id": 42, "action": "typing"})
	a.refused("wrong parameter action", "sendChatAction", map[string]any{"chat_id": 42, "action": "dance"})
	react := func(emoji ...string) map[string]any {
		list := []any{}
		for _, e := range emoji {
			list = append(list, map[string]any{"type": "emoji", "emoji": e})
		}
		return map[string]any{"chat_id": 42, "message_id": hi.MessageID, "reaction": list}
	}
	a.ok("setMessageReaction", react("👀"))
	if got := s.ChatView(42).Message(hi.MessageID).Reactions; len(got) != 1 {
		t.Errorf("reactions %v", got)
	}
	a.ok("setMessageReaction", react())
	a.refused("REACTION_INVALID", "setMessageReaction", react("🧀"))
	a.refused("REACTIONS_TOO_MANY", "setMessageReaction", react("👀", "👍"))
	a.ok("sendMessageDraft", map[string]any{"chat_id": 42, "draft_id": 5, "text": "thinking"})
	a.ok("sendMessageDraft", map[string]any{"chat_id": 42, "draft_id": 5, "text": "more"})
	v := s.ChatView(42)
	if v.Actions != 1 || len(v.Drafts) != 1 || v.Drafts[0].Text != "more" || v.Drafts[0].Updates != 2 {
		t.Errorf("view %+v", v)
	}
	a.ok("sendMessage", map[string]any{"chat_id": 42, "text": "done"})
	if len(s.ChatView(42).Drafts) != 0 {
		t.Error("a message replaces the draft")
	}
	a.ok("setMyCommands", map[string]any{"commands": []any{map[string]any{"command": "help", "description": "Help"}}})
	a.refused("BOT_COMMAND_INVALID", "setMyCommands", map[string]any{"commands": []any{map[string]any{"command": "He-lp", "description": "Help"}}})
	if menu := s.Menu()["|"]; len(menu) != 1 || menu[0].Command != "help" {
		t.Errorf("menu %v", menu)
	}
	press := alice.Presses(s.ChatView(42).Last().ID, "yes")
	query := "query" + string(rune('0'+press.UpdateID))
	a.ok("answerCallbackQuery", map[string]any{"callback_query_id": query, "text": "ok"})
	a.refused("query is too old", "answerCallbackQuery", map[string]any{"callback_query_id": query})
	a.ok("sendMessage", map[string]any{"chat_id": 42, "text": "choose", "reply_markup": map[string]any{
		"inline_keyboard": []any{[]any{map[string]any{"text": "b", "callback_data": "d", "style": "danger"}}},
	}})
	choice := s.ChatView(42).Last()
	if k := choice.Keyboard(); len(k) != 1 || len(k[0]) != 1 || k[0][0] != (telegram.Button{Text: "b", Data: "d", Style: "danger"}) {
		t.Errorf("keyboard %v", k)
	}
	a.ok("editMessageText", map[string]any{"chat_id": 42, "message_id": choice.ID, "text": "choose"})
	if k := s.ChatView(42).Last().Keyboard(); k != nil {
		t.Errorf("an edit without a keyboard leaves %v", k)
	}
	if answers := s.Ledger().Answers; len(answers) != 1 || answers[0].Text != "ok" {
		t.Errorf("answers %v", answers)
	}
}

func TestFilesAreDownloaded(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	s.Person(42).Sends(telegram.Attachment{Name: "a.txt", MIME: "text/plain", Data: []byte("content")}, "see /this")
	var list []struct {
		Message struct {
			Caption  string `json:"caption"`
			Document struct {
				FileID string `json:"file_id"`
			} `json:"document"`
		} `json:"message"`
	}
	if err := json.Unmarshal(a.ok("getUpdates", nil).Result, &list); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Path string `json:"file_path"`
	}
	r := a.ok("getFile", map[string]any{"file_id": list[0].Message.Document.FileID})
	if err := json.Unmarshal(r.Result, &file); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{s.Token(): "content", "1000:no": `{"ok":false,"error_code":404,"description":"Not Found"}`} {
		resp, err := a.client.Get(s.URL() + "/file/bot" + token + "/" + file.Path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != want {
			t.Errorf("token %q: %q", token, body)
		}
	}
	s.Person(42).Sends(telegram.Attachment{Name: "big", Size: 21 << 20}, "")
	a.refused("file is too big", "getFile", map[string]any{"file_id": "file2"})
	a.refused("invalid file_id", "getFile", map[string]any{"file_id": "file3"})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	s.Person(42).Says("hi")
	msg := map[string]any{"chat_id": 42, "text": "x"}
	visible := func() int { return len(s.ChatView(42).FromBot()) }

	s.Inject("sendMessage", telegram.Fault{}, telegram.FloodWait(3*time.Second), telegram.ServerError(502))
	a.ok("sendMessage", msg)
	r := a.refused("Too Many Requests: retry after 3", "sendMessage", msg)
	if r.Code != 429 || r.Parameters.RetryAfter != 3 || r.header.Get("Retry-After") != "3" {
		t.Errorf("flood wait: %+v", r)
	}
	if r := a.refused("Bad Gateway", "sendMessage", msg); r.Code != 502 || visible() != 1 {
		t.Errorf("server error: %+v, %d visible", r, visible())
	}
	// The fault, and how many messages are visible afterwards. Every answer is
	// an error for the client.
	steps := []struct {
		fault telegram.Fault
		added int
	}{
		{telegram.Fault{End: platformapi.Before}, 0}, {telegram.Fault{End: platformapi.After}, 1}, {telegram.Fault{End: platformapi.Short}, 1},
		{telegram.Fault{End: platformapi.Truncated}, 1}, {telegram.Fault{End: platformapi.Garbage}, 1},
	}
	for i, step := range steps {
		before := visible()
		s.Inject(telegram.AnyMethod, step.fault)
		if _, err := a.try("sendMessage", msg); err == nil {
			t.Errorf("fault %d: the client saw no error", i)
		}
		if got := visible() - before; got != step.added {
			t.Errorf("fault %d: %d messages appeared, want %d", i, got, step.added)
		}
	}
	if n, c := s.Count("sendMessage"), s.Calls("sendMessage"); n != 8 || len(c) != 8 || !c[1].Faulty || c[1].Status != 429 {
		t.Errorf("%d calls, log %+v", n, c)
	}

	gate := emulator.NewGate()
	s.InjectFunc(func(c telegram.Call) telegram.Fault {
		if c.Params["text"] == "held" {
			return telegram.Fault{Gate: gate}
		}
		return telegram.Fault{}
	})
	done := make(chan error, 1)
	go func() {
		_, err := a.try("sendMessage", map[string]any{"chat_id": 42, "text": "held"})
		done <- err
	}()
	<-gate.Reached()
	if s.ChatView(42).Last().Text == "held" {
		t.Error("a held call was carried out")
	}
	gate.Open()
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.ClearFaults()
}

func TestGroups(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{Privacy: true})
	const room = -1001234567890123
	bob := s.Person(7).In(room)
	if bob.Says("just talk").UpdateID != 0 {
		t.Error("privacy mode: plain messages stay hidden")
	}
	for _, text := range []string{"/help", "hey @test_bot!", "/help@Test_Bot"} {
		if bob.Says(text).UpdateID == 0 {
			t.Errorf("%q must be delivered", text)
		}
	}
	if bob.Says("/help@other_bot").UpdateID != 0 {
		t.Error("a command for another bot stays hidden")
	}
	a.ok("sendMessage", map[string]any{"chat_id": room, "text": "welcome"})
	if bob.ReplyingTo(s.ChatView(room).Last().ID).Says("thanks").UpdateID == 0 {
		t.Error("a reply to the bot must be delivered")
	}
	topic := bob.InTopic(77).Says("/in_topic")
	a.ok("sendMessage", map[string]any{"chat_id": room, "text": "here", "message_thread_id": 77})
	s.DeleteTopic(room, 77)
	a.refused("message thread not found", "sendMessage", map[string]any{"chat_id": room, "text": "here", "message_thread_id": 77})
	if m := s.ChatView(room).Message(topic.MessageID); m.ID != 0 {
		t.Error("messages of a deleted topic are gone")
	}
	bob.RemovesBot()
	if r := a.refused("Forbidden: bot was kicked from the supergroup chat", "sendMessage", map[string]any{"chat_id": room, "text": "x"}); r.Code != 403 {
		t.Errorf("code %d", r.Code)
	}
	s.Person(7).Says("hi")
	s.Person(7).Blocks()
	a.refused("Forbidden: bot was blocked by the user", "sendMessage", map[string]any{"chat_id": 7, "text": "x"})
	s.Person(7).Unblocks()
	a.ok("sendMessage", map[string]any{"chat_id": 7, "text": "x"})

	s.Person(7).In(-5).Says("/hi")
	s.Migrate(-5, -1005)
	r := a.refused("group chat was upgraded to a supergroup chat", "sendMessage", map[string]any{"chat_id": -5, "text": "x"})
	if r.Parameters.MigrateTo != -1005 {
		t.Errorf("migrate to %d", r.Parameters.MigrateTo)
	}
	a.ok("sendMessage", map[string]any{"chat_id": -1005, "text": "x"})
}

func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	s, a := setup(t, telegram.Options{Limits: telegram.PublishedLimits(), Now: func() time.Time { return now }})
	s.Person(42).Says("hi")
	for range 3 {
		a.ok("sendMessage", map[string]any{"chat_id": 42, "text": "x"})
		now = now.Add(time.Second)
	}
	if got := s.Violations(); len(got) != 0 {
		t.Fatalf("one a second is allowed: %v", got)
	}
	a.ok("sendMessage", map[string]any{"chat_id": 42, "text": "x"})
	now = now.Add(500 * time.Millisecond)
	a.ok("sendMessage", map[string]any{"chat_id": 42, "text": "x"})
	if got := s.Violations(); len(got) != 1 || got[0].Rule != "rate" {
		t.Fatalf("violations %v", got)
	}
	enforced, b := setup(t, telegram.Options{Limits: &telegram.Limits{PerChat: 1, Enforce: true}})
	enforced.Person(42).Says("hi")
	b.ok("sendMessage", map[string]any{"chat_id": 42, "text": "x"})
	b.refused("Too Many Requests: retry after 1", "sendMessage", map[string]any{"chat_id": 42, "text": "x"})
}

func TestBoundedMemory(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{KeepEdits: 1, KeepMessages: 3, KeepCalls: -1})
	for range 5 {
		s.Person(42).Says("hi")
	}
	a.ok("sendMessage", map[string]any{"chat_id": 42, "text": "0"})
	id := s.ChatView(42).Last().ID
	for _, text := range []string{"1", "2", "3"} {
		a.ok("editMessageText", map[string]any{"chat_id": 42, "message_id": id, "text": text})
	}
	v := s.ChatView(42)
	if len(v.Messages) != 3 || len(v.Last().History) != 1 || v.Last().History[0].Text != "2" || v.Last().Edits != 3 {
		t.Errorf("view %+v", v)
	}
	if len(s.Calls()) != 0 || s.Count("editMessageText") != 3 {
		t.Error("calls are counted but not kept")
	}
}

func TestEntitiesThatTelegramFinds(t *testing.T) {
	t.Parallel()
	text := "😀 /start@test_bot go @alice a/b user@host https://example.org/x 1/2"
	var got []string
	for _, e := range telegram.FindEntities(text) {
		units := utf16Slice(text, e.Offset, e.Length)
		got = append(got, e.Type+"="+units)
	}
	want := "bot_command=/start@test_bot mention=@alice url=https://example.org/x"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, telegram.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx, func(telegram.Ledger) bool { return false }); err == nil {
		t.Error("no error")
	}
}
