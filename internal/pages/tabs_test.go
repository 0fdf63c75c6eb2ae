//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/commit"
	"remote-agent/internal/store/storetest"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// evilDiff is a patch with what strangers write in every place.
func evilDiff() *pages.Changes {
	name := strings.NewReplacer("\n", " ", "\x1b", "").Replace(evil)
	return &pages.Changes{
		Branch: "bot/" + evilName, Files: 2, Stat: " " + name + " | 2 +-", Unsaved: []string{name},
		Patch: "diff --git a/" + name + " b/" + name + "\n--- a/" + name + "\n+++ b/" + name + "\n@@ -1 +1,2 @@ " + name +
			"\n-" + name + "\n+" + name + "\n+++ counts\n---- counts, too\n context\n\\ No newline at end of file\n" +
			"diff --git a/bin b/bin\nBinary files differ\n",
	}
}

// peoplesPages are the tabs of a session and the pages about people, for those who look for what comes through unescaped.
func peoplesPages(s settled) (paths []string) {
	paths = []string{"/people", "/people?" + url.Values{"q": {evilName}}.Encode(), "/people?" + url.Values{"after": {evilName}}.Encode(),
		"/audit", "/audit?" + url.Values{"q": {evilName}, "person": {evilName}, "kind": {evilName}}.Encode(), "/memory", "/memory?" + url.Values{"q": {evilName}}.Encode()}
	for _, tab := range []string{"timeline", "changes", "plan", "events", "cost"} {
		paths = append(paths, "/sessions/"+s.session.ID+"?tab="+tab)
	}
	return paths
}

func TestChangesShowTheBranchAsItStands(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b, at := w.as(bob), "/sessions/"+s.session.ID+"?tab=changes"
		wants(t, b.get(at), "nothing to compare")
		w.diff = &pages.Changes{Branch: "bot/x"}
		wants(t, b.get(at), "No changes on the branch")
		w.diff = &pages.Changes{Branch: "bot/x", Unsaved: []string{"nested/"}}
		wants(t, b.get(at), "No changes on the branch", "Not compared: nested/")
		w.diff = evilDiff()
		page := b.get(at)
		wants(t, page, "<ins>", "<del>", " +2 −2", "<code>bin</code> +0 −0", `aria-current="page">Changes`, "Not compared:")
		clean(t, at, page)

		var patch strings.Builder
		for i := range 300 {
			fmt.Fprintf(&patch, "diff --git a/f%[1]d b/f%[1]d\n--- a/f%[1]d\n+++ b/f%[1]d\n@@ -0,0 +1 @@\n%[2]s", i, strings.Repeat("+<<<<<<<<<<\n", 100))
		}
		w.diff = &pages.Changes{Branch: "b", Files: 300, Stat: strings.Repeat("<", 1<<20), Patch: patch.String() + "diff --git a/z b/z\n@@ -0,0 +1 @@\n+" + strings.Repeat("\u202E", 1<<20) + "\n", Truncated: true}
		page = b.get(at)
		wants(t, page, "too large to show in full", "of 300 files are shown", "<code>f0</code> +100 −0")
		if len(page) > 300<<10 {
			t.Errorf("the page has %d bytes", len(page))
		}
		w.diff = &pages.Changes{Branch: "b", Files: 1, Stat: "x", Patch: "diff --git a/z b/z\n@@ -0,0 +1 @@\n" + strings.Repeat("+<\n", 1<<20)}
		if page = b.get(at); len(page) > 300<<10 || !strings.Contains(page, "too large") {
			t.Errorf("one large file: %d bytes", len(page))
		}
		if r := w.as(cat).send("GET", at, nil); r.Code != http.StatusNotFound {
			t.Errorf("a stranger to the conversation: %d", r.Code)
		}
	})
}

// A run shows what took time in it, in the order in which it began: the model, its tools,
// and who had to decide.
func TestTimelineShowsWhatTookTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.later(time.Minute) // what is in the database has the real time
		w.used(s, "telegram/42", "m", 0, 1000, 70_000)
		b, at := w.as(bob), "/sessions/"+s.session.ID+"?tab=timeline"
		page := b.get(at)
		wants(t, page, "Run 1", "◐", `class="span model"`, `class="span tool"`, `class="span wait"`, "Waiting for ", "ongoing")
		if strings.Index(page, `class="span tool"`) < strings.Index(page, "Run 1") {
			t.Errorf("the tool is not below its run")
		}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			if err := storetest.Apply(ctx, tx, s.session.ConversationID, commit.Changes{Session: &commit.Session{ID: s.session.ID, Over: true}}); err != nil {
				return err
			}
			return tx.Sessions().EndOpenRun(ctx, s.session.ID, s.entry, sessions.RunEnd{Status: sessions.RunStopped, Took: 3 * time.Second})
		})
		wants(t, b.get(at), "⏹", "stopped", "0:03 at work", "✖ failed")
		for range 24 {
			w.do(func(ctx context.Context, tx *store.Tx) error {
				if _, err := tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: s.session.ID, EntryID: s.entry, Model: "m"}); err != nil {
					return err
				}
				return tx.Sessions().EndOpenRun(ctx, s.session.ID, s.entry, sessions.RunEnd{Status: sessions.RunCompleted})
			})
		}
		page = b.get(at)
		wants(t, page, "Run 25", "Run 16", "before=16")
		if strings.Contains(page, "Run 15<") {
			t.Errorf("more runs than a page has")
		}
		page = b.get(at + "&before=6")
		wants(t, page, "Run 5", "Run 1<")
		if strings.Contains(page, "Earlier turns") {
			t.Errorf("there is nothing earlier")
		}
	})
}

