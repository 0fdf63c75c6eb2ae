//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

var nonceField = regexp.MustCompile(`name="nonce" value="([0-9a-f]{32})"`)

// stored has what the pages hand on put into the inbox, as the engine does, and counts
// what is new.
func stored(w *world, fresh *int) func(*pages.Config) {
	take := func(ctx context.Context, list ...messages.Inbound) error {
		return w.InTx(ctx, func(tx *store.Tx) error {
			for _, in := range list {
				is, err := tx.Inbox().InsertEntry(ctx, &sessions.Entry{In: in})
				if err != nil {
					return err
				}
				if is {
					*fresh++
				}
			}
			return nil
		})
	}
	return func(c *pages.Config) {
		c.Accept = take
		c.Command = func(ctx context.Context, in messages.Inbound) (command.Reply, bool, error) {
			return command.Reply{}, false, take(ctx, in)
		}
	}
}

// A form that is sent twice, by a double click or again after a lost answer, does once
// what it says; who goes back and writes something else is heard.
func TestAFormSentTwiceActsOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.deadEnds(s)
		n := 0
		b := newWorld(t, w.Store, stored(w, &n)).as(ann)
		at := "/sessions/" + s.session.ID
		forms := map[string]url.Values{
			at + "/message": {"text": {"go on"}}, at + "/stop": {}, at + "/retry": {}, at + "/undo": {"sure": {"yes"}}, at + "/fork": {"messages": {"2"}},
			"/decide":         s.decision("approval", string(approval.Once)),
			"/queue/turn":     {"id": {s.entry}, "do": {"stop"}},
			"/queue/schedule": {"conversation": {s.conversation.ID}},
		}
		for path, form := range forms {
			n = 0
			for range 3 {
				if r := b.post(path, form); r.Code != http.StatusSeeOther {
					t.Errorf("POST %s: %d %s", path, r.Code, r.Body)
				}
			}
			if n != 1 {
				t.Errorf("POST %s three times: %d events", path, n)
			}
			form.Del("nonce")
			b.post(path, form)
			if n != 2 {
				t.Errorf("POST %s from another form: %d events", path, n)
			}
		}
		n = 0
		form := url.Values{"text": {"one"}}
		b.post(at+"/message", form)
		form.Set("text", "another")
		b.post(at+"/message", form)
		if n != 2 {
			t.Errorf("two texts in one form: %d events", n)
		}
		for _, nonce := range []string{"x", strings.Repeat("g", 32), strings.Repeat("a", 33), evilName} {
			if r := b.post(at+"/stop", url.Values{"nonce": {nonce}}); r.Code != http.StatusBadRequest {
				t.Errorf("nonce %q: %d", nonce, r.Code)
			}
		}
		seen := map[string]bool{}
		for _, m := range nonceField.FindAllStringSubmatch(b.get(at)+b.get(at), -1) {
			if seen[m[1]] {
				t.Errorf("two forms have the nonce %s", m[1])
			}
			seen[m[1]] = true
		}
		if len(seen) < 10 {
			t.Errorf("%d forms have a nonce", len(seen))
		}
	})
}

// What changes the last turn is refused on the page of a session that has ended: it would
// be that of another one.
func TestAnEndedSessionIsNotChanged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b, at := w.as(bob), "/sessions/"+s.session.ID
		wants(t, b.get(at), "Undo the last turn", "Fork the session", "Retry the last turn")
		for path, form := range map[string]url.Values{"/undo": {}, "/fork": {"messages": {"-1"}}, "/fork?": {"messages": {"x"}}} {
			if r := b.post(at+path, form); r.Code != http.StatusBadRequest {
				t.Errorf("POST %s: %d", path, r.Code)
			}
		}
		w.do(func(ctx context.Context, tx *store.Tx) error {
			return tx.Sessions().DeactivateSession(ctx, s.session.ID, "")
		})
		page := b.get(at)
		for path, form := range map[string]url.Values{"/undo": {"sure": {"yes"}}, "/fork": {}, "/retry": {}, "/message": {"text": {"kept words"}}, "/message?": {"text": {"/undo"}}} {
			r := b.post(at+path, form)
			wants(t, r.Body.String(), form.Get("text"))
			if r.Code != http.StatusConflict || strings.Contains(page, at+path+`"`) {
				t.Errorf("POST %s to a session that has ended: %d", path, r.Code)
			}
		}
		if len(w.took) > 0 {
			t.Errorf("the engine was given %+v", w.took)
		}
	})
}

