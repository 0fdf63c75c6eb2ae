package slack_test

import (
	"encoding/json"
	"strings"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// In an organization a channel can belong to several workspaces. What people do there comes
// in the name of the workspace that each does it from, and is of the one conversation.
func TestPeopleActFromSeveralWorkspaces(t *testing.T) {
	t.Parallel()
	const talk = "E1:T1/C1/10.1"
	b := setup(t)
	b.api.answer("auth.test", `{"ok":true,"team_id":"T1","enterprise_id":"E1","is_enterprise_install":true,"user_id":"UBOT","user":"agent"}`)
	if _, err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := b.Send(t.Context(), messages.Outbound{Conversation: key(talk), Text: "may I?", Buttons: []messages.Button{{ID: "b-1", Label: "Yes"}}})
	if err != nil {
		t.Fatal(err)
	}
	var blocks []struct {
		Type string `json:"type"`
		ID   string `json:"block_id"`
	}
	mustJSON(t, b.api.made("chat.postMessage")[0].form.Get("blocks"), &blocks)
	row := blocks[len(blocks)-1].ID
	err = b.OpenDialog(t.Context(), messages.Inbound{Conversation: key(talk), Message: "20.1"}, platform.Dialog{Trigger: "x", ID: "d-1", Text: "plan"})
	if err != nil {
		t.Fatal(err)
	}
	var opened struct {
		View struct {
			Metadata string `json:"private_metadata"`
		} `json:"view"`
	}
	mustJSON(t, b.api.made("views.open")[0].form.Get("json"), &opened)
	note, _ := json.Marshal(opened.View.Metadata)
	press := func(trigger, from, block string) string {
		return `{"type":"block_actions","trigger_id":"` + trigger + `",` + from + `,"channel":{"id":"C1"},
			"container":{"message_ts":"20.1","thread_ts":"10.1"},"actions":[{"type":"button","block_id":"` + block + `","value":"b-1"}]}`
	}
	const (
		unnamed = `"team":null,"enterprise":{"id":"E1"},"is_enterprise_install":true,"user":{"id":"U2","team_id":"T2"}`
		named   = `"team":{"id":"T2"},"enterprise":{"id":"E1"},"is_enterprise_install":true,"user":{"id":"U2","team_id":"T2"}`
	)
	for _, c := range []struct{ name, payload, want string }{
		{"a press", press("1", unnamed, row), talk},
		{"a press from a workspace that is named", press("2", named, row), talk},
		{"a press below a message of earlier", press("3", unnamed, "x1"), "E1:T2/C1/10.1"},
		{"a press with the name of another organization", press("4", unnamed, "E9:T1"), "E1:T2/C1/10.1"},
		{"a dialog", `{"type":"view_submission","trigger_id":"v",` + unnamed + `,"view":{"private_metadata":` + string(note) + `,"state":{}}}`, talk},
	} {
		before := len(b.sink.Events())
		b.interaction(c.payload)
		all := b.sink.Events()
		if len(all) != before+1 || all[before].Conversation.ID != c.want {
			t.Errorf("%s: %+v, want it in %s", c.name, all[before:], c.want)
		}
	}
	b.deliver("events", "application/json", `{"type":"event_callback","team_id":"T1","context_team_id":"T1","enterprise_id":"E1",
		"authorizations":[{"enterprise_id":"E1","team_id":null,"user_id":"UBOT","is_bot":true,"is_enterprise_install":true}],
		"event":{"type":"message","channel":"C1","user":"U1","text":"hi","ts":"30.1"}}`)
	for channel, want := range map[string]string{"C1": "E1:T1/C1/new-", "C2": "E1:T2/C2/new-"} {
		before := len(b.sink.Events())
		b.command(map[string]string{"team_id": "T2", "enterprise_id": "E1", "is_enterprise_install": "true", "channel_id": channel, "trigger_id": channel, "text": "hi"})
		if all := b.sink.Events(); len(all) != before+1 || !strings.HasPrefix(all[before].Conversation.ID, want) {
			t.Errorf("a command in %s: %+v", channel, all[before:])
		}
	}
}