func TestPlanShowsItsEarlierVersions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b, at := w.as(bob), "/sessions/"+s.session.ID+"?tab=plan"
		wants(t, b.get(at), s.plan.Name()+", version 1", "waits for a decision", "Decide on the plan")
		w.do(func(ctx context.Context, tx *store.Tx) error {
			next := plan.Plan{Number: s.plan.Number, ConversationID: s.conversation.ID, Goal: "g", Text: "1. the new text", Author: "telegram/42", Requester: "telegram/42"}
			return tx.Proposals().InsertPlan(ctx, &next)
		})
		page := b.get(at)
		newest, earlier, ok := strings.Cut(page, "Earlier versions")
		if !ok || !strings.Contains(newest, "version 2") || !strings.Contains(newest, "the new text") || !strings.Contains(earlier, "version 1") || !strings.Contains(earlier, "replaced by a later version") {
			t.Errorf("the versions: %s", page)
		}
		wants(t, page, `href="/approvals/`+s.plan.Name()+`"`)
		w.later(plan.TTL + time.Hour)
		if page := w.as(bob).get(at); strings.Contains(page, "Decide on the plan") || !strings.Contains(page, "expired") {
			t.Errorf("an expired plan: %s", page)
		}
	})
}

func TestASessionShowsThePlanThatItExecutes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		for prompt, shown := range map[string]bool{
			"/execute " + s.plan.Name() + " carefully": true,
			"/execute p-99":            false,
			"/execute":                 false,
			"what is " + s.plan.Name(): false,
		} {
			var next sessions.Session
			w.do(func(ctx context.Context, tx *store.Tx) (err error) {
				active, _, err := tx.Sessions().ActiveSession(ctx, s.conversation.ID)
				if err != nil {
					return err
				}
				if err := tx.Sessions().DeactivateSession(ctx, active.ID, "a test"); err != nil {
					return err
				}
				next, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: s.conversation.ID, Assistant: "demo", UserPrompt: prompt})
				return err
			})
			page := w.as(bob).get("/sessions/" + next.ID + "?tab=plan")
			if got := strings.Contains(page, s.plan.Name()+", version 1"); got != shown {
				t.Errorf("a session that began with %q shows the plan: %t", prompt, got)
			}
		}
	})
}

// Events say what came in and what became of it, and to each only what they may read.
func TestEventsSayWhatBecameOfEachMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.deadEnds(s)
		add := func(id, text string, change func(e *sessions.Entry)) sessions.Entry {
			e := sessions.Entry{ConversationID: s.conversation.ID, AcceptedAt: w.now, In: messages.Inbound{
				Event: messages.EventID(id), Kind: messages.KindMessage, Conversation: s.conversation.Key, Sender: messages.Sender{ID: "99", Name: "Dan"}, Text: text}}
			change(&e)
			w.do(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Inbox().InsertEntry(ctx, &e)
				return err
			})
			return e
		}
		command := add("c", "/remember the safe is xyzzy", func(e *sessions.Entry) { e.Lane, e.State = sessions.LaneControl, sessions.EntryDone })
		for name, event := range map[string]sessions.EntryState{"done": sessions.EntryDone, "refused": sessions.EntryRefused} { // as the engine ends them
			over := add(name, "/memory", func(e *sessions.Entry) { e.Lane, e.State = sessions.LaneControl, sessions.EntryWaiting })
			w.do(func(ctx context.Context, tx *store.Tx) error {
				return tx.Inbox().UpdateEntry(ctx, over.ID, sessions.EntryUpdate{State: &event})
			})
		}
		add("w", "a whispered secret", func(e *sessions.Entry) { e.In.Whispered, e.State = true, sessions.EntryDone })
		add("o", "too much", func(e *sessions.Entry) { e.State, e.Error = sessions.EntryRefused, "overflow" })
		add("l", "loop", func(e *sessions.Entry) { e.State, e.Error = sessions.EntryRefused, sessions.ErrorLoop })
		add("i", "album", func(e *sessions.Entry) { e.State, e.In.Album = sessions.EntryIgnored, "a" })
		add("d", "", func(e *sessions.Entry) { e.State, e.In.Kind = sessions.EntryIgnored, messages.KindDeleted })
		w.do(func(ctx context.Context, tx *store.Tx) error {
			return tx.Deliveries().AddDelivery(ctx, &messages.Delivery{ConversationID: s.conversation.ID, EventID: command.ID, Text: "Saved: the safe is xyzzy", Control: true, State: messages.DeliverySent})
		})
		at := "/sessions/" + s.session.ID + "?tab=events"
		for _, who := range []signin.Account{ann, bob} {
			page := w.as(who).get(at)
			wants(t, page, "Command: /remember", "A message that only its sender sees", "too many messages from this person", "like programs that talk to each other", "Part of an album", "deleted while it waited", "Dan (telegram/99)", "given up", "1 try", "The answer to a command",
				"A command or button, which is not kept", "A message that was refused and is not kept", `The answer to a command <span class="meta">1 try`)
			if strings.Contains(page, "Forgotten") {
				t.Errorf("a command of now is said to be old:\n%s", page)
			}
			for _, secret := range []string{"xyzzy", "a whispered secret"} {
				if strings.Contains(page, secret) {
					t.Errorf("%s reads %q of somebody else", who, secret)
				}
			}
			for _, mark := range []string{"Last error:", "On record:"} {
				if got := strings.Contains(page, mark); got != (who == ann) {
					t.Errorf("%s reads %q: %v", who, mark, got)
				}
			}
		}
		dan := signin.Account{Platform: "telegram", ID: "99"}
		w.roles[dan] = sessions.User
		wants(t, w.as(dan).get(at), "/remember the safe is xyzzy", "a whispered secret")
		for i := range 120 {
			add(fmt.Sprint("n", i), fmt.Sprint("text ", i, "."), func(e *sessions.Entry) { e.State, e.SessionID = sessions.EntryDone, s.session.ID })
		}
		b, path, seen := w.as(ann), at, 0
		for path != "" {
			page := b.get(path)
			seen += strings.Count(page, "text ")
			path = ""
			if _, rest, ok := strings.Cut(page, `?before=`); ok {
				number, _, _ := strings.Cut(rest, "&")
				path = at + "&before=" + number
			}
		}
		if seen != 120 {
			t.Errorf("%d messages on all pages", seen)
		}
	})
}

