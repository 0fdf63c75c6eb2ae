//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/store/storetest"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/plan"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
)

// evil is what strangers write. Every text of the database that a page shows has it.
const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)><a href="javascript:alert(3)">x</a>` + "\u202Egpj\x1b[2J" + `'"&lt;` +
	"\n\n[x](javascript:alert(4)) ![y](http://192.0.2.9/p.png) <style>*{}</style> {{.}} </textarea></title></pre>"

// evilName is the same in the length and letters that names may have.
const evilName = `"><script>alert(1)</script>`

// settled are the things of a database in which all that was said is evil.
type settled struct {
	conversation sessions.Conversation
	session      sessions.Session
	entry        string
	codebase     string
	profile      string
	question     approval.Approval
	plan         plan.Plan
}

// fill fills a database. Bob wrote what is there.
func (w *world) fill() (s settled) {
	w.t.Helper()
	w.do(func(ctx context.Context, tx *store.Tx) error {
		var err error
		key := messages.ConversationKey{Platform: "telegram", ID: "42" + evilName}
		if s.conversation, _, err = tx.Conversations().GetOrCreateConversation(ctx, key, "demo"); err != nil {
			return err
		}
		c, err := tx.Registry().Create(ctx, sessions.Codebase{Name: evilName, RepositoryURL: "https://example.com/" + evilName, DefaultCwd: "/srv/x", Assistant: "demo"})
		if err != nil {
			return err
		}
		s.codebase = c.ID
		p, err := tx.Profiles().Create(ctx, profile.Profile{Name: evilName, Description: evil, SystemPrompt: evil, Model: evilName})
		if err != nil {
			return err
		}
		s.profile = p.ID
		s.session, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: s.conversation.ID, Assistant: "demo", AgentName: evilName, Model: evilName, UserPrompt: evil})
		if err != nil {
			return err
		}
		e := sessions.Entry{
			ID: "0198c2d1-7a3b-7c4d-8e5f-0123456789ab", ConversationID: s.conversation.ID, Lane: sessions.LaneTurn, State: sessions.EntryWaiting, AcceptedAt: w.now,
			In: messages.Inbound{Event: "1", Kind: messages.KindMessage, Conversation: key, Sender: messages.Sender{ID: "42", Name: evil}, Text: evil},
		}
		if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
			return err
		}
		s.entry = e.ID
		running := sessions.EntryRunning
		if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: &running, SessionID: &s.session.ID}); err != nil {
			return err
		}
		_, err = tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: s.session.ID, EntryID: e.ID, Model: evilName},
			messages.NewText(messages.RoleUser, evil),
			messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
				messages.Thinking{Text: evil}, messages.Text{Text: evil}, messages.ToolCall{ID: "c1", Name: "bash", Arguments: `{"command":"` + strings.ReplaceAll(evilName, `"`, `\"`) + `"}`},
			}},
			messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{messages.ToolResult{CallID: "c1", Content: evil, Summary: evil, IsError: true}, messages.Attachment{Name: evil, MediaType: evilName, Note: evil}}},
			messages.Message{Role: messages.RoleUser, Blocks: []messages.Block{messages.Attachment{Name: evil, MediaType: evilName, Note: evil}}})
		if err != nil {
			return err
		}
		if err := storetest.Calls(ctx, tx, sessions.ToolCall{SessionID: s.session.ID, CallID: "c1", Name: evilName, Request: "{}"}); err != nil {
			return err
		}
		s.question = approval.Approval{
			ConversationID: s.conversation.ID, SessionID: s.session.ID, EntryID: e.ID, CallID: "c2", Tool: evilName, Arguments: evil, Title: evil, Detail: evil, Rule: evilName,
			Requester: "telegram/42", ExpiresAt: w.now.Add(time.Hour),
		}
		if err := tx.Questions().InsertApproval(ctx, &s.question); err != nil {
			return err
		}
		s.plan = plan.Plan{ConversationID: s.conversation.ID, SessionID: s.session.ID, EntryID: e.ID, Goal: evil, Text: evil, Author: evilName, Requester: "telegram/42"}
		return tx.Proposals().InsertPlan(ctx, &s.plan)
	})
	return s
}

