package slack_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform/slack"
)

// engagedIn takes part in the given conversations.
func engagedIn(ids ...string) func(*slack.Config) {
	return func(c *slack.Config) {
		c.Engaged = func(_ context.Context, k messages.ConversationKey) (bool, error) {
			return slices.Contains(ids, k.ID), nil
		}
	}
}

// got is what matters of an event.
type got struct {
	Kind                     messages.InboundKind
	Event                    messages.EventID
	Key, Message, User, Text string
	Private, External        bool
}

func gist(in messages.Inbound) got {
	return got{in.Kind, in.Event, in.Conversation.ID, string(in.Message), string(in.Sender.ID), in.Text, in.Private, in.Sender.External}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	msg := func(event, key, text string, private bool) *got {
		return &got{Kind: messages.KindMessage, Event: messages.EventID(event), Key: key, Message: strings.TrimPrefix(event[strings.LastIndex(event, ":"):], ":"), User: "U1", Text: text, Private: private}
	}
	gone := func(event, key string) *got {
		g := msg(event, key, "", strings.Contains(key, "/D"))
		g.Kind, g.User = messages.KindDeleted, ""
		return g
	}
	edit := msg("edit:C1:20.1:30.1", "T1/C1/10.1", "better", false)
	edit.Kind, edit.Message = messages.KindEdit, "20.1"
	for name, tc := range map[string]struct {
		inner string
		want  *got // nil: nothing for the bot
	}{
		"direct message":               {`{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"hi &lt;there&gt;","ts":"10.1"}`, msg("msg:D1:10.1", "T1/D1", "hi <there>", true)},
		"thread in a direct message":   {`{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"hi","ts":"20.1","thread_ts":"10.1"}`, msg("msg:D1:20.1", "T1/D1/10.1", "hi", true)},
		"mention":                      {`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> do it","ts":"10.1"}`, msg("msg:C1:10.1", "T1/C1/10.1", "do it", false)},
		"mention as message":           {`{"type":"message","channel":"C1","channel_type":"channel","user":"U1","text":"<@UBOT> do it","ts":"10.1"}`, msg("msg:C1:10.1", "T1/C1/10.1", "do it", false)},
		"mention with a label":         {`{"type":"app_mention","channel":"C1","user":"U1","text":"please <@UBOT|agent>, do it","ts":"10.1"}`, msg("msg:C1:10.1", "T1/C1/10.1", "please do it", false)},
		"mention in a thread":          {`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> look","ts":"20.1","thread_ts":"9.1"}`, msg("msg:C1:20.1", "T1/C1/9.1", "look", false)},
		"engaged thread":               {`{"type":"message","channel":"C1","user":"U1","text":"go on","ts":"20.1","thread_ts":"10.1"}`, msg("msg:C1:20.1", "T1/C1/10.1", "go on", false)},
		"thread of the bot":            {`{"type":"message","channel":"C1","user":"U1","text":"go on","ts":"20.1","thread_ts":"11.1","parent_user_id":"UBOT"}`, msg("msg:C1:20.1", "T1/C1/11.1", "go on", false)},
		"broadcast":                    {`{"type":"message","subtype":"thread_broadcast","channel":"C1","user":"U1","text":"go on","ts":"20.1","thread_ts":"10.1"}`, msg("msg:C1:20.1", "T1/C1/10.1", "go on", false)},
		"said with /me":                {`{"type":"message","subtype":"me_message","channel":"D1","channel_type":"im","user":"U1","text":"needs help","ts":"10.1"}`, msg("msg:D1:10.1", "T1/D1", "needs help", true)},
		"a word alone":                 {`{"type":"message","channel":"C1","user":"U1","text":" Stop ","ts":"20.1","thread_ts":"10.1"}`, msg("msg:C1:20.1", "T1/C1/10.1", "/stop", false)},
		"a word with a mention":        {`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> status","ts":"20.1","thread_ts":"9.1"}`, msg("msg:C1:20.1", "T1/C1/9.1", "/status", false)},
		"a word among others":          {`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> plan it","ts":"10.1"}`, msg("msg:C1:10.1", "T1/C1/10.1", "plan it", false)},
		"a command":                    {`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> /plan it","ts":"10.1"}`, msg("msg:C1:10.1", "T1/C1/10.1", "/plan it", false)},
		"only a mention":               {`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT>","ts":"10.1"}`, msg("msg:C1:10.1", "T1/C1/10.1", "/help", false)},
		"an owner's code":              {`{"type":"message","channel":"D1","user":"U1","text":"start abc-DEF_123","ts":"10.1"}`, msg("msg:D1:10.1", "T1/D1", "/start abc-DEF_123", true)},
		"malformed blocks":             {`{"type":"message","channel":"D1","user":"U1","text":"hi","ts":"10.1","blocks":[{"type":7,"elements":"x"},null,[]],"files":{"a":1},"attachments":7}`, msg("msg:D1:10.1", "T1/D1", "hi", true)},
		"edit in an engaged thread":    {`{"type":"message","subtype":"message_changed","hidden":true,"channel":"C1","ts":"31.1","message":{"user":"U1","text":"better","ts":"20.1","thread_ts":"10.1","edited":{"user":"U1","ts":"30.1"}}}`, edit},
		"a preview":                    {`{"type":"message","subtype":"message_changed","hidden":true,"channel":"C1","ts":"31.1","message":{"user":"U1","text":"x","ts":"20.1","thread_ts":"10.1"}}`, nil},
		"edit elsewhere":               {`{"type":"message","subtype":"message_changed","channel":"C1","ts":"31.1","message":{"user":"U1","text":"<@UBOT> x","ts":"20.1","edited":{"ts":"30.1"}}}`, nil},
		"no mention":                   {`{"type":"message","channel":"C1","user":"U1","text":"hi","ts":"10.1"}`, nil},
		"another's thread":             {`{"type":"message","channel":"C1","user":"U1","text":"hi","ts":"20.1","thread_ts":"9.1","parent_user_id":"U2"}`, nil},
		"someone else is mentioned":    {`{"type":"message","channel":"C1","user":"U1","text":"<@UBOTTER> hi","ts":"10.1"}`, nil},
		"Slackbot":                     {`{"type":"message","channel":"D1","user":"USLACKBOT","text":"hi","ts":"10.1"}`, nil},
		"hidden":                       {`{"type":"message","hidden":true,"channel":"D1","user":"U1","text":"hi","ts":"10.1"}`, nil},
		"own message":                  {`{"type":"message","channel":"D1","user":"UBOT","text":"hi","ts":"10.1"}`, nil},
		"a bot":                        {`{"type":"message","channel":"D1","user":"U3","bot_id":"B3","text":"hi","ts":"10.1"}`, nil},
		"a bot's message":              {`{"type":"message","subtype":"bot_message","channel":"D1","bot_id":"B3","text":"<@UBOT> hi","ts":"10.1"}`, nil},
		"a bot mentions":               {`{"type":"app_mention","channel":"C1","user":"U3","bot_id":"B3","text":"<@UBOT> hi","ts":"10.1"}`, nil},
		"joined":                       {`{"type":"message","subtype":"channel_join","channel":"C1","user":"U1","text":"<@UBOT> joined","ts":"10.1"}`, nil},
		"deleted":                      {`{"type":"message","subtype":"message_deleted","hidden":true,"channel":"D1","deleted_ts":"10.1","ts":"11.1"}`, nil},
		"deleted by itself":            {`{"type":"message","subtype":"message_deleted","hidden":true,"channel":"D1","deleted_ts":"10.1","ts":"11.1","previous_message":{"type":"message","user":"U1","text":"hi","ts":"10.1"}}`, gone("deleted:D1:10.1", "T1/D1")},
		"deleted in an engaged thread": {`{"type":"message","subtype":"message_deleted","hidden":true,"channel":"C1","deleted_ts":"20.1","ts":"31.1","previous_message":{"type":"message","user":"U1","text":"hi","ts":"20.1","thread_ts":"10.1"}}`, gone("deleted:C1:20.1", "T1/C1/10.1")},
		"the mention is deleted":       {`{"type":"message","subtype":"message_deleted","hidden":true,"channel":"C1","deleted_ts":"10.1","ts":"31.1","previous_message":{"type":"message","user":"U1","text":"<@UBOT> hi","ts":"10.1"}}`, gone("deleted:C1:10.1", "T1/C1/10.1")},
		"a thread's first is deleted":  {`{"type":"message","subtype":"message_changed","hidden":true,"channel":"C1","ts":"31.1","message":{"type":"message","subtype":"tombstone","text":"This message was deleted.","user":"USLACKBOT","hidden":true,"ts":"10.1","thread_ts":"10.1"},"previous_message":{"type":"message","user":"U1","text":"<@UBOT> hi","ts":"10.1","thread_ts":"10.1"}}`, gone("deleted:C1:10.1", "T1/C1/10.1")},
		"deleted elsewhere":            {`{"type":"message","subtype":"message_deleted","hidden":true,"channel":"C1","deleted_ts":"20.1","ts":"31.1","previous_message":{"type":"message","user":"U1","text":"hi","ts":"20.1"}}`, nil},
		"the bot's is deleted":         {`{"type":"message","subtype":"message_deleted","hidden":true,"channel":"D1","deleted_ts":"10.1","ts":"11.1","previous_message":{"type":"message","user":"UBOT","bot_id":"B1","text":"hi","ts":"10.1"}}`, nil},
		"nothing":                      {`{"type":"message","channel":"D1","user":"U1","text":"  ","ts":"10.1"}`, nil},
		"stopped with Slack's own":     {`{"type":"agent_session_stopped","channel":"C1","user":"U1","thread_ts":"10.1","event_ts":"20.1"}`, &got{Kind: messages.KindMessage, Event: "stopped:C1:10.1:20.1", Key: "T1/C1/10.1", User: "U1", Text: "/stop"}},
		"mention is in the text twice": {`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> a <@UBOT> b <@U2>","ts":"10.1"}`, msg("msg:C1:10.1", "T1/C1/10.1", "a b @U2", false)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, engagedIn("T1/C1/10.1"))
			if w := b.event(tc.inner); w.Code != http.StatusOK || w.Body.Len() != 0 {
				t.Fatalf("answered %d %q", w.Code, w.Body)
			}
			if kept := b.sink.Kept(); len(kept) != 0 {
				t.Fatalf("kept %s", kept[0].Reason)
			}
			if tc.want == nil {
				if all := b.sink.Events(); len(all) != 0 {
					t.Fatalf("accepted %+v", all)
				}
				return
			}
			in := b.one(t)
			if d := cmp.Diff(*tc.want, gist(in)); d != "" {
				t.Error(d)
			}
			if in.Account != "T1" || in.SentAt.IsZero() || strings.Contains(string(in.Raw), "verification-token") || len(in.Raw) == 0 {
				t.Errorf("account %q, sent at %v, raw %s", in.Account, in.SentAt, in.Raw)
			}
		})
	}
}

