package slack_test

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform/slack"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a &lt;b&gt; &amp;amp; c":               "a <b> &amp; c",
		"<https://a.example/x?a=1&amp;b=2>":     "https://a.example/x?a=1&b=2",
		"<https://a.example|the page>":          "the page (https://a.example)",
		"<https://a.example|https://a.example>": "https://a.example",
		"open <http://main.go|main.go>":         "open main.go",
		"<mailto:a@b.example|a@b.example>":      "a@b.example",
		"<@U2> and <@U3|cy>":                    "@U2 and @cy",
		"<#C1|general> <#C2>":                   "#general #C2",
		"<!here> <!channel|channel>":            "@here @channel",
		"<!subteam^S1|@devs> <!subteam^S1>":     "@devs subteam^S1",
		"<!date^1^{date}|today>":                "today",
		"*bold* `code`":                         "*bold* `code`",
	} {
		if got := slack.Plain(in); got != want {
			t.Errorf("Plain(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"T1/C1", "T1/D1/10.1", "E1:T1/C1/1700000000.000100", "T1/C1/new-abc"} {
		if got, err := slack.KeyRoundTrip(id); err != nil || got != id {
			t.Errorf("%s became %s, %v", id, got, err)
		}
	}
	for _, id := range []string{"", "T1", "/C1", "T1/", "T1/c1", "T1/C1/", "T1/C1/x", "T1/C1/new-", "T1/C1/10.1/x", "T1/C1/10", "T1/C1/.1"} {
		if got, err := slack.KeyRoundTrip(id); err == nil {
			t.Errorf("%s was taken for %s", id, got)
		}
	}
}

// The manifest asks for what the code uses and for nothing else: every method
// that is called is in the table, every method of the table is called, every
// event of the manifest is read.
func TestManifestHoldsAgainstTheCode(t *testing.T) {
	t.Parallel()
	literals := sourceLiterals(t)
	method := regexp.MustCompile(`^(agents|apps|assistant|auth|bookmarks|bots|chat|conversations|files|pins|reactions|team|usergroups|users|views)\.[a-zA-Z.]+$`)
	used := map[string]bool{}
	for _, l := range literals {
		if method.MatchString(l) && !strings.HasSuffix(l, ".com") {
			used[l] = true
		}
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(slack.MethodTable())), slices.Sorted(maps.Keys(used))); d != "" {
		t.Errorf("the table of methods and the code differ: %s", d)
	}
	for _, e := range slack.Events() {
		name, _, _ := strings.Cut(e, ".")
		if !slices.Contains(literals, name) {
			t.Errorf("the event %s is nowhere read", e)
		}
	}
	want := map[string]bool{"commands": true}
	for _, scopes := range slack.MethodTable() {
		for _, s := range scopes {
			want[s] = true
		}
	}
	want["app_mentions:read"] = true
	for _, socket := range []bool{true, false} {
		var m struct {
			OAuth    struct{ Scopes struct{ Bot []string } } `json:"oauth_config"`
			Settings struct {
				Events struct {
					URL string   `json:"request_url"`
					Bot []string `json:"bot_events"`
				} `json:"event_subscriptions"`
				Socket bool `json:"socket_mode_enabled"`
			}
		}
		mustJSON(t, slack.Manifest("https://agent.example/", socket).JSON(), &m)
		if d := cmp.Diff(slices.Sorted(maps.Keys(want)), m.OAuth.Scopes.Bot); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(slack.Events(), m.Settings.Events.Bot); d != "" {
			t.Error(d)
		}
		if m.Settings.Socket != socket || socket == (m.Settings.Events.URL == "https://agent.example/webhooks/slack/events") {
			t.Errorf("settings: %+v", m.Settings)
		}
	}
}

// sourceLiterals returns the strings of the package's code, but not the keys of
// its tables.
func sourceLiterals(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if kv, ok := n.(*ast.KeyValueExpr); ok {
				if _, isKey := kv.Key.(*ast.BasicLit); isKey {
					return false
				}
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					out = append(out, s)
				}
			}
			return true
		})
	}
	return out
}