// every are all pages, over a database that was filled.
func every(s settled) []string {
	return []string{
		"/", "/approvals", "/approvals/" + s.question.Name(), "/approvals/" + s.plan.Name(), "/account", "/sessions", "/sessions?" + url.Values{"q": {evilName}, "platform": {evilName}, "assistant": {evilName}, "person": {"a/" + evilName}}.Encode(),
		"/sessions/" + s.session.ID, "/sessions/" + s.session.ID + "?before=4",
		"/queue", "/costs?since=all&by=model", "/costs?by=person", "/costs?by=codebase", "/costs?by=conversation",
		"/platforms", "/backups", "/settings", "/settings?show=all", "/docs", "/docs/operations", "/docs/openapi",
		"/repos", "/repos/" + s.codebase, "/agents", "/agents/" + s.profile, "/agents/new?from=" + s.profile,
	}
}

func TestNothingComesThroughUnescaped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.diff = evilDiff()
		w.deadEnds(s)
		w.used(s, "telegram/42", evilName, 0, 1000, 1000)
		w.connections = platformsOf(w)
		w.settings = settingsOf
		w.hasBackup(evilName[2:10], "sqlite", evil)
		for _, who := range []signin.Account{ann, bob, cat} {
			w.mu.Lock()
			w.roles[bob] = sessions.User
			w.mu.Unlock()
			b := w.as(who)
			for _, path := range append(every(s), peoplesPages(s)...) {
				r := b.send("GET", path, nil)
				page := r.Body.String()
				if r.Code != http.StatusOK && (who != cat || r.Code != http.StatusNotFound) && (who == ann || r.Code != http.StatusForbidden) {
					t.Errorf("%s, GET %s: %d", who, path, r.Code)
				}
				clean(t, path, page)
				if len(page) > 300<<10 {
					t.Errorf("GET %s has %d bytes", path, len(page))
				}
			}
		}
		b := w.as(ann)
		for _, path := range []string{"/sessions/" + s.session.ID + "?tab=" + url.QueryEscape(evilName), "/sessions/" + s.session.ID + "?tab=events&before=" + url.QueryEscape(evilName), "/sessions?state=" + url.QueryEscape(evilName), "/sessions?before=" + url.QueryEscape(evilName), "/queue?turns=" + url.QueryEscape(evilName), "/queue?answers=" + url.QueryEscape(evilName), "/sessions/" + url.PathEscape(evilName), "/sign-in?k=" + url.QueryEscape(evilName), "/" + url.PathEscape(evilName)} {
			r := b.send("GET", path, nil)
			if r.Code < 400 || r.Code >= 500 {
				t.Errorf("GET %s: %d", path, r.Code)
			}
			clean(t, path, r.Body.String())
		}
		w.reply = func(messages.Inbound) (command.Reply, bool, error) { return command.Reply{Text: evil}, true, nil }
		clean(t, "what was answered", b.follow(b.post("/sessions/"+s.session.ID+"/stop", url.Values{})))
		w.reply = func(messages.Inbound) (command.Reply, bool, error) {
			return command.Reply{}, false, fault.New(fault.Conflict, evil)
		}
		clean(t, "an error", b.post("/sessions/"+s.session.ID+"/stop", url.Values{}).Body.String())
	})
}

// clean fails if a page has what only strangers could have put there.
func clean(t testing.TB, what, page string) {
	t.Helper()
	low := strings.ToLower(page)
	for _, bad := range []string{"<script>", "<img", "onerror=alert(2)>", `href="javascript:`, "<style", "\u202E", "\x1b", "src=\"http", "</textarea></title>"} {
		if strings.Contains(low, bad) {
			at := strings.Index(low, bad)
			t.Errorf("%s has %q: …%s…", what, bad, page[max(0, at-200):min(len(page), at+200)])
		}
	}
	if strings.Count(low, "<script") > 1 || strings.Count(low, "</title>") != 1 {
		t.Errorf("%s has %d scripts", what, strings.Count(low, "<script"))
	}
}

func TestOthersSeeNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b := w.as(cat)
		for _, name := range []string{s.question.Name(), s.plan.Name()} {
			if r := b.send("GET", "/approvals/"+name, nil); r.Code != http.StatusNotFound {
				t.Errorf("%s of somebody else: %d", name, r.Code)
			}
		}
		for _, path := range []string{"/", "/approvals", "/sessions"} {
			if page := b.get(path); strings.Contains(page, s.session.ID) || strings.Contains(page, s.question.SHA256) {
				t.Errorf("GET %s shows what is not theirs", path)
			}
		}
		if r := b.send("GET", "/sessions/"+s.session.ID, nil); r.Code != http.StatusNotFound {
			t.Errorf("the session of somebody else: %d", r.Code)
		}
		for _, path := range []string{"/stop", "/retry", "/message", "/delete"} {
			if r := b.post("/sessions/"+s.session.ID+path, url.Values{"text": {"x"}, "sure": {"yes"}}); r.Code != http.StatusNotFound && r.Code != http.StatusForbidden {
				t.Errorf("POST %s in the session of somebody else: %d", path, r.Code)
			}
		}
		if r := b.post("/decide", s.decision("approval", string(approval.Once))); r.Code != http.StatusNotFound {
			t.Errorf("deciding on what is not theirs: %d", r.Code)
		}
		if len(w.took) > 0 {
			t.Errorf("the engine was given %+v", w.took)
		}
	})
}

// decision is the form of a decision.
func (s settled) decision(on, what string) url.Values {
	number, sum := s.question.Number, s.question.SHA256
	if on == "plan" {
		number, sum = s.plan.Number, s.plan.SHA256
	}
	return url.Values{"on": {on}, "number": {strconv.FormatInt(number, 10)}, "sha256": {sum}, "decision": {what}}
}

func without(name string, form url.Values) url.Values {
	form.Del(name)
	return form
}

func TestDecidingIsPressingTheButtonOfWhatWasShown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b := w.as(ann)
		wants(t, b.get("/approvals"), s.question.SHA256, s.plan.SHA256, "Approve and run", "Always allow this")
		page := b.follow(b.post("/decide", s.decision("approval", string(approval.Once))))
		wants(t, page, "Done.")
		if len(w.took) != 1 {
			t.Fatalf("the engine was given %+v", w.took)
		}
		in := w.took[0]
		if in.Kind != messages.KindAction || in.Conversation != s.conversation.Key || in.Actor() != "console/local" || !in.Outside() || in.Message != "" {
			t.Errorf("the event: %+v", in)
		}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			button, err := tx.Buttons().Button(ctx, in.Action)
			if button.Number != s.question.Number || button.SHA256 != s.question.SHA256 || button.On != command.OnApproval || button.Decision != string(approval.Once) {
				t.Errorf("the button: %+v", button)
			}
			return err
		})
		edit := s.decision("plan", "edit")
		edit.Set("text", "1. other\r\n2. steps")
		b.follow(b.post("/decide", edit))
		if in := w.took[1]; in.Text != "1. other\n2. steps" {
			t.Errorf("the new text of a plan: %q", in.Text)
		}
		for name, form := range map[string]url.Values{
			"nothing":              {},
			"no number":            {"on": {"plan"}, "decision": {"approve"}, "sha256": {s.plan.SHA256}},
			"an unknown decision":  s.decision("plan", "burn"),
			"an unknown subject":   s.decision("pairing", "let_in"),
			"an edit without text": s.decision("plan", "edit"),
			"what was not shown":   without("sha256", s.decision("approval", string(approval.Once))),
		} {
			if r := b.post("/decide", form); r.Code != http.StatusBadRequest {
				t.Errorf("%s: %d", name, r.Code)
			}
		}
		gone := s.decision("approval", string(approval.Deny))
		gone.Set("number", "99999")
		if r := b.post("/decide", gone); r.Code != http.StatusNotFound {
			t.Errorf("what there is not: %d", r.Code)
		}
		if len(w.took) != 2 {
			t.Errorf("the engine was given %d events", len(w.took))
		}
		w.reply = func(messages.Inbound) (command.Reply, bool, error) {
			return command.Reply{Text: "✖ a-1 is settled already."}, true, nil
		}
		wants(t, b.follow(b.post("/decide", s.decision("approval", string(approval.Once)))), "settled already")
	})
}

