package slack_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

func TestMarks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := messages.Ref{Conversation: key("T1/C1/10.1"), Message: "20.1"}
	b.api.answer("reactions.add", `{"ok":false,"error":"already_reacted"}`)
	b.api.answer("reactions.remove", `{"ok":false,"error":"no_reaction"}`)
	for _, m := range []platform.Mark{platform.MarkQueued, platform.MarkSeen, platform.MarkNone, platform.MarkNone} {
		if err := b.Mark(t.Context(), ref, m); err != nil {
			t.Fatal(err)
		}
	}
	names := func(method string) string {
		var out []string
		for _, c := range b.api.made(method) {
			out = append(out, c.form.Get("name")+"@"+c.form.Get("timestamp"))
		}
		return strings.Join(out, " ")
	}
	if got := names("reactions.add"); got != "inbox_tray@20.1 eyes@20.1" {
		t.Errorf("added %s", got)
	}
	if got := names("reactions.remove"); got != "inbox_tray@20.1 eyes@20.1" {
		t.Errorf("removed %s", got)
	}
	fresh := setup(t) // another process
	if err := fresh.Mark(t.Context(), ref, platform.MarkNone); err != nil || len(fresh.api.made("reactions.remove")) != 2 {
		t.Errorf("%v, removed %v", err, fresh.api.made("reactions.remove"))
	}
}

// The mark of the end stays, whatever comes after it, and takes the place of what
// another process may have set.
func TestMarksOfTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP)
	bob := w.server.User("U2").In("C1")
	sent := bob.Says("do it")
	ref := messages.Ref{Conversation: key("T1/C1/" + sent.TS), Message: messages.MessageID(sent.TS)}
	reactions := func(channel, ts string) string {
		return strings.Join(w.server.Channel(channel).Message(ts).ReactionsOf("UBOT"), " ")
	}
	for _, step := range []struct {
		mark platform.Mark
		want string
	}{
		{platform.MarkSeen, "eyes"}, {platform.MarkQueued, "inbox_tray"}, {platform.MarkDone, "white_check_mark"},
		{platform.MarkSeen, "white_check_mark"}, {platform.MarkFailed, "warning"}, {platform.MarkQueued, "warning"},
	} {
		if err := w.Mark(t.Context(), ref, step.mark); err != nil || reactions("C1", sent.TS) != step.want {
			t.Errorf("%s: %v, %q, want %q", step.mark, err, reactions("C1", sent.TS), step.want)
		}
	}
	later := bob.Says("do that")
	ref = messages.Ref{Conversation: key("T1/C1/" + later.TS), Message: messages.MessageID(later.TS)}
	if err := w.Mark(t.Context(), ref, platform.MarkSeen); err != nil {
		t.Fatal(err)
	}
	other := answering{world: w}.another(t)
	if err := other.Mark(t.Context(), ref, platform.MarkDone); err != nil || reactions("C1", later.TS) != "white_check_mark" {
		t.Errorf("another process: %v, %q", err, reactions("C1", later.TS))
	}

	private := w.server.User("U1").Says("hi")
	for id, want := range map[string]string{"T1/DU1/" + private.TS: "", "T1/DU1": "eyes"} {
		at := messages.Ref{Conversation: key(id), Message: messages.MessageID(w.server.User("U1").Says("again").TS)}
		if err := w.Mark(t.Context(), at, platform.MarkSeen); err != nil || reactions("DU1", string(at.Message)) != want {
			t.Errorf("in %s: %v, %q", id, err, reactions("DU1", string(at.Message)))
		}
	}
}