// Behind a mention that begins the message, the name of a command is enough, as
// behind /agent. Elsewhere it is only if it is the whole message and one of a few
// words.
func TestCommandsByName(t *testing.T) {
	t.Parallel()
	commands := func(c *slack.Config) {
		c.Commands = func() []string {
			return []string{"stop", "status", "help", "new", "plan", "plan_feature", "undo", "commands", "repos", "retry", "agent", "schedule"}
		}
	}
	for text, want := range map[string]string{
		"<@UBOT> plan the move":      "/plan the move",
		"<@UBOT|agent>, Plan x":      "/plan x",
		"<@UBOT> plan-feature x":     "/plan-feature x",
		"<@UBOT> plan\\na\\n\\nb":    "/plan\na\n\nb",
		"<@UBOT> status":             "/status",
		"<@UBOT> stop all":           "/stop all",
		"<@UBOT> undo 2":             "/undo 2",
		"<@UBOT> stop doing that":    "stop doing that",
		"<@UBOT> help me with this":  "help me with this",
		"<@UBOT> new tests, please":  "new tests, please",
		"<@UBOT> repos":              "/repos",
		"<@UBOT> agent reviewer":     "/agent reviewer",
		"<@UBOT> agent of change":    "agent of change",
		"<@UBOT> schedule on":        "/schedule on",
		"<@UBOT> schedule a call":    "schedule a call",
		"<@UBOT> cost":               "cost", // there is no such command
		"<@UBOT> what is the status": "what is the status",
		"<@UBOT> planning is hard":   "planning is hard",
		"<@UBOT> /plan x":            "/plan x",
		"<@UBOT> /tmp is full":       "/tmp is full",
		"hey <@UBOT> plan x":         "hey plan x",
		"hey <@UBOT>":                "hey",
		"plan x":                     "plan x",
		"plan":                       "plan",
		"Retry":                      "/retry",
		"undo":                       "/undo",
		"undo it":                    "undo it",
		"cost":                       "cost",
	} {
		b := setup(t, engagedIn("T1/C1/10.1"), commands)
		b.event(`{"type":"message","channel":"C1","user":"U1","text":"` + text + `","ts":"20.1","thread_ts":"10.1"}`)
		if got := b.one(t).Text; got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// In whatever order, and however often, the two events of a mention come: it is
// one event with one content.
func TestPairsAreOneEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pair := []string{
		`{"type":"app_mention","channel":"C1","user":"U1","client_msg_id":"c1","text":"<@UBOT> do it","ts":"10.1"}`,
		`{"type":"message","channel":"C1","channel_type":"channel","client_msg_id":"c1","user":"U1","text":"<@UBOT> do it","ts":"10.1"}`,
		`{"type":"message","channel":"C1","channel_type":"channel","client_msg_id":"c1","user":"U1","text":"<@UBOT> do it","ts":"10.2"}`,
	}
	for range 200 {
		b.event(pair[rand.IntN(2)])
		b.event(pair[rand.IntN(3)])
	}
	if in := b.one(t); in.Event != "msg:C1:10.1" || in.Text != "do it" || !cmp.Equal(in.Aliases, []messages.EventID{"client:C1:c1"}) {
		t.Errorf("accepted %+v", in)
	}
}

// After an interruption a mention and what the same person adds in its thread come at once: the
// second is heard although the first is not stored yet. Of others, and later, it is not.
func TestWhatIsAddedToAMentionIsHeard(t *testing.T) {
	t.Parallel()
	b := setup(t, engagedIn())
	say := func(user, text, ts, thread string) {
		b.event(`{"type":"message","channel":"C1","user":"` + user + `","text":"` + text + `","ts":"` + ts + `","thread_ts":"` + thread + `"}`)
	}
	b.event(`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> do it","ts":"1000.1"}`)
	say("U1", "and this", "1300.1", "1000.1")
	say("U2", "nobody asked", "1010.1", "1000.1")
	say("U1", "elsewhere", "1010.1", "999.1")
	say("U1", "much later", "2000.1", "1000.1")
	// In a thread of somebody else, it is the mention that begins it, and not what was said before.
	say("U2", "<@UBOT> look", "3000.1", "500.1")
	say("U2", "at that", "3002.1", "500.1")
	say("U2", "and this", "3001.1", "500.1")
	say("U3", "nobody asked", "3002.1", "500.1")
	say("U2", "said before", "2999.1", "500.1")
	say("U2", "much later", "4000.1", "500.1")
	var texts []string
	for _, in := range b.sink.Events() {
		texts = append(texts, in.Text)
	}
	if want := []string{"do it", "and this", "look", "at that", "and this"}; !slices.Equal(texts, want) {
		t.Errorf("heard %q, want %q", texts, want)
	}
}

func TestExternalPeopleAreTold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fields   string
		external bool
	}{
		"of another team":  {`"user_team":"T2"`, true},
		"of our team":      {`"user_team":"T1"`, false},
		"source team":      {`"source_team":"T2"`, true},
		"nothing is known": {`"x":1`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.deliver("events", "application/json", strings.Replace(
				wrapped(`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> x","ts":"10.1",`+tc.fields+`}`),
				`"event_id"`, `"is_ext_shared_channel":true,"event_id"`, 1))
			b.deliver("events", "application/json", strings.Replace(
				wrapped(`{"type":"agent_session_stopped","channel":"C1","user":"U1","thread_ts":"10.1","event_ts":"20.1",`+tc.fields+`}`),
				`"event_id"`, `"is_ext_shared_channel":true,"event_id"`, 1))
			all := b.sink.Events()
			if len(all) != 2 || all[0].Sender.External != tc.external || all[1].Sender.External != tc.external {
				t.Errorf("accepted %+v", all)
			}
		})
	}
}