// A link in a chat leads to what is to be decided on, and later to what became of it.
func TestAQuestionHasItsPage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b, asks := w.as(ann), w.as(bob)
		at, planAt := "/approvals/"+s.question.Name(), "/approvals/"+s.plan.Name()
		wants(t, b.get(at), s.question.SHA256, "Allow once", "on behalf of telegram/42", "The person who asked or an owner can decide.", `href="/sessions/`+s.session.ID)
		wants(t, asks.get(planAt), s.plan.SHA256, "Approve and run", "Edit the plan", "The person who asked or an owner can decide.")
		form := s.decision("plan", string(plan.Execute))
		form.Set("back", planAt)
		if r := asks.post("/decide", form); r.Header().Get("Location") != planAt {
			t.Errorf("after deciding it goes on to %q", r.Header().Get("Location"))
		}
		w.config.SecondApprover = true
		w.pages = pages.New(w.config)
		page := w.as(bob).get(at)
		wants(t, page, "Someone other than the person who asked can decide.", "Don&#39;t run")
		if strings.Contains(page, "Allow once") {
			t.Error("who asked may allow it although somebody else has to")
		}
		w.used(s, "telegram/42", "gpt-5-mini", 0, 20_000, 140_000)
		w.do(func(ctx context.Context, tx *store.Tx) error {
			return tx.People().SaveIdentity(ctx, sessions.Identity{Platform: "telegram", UserID: "42", Name: "Ann Example"})
		})
		for _, path := range []string{"/", "/approvals"} {
			wants(t, b.get(path), "on behalf of Ann Example (telegram/42)", "requested by Ann Example (telegram/42)")
		}
		wants(t, b.get("/queue"), " (telegram/42)")
		w.do(func(ctx context.Context, tx *store.Tx) error {
			a, pl := s.question, s.plan
			a.State, a.DecidedBy, a.DecidedAt = approval.Denied, "telegram/42", w.now
			pl.State, pl.DecidedBy, pl.DecidedAt = plan.Rejected, "telegram/42", w.now
			edited := s.plan
			edited.Number, edited.Author = 0, "telegram/42"
			return errors.Join(tx.Questions().SettleApproval(ctx, a), tx.Proposals().SettlePlan(ctx, pl), tx.Proposals().InsertPlan(ctx, &edited))
		})
		for path, part := range map[string]string{"?tab=plan": "requested by Ann Example (telegram/42) · written by Ann Example (telegram/42)", "?tab=cost": "Ann Example (telegram/42)"} {
			wants(t, b.get("/sessions/"+s.session.ID+path), part)
		}
		for path, want := range map[string]string{at: "Denied by Ann Example", planAt: "decided by Ann Example (telegram/42)"} {
			page := b.get(path)
			wants(t, page, want, `href="/sessions/`+s.session.ID)
			if clean(t, path, page); strings.Contains(page, `action="/decide"`) {
				t.Errorf("%s can still be decided on", path)
			}
		}
		for _, name := range []string{"a-999", "p-999", "999", "a-0", "x", "a-" + strings.Repeat("9", 30), url.PathEscape(evilName)} {
			if r := b.send("GET", "/approvals/"+name, nil); r.Code != http.StatusNotFound {
				t.Errorf("GET /approvals/%s: %d", name, r.Code)
			}
		}
	})
}

func TestAllThatIsDecidedOnIsShown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b := w.as(ann)
		hidden := "1. Tidy up.\n<!-- curl x | sh -->\n[tests](https://example.com/x)&#x202E;\n\n[a]: https://example.org\n" + strings.Repeat("2. go on\n", 1000)
		long := strings.Repeat("2. go on\n", 10_000) + "3. rm -rf /"
		card := func(text string) string {
			pl := plan.Plan{ConversationID: s.conversation.ID, SessionID: s.session.ID, EntryID: s.entry, Goal: "g", Text: text, Requester: "telegram/42"}
			w.do(func(ctx context.Context, tx *store.Tx) error { return tx.Proposals().InsertPlan(ctx, &pl) })
			_, card, found := strings.Cut(b.get("/approvals"), `<section class="card" id="`+pl.Name())
			if !found {
				t.Fatalf("there is no card of %s", pl.Name())
			}
			card, _, _ = strings.Cut(card, "</section>")
			return card
		}
		wants(t, card(hidden), "&lt;!-- curl x | sh --&gt;", "[tests](https://example.com/x)&amp;#x202E;", "[a]: https://example.org", "Approve and run", "Edit the plan")
		cut := card(long)
		wants(t, cut, "too long to show in full", "Reject")
		if strings.Contains(cut, "Approve") || strings.Contains(cut, "Edit the plan") || len(cut) > 64<<10 {
			t.Errorf("what is not shown whole: %d bytes, %q", len(cut), cut[len(cut)-600:])
		}
	})
}

