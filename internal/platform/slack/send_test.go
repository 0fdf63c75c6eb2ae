package slack_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"

	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
	"remote-agent/internal/platform/slack"
)

func TestSendPostsSafely(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref, err := b.Send(t.Context(), messages.Outbound{
		Delivery: "d-1", Conversation: key("T1/C1/10.1"), Text: "**hi** <!channel> <@U2> & @here <b>",
		Buttons: []messages.Button{{ID: "b-1", Label: "Stop", Style: messages.ButtonDanger}},
	})
	if err != nil || ref.Conversation != key("T1/C1/10.1") || ref.Message != "1700000100.000100" {
		t.Fatalf("Send: %+v, %v", ref, err)
	}
	form := b.api.made("chat.postMessage")[0].form
	for k, want := range map[string]string{
		"channel": "C1", "thread_ts": "10.1", "unfurl_links": "false", "unfurl_media": "false",
		"metadata": `{"event_type":"remote_agent","event_payload":{"delivery":"d-1"}}`,
	} {
		if form.Get(k) != want {
			t.Errorf("%s is %q, want %q", k, form.Get(k), want)
		}
	}
	if form.Has("token") {
		t.Error("the token is in the body")
	}
	if text := form.Get("text"); strings.ContainsAny(text, "<>") || !strings.Contains(text, "&amp;") {
		t.Errorf("the text is not escaped: %s", text)
	}
	var blocks []struct {
		Type, Text string
		Elements   []struct {
			Type, Value, Style string
			ActionID           string `json:"action_id"`
			Text               struct{ Type, Text string }
		}
	}
	mustJSON(t, form.Get("blocks"), &blocks)
	if len(blocks) != 2 || blocks[0].Type != "markdown" || blocks[1].Type != "actions" || len(blocks[1].Elements) != 1 {
		t.Fatalf("blocks: %s", form.Get("blocks"))
	}
	if e := blocks[1].Elements[0]; e.Type != "button" || e.Value != "b-1" || e.ActionID != "b-1" || e.Style != "danger" || e.Text.Text != "Stop" {
		t.Errorf("button: %+v", e)
	}
	if pings.MatchString(blocks[0].Text) || !strings.Contains(blocks[0].Text, "**hi**") || !strings.Contains(blocks[0].Text, "<b>") {
		t.Errorf("markdown: %q", blocks[0].Text)
	}
}

// pings is what would notify somebody.
var pings = regexp.MustCompile(`(?i)<[@#][A-Z0-9]|<!(channel|here|everyone|group|subteam|date)\b|(^|[ (])@(channel|here|everyone|group)\b`)

func TestDefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"<!channel>", "<!here|x>", "<!EVERYONE>", "<!subteam^S1>", "<@U123>", "<@W123|bob>", "<#C1|x>", "@here", "hey @channel!", "(@everyone)",
		"`<!channel>`", "```\n<@U1>\n```", "<<!channel>>", "@here @here", "<!date^1^x|y>",
	} {
		if out := slack.Defused(s); pings.MatchString(out) || slack.Defused(out) != out {
			t.Errorf("Defused(%q) is %q", s, out)
		}
	}
	for _, s := range []string{"a < b", "<!DOCTYPE html>", "<!-- x -->", "me@here.example", "x@channel", "<https://a.example>", "<b>", "@hereafter", "a @there"} {
		if out := slack.Defused(s); out != s {
			t.Errorf("Defused(%q) is %q", s, out)
		}
	}
}