// TestWhoActsElsewhereIsExternal: somebody of another organization who gives a command or
// presses a button is told from our people also where what Slack sends names their own
// workspace, as it does in shared channels and where the app is installed there, too.
func TestWhoActsElsewhereIsExternal(t *testing.T) {
	t.Parallel()
	const single = `{"ok":true,"team_id":"T1","user_id":"UBOT","user":"agent"}`
	const orgWide = `{"ok":true,"team_id":"T1","enterprise_id":"E1","is_enterprise_install":true,"user_id":"UBOT","user":"agent"}`
	for name, tc := range map[string]struct {
		auth                         string
		team, enterprise, user, orgs string // of the payload
		external                     bool
	}{
		"ours":                          {single, "T1", "", "T1", "false", false},
		"another organization's":        {single, "T1", "", "T2", "false", true},
		"where they are at home":        {single, "T2", "", "T2", "false", true},
		"ours, as a guest elsewhere":    {single, "T2", "", "T1", "false", false},
		"of an organization that we do": {orgWide, "T2", "E1", "T2", "true", false},
		"of one that we do not":         {orgWide, "T8", "E8", "T8", "true", true},
		"of no organization":            {orgWide, "T9", "", "T9", "false", true},
		"ours, without an organization": {orgWide, "T1", "", "T1", "false", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.api.answer("auth.test", tc.auth)
			if _, err := b.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.interaction(`{"type":"block_actions","trigger_id":"1.2.3","team":{"id":"` + tc.team + `","enterprise_id":"` + tc.enterprise + `"},"is_enterprise_install":` + tc.orgs + `,
				"user":{"id":"U1","team_id":"` + tc.user + `"},"channel":{"id":"C1"},"message":{"ts":"20.1"},"actions":[{"type":"button","value":"b-1"}]}`)
			// A command tells where it was given, which is where who gave it is at home.
			b.command(map[string]string{"team_id": tc.user, "enterprise_id": tc.enterprise, "is_enterprise_install": tc.orgs})
			all := b.sink.Events()
			if len(all) != 2 || all[0].Sender.External != tc.external || all[1].Sender.External != tc.external {
				t.Errorf("accepted %+v", all)
			}
		})
	}
}