// A form that comes to nothing shows again what was written in it.
func TestALongMessageIsRefusedWhole(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b := w.as(bob)
		for n, want := range map[int]int{64 << 10: http.StatusSeeOther, 64<<10 + 1: http.StatusBadRequest} {
			w.took = nil
			r := b.post("/sessions/"+s.session.ID+"/message", url.Values{"text": {strings.Repeat("x", n)}})
			if r.Code != want || len(w.took) > 0 != (want == http.StatusSeeOther) {
				t.Errorf("a message of %d bytes: %d, %d taken", n, r.Code, len(w.took))
			}
			if want == http.StatusBadRequest && !strings.Contains(r.Body.String(), strings.Repeat("x", n)) {
				t.Errorf("a message of %d bytes is not shown again", n)
			}
		}
	})
}

// A viewer who sees a session, as one who was a member when they wrote there, changes
// nothing in it.
func TestAViewerChangesNoSession(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		w.roles[bob] = sessions.Reader
		b := w.as(bob)
		at := "/sessions/" + s.session.ID
		b.get(at)
		for _, do := range []string{"retry", "undo", "fork", "message", "delete"} {
			if r := b.post(at+"/"+do, url.Values{"sure": {"yes"}, "text": {"hello"}}); r.Code != http.StatusForbidden {
				t.Errorf("%s: %d", do, r.Code)
			}
		}
		if len(w.took) > 0 {
			t.Errorf("the engine was given %+v", w.took)
		}
	})
}

func TestWhatWasWrittenIsNotLost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		b, at := w.as(bob), "/sessions/"+s.session.ID+"/message"
		text := "a long draft " + evil
		fails := func(name string, r *http.Response, page string, again bool) {
			t.Helper()
			if r.StatusCode < 400 {
				t.Errorf("%s: %d", name, r.StatusCode)
			}
			wants(t, page, "a long draft &#34;&gt;&lt;script&gt;")
			if strings.Contains(page, "Send again") != again {
				t.Errorf("%s: can be sent again: %v", name, !again)
			}
			clean(t, name, page)
		}
		old := b.send("POST", at, url.Values{"text": {text}, "token": {"of an earlier session"}})
		fails("an old page", old.Result(), old.Body.String(), true)
		token := tokenField.FindStringSubmatch(old.Body.String())
		nonce := nonceField.FindStringSubmatch(old.Body.String())
		if token == nil || nonce == nil {
			t.Fatalf("there is no form: %s", old.Body)
		}
		b.follow(b.send("POST", at, url.Values{"text": {text}, "token": {token[1]}, "nonce": {nonce[1]}}))
		if len(w.took) != 1 || w.took[0].Text != text {
			t.Errorf("the engine was given %+v", w.took)
		}
		out := w.browser().send("POST", at, url.Values{"text": {text}})
		fails("signed out", out.Result(), out.Body.String(), false)
		w.roles[bob] = sessions.Reader
		read := b.post(at, url.Values{"text": {text}})
		fails("a viewer", read.Result(), read.Body.String(), true)
	})
}

// What the machine has no room for is not the program's own fault, and passes.
func TestAFullDiskIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)(t))
	s := w.fill()
	for _, kind := range []fault.Kind{fault.Disk, fault.Memory, fault.Descriptors} {
		w.reply = func(messages.Inbound) (command.Reply, bool, error) {
			return command.Reply{}, false, fault.New(kind, "There is no room.")
		}
		r := w.as(bob).post("/sessions/"+s.session.ID+"/stop", url.Values{})
		if wants(t, r.Body.String(), "There is no room."); r.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", kind, r.Code)
		}
	}
}

// The theme is chosen on every page, also on one that answers a form.
func TestTheThemeLeadsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)(t))
	b := w.as(bob)
	back := `name="back" value="`
	wants(t, b.get("/sessions?q=x"), back+`/sessions?q=x"`)
	if page := b.post("/memory/change", url.Values{}).Body.String(); strings.Contains(page, back) || !strings.Contains(page, "/theme") {
		t.Errorf("the answer to a form leads back to what cannot be opened: %s", page)
	}
	if r := b.post("/theme", url.Values{"theme": {"dark"}}); r.Header().Get("Location") != "/" {
		t.Errorf("it leads to %q", r.Header().Get("Location"))
	}
}