func TestOpeningARoot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.command(map[string]string{"text": "why <!channel> & <@U2|bo>?", "response_url": b.api.URL + "/respond"})
	in := b.one(t)
	ref, err := b.Send(t.Context(), messages.Outbound{Delivery: "d-1", Conversation: in.Conversation, Text: in.Opening})
	if err != nil || ref.Conversation != key("T1/C1/1700000100.000100") || ref.Message != "1700000100.000100" {
		t.Fatalf("Send: %+v, %v", ref, err)
	}
	form := b.api.made("chat.postMessage")[0].form
	if text := form.Get("text"); !strings.HasPrefix(text, "<@U1> asked: why ") || strings.Count(text, "<") != 1 || !strings.Contains(text, "@bo") {
		t.Errorf("the root says %q", text)
	}
	if form.Has("thread_ts") {
		t.Error("the root is in a thread")
	}

	// An edit, such as follows a send that left open whether it happened, keeps the name.
	if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: in.Opening}); err != nil {
		t.Fatal(err)
	}
	if text := b.api.made("chat.update")[0].form.Get("text"); !strings.HasPrefix(text, "<@U1> asked: why ") || strings.Count(text, "<") != 1 {
		t.Errorf("after an edit the root says %q", text)
	}
	inThread := messages.Ref{Conversation: ref.Conversation, Message: "1700000100.000200"}
	if err := b.Edit(t.Context(), platform.Edit{Ref: inThread, Text: "<@U1> asked: me"}); err != nil {
		t.Fatal(err)
	}
	if text := b.api.made("chat.update")[1].form.Get("text"); strings.Contains(text, "<") {
		t.Errorf("a model made itself a mention: %q", text)
	}

	// A model cannot make itself a mention there.
	if _, err := b.Send(t.Context(), messages.Outbound{Conversation: in.Conversation, Text: "x <@U1> asked: y"}); err != nil {
		t.Fatal(err)
	}
	if text := b.api.made("chat.postMessage")[1].form.Get("text"); strings.Contains(text, "<") {
		t.Errorf("the root says %q", text)
	}
}

func TestWhoAskedIsToldThatTheBotIsNotThere(t *testing.T) {
	t.Parallel()
	for code, kind := range map[string]fault.Kind{"not_in_channel": fault.Forbidden, "channel_not_found": fault.Gone, "is_archived": fault.Gone} {
		b := setup(t)
		b.command(map[string]string{"text": "why?", "response_url": b.api.URL + "/respond"})
		b.api.answer("chat.postMessage", `{"ok":false,"error":"`+code+`"}`)
		b.api.answer("chat.postEphemeral", `{"ok":false,"error":"`+code+`"}`)
		in := b.one(t)
		_, err := b.Send(t.Context(), messages.Outbound{Conversation: in.Conversation, Text: in.Opening})
		told := b.api.made("/respond")
		if !fault.Is(err, kind) || len(told) != 1 || !strings.Contains(told[0].form.Get("json"), "/invite") {
			t.Errorf("%s: %v, told %v", code, err, told)
		}
		_, err = b.Send(t.Context(), messages.Outbound{Conversation: in.Conversation, Text: "the answer"})
		if told := b.api.made("/respond"); !fault.Is(err, kind) || len(told) != 1 {
			t.Errorf("%s: %v for the answer, told %d times", code, err, len(told))
		}
		ref, err := b.Send(t.Context(), messages.Outbound{Conversation: in.Conversation, Text: "only you", OnlyFor: "U1"})
		if err != nil || len(b.api.made("/respond")) != 2 {
			t.Errorf("%s: %v", code, err)
		}
		if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "x"}); !fault.Is(err, fault.NotFound) {
			t.Errorf("editing what only one saw: %v", err)
		}
		if err := b.Whisper(t.Context(), in, "hello"); err != nil || len(b.api.made("/respond")) != 3 {
			t.Errorf("%s: Whisper: %v", code, err)
		}
	}
}

func TestResponseAddressMustBeSlacks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.command(map[string]string{"text": "x", "response_url": "https://hooks.slack.com.evil.example/x"})
	b.api.answer("chat.postEphemeral", `{"ok":false,"error":"channel_not_found"}`)
	b.api.answer("chat.postMessage", `{"ok":false,"error":"cannot_dm_bot"}`)
	if err := b.Whisper(t.Context(), b.one(t), "hello"); !fault.Is(err, fault.Gone) {
		t.Errorf("Whisper: %v", err)
	}
}