// Marks that are set at the same time leave one.
func TestMarksAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP)
	sent := w.server.User("U2").In("C1").Says("do it")
	ref := messages.Ref{Conversation: key("T1/C1/" + sent.TS), Message: messages.MessageID(sent.TS)}
	var all sync.WaitGroup
	for _, m := range []platform.Mark{platform.MarkSeen, platform.MarkQueued, platform.MarkDone} {
		all.Go(func() { _ = w.Mark(t.Context(), ref, m) })
	}
	all.Wait()
	if got := w.server.Channel("C1").Message(sent.TS).ReactionsOf("UBOT"); len(got) != 1 || got[0] != "white_check_mark" {
		t.Errorf("the reactions are %v", got)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		for _, id := range []string{"T1/C1/10.1", "T1/D1"} {
			if err := b.Typing(t.Context(), key(id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	set := b.api.made("assistant.threads.setStatus")
	if len(set) != 1 || set[0].form.Get("thread_ts") != "10.1" || set[0].form.Get("status") == "" {
		t.Errorf("set %v", set)
	}
	ref := messages.Ref{Conversation: key("T1/C1/10.1"), Message: "20.1"}
	for range 2 {
		if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "done"}); err != nil {
			t.Fatal(err)
		}
	}
	if set = b.api.made("assistant.threads.setStatus"); len(set) != 2 || set[1].form.Get("status") != "" {
		t.Errorf("after the answer: %v", set)
	}

	off := setup(t)
	off.api.answer("assistant.threads.setStatus", `{"ok":false,"error":"missing_scope","needed":"assistant:write"}`)
	for _, id := range []string{"T1/C1/10.1", "T1/C1/11.1"} {
		if err := off.Typing(t.Context(), key(id)); err != nil {
			t.Error(err)
		}
	}
	if n := len(off.api.made("assistant.threads.setStatus")); n != 1 {
		t.Errorf("%d calls without the scope", n)
	}
}

func TestDialogComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := messages.Inbound{Conversation: key("T1/C1/10.1"), Message: "20.1", Trigger: "1.2.3"}
	d := platform.Dialog{Trigger: in.Trigger, ID: "edit-1", Title: "Edit the plan before it is carried out", Label: "Plan", Text: "1. x", Submit: "Approve"}
	if err := b.OpenDialog(t.Context(), in, d); err != nil {
		t.Fatal(err)
	}
	form := b.api.made("views.open")[0].form
	var opened struct {
		Trigger string          `json:"trigger_id"`
		View    json.RawMessage `json:"view"`
	}
	mustJSON(t, form.Get("json"), &opened)
	var view struct {
		Type     string
		Title    struct{ Text string }
		Metadata string `json:"private_metadata"`
		Blocks   []struct {
			BlockID string `json:"block_id"`
			Element struct {
				ActionID string `json:"action_id"`
				Initial  string `json:"initial_value"`
			}
		}
	}
	mustJSON(t, string(opened.View), &view)
	if opened.Trigger != "1.2.3" || view.Type != "modal" || len([]rune(view.Title.Text)) > 24 || len(view.Blocks) != 1 || view.Blocks[0].Element.Initial != "1. x" {
		t.Fatalf("opened %s", opened.View)
	}
	sent := jsonOf(t, map[string]any{
		"type": "view_submission", "trigger_id": "4.5.6", "team": map[string]string{"id": "T1"}, "user": map[string]string{"id": "U1"},
		"view": map[string]any{"private_metadata": view.Metadata, "state": map[string]any{"values": map[string]any{
			view.Blocks[0].BlockID: map[string]any{view.Blocks[0].Element.ActionID: map[string]string{"value": "2. y"}},
		}}},
	})
	if w := b.interaction(sent); w.Code != http.StatusOK {
		t.Fatalf("answered %d", w.Code)
	}
	if got := b.one(t); got.Kind != messages.KindAction || got.Action != "edit-1" || got.Text != "2. y" || got.Conversation != in.Conversation || got.Message != "20.1" {
		t.Errorf("came back as %+v", got)
	}
	d.Text = strings.Repeat("x", 3001)
	if err := b.OpenDialog(t.Context(), in, d); !fault.Is(err, fault.Invalid) {
		t.Errorf("a long text: %v", err)
	}
	b.api.answer("views.open", `{"ok":false,"error":"expired_trigger_id"}`)
	d.Text = "x"
	if err := b.OpenDialog(t.Context(), in, d); !fault.Is(err, fault.NotFound) {
		t.Errorf("a late press: %v", err)
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.answer("conversations.replies", `{"ok":true,"messages":[
		{"ts":"10.1","user":"U2","text":"It &lt;broke&gt;"},{"ts":"11.1","user":"UBOT","text":"own"},7,
		{"ts":"12.1","subtype":"bot_message","bot_id":"B9","username":"CI","text":"red"},
		{"ts":"13.1","subtype":"channel_join","user":"U3","text":"joined"},
		{"ts":"14.1","user":"U2","text":"see <@U3>","files":[{"id":"F1","name":"a.png","mimetype":"image/png","size":9}]},
		{"ts":"15.1","user":"U2","subtype":"file_share","text":"","files":[{"id":"F2","title":"b","mode":"tombstone"}]},{"ts":"20.1","user":"U1","text":"<@UBOT> look"}]}`)
	b.api.answer("users.info", `{"ok":true,"user":{"name":"bo","profile":{"display_name":"Bo"}}}`)
	got, err := b.Context(t.Context(), messages.Inbound{Conversation: key("T1/C1/10.1"), Message: "20.1"})
	if err != nil || len(got) != 4 || got[0].Text != "It <broke>" || got[0].Author != "Bo" || got[1].Author != "CI" || got[2].Text != "see @U3\n[a.png]" || got[3].Text != "[b]" {
		t.Fatalf("Context: %+v, %v", got, err)
	}
	if want := []messages.Attachment{{Name: "a.png", MediaType: "image/png", Size: 9, Source: "F1"}}; !slices.Equal(got[2].Files, want) || got[3].Files[0].Source != "" {
		t.Errorf("the files are %+v, %+v", got[2].Files, got[3].Files)
	}
	if n := len(b.api.made("users.info")); n != 1 {
		t.Errorf("%d names were asked for", n)
	}
	// Who answers below a message of the bot's is about that; what a slash command asked is no such message.
	for root, want := range map[string]int{`It is &lt;b&gt;.`: 1, `<@U1> asked: why?`: 0} {
		b.api.answer("conversations.replies", `{"ok":true,"messages":[
			{"ts":"10.1","user":"UBOT","bot_id":"BBOT","text":"`+root+`"},{"ts":"11.1","user":"UBOT","bot_id":"BBOT","text":"own"},{"ts":"20.1","user":"U1","text":"say more"}]}`)
		got, err := b.Context(t.Context(), messages.Inbound{Conversation: key("T1/D1/10.1"), Message: "20.1"})
		if err != nil || len(got) != want || want == 1 && got[0].Text != "It is <b>." {
			t.Errorf("below %s: %+v, %v", root, got, err)
		}
	}
	for _, in := range []messages.Inbound{
		{Conversation: key("T1/C1/10.1"), Message: "10.1"}, {Conversation: key("T1/D1"), Message: "10.1"}, {Conversation: key("T1/C1/new-x")},
	} {
		if got, err := b.Context(t.Context(), in); err != nil || got != nil {
			t.Errorf("%s: %v, %v", in.Conversation, got, err)
		}
	}
}

// Alerts are posted without a text, or with a summary: what they say is in attachments and blocks,
// which is also where the whole of an answer of the bot's is.
func TestContextOfWhatIsNoText(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct{ message, want string }{
		"an alert": {`"subtype":"bot_message","bot_id":"B9","username":"Alertmanager","text":"","attachments":[{"fallback":"[FIRING:1] x",
			"title":"[FIRING:1] KubeJobFailed","title_link":"https://alerts.example","text":"a &lt; b","fields":[{"title":"Cluster","value":"one"}]}]`,
			"[FIRING:1] KubeJobFailed\na < b\nCluster: one"},
		"only a fallback": {`"bot_id":"B9","text":"","attachments":[{"fallback":"it is down"}]`, "it is down"},
		"blocks in an attachment": {`"bot_id":"B9","text":"","attachments":[{"color":"red","fallback":"[no preview available]",
			"blocks":[{"type":"header","text":{"type":"plain_text","text":"Down"}},{"type":"section","fields":[{"type":"mrkdwn","text":"*P1*"},{"type":"mrkdwn","text":"eu"}]}]}]`,
			"Down\n*P1*\neu"},
		"blocks": {`"bot_id":"B9","text":"Down","blocks":[{"type":"divider"},{"type":"section","text":{"type":"mrkdwn","text":"The <https://a.example|build> is red"}},
			{"type":"context","elements":[{"type":"mrkdwn","text":"since 10:00"}]},{"type":"new","x":1}]`,
			"The build (https://a.example) is red\nsince 10:00"},
		"rich text": {`"user":"UBOT","bot_id":"BBOT","text":"Use …","blocks":[{"type":"rich_text","elements":[
			{"type":"rich_text_section","elements":[{"type":"text","text":"Use "},{"type":"text","text":"map<K>","style":{"code":true}},{"type":"text","text":", says "},{"type":"user","user_id":"U3"}]},
			{"type":"rich_text_list","style":"bullet","elements":[{"type":"rich_text_section","elements":[{"type":"link","url":"https://a.example"}]},
				{"type":"rich_text_section","elements":[{"type":"emoji","name":"tada"}]}]}]}]`,
			"Use map<K>, says @U3\nhttps://a.example\n:tada:"},
		"a person's blocks":          {`"user":"U2","text":"short","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"much longer"}]}]}]`, "short"},
		"a link":                     {`"user":"U2","text":"<https://a.example>","attachments":[{"from_url":"https://a.example","title":"A","text":"preview"}]`, "https://a.example"},
		"an app's preview of a link": {`"user":"U2","text":"<https://a.example>","attachments":[{"app_unfurl_url":"https://a.example","is_app_unfurl":true,"fallback":"preview"}]`, "https://a.example"},
		"a shared message": {`"user":"U2","text":"","attachments":[{"is_share":true,"from_url":"https://x.slack.com/archives/C2/p1","text":"look at this",
			"files":[{"id":"F7","name":"log.txt","mimetype":"text/plain","size":3}]}]`, "look at this\n[log.txt]"},
	} {
		b.api.answer("conversations.replies", `{"ok":true,"messages":[{"ts":"10.1",`+c.message+`},{"ts":"20.1","user":"U1","text":"<@UBOT> look"}]}`)
		got, err := b.Context(t.Context(), messages.Inbound{Conversation: key("T1/C1/10.1"), Message: "20.1"})
		if err != nil || len(got) != 1 || got[0].Text != c.want {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestNameOf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.answer("users.info", `{"ok":false,"error":"user_not_found"}`, `{"ok":true,"user":{"name":"bo","profile":{"display_name":"Bo"}}}`)
	for _, want := range []string{"", "Bo", "Bo"} {
		if got := b.NameOf(t.Context(), "U2"); got != want {
			t.Errorf("the name is %q, want %q", got, want)
		}
	}
	if n := len(b.api.made("users.info")); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestFetchSendsTheTokenToSlackOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for address, kind := range map[string]fault.Kind{
		"https://evil.example/x": fault.Unsupported, "http://files.slack.com/x": fault.Unsupported, "https://files.slack.com.evil.example/": fault.Unsupported,
		"": fault.Unsupported, b.api.URL + "/api/file": "",
	} {
		b.api.answer("files.info", `{"ok":true,"file":{"id":"F1","mimetype":"text/plain","url_private_download":"`+address+`"}}`)
		body, err := b.Fetch(t.Context(), messages.Attachment{Source: "F1"})
		if fault.KindOf(err) != kind {
			t.Errorf("%s: %v", address, err)
		}
		if err == nil {
			_ = body.Close()
		}
	}
	if _, err := b.Fetch(t.Context(), messages.Attachment{Source: "../x"}); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
}