// TestAnotherWorkspaceOfTheOrganizationIsNotExternal: what somebody does counts like what they
// say. Where no other organization shares the channel, everybody is of ours.
func TestAnotherWorkspaceOfTheOrganizationIsNotExternal(t *testing.T) {
	t.Parallel()
	for shared, external := range map[string]bool{"false": false, "true": true} {
		t.Run("shared "+shared, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if _, err := b.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			const who = `"team":{"id":"T2","enterprise_id":"E1"},"user":{"id":"U2","team_id":"T2"}`
			b.deliver("events", "application/json", strings.Replace(
				wrapped(`{"type":"app_mention","channel":"C1","user":"U2","user_team":"T2","text":"<@UBOT> x","ts":"10.1"}`),
				`"event_id"`, `"is_ext_shared_channel":`+shared+`,"event_id"`, 1))
			b.deliver("events", "application/json", wrapped(`{"type":"member_joined_channel","channel":"C1","user":"U2"}`)) // which does not say it
			b.interaction(`{"type":"block_actions","trigger_id":"1",` + who + `,"channel":{"id":"C1"},"message":{"ts":"20.1"},"actions":[{"type":"button","value":"b-1"}]}`)
			b.interaction(`{"type":"view_submission","trigger_id":"2",` + who + `,"view":{"private_metadata":"{\"a\":\"d-1\",\"k\":\"T1/C1/10.1\"}","state":{}}}`)
			b.command(map[string]string{"team_id": "T2", "enterprise_id": "E1", "user_id": "U2"})
			all := b.sink.Events()
			if len(all) != 4 {
				t.Fatalf("accepted %+v", all)
			}
			for _, in := range all {
				if in.Sender.External != external {
					t.Errorf("external %v: %+v", in.Sender.External, in)
				}
			}
		})
	}
}