// TestANoteWhereNothingCanBePosted is a direct message.
func TestANoteWhereNothingCanBePosted(t *testing.T) {
	t.Parallel()
	for code, direct := range map[string]int{"restricted_action": 1, "not_in_channel": 1, "is_archived": 1, "thread_not_found": 1, "internal_error": 0} {
		b := setup(t)
		b.api.answer("chat.postEphemeral", `{"ok":false,"error":"`+code+`"}`)
		err := b.Whisper(t.Context(), messages.Inbound{Conversation: key("T1/C1/10.1"), Sender: messages.Sender{ID: "U1"}}, "hello")
		made := b.api.made("chat.postMessage")
		if len(made) != direct || (err == nil) != (direct == 1) {
			t.Fatalf("%s: %d messages, %v", code, len(made), err)
		}
		if direct == 1 && (made[0].form.Get("channel") != "U1" || made[0].form.Get("thread_ts") != "" || made[0].form.Get("text") != "hello") {
			t.Errorf("%s: %v", code, made[0].form)
		}
	}
}

func TestOnlyFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.answer("chat.postEphemeral", `{"ok":true,"message_ts":"1.2"}`)
	ref, err := b.Send(t.Context(), messages.Outbound{Conversation: key("T1/C1/10.1"), Text: "psst", OnlyFor: "U1"})
	made := b.api.made("chat.postEphemeral")
	if err != nil || ref.Message == "" || len(made) != 1 || made[0].form.Get("user") != "U1" || made[0].form.Get("thread_ts") != "10.1" {
		t.Errorf("Send: %+v, %v, %v", ref, err, made)
	}
	if len(b.api.made("chat.postMessage")) != 0 {
		t.Error("everybody saw it")
	}
}

