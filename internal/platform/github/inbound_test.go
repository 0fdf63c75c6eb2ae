package github_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/waittest"
)

type discard struct{}

func (discard) Accept(context.Context, ...messages.Inbound) error { return nil }
func (discard) Keep(context.Context, messages.RawEvent) error     { return nil }

type object = map[string]any

const (
	headSHA = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
	baseSHA = "f95f852bd8fca8fcc58a9a2d6c842781e32a215e"
)

func annUser() object { return object{"id": 1001, "login": "ann", "type": "User"} }

func repoObject() object {
	return object{"id": 9, "full_name": "Acme/Web", "clone_url": "https://github.com/Acme/Web.git", "default_branch": "main"}
}

func issueObject(body string) object {
	return object{
		"id": 70, "number": 42, "title": "It is broken", "html_url": "https://github.com/Acme/Web/issues/42", "state": "open",
		"user": annUser(), "body": body, "created_at": "2026-11-21T10:00:00Z", "closed_at": nil,
	}
}

func pullObject(body, headRepo string, headID int) object {
	return object{
		"id": 71, "number": 7, "title": "Add a limiter", "html_url": "https://github.com/Acme/Web/pull/7", "state": "open", "user": annUser(),
		"body": body, "created_at": "2026-11-21T10:00:00Z",
		"head": object{"ref": "limiter", "sha": headSHA, "repo": object{"id": headID, "full_name": headRepo}},
		"base": object{"ref": "main", "sha": baseSHA, "repo": repoObject()},
	}
}

func commentObject(body string) object {
	return object{"id": 3500000001, "body": body, "user": annUser(), "created_at": "2026-11-21T10:05:00Z", "updated_at": "2026-11-21T10:05:00Z", "html_url": "https://github.com/x"}
}

