package github_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/e2e/internal/need"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/platform/platformtest"
)

// payloads is how many events of GitHub @octokit/webhooks-examples has recorded.
const payloads = 329

// example is a recorded event.
type example struct {
	event string
	n     int
	body  object
}

func (e example) name() string { return fmt.Sprintf("%s %d (%v)", e.event, e.n, e.body["action"]) }

func examples(t *testing.T) (all []example) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(need.Package(t, "@octokit/webhooks-examples"), "api.github.com", "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var events []struct {
		Name     string   `json:"name"`
		Examples []object `json:"examples"`
	}
	if err := json.Unmarshal(raw, &events); err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		for i, body := range e.Examples {
			all = append(all, example{e.Name, i, body})
		}
	}
	if len(all) != payloads {
		t.Fatalf("%d examples, want %d", len(all), payloads)
	}
	return all
}

// adapter returns one that fails the test with every call: a webhook makes none.
func adapter(t *testing.T, secret string) *github.Adapter {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("the webhook made a call: %s %s", req.Method, req.URL)
	}))
	t.Cleanup(api.Close)
	a, err := github.New(github.Config{Token: "ghp_robot00000000000", WebhookSecret: secret, APIURL: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// deliver hands an event to the adapter as GitHub does, and returns what came of
// it.
func deliver(t *testing.T, e example, secret, signature string, body []byte) (status int, events []messages.Inbound, kept []messages.RawEvent) {
	t.Helper()
	sink := &platformtest.Sink{}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/github", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", e.event)
	req.Header.Set("X-GitHub-Delivery", fmt.Sprintf("00000000-0000-0000-%04d-%012d", e.n, len(body)))
	req.Header.Set("X-Hub-Signature-256", signature)
	rec := httptest.NewRecorder()
	adapter(t, secret).Webhook(sink).ServeHTTP(rec, req)
	return rec.Code, sink.Events(), sink.Kept()
}

func (e example) delivered(t *testing.T) ([]messages.Inbound, []messages.RawEvent) {
	t.Helper()
	body, err := json.Marshal(e.body)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(body)
	status, events, kept := deliver(t, e, hookSecret, "sha256="+hex.EncodeToString(mac.Sum(nil)), body)
	if status != http.StatusAccepted {
		t.Errorf("%s: answered %d", e.name(), status)
	}
	return events, kept
}

// at returns what is at a path of names, or nil.
func at(v any, path ...string) any {
	for _, name := range path {
		o, _ := v.(object)
		v = o[name]
	}
	return v
}

// conversation is where an event belongs by its own words.
func (e example) conversation() messages.ConversationKey {
	number := at(e.body, "issue", "number")
	if number == nil {
		number = at(e.body, "pull_request", "number")
	}
	return messages.ConversationKey{Platform: "github", ID: fmt.Sprintf("%s#%v", lower(at(e.body, "repository", "full_name")), number)}
}

func lower(v any) string { return string(bytes.ToLower([]byte(fmt.Sprint(v)))) }

// TestRecordedEvents delivers all recorded events. Nobody speaks to the bot in
// them: it hears of what was closed and of nothing else, and keeps none, because
// none is malformed and events of kinds that are not ours are only counted.
func TestRecordedEvents(t *testing.T) {
	t.Parallel()
	closed := 0
	for _, e := range examples(t) {
		events, kept := e.delivered(t)
		var want []messages.ConversationKey
		action := e.body["action"]
		gone := action == "closed" || e.event == "issues" && (action == "deleted" || action == "transferred")
		if (e.event == "issues" || e.event == "pull_request") && gone {
			want = append(want, e.conversation())
			closed++
		}
		var got []messages.ConversationKey
		for _, in := range events {
			if in.Kind != messages.KindClosed || in.Repository == nil || in.SentAt.IsZero() {
				t.Errorf("%s: came out as %+v", e.name(), in)
			}
			got = append(got, in.Conversation)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.name(), diff)
		}
		if len(kept) != 0 {
			t.Errorf("%s: %d kept as not understood", e.name(), len(kept))
		}
	}
	if closed == 0 {
		t.Error("no example closes anything")
	}
}

// TestRecordedEventsThatSpeakToTheBot puts words for the bot into every text of the
// recorded events. It hears those that a person wrote just now, under that
// person's own id, and no other: not when somebody else, or a program, makes an
// event of a person's words, nor in an issue that comes from another repository, where
// they were said.
func TestRecordedEventsThatSpeakToTheBot(t *testing.T) {
	t.Parallel()
	said := map[string]string{ // event and action, and what has the text
		"issues opened": "issue", "pull_request opened": "pull_request", "issue_comment created": "comment",
		"pull_request_review submitted": "review", "pull_request_review_comment created": "comment",
	}
	heard := 0
	for _, e := range examples(t) {
		for _, part := range []string{"issue", "pull_request", "comment", "review"} {
			if o, ok := e.body[part].(object); ok {
				o["body"] = "@remote-agent What is this?"
			}
		}
		var want []string
		part := e.body[said[fmt.Sprintf("%s %v", e.event, e.body["action"])]]
		author, sender := at(part, "user"), at(e.body, "sender")
		moved := at(e.body, "changes", "old_issue") != nil
		if !moved && at(author, "type") == "User" && at(sender, "type") == "User" && at(author, "id") == at(sender, "id") {
			want = append(want, fmt.Sprintf("%v by %.0f: What is this?", e.conversation(), at(author, "id")))
			heard++
		}
		e.hears(t, want...)
		if len(want) > 0 {
			e.body["sender"] = object{"id": 4711, "login": "somebody", "type": "User"}
			e.hears(t)
			e.body["sender"] = object{"id": at(author, "id"), "login": at(author, "login"), "type": "Bot"}
			e.hears(t)
		}
	}
	if heard < 5 {
		t.Errorf("only %d examples could be heard", heard)
	}
}

// hears delivers the event and compares the messages that come of it.
func (e example) hears(t *testing.T, want ...string) {
	t.Helper()
	events, _ := e.delivered(t)
	var got []string
	for _, in := range events {
		if in.Kind == messages.KindMessage {
			got = append(got, fmt.Sprintf("%v by %s: %s", in.Conversation, in.Sender.ID, in.Text))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", e.name(), diff)
	}
}