// What only one person sees has the plainer forms, too, when Slack refuses the blocks.
func TestOnlyForInAnyForm(t *testing.T) {
	t.Parallel()
	const refused, ok = `{"ok":false,"error":"invalid_blocks"}`, `{"ok":true,"message_ts":"1.2"}`
	for name, call := range map[string]func(b bundle) error{
		"an answer": func(b bundle) error {
			_, err := b.Send(t.Context(), messages.Outbound{Conversation: key("T1/C1/10.1"), Text: "psst <b>", OnlyFor: "U1"})
			return err
		},
		"a note": func(b bundle) error {
			return b.Whisper(t.Context(), messages.Inbound{Conversation: key("T1/C1/10.1"), Sender: messages.Sender{ID: "U1"}}, "psst <b>")
		},
	} {
		b := setup(t)
		b.api.answer("chat.postEphemeral", refused, ok)
		if err := call(b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if form := b.api.made("chat.postEphemeral")[1].form; form.Get("text") != "psst &lt;b&gt;" || form.Get("blocks") != "[]" || form.Get("user") != "U1" {
			t.Errorf("%s: %v", name, form)
		}
	}
}

func TestAgainLooksFirst(t *testing.T) {
	t.Parallel()
	id := messages.DeliveryID(uuid.Must(uuid.NewV7()).String())
	mine := `{"ts":"20.5","bot_id":"BBOT","metadata":{"event_type":"remote_agent","event_payload":{"delivery":"` + string(id) + `"}}}`
	for name, tc := range map[string]struct {
		key, method string
		answers     []string
		want        messages.MessageID // empty: it is posted
		posted      int
		uncertain   bool
		wantKey     string
	}{
		"found in a thread":       {"T1/C1/10.1", "conversations.replies", []string{`{"ok":true,"messages":[{"ts":"10.1"},7,` + mine + `]}`}, "20.5", 0, false, "T1/C1/10.1"},
		"found on the next page":  {"T1/C1/10.1", "conversations.replies", []string{`{"ok":true,"messages":[{"ts":"10.1"}],"response_metadata":{"next_cursor":"c"}}`, `{"ok":true,"messages":[` + mine + `]}`}, "20.5", 0, false, "T1/C1/10.1"},
		"found in a conversation": {"T1/D1", "conversations.history", []string{`{"ok":true,"messages":[` + mine + `]}`}, "20.5", 0, false, "T1/D1"},
		"the root is found":       {"T1/C1/new-abc", "conversations.history", []string{`{"ok":true,"messages":[` + mine + `]}`}, "20.5", 0, false, "T1/C1/20.5"},
		"not there":               {"T1/D1", "conversations.history", []string{`{"ok":true,"messages":[{"ts":"1.1","blocks":7}]}`}, "1700000100.000100", 1, false, "T1/D1"},
		"somebody else's":         {"T1/D1", "conversations.history", []string{`{"ok":true,"messages":[` + strings.Replace(mine, "BBOT", "B9", 1) + `]}`}, "1700000100.000100", 1, false, "T1/D1"},
		"may not look":            {"T1/D1", "conversations.history", []string{`{"ok":false,"error":"missing_scope","needed":"im:history"}`}, "1700000100.000100", 1, false, "T1/D1"},
		"a page that is no list":  {"T1/D1", "conversations.history", []string{`{"ok":true,"messages":[],"has_more":7}`}, "", 0, true, ""},
		"a message of odd fields": {"T1/D1", "conversations.history", []string{`{"ok":true,"messages":[` + strings.Replace(mine, `{`, `{"blocks":[{"type":7}],"files":"x",`, 1) + `]}`}, "20.5", 0, false, "T1/D1"},
		"cannot look now":         {"T1/D1", "conversations.history", []string{`{"ok":false,"error":"internal_error"}`}, "", 0, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.api.answer(tc.method, tc.answers...)
			ref, err := b.Send(t.Context(), messages.Outbound{Delivery: id, Conversation: key(tc.key), Text: "hi", Again: true})
			if fault.Uncertain(err) != tc.uncertain || (err != nil) != tc.uncertain {
				t.Fatalf("Send: %v", err)
			}
			if ref.Message != tc.want || ref.Conversation.ID != tc.wantKey || len(b.api.made("chat.postMessage")) != tc.posted {
				t.Errorf("Send: %+v, %d posts", ref, len(b.api.made("chat.postMessage")))
			}
			looked := b.api.made(tc.method)
			if len(looked) == 0 || looked[0].form.Get("include_all_metadata") != "1" || looked[0].form.Get("oldest") == "" {
				t.Errorf("looked with %v", looked)
			}
			if len(looked) > 1 && looked[1].form.Get("cursor") != "c" {
				t.Errorf("looked on at %q", looked[1].form.Get("cursor"))
			}
		})
	}
}

// A stream whose opening is in doubt has no metadata yet. It is told from what else of the
// bot has none: to take that for the answer would be to overwrite it.
func TestOnlyAStreamIsTakenForTheAnswer(t *testing.T) {
	t.Parallel()
	id := messages.DeliveryID(uuid.Must(uuid.NewV7()).String())
	stream := func(fields string) string { return `{"user":"UBOT","bot_id":"BBOT","text":"…"` + fields + `}` }
	for name, tc := range map[string]struct {
		message, text string
		found         bool
	}{
		"a stream":                         {stream(`,"ts":"20.5"`), platform.Placeholder, true},
		"somebody else's":                  {strings.Replace(stream(`,"ts":"20.5"`), `"UBOT","bot_id":"BBOT"`, `"U9"`, 1), platform.Placeholder, false},
		"another delivery's":               {stream(`,"ts":"20.5","metadata":{"event_type":"remote_agent","event_payload":{"delivery":"other"}}`), platform.Placeholder, false},
		"another delivery's, by memory":    {stream(`,"ts":"1700000100.000100"`), platform.Placeholder, false},
		"the root":                         {stream(`,"ts":"10.1"`), platform.Placeholder, false},
		"before the question":              {stream(`,"ts":"14.9"`), platform.Placeholder, false},
		"a remark of Slack":                {stream(`,"ts":"20.5","subtype":"channel_topic"`), platform.Placeholder, false},
		"a file":                           {stream(`,"ts":"20.5","files":[{"id":"F1"}]`), platform.Placeholder, false},
		"older than what was never opened": {stream(`,"ts":"20.5"`), "hi", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			thread := key("T1/C1/10.1")
			if _, err := b.Send(t.Context(), messages.Outbound{Delivery: "other", Conversation: thread, Text: "before"}); err != nil {
				t.Fatal(err)
			}
			b.api.answer("conversations.replies", `{"ok":true,"messages":[`+tc.message+`]}`)
			_, err := b.Send(t.Context(), messages.Outbound{Delivery: id, Conversation: thread, ReplyTo: "15.0", Text: tc.text, Again: true})
			if posts := len(b.api.made("chat.postMessage")); err != nil || (posts == 1) != tc.found {
				t.Errorf("%d posts, %v", posts, err)
			}
		})
	}
}