// event returns a payload.
func event(action string, parts ...object) string {
	all := object{"action": action, "repository": repoObject(), "sender": annUser(), "installation": object{"id": 5}}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// commentBody is a comment on issue 42; change replaces a part of the JSON.
func commentBody(body, _ string) string {
	return event("created", object{"issue": issueObject("the text"), "comment": commentObject(body)})
}

func TestEveryHandledEvent(t *testing.T) {
	t.Parallel()
	forIssue := &messages.Repository{URL: "https://github.com/Acme/Web.git", Branch: "bot/issue-42", Closes: "#42"}
	forPull := &messages.Repository{URL: "https://github.com/Acme/Web.git", Branch: "limiter", Existing: true, Base: "main", Head: headSHA, Fetch: "refs/pull/7/head"}
	fork := &messages.Repository{URL: "https://github.com/Acme/Web.git", Branch: "bot/pull-7", ReadOnly: true, Fetch: "refs/pull/7/head", Base: "main", Head: headSHA}
	unknown := &messages.Repository{URL: "https://github.com/Acme/Web.git", Branch: "bot/pull-42", ReadOnly: true, Fetch: "refs/pull/42/head"}
	pull := object{"pull_request": pullObject("please, @Remote-Agent", "Acme/Web", 9)}
	onPull := issueObject("x")
	onPull["pull_request"] = object{"url": "https://api.github.com/x"}
	line := commentObject("@remote-agent why?")
	line["in_reply_to_id"] = 3400000000
	issueLine, pullLine := "GitHub issue Acme/Web#42: It is broken (https://github.com/Acme/Web/issues/42)", "GitHub pull request Acme/Web#7: Add a limiter (https://github.com/Acme/Web/pull/7)"
	opened := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		event, body string
		want        messages.Inbound
	}{
		"issue opened": {"issues", event("opened", object{"issue": issueObject("@remote-agent fix it")}), messages.Inbound{
			Conversation: key("acme/web#42"), Message: "is:42", Text: "fix it", Aliases: []messages.EventID{"opened:acme/web#42"}, Repository: forIssue, Reference: issueLine, SentAt: opened}},
		"comment": {"issue_comment", commentBody("@remote-agent /plan x\nmore", ""), messages.Inbound{
			Conversation: key("acme/web#42"), Message: "ic:3500000001", Text: "/plan x\nmore", Aliases: []messages.EventID{"comment:3500000001"}, Repository: forIssue, Reference: issueLine, SentAt: opened.Add(5 * time.Minute)}},
		"comment on a pull request": {"issue_comment", event("created", object{"issue": onPull, "comment": commentObject("@remote-agent hi")}), messages.Inbound{
			Conversation: key("acme/web#42"), Message: "ic:3500000001", Text: "hi", Aliases: []messages.EventID{"comment:3500000001"}, Repository: unknown, SentAt: opened.Add(5 * time.Minute),
			Reference: "GitHub pull request Acme/Web#42: It is broken (https://github.com/Acme/Web/issues/42)"}},
		"pull request opened": {"pull_request", event("opened", pull), messages.Inbound{
			Conversation: key("acme/web#7"), Message: "is:7", Text: "please,", Aliases: []messages.EventID{"opened:acme/web#7"}, Repository: forPull, Reference: pullLine, SentAt: opened}},
		"of a fork": {"pull_request", event("opened", object{"pull_request": pullObject("@remote-agent hi", "Eve/Web", 10)}), messages.Inbound{
			Conversation: key("acme/web#7"), Message: "is:7", Text: "hi", Aliases: []messages.EventID{"opened:acme/web#7"}, Repository: fork, Reference: pullLine, SentAt: opened}},
		"review": {"pull_request_review", event("submitted", pull, object{"review": object{"id": 8, "body": "@remote-agent do that", "user": annUser(), "submitted_at": "2026-11-21T10:05:00Z"}}), messages.Inbound{
			Conversation: key("acme/web#7"), Message: "rv:8", Text: "do that", Aliases: []messages.EventID{"review:8"}, Repository: forPull, Reference: pullLine, SentAt: opened.Add(5 * time.Minute)}},
		"line": {"pull_request_review_comment", event("created", pull, object{"comment": line}), messages.Inbound{
			Conversation: key("acme/web#7"), Message: "rc:3500000001/3400000000", Text: "why?", Aliases: []messages.EventID{"line:3500000001"}, Repository: forPull, Reference: pullLine, SentAt: opened.Add(5 * time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHook(t)
			in := h.one(t, tt.event, tt.body)
			want := tt.want
			want.Account, want.Kind, want.Sender = "github.com", messages.KindMessage, messages.Sender{ID: "1001", Name: "ann", Email: "1001+ann@users.noreply.github.com"}
			want.Event, want.Raw = "72d3162e-cc78-11e3-81ab-000000000001", []byte(tt.body)
			if diff := cmp.Diff(want, in); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestClosing(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	closed := issueObject("x")
	closed["closed_at"] = "2026-11-21T11:00:00Z"
	in := h.one(t, "issues", event("closed", object{"issue": closed}))
	if in.Kind != messages.KindClosed || in.Conversation.ID != "acme/web#42" || in.Sender.ID != "" || len(in.Aliases) != 1 || in.Aliases[0] != "closed:acme/web#42:1795258800" {
		t.Errorf("closed: %+v", in)
	}
	in = h.one(t, "pull_request", event("closed", object{"pull_request": pullObject("@remote-agent x", "Acme/Web", 9)}))
	if in.Kind != messages.KindClosed || in.Conversation.ID != "acme/web#7" {
		t.Errorf("closed: %+v", in)
	}
	for _, action := range []string{"deleted", "transferred"} {
		if in = h.one(t, "issues", event(action, object{"issue": issueObject("x")})); in.Kind != messages.KindClosed || in.Conversation.ID != "acme/web#42" {
			t.Errorf("%s: %+v", action, in)
		}
	}
	h.none(t, "it comes from another repository", "issues", event("opened", object{
		"issue":   issueObject("@remote-agent fix it"),
		"changes": object{"old_issue": object{"id": 69, "number": 3}, "old_repository": object{"id": 8, "full_name": "Acme/Old"}},
	}))
	for _, action := range []string{"reopened", "edited", "labeled", "synchronize"} {
		h.none(t, action, "issues", event(action, object{"issue": issueObject("@remote-agent x")}))
		h.none(t, action, "pull_request", event(action, object{"pull_request": pullObject("@remote-agent x", "Acme/Web", 9)}))
	}
}

// A button is pressed by a person who ticks it where it stood before, in a comment of ours.
func TestWhatIsNoPress(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	const mark = "\n\n<!-- bot:delivery=d-1 -->\n"
	button := func(state, id string) string { return "- [" + state + "] Approve <!-- bot:button=" + id + " -->" }
	edit := func(from, to string, more object) string {
		all := object{
			"issue": issueObject(""), "comment": with(commentObject(to), object{"performed_via_github_app": object{"id": 4711}}),
			"changes": object{"body": object{"from": from}}, "sender": annUser(),
		}
		maps.Copy(all, more)
		return event("edited", all)
	}
	off, on := "plan\n\n"+button(" ", "b-1")+mark, "plan\n\n"+button("x", "b-1")+mark
	if in := h.one(t, "issue_comment", edit(off, on, nil)); in.Action != "b-1" || in.Kind != messages.KindAction {
		t.Fatalf("a press: %+v", in)
	}
	inThread := with(commentObject(on), object{"performed_via_github_app": object{"id": 4711}, "in_reply_to_id": 3400000000})
	if in := h.one(t, "pull_request_review_comment", event("edited", object{
		"pull_request": pullObject("", "Acme/Web", 9), "comment": inThread, "changes": object{"body": object{"from": off}},
	})); in.Action != "b-1" || in.Kind != messages.KindAction || in.Conversation.ID != "acme/web#7" || in.Message != "rc:3500000001/3400000000" {
		t.Errorf("a press in a thread of lines: %+v", in)
	}
	for why, body := range map[string]string{
		"it was not there":          edit("plan"+mark, on, nil),
		"it was pressed":            edit(on, on, nil),
		"it is taken back":          edit(on, off, nil),
		"it is no person":           edit(off, on, object{"sender": object{"id": 2, "login": "other[bot]", "type": "Bot"}}),
		"it is not ours":            edit(off, on, object{"comment": commentObject(on)}),
		"it is of the text":         edit(button(" ", "b-1")+"\n\nthe end"+mark, button("x", "b-1")+"\n\nthe end"+mark, nil),
		"it is not the text's edit": edit(off, on, object{"changes": object{}}),
	} {
		h.none(t, why, "issue_comment", body)
	}
}

// with changes one field of the comment's user, or the comment.
func with(o object, more object) object {
	out := maps.Clone(o)
	maps.Copy(out, more)
	return out
}

func TestWhoNeverTriggers(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	say := commentObject("@remote-agent hi")
	bot := object{"id": 2, "login": "other[bot]", "type": "Bot"}
	for why, body := range map[string]string{
		"a bot":                 event("created", object{"issue": issueObject(""), "comment": with(say, object{"user": bot}), "sender": bot}),
		"a bot's name":          event("created", object{"issue": issueObject(""), "comment": with(say, object{"user": with(annUser(), object{"login": "x[bot]"})})}),
		"no type":               event("created", object{"issue": issueObject(""), "comment": with(say, object{"user": object{"id": 1001, "login": "ann"}})}),
		"our App":               event("created", object{"issue": issueObject(""), "comment": with(say, object{"performed_via_github_app": object{"id": 4711}})}),
		"a marked comment":      event("created", object{"issue": issueObject(""), "comment": commentObject("@remote-agent hi\n\n<!-- bot:delivery=x -->\n")}),
		"a marked pull request": event("created", object{"issue": issueObject(""), "comment": commentObject("@remote-agent hi\n<!-- bot:pull -->")}),
		"somebody else's words": event("created", object{"issue": issueObject(""), "comment": say, "sender": object{"id": 1002, "login": "bob", "type": "User"}}),
		"a bot for somebody":    event("created", object{"issue": issueObject(""), "comment": say, "sender": with(annUser(), object{"type": "Bot"})}),
		"an edit":               event("edited", object{"issue": issueObject(""), "comment": say, "changes": object{"body": object{"from": "x"}}}),
		"a deletion":            event("deleted", object{"issue": issueObject(""), "comment": commentObject("hi")}),
		"our words deleted":     event("deleted", object{"issue": issueObject(""), "comment": commentObject("@remote-agent hi\n\n<!-- bot:delivery=x -->\n")}),
		"no mention":            commentBody("remote-agent hi", ""),
	} {
		h.none(t, why, "issue_comment", body)
	}
	if kept := h.sink.Kept(); len(kept) != 0 {
		t.Errorf("kept %+v", kept)
	}
	// A copy of a mark in the middle, as in a quoted answer, silences nobody.
	h.one(t, "issue_comment", commentBody("> text <!-- bot:delivery=x -->\n\n@remote-agent hi", ""))
	// Of another App a person's words count: they are theirs.
	h.one(t, "issue_comment", event("created", object{"issue": issueObject(""), "comment": with(say, object{"performed_via_github_app": object{"id": 12}})}))
}

// TestLineOfADraft: a comment on lines is created when it is begun, and said when its review is
// submitted.
func TestLineOfADraft(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	line := commentObject("@remote-agent hi")
	line["updated_at"] = "2026-11-21T10:35:00Z"
	in := h.one(t, "pull_request_review_comment", event("created", object{"pull_request": pullObject("", "Acme/Web", 9), "comment": line}))
	if want := time.Date(2026, 11, 21, 10, 35, 0, 0, time.UTC); !in.SentAt.Equal(want) {
		t.Errorf("it is of %v, want %v", in.SentAt, want)
	}
}

// TestDeletedComment has somebody delete what a person said to the bot.
func TestDeletedComment(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	for name, other := range map[string]object{
		"issue_comment":               {"issue": issueObject("")},
		"pull_request_review_comment": {"pull_request": pullObject("", "Acme/Web", 9)},
	} {
		other["comment"] = commentObject("@remote-agent hi")
		said := h.one(t, name, event("created", other))
		other["sender"] = object{"id": 1002, "login": "bob", "type": "User"}
		in := h.one(t, name, event("deleted", other))
		if in.Kind != messages.KindDeleted || in.Message != said.Message || in.Conversation != said.Conversation || in.Text != "" || in.SentAt.IsZero() {
			t.Errorf("%s: %+v tells of the deletion of %+v", name, in, said)
		}
		if !slices.Equal(in.Aliases, said.Aliases) {
			t.Errorf("%s: if it comes first, the comment %q is not known by %q", name, said.Aliases, in.Aliases)
		}
	}
}

func TestWhoIsShownAsAMember(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	for association, want := range map[string]bool{"OWNER": true, "MEMBER": true, "COLLABORATOR": true, "CONTRIBUTOR": false, "FIRST_TIMER": false, "NONE": false, "": false} {
		with := func(o object) object { o["author_association"] = association; return o }
		const text = "@remote-agent hi"
		for name, body := range map[string]string{
			"issues":                      event("opened", object{"issue": with(issueObject(text))}),
			"issue_comment":               event("created", object{"issue": issueObject(""), "comment": with(commentObject(text))}),
			"pull_request":                event("opened", object{"pull_request": with(pullObject(text, "Acme/Web", 9))}),
			"pull_request_review_comment": event("created", object{"pull_request": pullObject("", "Acme/Web", 9), "comment": with(commentObject(text))}),
			"pull_request_review": event("submitted", object{"pull_request": pullObject("", "Acme/Web", 9), "review": with(object{
				"id": 8, "body": text, "user": annUser(), "submitted_at": "2026-11-21T10:05:00Z",
			})}),
		} {
			if in := h.one(t, name, body); in.Sender.Member != want {
				t.Errorf("%s of %q: %v", name, association, in.Sender.Member)
			}
		}
	}
}

func TestOtherRepositoriesAreLeftAlone(t *testing.T) {
	t.Parallel()
	h := newHook(t, func(c *github.Config) { c.Repositories = []string{"Acme/Other"} })
	h.none(t, "not on the list", "issue_comment", commentBody("@remote-agent hi", ""))
	h = newHook(t, func(c *github.Config) { c.Repositories = []string{"ACME/web"} })
	h.one(t, "issue_comment", commentBody("@remote-agent hi", ""))
}

func TestHostileAddressesGetNoToken(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	for _, address := range []string{"https://evil.example/x.git", "https://github.com.evil.example/x", "https://me@github.com/x", "ext::sh -c x", "https://github.com/a b", ""} {
		body := event("created", object{"issue": issueObject(""), "comment": commentObject("@remote-agent hi"), "repository": with(repoObject(), object{"clone_url": address})})
		if in := h.one(t, "issue_comment", body); in.Repository.URL != "https://github.com/Acme/Web.git" {
			t.Errorf("%q: clones %q", address, in.Repository.URL)
		}
	}
	for _, ref := range []string{"--upload-pack=x", "a..b", "x\ny", "@{-1}"} {
		p := pullObject("@remote-agent hi", "Acme/Web", 9)
		p["head"] = with(p["head"].(object), object{"ref": ref})
		if r := h.one(t, "pull_request", event("opened", object{"pull_request": p})).Repository; !r.ReadOnly || r.Existing || r.Branch != "bot/pull-7" {
			t.Errorf("%q: %+v", ref, r)
		}
	}
	// A fork that was renamed to look like the repository is none of ours.
	if r := h.one(t, "pull_request", event("opened", object{"pull_request": pullObject("@remote-agent hi", "acme/web", 10)})).Repository; !r.ReadOnly {
		t.Errorf("%+v", r)
	}
	// The repository itself is ours also where it is heard of by its name of before.
	if r := h.one(t, "pull_request", event("opened", object{"pull_request": with(pullObject("@remote-agent hi", "acme/old", 9), object{"number": 8})})).Repository; r.ReadOnly || !r.Existing {
		t.Errorf("%+v", r)
	}
	// What was merged is read where GitHub keeps it: its branches may be gone.
	for i, merged := range []object{{"merged": true}, {"merged_at": "2026-11-21T10:03:00Z"}} {
		r := h.one(t, "pull_request_review", event("submitted", object{
			"pull_request": with(pullObject("x", "Acme/Web", 9), merged),
			"review":       object{"id": 90 + i, "body": "@remote-agent why?", "user": annUser(), "submitted_at": "2026-11-21T10:05:00Z"},
		})).Repository
		if want := (messages.Repository{URL: r.URL, Branch: "bot/pull-7", ReadOnly: true, Fetch: "refs/pull/7/head", Head: headSHA}); *r != want {
			t.Errorf("%v: %+v", merged, r)
		}
	}
	long := issueObject("")
	long["title"] = "a\nb\u202e " + strings.Repeat("é", 1000) + " <!-- x -->"
	if in := h.one(t, "issue_comment", event("created", object{"issue": long, "comment": commentObject("@remote-agent hi")})); strings.ContainsAny(in.Reference, "\n\u202e") || len(in.Reference) > 700 || !strings.Contains(in.Reference, "a b é") {
		t.Errorf("reference %q", in.Reference)
	}
}

func TestPingPongEnds(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Minute, 0, time.Minute} {
		t.Run(fmt.Sprint("GitHub's clock ", ahead), func(t *testing.T) {
			t.Parallel()
			pingPongEnds(t, ahead)
		})
	}
}

func pingPongEnds(t *testing.T, ahead time.Duration) {
	t.Helper()
	w := newWorld(t, setting{server: func(o *emulator.Options) {
		o.Now = func() time.Time { return time.Now().Add(ahead) }
	}})
	w.run(t)
	eve := w.person("ann")
	n := eve.OpenIssue("x", "y").Number
	conversation := key(fmt.Sprintf("%s#%d", inKey, n))
	for i := range 9 {
		w.settled(t, eve.Comment(n, "@remote-agent again"))
		out := messages.Outbound{Delivery: messages.DeliveryID(fmt.Sprint("d-", i)), Conversation: conversation, Text: "answer"}
		if _, err := w.Send(t.Context(), out); err != nil {
			t.Fatal(err)
		}
	}
	// The first one came before any answer. The others come in, to be marked.
	served, unanswered := 0, 0
	for _, in := range w.sink.Events() {
		if in.Unanswered {
			unanswered++
		} else {
			served++
		}
	}
	if served != 6 || unanswered != 3 {
		t.Errorf("%d requests are to be served and %d are not, want 6 and 3", served, unanswered)
	}
	// Somebody else is heard.
	w.settled(t, w.person("boss").Comment(n, "@remote-agent stop"))
	if in := w.last(t); in.Sender.Name != "boss" || in.Unanswered {
		t.Errorf("heard %+v", in)
	}
}

// An answer that took a minute was given when it took the place of the first word.
func TestPingPongOfLateAnswersEnds(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := newWorld(t, inTheirTime(c))
	w.run(t)
	n := w.person("ann").OpenIssue("x", "y").Number
	for i := range 9 {
		w.settled(t, w.person("ann").Comment(n, "@remote-agent again"))
		ref, err := w.Send(t.Context(), messages.Outbound{Delivery: messages.DeliveryID(fmt.Sprint("d-", i)), Conversation: key(fmt.Sprintf("%s#%d", inKey, n)), Text: platform.Placeholder})
		if err != nil {
			t.Fatal(err)
		}
		c.later(time.Minute)
		if err := w.Edit(t.Context(), platform.Edit{Ref: ref, Text: "answer"}); err != nil {
			t.Fatal(err)
		}
	}
	if in := w.last(t); !in.Unanswered {
		t.Errorf("the ninth request in a row is served: %+v", in)
	}
}

// The examples that Octokit collects are read as they are, signed, in any order,
// twice.
func TestOctokitExamples(t *testing.T) {
	t.Parallel()
	if *examples == "" {
		t.Skip("needs -octokit")
	}
	raw, err := os.ReadFile(*examples)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name     string
		Examples []json.RawMessage
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	type one struct{ event, body string }
	var list []one
	for _, e := range all {
		for _, x := range e.Examples {
			list = append(list, one{e.Name, string(x)})
		}
	}
	if len(list) != 329 {
		t.Errorf("%d examples, want 329", len(list))
	}
	h := newHook(t)
	list = append(list, list...)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, x := range list {
		h.deliver(t, x.event, x.body)
	}
	for _, in := range h.sink.Events() {
		if in.Kind != messages.KindClosed {
			t.Errorf("a turn that should not be: %+v", in)
		}
	}
	for _, kept := range h.sink.Kept() {
		if !strings.HasPrefix(kept.Reason, "unknown event") {
			t.Errorf("%s: %s", kept.Reason, kept.Raw)
		}
	}
	t.Logf("%d examples, %d closings, %d kept", len(list), len(h.sink.Events()), len(h.sink.Kept()))
	// The same with a mention put into every text: every creation is a turn.
	h = newHook(t)
	for _, x := range list {
		var o object
		if err := json.Unmarshal([]byte(x.body), &o); err != nil {
			t.Fatal(err)
		}
		mention(o)
		body, _ := json.Marshal(o)
		h.deliver(t, x.event, string(body))
	}
	turns := 0
	for _, in := range h.sink.Events() {
		if in.Kind == messages.KindMessage {
			turns++
			if in.Sender.ID == "" || in.Conversation.ID == "" || in.Repository == nil || len(in.Aliases) != 1 {
				t.Errorf("incomplete: %+v", in)
			}
		}
	}
	if turns == 0 {
		t.Error("no turn of examples with mentions")
	}
	t.Logf("%d turns", turns)
}

// mention puts a mention into every body.
func mention(v any) {
	switch v := v.(type) {
	case object:
		for k, x := range v {
			if k == "body" {
				v[k] = "@remote-agent hi"
			}
			mention(x)
		}
	case []any:
		for _, x := range v {
			mention(x)
		}
	}
}

func FuzzWebhook(f *testing.F) {
	f.Add("issue_comment", commentBody("@remote-agent hi", ""))
	f.Add("issues", event("opened", object{"issue": issueObject("@remote-agent\n/agent x")}))
	f.Add("issues", event("closed", object{"issue": issueObject("x")}))
	f.Add("pull_request", event("opened", object{"pull_request": pullObject("@remote-agent", "Acme/Web", 9)}))
	f.Add("pull_request_review", event("submitted", object{"pull_request": pullObject("", "Acme/Web", 9), "review": object{"id": 8, "body": "@remote-agent", "user": annUser()}}))
	f.Add("pull_request_review_comment", event("created", object{"pull_request": pullObject("", "", 9), "comment": commentObject("@remote-agent")}))
	f.Add("issue_comment", event("edited", object{"issue": issueObject(""), "comment": commentObject("- [x] a <!-- bot:button=b -->"), "changes": object{"body": object{"from": "- [ ] a <!-- bot:button=b -->"}}}))
	f.Add("issues", event("opened", object{"issue": issueObject("@remote-agent x"), "repository": object{"full_name": "Acme/Web", "pushed_at": "yesterday", "created_at": 12}}))
	f.Add("installation", `{"action":"deleted","installation":{"id":1}}`)
	f.Add("x", `{"issue":{"number":1e400}}`)
	h := newHook(f)
	f.Fuzz(func(t *testing.T, name, body string) {
		begin := time.Now()
		events, reason := h.Translate(t.Context(), name, "g-1", []byte(body))
		if took := time.Since(begin); waittest.TooLong(took, 5*time.Second) {
			t.Fatalf("took %v", took)
		}
		for _, in := range events {
			if reason != "" || in.Event == "" || in.Conversation.Platform != github.Name || len(in.Conversation.ID) > 255 || in.Repository == nil {
				t.Fatalf("%q: %+v", reason, in)
			}
			if in.Kind != messages.KindClosed && in.Sender.ID == "" {
				t.Fatalf("no sender: %+v", in)
			}
			if _, err := github.KeyRoundTrip(in.Conversation.ID); err != nil {
				t.Fatal(err)
			}
		}
	})
}