func TestOrganizationsAreKeyedByTeam(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.answer("auth.test", `{"ok":true,"team_id":"T1","enterprise_id":"E1","is_enterprise_install":true,"user_id":"UBOT"}`)
	for _, team := range []string{"T1", "T2"} {
		b.deliver("events", "application/json", `{"type":"event_callback","team_id":"`+team+`","context_team_id":"`+team+`","enterprise_id":"E1",
			"authorizations":[{"enterprise_id":"E1","team_id":null,"user_id":"UBOT","is_bot":true,"is_enterprise_install":true}],
			"event":{"type":"message","channel":"D1","user":"U1","text":"hi","ts":"10.1"}}`)
	}
	all := b.sink.Events()
	if len(all) != 2 || all[0].Conversation.ID != "E1:T1/D1" || all[1].Conversation.ID != "E1:T2/D1" || all[1].Account != "E1:T2" {
		t.Errorf("accepted %+v", all)
	}
}

func TestAnotherInstallationIsIgnored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.deliver("events", "application/json", strings.ReplaceAll(wrapped(`{"type":"message","channel":"D1","user":"U1","text":"hi","ts":"10.1"}`), `"T1"`, `"T9"`))
	if w.Code != http.StatusOK || len(b.sink.Events()) != 0 {
		t.Errorf("answered %d, accepted %v", w.Code, b.sink.Events())
	}
}

func TestFilesAndSharedMessages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.event(`{"type":"message","subtype":"file_share","channel":"D1","user":"U1","text":"","ts":"10.1",
		"files":[{"id":"F1","name":"a.txt","mimetype":"text/plain","size":3,"url_private":"https://evil.example/x"},7,{"id":"F2","mode":"tombstone"},{"id":"../x","name":"b"}],
		"attachments":[{"is_share":true,"author_name":"Bo","text":"do &lt;that&gt;"},{"title":"a link","text":"preview"},"x"]}`)
	in := b.one(t)
	want := []messages.Attachment{
		{Name: "a.txt", MediaType: "text/plain", Size: 3, Source: "F1"},
		{Name: "file", Note: "the file was deleted or is hidden by the workspace's plan"},
	}
	if d := cmp.Diff(want, in.Attachments); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]messages.Quote{{Relation: "shared from", Author: "Bo", Text: "do <that>"}}, in.Quotes); d != "" {
		t.Error(d)
	}
}