func TestErrorsAreClassified(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]struct {
		kind      fault.Kind
		uncertain bool
		public    string
	}{
		`{"ok":false,"error":"invalid_auth"}`:                                 {fault.Unauthorized, false, "SLACK_BOT_TOKEN"},
		`{"ok":false,"error":"token_revoked"}`:                                {fault.Unauthorized, false, "SLACK_BOT_TOKEN"},
		`{"ok":false,"error":"account_inactive"}`:                             {fault.Unauthorized, false, "SLACK_BOT_TOKEN"},
		`{"ok":false,"error":"missing_scope","needed":"chat:write"}`:          {fault.Forbidden, false, "chat:write"},
		`{"ok":false,"error":"not_in_channel"}`:                               {fault.Forbidden, false, "/invite"},
		`{"ok":false,"error":"accesslimited"}`:                                {fault.Forbidden, false, "network"},
		`{"ok":false,"error":"channel_not_found"}`:                            {fault.Gone, false, "/invite"},
		`{"ok":false,"error":"is_archived"}`:                                  {fault.Gone, false, "archived"},
		`{"ok":false,"error":"cannot_reply_to_message"}`:                      {fault.Gone, false, "Ask again in a new one"},
		`{"ok":false,"error":"internal_error"}`:                               {fault.Unavailable, true, ""},
		`{"ok":false,"error":"fatal_error"}`:                                  {fault.Unavailable, true, ""},
		`{"ok":false,"error":"service_unavailable"}`:                          {fault.Unavailable, false, ""},
		`{"ok":false,"error":"org_login_required"}`:                           {fault.Unavailable, false, ""}, // the workspace moves to an organization
		`{"ok":false,"error":"external_channel_migrating"}`:                   {fault.Unavailable, false, ""},
		`{"ok":false,"error":"something_new"}`:                                {fault.Invalid, false, ""},
		`{"ok":false,"error":"msg_too_long"}`:                                 {fault.Invalid, false, ""},
		`{"ok":false,"error":"xoxb-1111-2222-secretsecretsecret is no code"}`: {fault.Invalid, false, ""},
		`{"ok":true,"ts":`:                                                    {fault.Unavailable, true, ""},
		`{"ok":false}`:                                                        {fault.Invalid, false, ""}, // no success, as the library has it
		`<html>gateway</html>`:                                                {fault.Unavailable, true, ""},
		`{"ok":true}`:                                                         {fault.Unavailable, true, ""},
		"500":                                                                 {fault.Unavailable, true, ""},
		"502":                                                                 {fault.Unavailable, true, ""},
		"503":                                                                 {fault.Unavailable, false, ""},
		"401":                                                                 {fault.Unauthorized, false, "SLACK_BOT_TOKEN"},
		"404":                                                                 {fault.Invalid, false, ""},
		"302":                                                                 {fault.Invalid, false, ""},
		`{"ok":true,"ts":"1.1","message":{"blocks":[{"type":7}],"text":9}}`: {"", false, ""},
	} {
		b := setup(t)
		b.api.answer("chat.postMessage", answer)
		_, err := b.Send(t.Context(), messages.Outbound{Conversation: key("T1/C1/10.1"), Text: "hi"})
		if fault.KindOf(err) != want.kind || fault.Uncertain(err) != want.uncertain || !strings.Contains(fault.Public(err), want.public) && err != nil {
			t.Errorf("%s: %v is %q, uncertain %v", answer, err, fault.KindOf(err), fault.Uncertain(err))
		}
		if err != nil && strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("%s: the error contains the token", answer)
		}
	}
}