func TestCostIsByTurnAndModel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b, at := w.as(bob), "/sessions/"+s.session.ID+"?tab=cost"
		wants(t, b.get(at), "Nothing was used here yet.")
		w.used(s, "telegram/42", "m", 0, 1000, 70_000)
		w.do(func(ctx context.Context, tx *store.Tx) error {
			r := spend.Record{EntryID: s.entry, ConversationID: s.conversation.ID, SessionID: s.session.ID, Actor: "telegram/42", Assistant: "demo", Model: "large", Usage: assistant.Usage{InputTokens: 11, OutputTokens: 2, CachedTokens: 7}, Micros: 2_000_000, Known: true}
			if err := tx.Spending().AddUsage(ctx, r); err != nil {
				return err
			}
			if err := tx.Spending().AddUsage(ctx, r); err != nil {
				return err
			}
			r.Model, r.Known = "unknown", false
			return tx.Spending().AddUsage(ctx, r)
		})
		page := b.get(at)
		wants(t, page, "in 1 turn</p>", "<td>large</td><td>2</td><td>22</td><td>14</td><td>4</td><td>$4.00</td>", "<td>$0.07</td>", "<td>no price data</td>")
	})
}

func TestTabsAreLinks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b := w.as(bob)
		page := b.get("/sessions/" + s.session.ID)
		for _, tab := range []string{"timeline", "changes", "plan", "events", "cost"} {
			wants(t, page, `href="/sessions/`+s.session.ID+`?tab=`+tab+`"`)
			if r := w.as(cat).send("GET", "/sessions/"+s.session.ID+"?tab="+tab, nil); r.Code != http.StatusNotFound {
				t.Errorf("%s of a conversation of somebody else: %d", tab, r.Code)
			}
		}
		r := b.send("GET", "/sessions/"+s.session.ID+"?tab=x", nil)
		if r.Code != http.StatusBadRequest || !strings.Contains(r.Body.String(), "choose timeline, changes") {
			t.Errorf("a tab that is none: %d %s", r.Code, r.Body)
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add(evilDiff().Patch)
	f.Add("diff --git a/x b/x\n@@ -1 +1 @@\n-a\n+<b>\n")
	f.Fuzz(func(t *testing.T, patch string) {
		page, added, removed := pages.PatchHTML(patch)
		for _, tag := range []string{"<script", "<img", "<a ", "<style"} {
			if strings.Contains(page, tag) {
				t.Errorf("%q is on the page: %s", tag, page)
			}
		}
		if strings.Count(page, "<pre ") != strings.Count(page, "</pre>") || strings.Count(page, "<ins>") != strings.Count(page, "</ins>") || strings.Count(page, "<del>") != strings.Count(page, "</del>") {
			t.Errorf("it does not close what it opens: %s", page)
		}
		if lines := strings.Count(patch, "\n") + 1; added+removed > lines {
			t.Errorf("%d added and %d removed of %d lines", added, removed, lines)
		}
	})
}