// In a channel, /agent begins a conversation of its own, so its hint names nothing that is
// about an earlier one.
func TestTheHintNamesWhatWorksEverywhere(t *testing.T) {
	t.Parallel()
	var m struct {
		Features struct {
			Commands []struct {
				Hint string `json:"usage_hint"`
			} `json:"slash_commands"`
		}
	}
	mustJSON(t, slack.Manifest("", true).JSON(), &m)
	hint := m.Features.Commands[0].Hint
	for _, past := range []string{"stop", "retry", "undo", "new", "full", "diff", "branch", "fork", "pr"} {
		if slices.Contains(strings.Fields(hint), past) {
			t.Errorf("the hint %q names %s", hint, past)
		}
	}
}

func TestManifestForms(t *testing.T) {
	t.Parallel()
	m := slack.Manifest("https://agent.example", false)
	u, err := url.Parse(m.URL())
	if err != nil || u.Query().Get("manifest_json") != m.JSON() || u.Query().Get("new_app") != "1" || len(m.URL()) > 4000 {
		t.Errorf("%d characters: %s, %v", len(m.URL()), m.URL(), err)
	}
	yaml := m.YAML()
	for _, want := range []string{
		"display_information:\n    name: Agent\n", "            - app_mentions:read\n", "messages_tab_read_only_enabled: false\n",
		"    slash_commands:\n        - command: /agent\n", "plan <goal>", "request_url: https://agent.example/webhooks/slack/interactions\n",
	} {
		if !strings.Contains(yaml, want) {
			t.Errorf("the YAML lacks %q:\n%s", want, yaml)
		}
	}
}

func FuzzTranslate(f *testing.F) {
	f.Add("events_api", wrapped(`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> x","ts":"10.1","files":[{"id":"F1"}]}`))
	f.Add("events_api", wrapped(`{"type":"message","subtype":"message_changed","channel":"D1","message":{"user":"U1","text":"x","ts":"20.1","edited":{"ts":"1.1"}}}`))
	f.Add("slash_commands", `{"team_id":"T1","channel_id":"C1","user_id":"U1","trigger_id":"1.2","text":"plan <@U1|x>"}`)
	f.Add("interactive", `{"type":"block_actions","trigger_id":"1","team":{"id":"T1"},"user":{"id":"U1"},"channel":{"id":"C1"},"message":{"ts":"1.1"},"actions":[{"value":"b"}]}`)
	f.Add("interactive", `{"type":"view_submission","trigger_id":"1","team":{"id":"T1"},"user":{"id":"U1"},"view":{"private_metadata":"{}","state":{}}}`)
	f.Add("events_api", strings.Repeat("[", 5000))
	f.Add("", "\xff")
	a, err := slack.New(slack.Config{BotToken: botToken, SigningSecret: secret, APIURL: "http://127.0.0.1:1/api"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind, payload string) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is asked of anybody
		events, reason, err := a.Translate(ctx, kind, []byte(payload))
		if err != nil && (len(events) > 0 || reason != "") {
			t.Fatalf("an error and a result: %v, %v, %q", err, events, reason)
		}
		for _, in := range events {
			if in.Event == "" || len(in.Event) > 140 || in.Account == "" || in.Sender.ID == "" || in.Conversation.Platform != slack.Name || len(in.Conversation.ID) > 255 {
				t.Errorf("accepted %+v", in)
			}
			if _, err := slack.KeyRoundTrip(in.Conversation.ID); err != nil {
				t.Errorf("the key %q cannot be read", in.Conversation.ID)
			}
			if !json.Valid(in.Raw) {
				t.Errorf("the raw form is not JSON: %q", in.Raw)
			}
			if in.Kind == messages.KindAction && in.Action == "" {
				t.Error("an action without one")
			}
		}
	})
}

func FuzzDefused(f *testing.F) {
	for _, s := range []string{"<!channel>", "@here", "<<@U1>>", "<\u200b@U1>", "<!\xff>", "@@here", "<@<@U1>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := slack.Defused(s)
		if pings.MatchString(out) {
			t.Errorf("Defused(%q) is %q", s, out)
		}
		if utf8.ValidString(s) && strings.ReplaceAll(out, "\u200b", "") != strings.ReplaceAll(s, "\u200b", "") {
			t.Errorf("Defused(%q) changed the text: %q", s, out)
		}
	})
}