func TestEditErrors(t *testing.T) {
	t.Parallel()
	for code, kind := range map[string]fault.Kind{
		"edit_window_closed": fault.NotFound, "cant_update_message": fault.NotFound, "message_not_found": fault.NotFound,
		"block_mismatch": fault.NotFound, "msg_too_long": fault.Invalid, "internal_error": fault.Unavailable,
	} {
		b := setup(t)
		b.api.answer("chat.update", `{"ok":false,"error":"`+code+`"}`)
		err := b.Edit(t.Context(), platform.Edit{Ref: messages.Ref{Conversation: key("T1/C1/10.1"), Message: "20.1"}, Text: "hi"})
		if !fault.Is(err, kind) || fault.Uncertain(err) {
			t.Errorf("%s: %v is %q", code, err, fault.KindOf(err))
		}
	}
}

func TestRefusedBlocksAreSentPlain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.answer("chat.postMessage", `{"ok":false,"error":"invalid_blocks"}`, `{"ok":true,"ts":"1.1"}`)
	if _, err := b.Send(t.Context(), messages.Outbound{Conversation: key("T1/D1"), Text: "**hi** <!here>"}); err != nil {
		t.Fatal(err)
	}
	made := b.api.made("chat.postMessage")
	if len(made) != 2 || made[1].form.Get("blocks") != "[]" || strings.Contains(made[1].form.Get("text"), "<") {
		t.Errorf("posted %v", made)
	}
	b.api.answer("chat.update", `{"ok":false,"error":"msg_too_long"}`, `{"ok":true}`)
	ref := messages.Ref{Conversation: key("T1/D1"), Message: "20.1"}
	if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "hi"}); err != nil || len(b.api.made("chat.update")) != 2 {
		t.Error(err)
	}
}

// What Slack shows of a message with blocks is the blocks alone, so a long text has all of it
// there, beside the buttons; if they are refused as well, the text is worth more than they.
func TestRefusedBlocksLeaveNothingOut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("some words & <tags>\n", 560)
	buttons := []messages.Button{{ID: "b-1", Label: "Retry"}}
	const refused, ok = `{"ok":false,"error":"invalid_blocks"}`, `{"ok":true,"ts":"1.1"}`
	b := setup(t)
	ref := messages.Ref{Conversation: key("T1/D1"), Message: "20.1"}
	for method, call := range map[string]func() error{
		"chat.postMessage": func() error {
			_, err := b.Send(t.Context(), messages.Outbound{Conversation: key("T1/D1"), Text: long, Buttons: buttons})
			return err
		},
		"chat.update": func() error { return b.Edit(t.Context(), platform.Edit{Ref: ref, Text: long, Buttons: buttons}) },
	} {
		b.api.answer(method, refused, ok)
		if err := call(); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		var blocks []struct {
			Type string
			Text struct{ Text string }
		}
		form := b.api.made(method)[1].form
		mustJSON(t, form.Get("blocks"), &blocks)
		shown := ""
		for _, block := range blocks {
			shown += block.Text.Text + "\n"
			if n := utf8.RuneCountInString(block.Text.Text); n > 3000 {
				t.Errorf("%s: a section has %d characters", method, n)
			}
		}
		if got := strings.Count(shown, "some words &amp; &lt;tags&gt;"); got != 560 || blocks[len(blocks)-1].Type != "actions" || len(form.Get("text")) > 4000 {
			t.Errorf("%s shows %d of 560 lines, with %d bytes beside them", method, got, len(form.Get("text")))
		}
	}
	b.api.answer("chat.postMessage", refused, refused, ok)
	if _, err := b.Send(t.Context(), messages.Outbound{Conversation: key("T1/D1"), Text: "hi", Buttons: buttons}); err != nil {
		t.Fatal(err)
	}
	if last := b.api.made("chat.postMessage")[4].form; last.Get("blocks") != "[]" || last.Get("text") != "hi" {
		t.Errorf("what is left: %v", last)
	}
}