// What is forwarded to the bot need not have a text: a file has none, nor has an alert.
func TestForwardedFilesAndAlerts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shared string
		quotes []messages.Quote
		files  []messages.Attachment
	}{
		"a file": {
			`"text":"","fallback":"[10:00] Bo: ","author_name":"Bo","files":[{"id":"F1","name":"a.txt","mimetype":"text/plain","size":3},7]`,
			nil,
			[]messages.Attachment{{Name: "a.txt", MediaType: "text/plain", Size: 3, Source: "F1", Author: "Bo"}},
		},
		"a file with words": {
			`"text":"see","files":[{"id":"F1"}]`,
			[]messages.Quote{{Relation: "shared from", Text: "see"}},
			[]messages.Attachment{{Source: "F1", Author: "somebody else"}},
		},
		"an alert": {
			`"text":"","fallback":"[10:00] CI: red","author_name":"CI","message_blocks":[{"team":"T1","message":{"blocks":[
				{"type":"header","text":{"type":"plain_text","text":"Red"}},{"type":"section","text":{"type":"mrkdwn","text":"a &lt; b"}}]}}]`,
			[]messages.Quote{{Relation: "shared from", Author: "CI", Text: "Red\na < b"}},
			nil,
		},
		"an alert that is not shown": {
			`"text":"","fallback":"[10:00] CI: red","author_name":"CI","message_blocks":"x"`,
			[]messages.Quote{{Relation: "shared from", Author: "CI", Text: "[10:00] CI: red"}},
			nil,
		},
	} {
		b := setup(t)
		b.event(`{"type":"message","channel":"D1","user":"U1","text":"","ts":"10.1","attachments":[{"is_share":true,"is_msg_unfurl":true,` + c.shared + `}]}`)
		if len(b.sink.Events()) != 1 {
			t.Errorf("%s: nothing was heard", name)
			continue
		}
		in := b.one(t)
		if d := cmp.Diff(c.quotes, in.Quotes) + cmp.Diff(c.files, in.Attachments); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Finding 10: events of other kinds are not kept.
func TestFinding10ForeignEventsAreNotKept(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"outer": `{"type":"something_new"}`, "event": wrapped(`{"type":"something_new"}`), "large": wrapped(`{"type":"team_join","x":"` + strings.Repeat("x", 1<<19) + `"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if w, kept := b.deliver("events", "application/json", body), b.sink.Kept(); w.Code != http.StatusOK || len(kept) != 0 || len(b.sink.Events()) != 0 {
				t.Errorf("answered %d, kept %+v", w.Code, kept)
			}
		})
	}
}

func TestWhatIsNotUnderstoodIsKept(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"not JSON":        `{"type":"event_callback"`,
		"a list":          `[]`,
		"nothing":         ``,
		"no event":        `{"type":"event_callback","team_id":"T1"}`,
		"event is a list": wrapped(`[1]`),
		"no channel":      wrapped(`{"type":"message","user":"U1","text":"x","ts":"10.1"}`),
		"no user":         wrapped(`{"type":"app_mention","channel":"C1","text":"x","ts":"10.1"}`),
		"bad ts":          wrapped(`{"type":"message","channel":"D1","user":"U1","text":"x","ts":"yesterday"}`),
		"bad channel":     wrapped(`{"type":"message","channel":"D1/../x","user":"U1","text":"x","ts":"10.1"}`),
		"large":           wrapped(`{"type":"message","user":"U1","x":"` + strings.Repeat("x", 1<<20-400) + `"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			w := b.deliver("events", "application/json", body)
			kept := b.sink.Kept()
			if w.Code != http.StatusOK || len(kept) != 1 || kept[0].Reason == "" || len(kept[0].Raw) == 0 && body != "" {
				t.Fatalf("answered %d, kept %+v", w.Code, kept)
			}
			if strings.Contains(string(kept[0].Raw), "verification-token") {
				t.Error("the verification token was kept")
			}
		})
	}
}

// TestAnInteractionWithoutAPayloadIsKept: of a form that is another than Slack describes, all is kept but credentials.
func TestAnInteractionWithoutAPayloadIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.deliver("interactions", "application/x-www-form-urlencoded", "token=verification-token&body=%7B%7D")
	if kept := b.sink.Kept(); w.Code != http.StatusOK || len(kept) != 1 || string(kept[0].Raw) != `{"body":"{}"}` {
		t.Errorf("answered %d, kept %q", w.Code, kept)
	}
}