// Nobody allows a command of which a part is not shown, or for ever what no rule names.
func TestOnlyWhatIsShownIsAllowed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b := w.as(ann)
		card := func(detail, rule string) string {
			a := approval.Approval{ConversationID: s.conversation.ID, SessionID: s.session.ID, EntryID: s.entry, CallID: rule + detail[:1], Tool: "bash", Arguments: "{}",
				Title: "ls", Detail: detail, Rule: rule, Requester: "telegram/42", ExpiresAt: w.now.Add(time.Hour)}
			w.do(func(ctx context.Context, tx *store.Tx) error { return tx.Questions().InsertApproval(ctx, &a) })
			_, card, found := strings.Cut(b.get("/approvals/"+a.Name()), `<section class="card" id="`+a.Name())
			if !found {
				t.Fatalf("there is no card of %s", a.Name())
			}
			card, _, _ = strings.Cut(card, "</section>")
			return card
		}
		const once, always, deny = "Allow once", "Always allow this", "Don&#39;t run"
		for name, c := range map[string]struct {
			card string
			want []string
		}{
			"shown":          {card("ls", "ls"), []string{once, always, deny}},
			"without a rule": {card("ls", ""), []string{once, deny}},
			"not shown":      {card("x"+strings.Repeat("y", 60<<10), "ls"), []string{deny}},
		} {
			for _, button := range []string{once, always, deny} {
				if got := strings.Contains(c.card, button); got != slices.Contains(c.want, button) {
					t.Errorf("%s: the button %q is there: %v", name, button, got)
				}
			}
		}
	})
}

// A plan that somebody edited is stored as they wrote it. Others decide on it without its
// secrets, and nobody edits what they are not shown.
func TestASecretInAPlanIsNotInItsForm(t *testing.T) {
	t.Parallel()
	eachWith(t, func(c *pages.Config) {
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
	}, func(t *testing.T, w *world) {
		s := w.fill()
		pl := plan.Plan{ConversationID: s.conversation.ID, SessionID: s.session.ID, EntryID: s.entry, Goal: "log in", Text: "1. Log in with hunter2.", Requester: "telegram/42"}
		w.do(func(ctx context.Context, tx *store.Tx) error { return tx.Proposals().InsertPlan(ctx, &pl) })
		b := w.as(ann)
		for _, path := range []string{"/approvals", "/approvals/" + pl.Name(), "/sessions/" + s.session.ID + "?tab=plan"} {
			if page := b.get(path); strings.Contains(page, "hunter2") || !strings.Contains(page, "Log in with [redacted]") {
				t.Errorf("GET %s shows a secret, or no plan", path)
			}
		}
		_, card, _ := strings.Cut(b.get("/approvals/"+pl.Name()), `<section class="card" id="`+pl.Name())
		if wants(t, card, "Approve and run", "Reject", "you can edit it only in the chat"); strings.Contains(card, "Edit the plan") {
			t.Error("what is shown without its secrets can be edited")
		}
	})
}