// The answer to a command is shown whole, however long it is.
func TestLongAnswersAreShownWhole(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		long := strings.Repeat("- a line of `code` and **weight**\n", 100) + "the end of it " + evil
		w.reply = func(messages.Inbound) (command.Reply, bool, error) { return command.Reply{Text: long}, true, nil }
		b := w.as(bob)
		r := b.post("/sessions/"+s.session.ID+"/message", url.Values{"text": {"/help"}})
		page := r.Body.String()
		if r.Code != http.StatusOK {
			t.Errorf("a long answer: %d", r.Code)
		}
		wants(t, page, "the end of it", "<code>code</code>", `href="/sessions/`+s.session.ID+`"`)
		clean(t, "a long answer", page)
		w.reply = func(messages.Inbound) (command.Reply, bool, error) {
			return command.Reply{Text: "Use `/retry`."}, true, nil
		}
		wants(t, b.follow(b.post("/sessions/"+s.session.ID+"/message", url.Values{"text": {"/help"}})), "Use <code>/retry</code>.")
	})
}

// An export is sent as it is made: nothing of a session is in memory at once, and what
// breaks off does not look whole.
func TestExportIsStreamed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.fill()
		var err error
		parts := 0
		export := func(_ context.Context, out io.Writer, id string, all bool) error {
			for range parts {
				if _, err := fmt.Fprintf(out, "%s %t\n", id[:4], all); err != nil {
					return err
				}
			}
			return err
		}
		w2 := newWorld(t, w.Store, func(c *pages.Config) { c.About.Export = export })
		b, at := w2.as(bob), "/sessions/"+s.session.ID+"/export"
		parts = 3
		r := b.send("GET", at, nil)
		if want := strings.Repeat(s.session.ID[:4]+" false\n", 3); r.Code != http.StatusOK || r.Body.String() != want || !strings.Contains(r.Header().Get("Content-Disposition"), s.session.ID) {
			t.Errorf("the export: %d %v %q", r.Code, r.Header(), r.Body)
		}
		parts, err = 0, fault.New(fault.NotFound, "It is gone.")
		if r := b.send("GET", at, nil); r.Code != http.StatusNotFound || !strings.Contains(r.Body.String(), "It is gone.") {
			t.Errorf("an export that fails at once: %d %s", r.Code, r.Body)
		}
		parts, err = 1, errors.New("the database is gone")
		func() {
			defer func() {
				if got := recover(); got != http.ErrAbortHandler { //nolint:errorlint // it is that value
					t.Errorf("an export that breaks off: %v", got)
				}
			}()
			b.send("GET", at, nil)
		}()
		if r := w2.as(cat).send("GET", at, nil); r.Code != http.StatusNotFound {
			t.Errorf("an export of somebody else: %d", r.Code)
		}
	})
}

// The form of a fork is the command that the chat has for it.
func TestAForkIsTheCommandOfTheChat(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		at := "/sessions/" + w.fill().session.ID + "/fork"
		b := w.as(bob)
		for form, want := range map[string]string{
			"": "/fork", "messages=2": "/fork 2", "place=thread": "/fork thread", "messages=2&place=thread": "/fork 2 thread", "place=": "/fork", "place=elsewhere": "",
			"messages=0": "", "messages=-1": "", "messages=1+thread": "", "messages=x": "",
		} {
			values, err := url.ParseQuery(form)
			if err != nil {
				t.Fatal(err)
			}
			w.took = nil
			r, got := b.post(at, values), ""
			if len(w.took) == 1 {
				got = w.took[0].Text
			}
			if got != want || (want == "") != (r.Code == http.StatusBadRequest) {
				t.Errorf("%q: %d, the engine was given %q, want %q", form, r.Code, got, want)
			}
		}
	})
}

// What became of a form is told on the next page that a person opens, and once: a page that
// is open and asks for its new content, or for a picture in it, does not take it away.
func TestWhatWasDoneIsToldOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		b := w.as(bob)
		b.post("/memory/change", url.Values{"do": {"off"}})
		b.header.Set("Bot-Part", "main")
		b.get("/sessions")
		b.header.Del("Bot-Part")
		b.get("/costs.csv")
		wants(t, b.get("/memory"), "Memory is off for you.")
		if strings.Contains(b.get("/memory"), "Memory is off for you.") {
			t.Error("it is told twice")
		}
	})
}