// TestTheCheckOfACertificateIsNothing: Slack asks for an answer and for no more.
func TestTheCheckOfACertificateIsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.deliver("commands", "application/x-www-form-urlencoded", "token=verification-token&ssl_check=1")
	if kept := b.sink.Kept(); w.Code != http.StatusOK || len(kept) != 0 {
		t.Errorf("answered %d, kept %q", w.Code, kept)
	}
}

func TestSlashCommands(t *testing.T) {
	t.Parallel()
	commands := func(c *slack.Config) {
		c.Commands = func() []string { return []string{"help", "plan", "plan_feature"} }
	}
	for name, tc := range map[string]struct {
		said, text string
		whispered  bool
	}{
		"nothing":          {"", "/help", true},
		"a command":        {"plan  the  move", "/plan  the  move", true},
		"another form":     {"Plan-Feature x", "/plan-feature x", true},
		"with a slash":     {"/unknown x", "/unknown x", true},
		"a question":       {"why is <https://a.example|a.example> down &amp; out?", "why is a.example down & out?", false},
		"not at the start": {"the plan", "the plan", false},
		"a typo":           {"hepl", "/hepl", true},
		"a typo and more":  {"plna p-1", "/plna p-1", true},
		"nearly a word":    {"plane tickets", "plane tickets", false},
		"a greeting":       {"hello", "hello", false},
		"an order":         {"Help!", "/help", true},
		"an order at last": {"/plan.", "/plan", true},
		"asked":            {"Plan?", "Plan?", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, commands)
			for range 2 { // sent twice, it is one
				if w := b.command(map[string]string{"text": tc.said}); w.Code != http.StatusOK || w.Body.Len() != 0 {
					t.Fatalf("answered %d %s", w.Code, w.Body)
				}
			}
			in := b.one(t)
			if in.Text != tc.text || in.Whispered != tc.whispered || in.Event != "cmd:77.88.99" || in.Trigger != "77.88.99" {
				t.Errorf("accepted %+v", in)
			}
			if !strings.HasPrefix(in.Conversation.ID, "T1/C1/new-") || !strings.HasPrefix(in.Opening, "<@U1> asked: ") || in.Sender.Name != "ann" {
				t.Errorf("accepted %+v", in)
			}
			if strings.Contains(string(in.Raw), "verification-token") {
				t.Error("the verification token is stored")
			}
		})
	}
}

func TestSlashCommandsInPrivate(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *slack.Config) { c.Commands = func() []string { return []string{"stop"} } })
	b.command(map[string]string{"channel_id": "D1", "text": "stop"})
	b.command(map[string]string{"channel_id": "D1", "text": "stop the world", "trigger_id": "2"})
	b.command(map[string]string{"channel_id": "D1", "text": "why?", "trigger_id": "3"})
	all := b.sink.Events()
	if len(all) != 3 || all[0].Conversation.ID != "T1/D1" || all[0].Opening != "" || !all[0].Private || !all[0].Whispered {
		t.Errorf("accepted %+v", all)
	}
	if q := all[2]; !strings.HasPrefix(q.Conversation.ID, "T1/D1/new-") || q.Opening == "" || q.Whispered {
		t.Errorf("accepted %+v", q)
	}

	// In somebody else's direct message the bot can only answer the command.
	b.api.answer("chat.postMessage", `{"ok":false,"error":"channel_not_found"}`)
	b.command(map[string]string{"channel_id": "D2", "text": "/plan x", "trigger_id": "4", "response_url": b.api.URL + "/respond"})
	if _, err := b.Send(t.Context(), messages.Outbound{Conversation: key("T1/D2"), Text: "a plan"}); err == nil || len(b.api.made("/respond")) != 1 {
		t.Errorf("Send: %v, told %v", err, b.api.made("/respond"))
	}
}