func TestMessagesStopAndDelete(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		at := "/sessions/" + s.session.ID
		b := w.as(bob)
		b.follow(b.post(at+"/message", url.Values{"text": {"  - go on\r\n    please\r\n"}}))
		b.follow(b.post(at+"/message", url.Values{"text": {"/status"}}))
		b.follow(b.post(at+"/stop", url.Values{"back": {"/"}}))
		b.follow(b.post(at+"/retry", url.Values{}))
		var texts []string
		for _, in := range w.took {
			if in.Actor() != "telegram/42" || in.Conversation != s.conversation.Key {
				t.Errorf("the event: %+v", in)
			}
			texts = append(texts, in.Text)
		}
		if got := strings.Join(texts, "|"); got != "  - go on\n    please|/status|/stop|/retry" {
			t.Errorf("texts: %s", got)
		}
		if got := w.took[0].Opening; !strings.Contains(got, ">   - go on\n>     please") {
			t.Errorf("what the chat shows: %q", got)
		}
		if r := b.post(at+"/message", url.Values{"text": {"  "}}); r.Code != http.StatusBadRequest {
			t.Errorf("a message without text: %d", r.Code)
		}
		if r := b.post(at+"/delete", url.Values{"sure": {"yes"}}); r.Code != http.StatusForbidden {
			t.Errorf("a member deletes a session: %d", r.Code)
		}
		owner := w.as(ann)
		if r := owner.post(at+"/delete", url.Values{}); r.Code != http.StatusBadRequest {
			t.Errorf("deleting without the tick: %d", r.Code)
		}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			stopped := sessions.EntryStopped
			if err := tx.Inbox().UpdateEntry(ctx, s.entry, sessions.EntryUpdate{State: &stopped}); err != nil {
				return err
			}
			a := s.question
			a.State, a.DecidedBy, a.DecidedAt = approval.Denied, "telegram/42", w.now
			if err := tx.Questions().SettleApproval(ctx, a); err != nil {
				return err
			}
			if err := tx.Sessions().EndOpenRun(ctx, s.session.ID, s.entry, sessions.RunEnd{Status: sessions.RunStopped}); err != nil {
				return err
			}
			_, err := tx.Care().RemoveSession(ctx, s.session.ID)
			return err
		})
		if r := owner.send("GET", at, nil); r.Code != http.StatusNotFound {
			t.Errorf("a session that was deleted while it was open: %d", r.Code)
		}
	})
}

func TestLongTranscriptsComeInWindows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.do(func(ctx context.Context, tx *store.Tx) error {
			// The call alone fills a page of the store. More would take a race detector on a busy
			// machine longer than PostgreSQL lets a transaction be idle.
			huge := messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{messages.ToolResult{CallID: "c9", Content: strings.Repeat("\u202E<&\x01", 1<<16)}}}
			call := messages.NewToolCall("c9", "bash", strings.Repeat("<", 3<<18))
			list := []messages.Message{call, huge, messages.NewText(messages.RoleAssistant, strings.Repeat("|a", 1<<18))}
			for i := range 500 {
				list = append(list, messages.NewText(messages.RoleAssistant, "said "+strconv.Itoa(i)+" "+strings.Repeat("`<b>` ", 300)))
			}
			_, err := tx.Messages().AppendMessages(ctx, s.session.ID, "", list...)
			return err
		})
		b, path, seen := w.as(ann), "/sessions/"+s.session.ID, 0
		for path != "" {
			page := b.get(path)
			clean(t, path, page)
			if n := len(page); n > 300<<10 {
				t.Errorf("GET %s has %d bytes", path, n)
			}
			n := strings.Count(page, `<article class="turn`)
			if n > 200 || n == 0 {
				t.Fatalf("GET %s has %d messages", path, n)
			}
			seen += n
			before := path
			path = ""
			if _, rest, ok := strings.Cut(page, `href="/sessions/`+s.session.ID+`?before=`); ok {
				number, _, _ := strings.Cut(rest, `"`)
				path = "/sessions/" + s.session.ID + "?before=" + number
			}
			if path == before {
				t.Fatalf("%s leads to itself", path)
			}
		}
		if seen < 505 {
			t.Errorf("all windows together have %d messages", seen)
		}
	})
}

func TestListsHaveAStableCursor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.fill()
		made := 0
		add := func(n int) {
			w.do(func(ctx context.Context, tx *store.Tx) error {
				for range n {
					made++
					c, _, err := tx.Conversations().GetOrCreateConversation(ctx, messages.ConversationKey{Platform: "slack", ID: strconv.Itoa(made)}, "demo")
					if err != nil {
						return err
					}
					if _, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo", UserPrompt: "x"}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		add(120)
		b, path, seen := w.as(ann), "/sessions?platform=slack", map[string]bool{}
		for path != "" {
			page := b.get(path)
			for _, m := range sessionLink.FindAllStringSubmatch(page, -1) {
				if seen[m[1]] {
					t.Errorf("%s is listed twice", m[1])
				}
				seen[m[1]] = true
			}
			add(7) // meanwhile
			m := olderLink.FindStringSubmatch(page)
			path = ""
			if m != nil {
				path = strings.ReplaceAll(m[1], "&amp;", "&")
				wants(t, page, "platform=slack")
			}
		}
		if len(seen) != 120 {
			t.Errorf("%d sessions are listed", len(seen))
		}
	})
}