// The text beside the blocks is within what chat.update takes also where each of its
// characters is written as five.
func TestTextBesideBlocksIsShort(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.Edit(t.Context(), platform.Edit{Ref: messages.Ref{Conversation: key("T1/D1"), Message: "20.1"}, Text: strings.Repeat("&", 2000)}); err != nil {
		t.Fatal(err)
	}
	if got := b.api.made("chat.update")[0].form.Get("text"); utf8.RuneCountInString(got) > 4000 {
		t.Errorf("the text has %d characters", utf8.RuneCountInString(got))
	}
}

func TestProgressIsShedAndFinalTextWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := messages.Ref{Conversation: key("T1/C1/10.1"), Message: "20.1"}
	b.api.answer("chat.update", `{"ok":false,"error":"ratelimited"}`, `{"ok":true}`)
	if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "a", Progress: true}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("first: %v", err)
	}
	if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "b", Progress: true}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("second: %v", err)
	}
	if n := len(b.api.made("chat.update")); n != 1 {
		t.Errorf("%d calls while Slack wants silence", n)
	}
	if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "c"}); err != nil {
		t.Errorf("the final text: %v", err)
	}
	// The silence is of this method only.
	if _, err := b.Send(t.Context(), messages.Outbound{Conversation: ref.Conversation, Text: "hi"}); err != nil {
		t.Error(err)
	}
}

// What a workspace has sent too much of is not tried again every second.
func TestAWorkspaceThatSentTooMuchIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.answer("chat.postMessage", `{"ok":false,"error":"message_limit_exceeded"}`)
	_, err := b.Send(t.Context(), messages.Outbound{Conversation: key("T1/C1/10.1"), Text: "hi"})
	if !fault.Is(err, fault.RateLimited) || exchange.RetryAfter(err) < 30*time.Second {
		t.Errorf("the error is %v, to be tried again after %s", err, exchange.RetryAfter(err))
	}
}

func TestMeasureIsWithinSlacksLimits(t *testing.T) {
	t.Parallel()
	c := setup(t).Capabilities()
	for _, part := range platform.Split(strings.Repeat("Some <@U1> text 𝔘 and *more*. ", 2000), c.MaxText, c.Measure) {
		b := setup(t)
		if _, err := b.Send(t.Context(), messages.Outbound{Conversation: key("T1/C1/10.1"), Text: part}); err != nil {
			t.Fatal(err)
		}
		var blocks []struct{ Text string }
		form := b.api.made("chat.postMessage")[0].form
		mustJSON(t, form.Get("blocks"), &blocks)
		block, text := len(utf16.Encode([]rune(blocks[0].Text))), len(utf16.Encode([]rune(form.Get("text"))))
		if block > 12000 || text > 4000 || block+text > 13200 {
			t.Errorf("a block of %d and a text of %d", block, text)
		}
	}
	if _, err := setup(t).Send(t.Context(), messages.Outbound{Conversation: key("T1/D1"), Text: strings.Repeat("x", slack.MaxText+1)}); !fault.Is(err, fault.Invalid) {
		t.Errorf("too long: %v", err)
	}
}

func TestScopesThatDifferAreNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := slack.Scopes()
	for granted, want := range map[string]doctor.Finding{
		strings.Join(all, ","):                          {Status: doctor.OK},
		strings.Join(all[1:], ","):                      {Status: doctor.Fail, Detail: all[0]},
		strings.Join(append(all, "users:write"), ","):   {Status: doctor.Warn, Detail: "users:write"},
		strings.Join(append(all[1:], "team:read"), ","): {Status: doctor.Fail, Detail: all[0]},
	} {
		b.api.header.Set("X-OAuth-Scopes", granted)
		account, err := b.Check(t.Context())
		if err != nil || account.ID != "T1" || account.Name != "@agent" {
			t.Errorf("Check: %+v, %v", account, err)
		}
		if f := b.Examine(t.Context())[0]; f.Status != want.Status || !strings.HasSuffix(f.Detail, want.Detail) {
			t.Errorf("with %s found %+v", granted, f)
		}
	}
	b.api.answer("auth.test", `{"ok":false,"error":"invalid_auth"}`)
	if _, err := b.Check(t.Context()); !fault.Is(err, fault.Unauthorized) {
		t.Error(err)
	}
}

// Whoever asks, the log says once what is too much: at the start the app is looked at twice.
func TestScopesThatDifferAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	b := setup(t, func(c *slack.Config) { c.Log = slog.New(slog.NewTextHandler(&said, nil)) })
	count := func(scope string, want int) {
		t.Helper()
		if n := strings.Count(said.String(), scope); n != want {
			t.Errorf("%s is named %d times, want %d:\n%s", scope, n, want, said.String())
		}
	}
	for _, extra := range []string{"users:write", "users:write", "team:read"} {
		b.api.header.Set("X-OAuth-Scopes", strings.Join(append(slack.Scopes(), extra), ","))
		if _, err := b.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Run(ctx, b.sink); err != nil {
		t.Fatal(err)
	}
	count("users:write", 1)
	count("team:read", 1)
}

func TestRunEndsWhenTheAppIsRemoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- b.Run(ctx, b.sink) }()
	b.event(`{"type":"app_uninstalled"}`) // Slack says otherwise
	b.api.answer("auth.test", `{"ok":false,"error":"account_inactive"}`)
	b.event(`{"type":"tokens_revoked","tokens":{"bot":["UBOT"]}}`)
	if err := <-ended; !fault.Is(err, fault.Unauthorized) {
		t.Errorf("Run: %v", err)
	}
	// What comes now over HTTP could not be answered.
	said := `{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"hi","ts":"1700000000.000100"}`
	if w := b.event(said); w.Code != http.StatusServiceUnavailable || len(b.sink.Events()) != 0 {
		t.Errorf("answered %d: %+v", w.Code, b.sink.Events())
	}
}

func TestRunWaitsForSlack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.answer("auth.test", "503", `{"ok":true,"team_id":"T1","user_id":"UBOT"}`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, b.sink) }()
	b.api.await(t, "auth.test", 2)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// What is gone is told as such, and Slack says which.
func TestWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP)
	ann := w.server.User("U1").In("C1")
	root := ann.Says("root")
	w.server.DeleteThread("C1", root.TS)
	if _, err := w.Send(t.Context(), messages.Outbound{Conversation: key("T1/C1/" + root.TS), Text: "hi"}); err != nil || len(w.server.Channel("C1").Roots()) != 1 {
		t.Errorf("a deleted thread: %v", err) // Slack shows the message in the channel
	}
	if _, err := w.Send(t.Context(), messages.Outbound{Conversation: key("T1/C1/1600000000.000100"), Text: "hi"}); !fault.Is(err, fault.Gone) {
		t.Errorf("a thread that never was: %v", err)
	}
	w.server.Archive("C1")
	if _, err := w.Send(t.Context(), messages.Outbound{Conversation: key("T1/C1/new-x"), Text: "hi"}); !fault.Is(err, fault.Gone) {
		t.Errorf("an archived channel: %v", err)
	}
	w.server.RefuseToken("token_revoked")
	if _, err := w.Send(t.Context(), messages.Outbound{Conversation: key("T1/DU1"), Text: "hi"}); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a revoked token: %v", err)
	}
}