func TestButtonsAndDialogs(t *testing.T) {
	t.Parallel()
	base := `"trigger_id":"1.2.3","team":{"id":"T1"},"user":{"id":"U1","username":"ann","team_id":"T1"}`
	for name, tc := range map[string]struct {
		payload string
		want    *messages.Inbound
	}{
		"in a thread": {
			`{"type":"block_actions",` + base + `,"channel":{"id":"C1"},"container":{"type":"message","message_ts":"20.1","thread_ts":"10.1","channel_id":"C1"},"actions":[{"type":"button","action_id":"b-1","value":"b-1"}]}`,
			&messages.Inbound{Event: "act:1.2.3:0", Conversation: key("T1/C1/10.1"), Message: "20.1", Action: "b-1"},
		},
		"in a direct message": {
			`{"type":"block_actions",` + base + `,"channel":{"id":"D1"},"message":{"ts":"20.1"},"actions":[{"type":"button","action_id":"b-1"}]}`,
			&messages.Inbound{Event: "act:1.2.3:0", Conversation: key("T1/D1"), Message: "20.1", Action: "b-1", Private: true},
		},
		"on a root": {
			`{"type":"block_actions",` + base + `,"channel":{"id":"C1"},"message":{"ts":"20.1"},"actions":[{"type":"button","value":"b-1"}]}`,
			&messages.Inbound{Event: "act:1.2.3:0", Conversation: key("T1/C1/20.1"), Message: "20.1", Action: "b-1"},
		},
		"a dialog": {
			`{"type":"view_submission",` + base + `,"view":{"id":"V1","private_metadata":"{\"a\":\"edit-1\",\"k\":\"T1/C1/10.1\",\"m\":\"20.1\"}","state":{"values":{"text":{"text":{"type":"plain_text_input","value":" new plan "}}}}}}`,
			&messages.Inbound{Event: "view:1.2.3", Conversation: key("T1/C1/10.1"), Message: "20.1", Action: "edit-1", Text: "new plan"},
		},
		"a dialog of another team": {
			`{"type":"view_submission",` + base + `,"view":{"private_metadata":"{\"a\":\"edit-1\",\"k\":\"T2/C1/10.1\"}","state":{"values":{"text":{"text":{"type":"plain_text_input","value":" new plan "}}}}}}`, nil,
		},
		"a dialog in a direct message": {
			`{"type":"view_submission",` + base + `,"view":{"private_metadata":"{\"a\":\"edit-1\",\"k\":\"T1/D1\"}","state":{"values":{"text":{"text":{"type":"plain_text_input","value":"x"}}}}}}`,
			&messages.Inbound{Event: "view:1.2.3", Conversation: key("T1/D1"), Action: "edit-1", Text: "x", Private: true},
		},
		"unknown":   {`{"type":"workflow_step",` + base + `}`, nil},
		"malformed": {`{"type":"block_actions","actions":7}`, nil},
		"not JSON":  {`{`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			w := b.interaction(tc.payload)
			if w.Code != http.StatusOK || w.Body.Len() != 0 {
				t.Fatalf("answered %d %s", w.Code, w.Body)
			}
			if tc.want == nil {
				if len(b.sink.Events()) != 0 || len(b.sink.Kept()) != 1 {
					t.Fatalf("accepted %+v, kept %+v", b.sink.Events(), b.sink.Kept())
				}
				return
			}
			in := b.one(t)
			tc.want.Account, tc.want.Kind, tc.want.Trigger = "T1", messages.KindAction, "1.2.3"
			tc.want.Sender = messages.Sender{ID: "U1", Name: "ann"}
			in.Raw, in.SentAt = nil, time.Time{}
			if d := cmp.Diff(*tc.want, in); d != "" {
				t.Error(d)
			}
		})
	}
}

// Nothing is confirmed that is not stored, and it counts when it comes again.
func TestRefusedEventIsNotConfirmed(t *testing.T) {
	t.Parallel()
	fail := true
	b := setup(t, func(c *slack.Config) {
		c.Engaged = func(context.Context, messages.ConversationKey) (bool, error) {
			if fail {
				return false, errors.New("the database is away")
			}
			return true, nil
		}
	})
	inner := `{"type":"message","channel":"C1","user":"U1","text":"hi","ts":"20.1","thread_ts":"10.1"}`
	if w := b.event(inner); w.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %d", w.Code)
	}
	fail = false
	b.sink.BeforeAccept = func([]messages.Inbound) error {
		if !fail {
			fail = true
			return errors.New("the database is away")
		}
		fail = false
		return nil
	}
	if w := b.event(inner); w.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %d", w.Code)
	}
	fail = false
	b.sink.BeforeAccept = nil
	r := signed("events", "application/json", wrapped(inner), time.Now())
	r.Header.Set("X-Slack-Retry-Num", "1")
	r.Header.Set("X-Slack-Retry-Reason", "http_error")
	if w := serve(b.hook, r); w.Code != http.StatusOK {
		t.Errorf("answered %d", w.Code)
	}
	b.one(t)
}

// TestWhatWasReadIsStoredWithoutItsSender has a sender that has gone when its event is
// read, as one does that has waited too long.
func TestWhatWasReadIsStoredWithoutItsSender(t *testing.T) {
	t.Parallel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	b := setup(t)
	r := signed("events", "application/json", wrapped(`{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"hi","ts":"10.1"}`), time.Now())
	w := httptest.NewRecorder()
	b.hook.ServeHTTP(w, r.WithContext(gone))
	if n := len(b.sink.Events()); w.Code != http.StatusOK || n != 1 {
		t.Errorf("answered %d, %d events are stored, want 200 and 1", w.Code, n)
	}
}
