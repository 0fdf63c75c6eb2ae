//nolint:thelper // each runs tests, not helpers
package pages_test

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// talks has the pages keep what is said, as the adapter does.
func (w *world) talks() {
	w.config.Talk = func(ctx context.Context, chat, id string, from messages.Sender, text string, files []messages.PostedFile) error {
		return w.Say(ctx, messages.Posted{Chat: chat, ID: messages.MessageID(id), Author: string(from.Platform) + "/" + string(from.ID), Text: text, Files: files}, []byte("{}"))
	}
	w.pages = pages.New(w.config)
}

var formFields = regexp.MustCompile(`name="(token|nonce)" value="([0-9a-f]+)"`)

// upload sends a message with files as a browser does, which are names and contents.
func (b *browser) upload(target, text string, files ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.uploadAgain(b.get("/chat"), target, text, files...)
}

// uploadAgain sends it with the form of a page that was there before.
func (b *browser) uploadAgain(page, target, text string, files ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, m := range formFields.FindAllStringSubmatch(page, 2) {
		_ = form.WriteField(m[1], m[2])
	}
	_ = form.WriteField("text", text)
	for i := 0; i < len(files); i += 2 {
		part, _ := form.CreateFormFile("files", files[i])
		_, _ = part.Write([]byte(files[i+1]))
	}
	_ = form.Close()
	r := httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, target, &body)
	r.Host, r.RemoteAddr = b.host, "192.0.2.1:1000"
	r.Header.Set("Content-Type", form.FormDataContentType())
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	out := httptest.NewRecorder()
	b.pages.ServeHTTP(out, r)
	return out
}

func TestAConversationInTheBrowser(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.talks()
		b := w.as(bob)
		wants(t, b.get("/chat"), "None yet.")
		png := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 20)
		r := b.upload("/chat", evil, `..\`+evilName+"/a.png", png, "page.html", "<script>alert(1)</script>", "fake.png", "<svg onload=alert(1)>")
		at, _, _ := strings.Cut(r.Header().Get("Location"), "#")
		page := b.follow(r)
		id := strings.TrimPrefix(at, "/chat/")
		wants(t, page, "You ", `data-live="/events?topic=chat%2F`+id, "page.html", `class="attached"`)
		clean(t, at, strings.ReplaceAll(page, `<img class="attached" src="/chat/`, ""))
		clean(t, "/chat", b.get("/chat"))

		var action string
		ref, err := w.Post(t.Context(), messages.Posted{Chat: id, Delivery: "d1", Text: evil, Buttons: []messages.Button{{ID: "press-me", Label: evilName}}})
		if err != nil {
			t.Fatal(err)
		}
		page = b.get(at)
		wants(t, page, "press-me", "Assistant")
		clean(t, at, strings.ReplaceAll(page, `<img class="attached" src="/chat/`, ""))
		pressed := b.post(at+"/press", url.Values{"action": {"press-me"}, "message": {string(ref)}})
		if to := pressed.Header().Get("Location"); to != at+"#said" { // what came of it has the focus
			t.Errorf("after a button it goes on at %q", to)
		}
		page = b.follow(pressed)
		if _, below, ok := strings.Cut(page, `id="p-`+string(ref)); !ok || strings.Count(page, `id="said"`) != 1 || strings.Index(below, `id="said"`) > strings.Index(below, `id="say"`) {
			t.Errorf("what came of a button is not said below the messages:\n%s", page)
		}
		if len(w.took) == 1 {
			action = w.took[0].Action
		}
		if action != "press-me" || w.took[0].Actor() != "telegram/42" || w.took[0].Conversation.ID != id || !w.took[0].Private {
			t.Errorf("pressed %+v", w.took)
		}

		// A button is under a message of its own conversation, and what a person said has none.
		foreign := messages.Posted{Chat: "other", ID: "of-ann", Author: "telegram/1", Text: "hi"}
		if err := w.Say(t.Context(), foreign, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		card, err := w.Post(t.Context(), messages.Posted{Chat: "other", Delivery: "d2", Text: "card"})
		if err != nil {
			t.Fatal(err)
		}
		for _, under := range []string{string(card), "of-ann", "", "x\x00\xff"} {
			if r := b.post(at+"/press", url.Values{"action": {"press-me"}, "message": {under}}); r.Code != http.StatusNotFound || len(w.took) != 1 {
				t.Errorf("pressed under %q: %d, %d taken", under, r.Code, len(w.took))
			}
		}

		files := regexp.MustCompile(`<a href="(/chat/[^"]+/files/[^"]+)"`).FindAllStringSubmatch(page, -1)
		if len(files) != 3 {
			t.Fatalf("%d files on the page", len(files))
		}
		for i, want := range []string{"image/png inline", "application/octet-stream attachment", "application/octet-stream attachment"} {
			r := b.send("GET", files[i][1], nil)
			how, _, _ := strings.Cut(r.Header().Get("Content-Disposition"), ";")
			if got := r.Header().Get("Content-Type") + " " + how; got != want || r.Code != http.StatusOK || !strings.Contains(r.Header().Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("file %d: %d %s, want %s", i, r.Code, got, want)
			}
		}
		defer func() { // their time is over
			w.do(func(ctx context.Context, tx *store.Tx) error {
				return tx.Board().EmptyPosted(ctx, time.Now().Add(time.Hour))
			})
			page := b.get(at)
			wants(t, page, "a.png was deleted: files are kept only for a limited time.")
			clean(t, at, page)
			if r := b.send("GET", files[0][1], nil); r.Code != http.StatusNotFound {
				t.Errorf("a file that was deleted: %d", r.Code)
			}
		}()

		for _, other := range []*browser{w.as(ann), w.as(cat)} { // not even an owner: they have the session
			for _, path := range []string{at, files[0][1], "/events?topic=chat/" + id} {
				if r := other.send("GET", path, nil); r.Code != http.StatusNotFound {
					t.Errorf("GET %s of somebody else: %d", path, r.Code)
				}
			}
			for _, path := range []string{at, at + "/press", at + "/stop"} {
				if r := other.post(path, url.Values{"text": {"hi"}, "action": {"x"}, "message": {string(ref)}}); r.Code != http.StatusNotFound {
					t.Errorf("POST %s of somebody else: %d", path, r.Code)
				}
			}
		}
	})
}

// uploading is an answer whose request may take its time.
type uploading struct {
	*httptest.ResponseRecorder

	until, answer time.Time
}

func (u *uploading) SetWriteDeadline(until time.Time) error {
	u.answer = until
	return nil
}

func (u *uploading) SetReadDeadline(until time.Time) error {
	u.until = until
	return nil
}

// A stranger who says that files come holds a connection no longer than others do.
func TestOnlyWhoIsSignedInHasTimeForFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)(t))
	w.talks()
	forged := w.browser()
	forged.cookies["bot_session"] = &http.Cookie{Name: "bot_session", Value: strings.Repeat("A", 52)}
	for name, c := range map[string]struct {
		b    *browser
		want bool
	}{"nobody": {w.browser(), false}, "somebody with a made-up session": {forged, false}, "a member": {w.as(bob), true}} {
		for _, path := range []string{"/chat", "/chat/x"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("--x--\r\n"))
			r.Host, r.RemoteAddr = c.b.host, "192.0.2.1:1000"
			r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
			for _, cookie := range c.b.cookies {
				r.AddCookie(cookie)
			}
			out := &uploading{ResponseRecorder: httptest.NewRecorder()}
			c.b.pages.ServeHTTP(out, r)
			if got := !out.until.IsZero(); got != c.want || out.Code < 400 {
				t.Errorf("%s at %s: more time %v, answer %d", name, path, got, out.Code)
			}
			if c.want && out.answer.Sub(out.until) < 10*time.Second {
				t.Errorf("%s at %s: files may come until %v, and what is answered has to be sent until %v", name, path, out.until, out.answer)
			}
		}
	}
}

// Who had the time to send a file has it to get the file.
func TestAFileHasTimeToBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)(t))
	w.talks()
	b := w.as(bob)
	m := regexp.MustCompile(`/chat/[^"/]*/files/[^"]*`).FindString(b.follow(b.upload("/chat", "look", "a.txt", "x")))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, m, nil)
	r.Host, r.RemoteAddr = b.host, "192.0.2.1:1000"
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	out := &uploading{ResponseRecorder: httptest.NewRecorder()}
	b.pages.ServeHTTP(out, r)
	if left := time.Until(out.answer); out.Code != http.StatusOK || left < time.Minute {
		t.Errorf("%s: %d, %v to get it", m, out.Code, left)
	}
}

// What is more than a message may hold is refused whole, and says what the limit is.
func TestAMessageInTheBrowserHasLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)(t))
	w.talks()
	b := w.as(bob)
	some := func(n int) (files []string) {
		for i := range n {
			files = append(files, fmt.Sprintf("n%d.txt", i), "x")
		}
		return files
	}
	big := strings.Repeat("x", 20<<20)
	for _, c := range []struct {
		name, text string
		files      []string
		refused    string
	}{
		{"nothing", " \r\n", nil, "The message has no text."},
		{"an empty file that nobody chose", "", []string{"", ""}, "The message has no text."},
		{"a long text", strings.Repeat("x", 64<<10+1), nil, "send at most 64 KiB"},
		{"many files", "look", some(11), "Send at most 10 files with a message."},
		{"a large file", "look", []string{"a.txt", big + "x"}, "larger than 20 MB"},
		{"large files", "look", []string{"a.txt", big, "b.txt", big}, "send at most 25 MB at once"},
		{"the longest text", strings.Repeat("x", 64<<10), nil, ""},
		{"the most files", "", some(10), ""},
		{"the largest file", "", []string{"a.txt", big}, ""},
	} {
		r := b.upload("/chat", c.text, c.files...)
		if ok := c.refused == ""; ok != (r.Code == http.StatusSeeOther) || !ok && (r.Code != http.StatusBadRequest || !strings.Contains(r.Body.String(), c.refused)) {
			t.Errorf("%s: %d, want %q:\n%.600s", c.name, r.Code, c.refused, r.Body)
		}
		if c.refused != "" && c.text == "look" { // what was written with files is there, to be sent again
			wants(t, r.Body.String(), ">\nlook</textarea>", "Send again")
		}
	}
	if n := strings.Count(b.get("/chat"), `<a href="/chat/`); n != 3 {
		t.Errorf("%d conversations were begun, want 3", n)
	}
}

var olderChats = regexp.MustCompile(`href="(/chat\?[^"]*)"`)

// Whoever has many conversations finds the oldest ones, too, also where several changed at
// the same moment.
func TestAllConversationsAreListed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.talks()
		b := w.as(bob)
		for i := range 201 {
			p := messages.Posted{Chat: fmt.Sprintf("chat-%d&x", i), ID: messages.MessageID(fmt.Sprint(i)), Author: bob.String(), Text: fmt.Sprint("text", i)}
			if err := w.Say(t.Context(), p, nil); err != nil {
				t.Fatal(err)
			}
		}
		seen, path := map[string]bool{}, "/chat"
		for range 3 {
			page := b.get(path)
			for _, m := range regexp.MustCompile(`>(text\d+)<`).FindAllStringSubmatch(page, -1) {
				seen[m[1]] = true
			}
			path = ""
			if m := olderChats.FindStringSubmatch(page); m != nil {
				path = strings.ReplaceAll(m[1], "&amp;", "&")
			}
		}
		if len(seen) != 201 || path != "" {
			t.Errorf("%d conversations, and more at %q", len(seen), path)
		}
		for _, query := range []string{"until=x", "until=-1"} {
			if r := b.send("GET", "/chat?"+query, nil); r.Code != http.StatusBadRequest {
				t.Errorf("GET /chat?%s: %d", query, r.Code)
			}
		}
	})
}

// A long name keeps its end, which says what the file is.
func TestALongNameKeepsItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)(t))
	w.talks()
	b := w.as(bob)
	page := b.follow(b.upload("/chat", "look", strings.Repeat("ж", 120)+".csv", "a,b\n", strings.Repeat("x", 250)+".py", "print()\n"))
	for _, name := range []string{strings.Repeat("ж", 90) + ".csv", strings.Repeat("x", 180) + ".py"} {
		wants(t, page, ">"+name+"<")
	}
}

// People delete their own conversations, once they have confirmed that, with plain forms.
func TestPeopleDeleteTheirConversations(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.config.About.RemoveChat = func(ctx context.Context, account, id string) error {
			return w.InTx(ctx, func(tx *store.Tx) error {
				_, err := tx.Board().RemoveChat(ctx, account, id)
				return err
			})
		}
		w.talks()
		for _, who := range []signin.Account{ann, bob, cat} { // those who only read have nothing to ask, and theirs is theirs
			b := w.as(who)
			r := b.post("/chat", url.Values{"text": {"a secret of " + string(who.ID)}})
			at, _, _ := strings.Cut(r.Header().Get("Location"), "#")
			wants(t, b.get(at), "Delete the conversation", `action="`+at+`/delete"`, "audit log")
			for _, other := range []signin.Account{ann, bob, cat} {
				if other == who {
					continue
				}
				if r := w.as(other).post(at+"/delete", url.Values{"sure": {"yes"}}); r.Code != http.StatusNotFound {
					t.Errorf("somebody else deletes it: %d", r.Code)
				}
			}
			if r := b.post(at+"/delete", url.Values{}); r.Code != http.StatusBadRequest {
				t.Errorf("without a tick: %d", r.Code)
			}
			if r := b.post(at+"/delete", url.Values{"sure": {"yes"}}); r.Code != http.StatusConflict || !strings.Contains(r.Body.String(), "is being taken") {
				t.Errorf("before it is taken: %d\n%s", r.Code, r.Body)
			}
			var said []messages.Posted
			w.do(func(ctx context.Context, tx *store.Tx) (err error) {
				said, err = tx.Board().Posted(ctx, strings.TrimPrefix(at, "/chat/"), 10)
				return err
			})
			if err := w.Took(t.Context(), said[0].ID); err != nil {
				t.Fatal(err)
			}
			page := b.follow(b.post(at+"/delete", url.Values{"sure": {"yes"}}))
			if wants(t, page, "Deleted the conversation."); strings.Contains(page, "a secret of") {
				t.Error("it is still in the list")
			}
			if r := b.send("GET", at, nil); r.Code != http.StatusNotFound {
				t.Errorf("its page afterwards: %d", r.Code)
			}
			if r := b.post(at+"/delete", url.Values{"sure": {"yes"}}); r.Code != http.StatusNotFound {
				t.Errorf("deleted twice: %d", r.Code)
			}
		}
	})
}

func TestWhatIsSentTwiceIsSaidOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.talks()
		b := w.as(bob)
		form := url.Values{"text": {"hello"}}
		r := b.post("/chat", form)
		again := b.send("POST", "/chat", form) // token and nonce are in it by now
		at := r.Header().Get("Location")
		if at != again.Header().Get("Location") || strings.Count(b.follow(again), "<article") != 1 {
			t.Errorf("sent twice: %q, %q", at, again.Header().Get("Location"))
		}
		at, _, _ = strings.Cut(at, "#")
		form.Set("text", "something else") // as after going back
		b.follow(b.send("POST", "/chat", form))
		if page := b.get(at); strings.Count(page, "<article") != 2 {
			t.Errorf("another text is not said:\n%s", page)
		}
		page := b.get(at)
		for _, content := range []string{"one", "one", "two"} {
			b.uploadAgain(page, at, "look", "a.txt", content)
		}
		if page = b.get(at); strings.Count(page, "a.txt") != 2 {
			t.Errorf("of the same file twice and another of its name there are %d", strings.Count(page, "a.txt"))
		}
		for name, bad := range map[string]*httptest.ResponseRecorder{
			"nothing":        b.post(at, url.Values{"text": {" "}}),
			"too long":       b.post(at, url.Values{"text": {strings.Repeat("x", 65<<10)}}),
			"too many files": b.upload(at, "x", strings.Split(strings.Repeat("a,b,", 11)+"a,b", ",")...),
			"too large":      b.upload(at, "x", "a", strings.Repeat("x", 20<<20+1)),
			"far too large":  b.upload(at, "x", "a", strings.Repeat("x", 26<<20)),
		} {
			if bad.Code != http.StatusBadRequest {
				t.Errorf("%s: %d\n%s", name, bad.Code, bad.Body)
			}
		}
	})
}

// What no database takes as text is said without it.
func TestOddTextIsSaid(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.talks()
		b := w.as(bob)
		page := b.follow(b.upload("/chat", "a\x00b \xff\r\nc", "x\xff.txt", "\x00\xff"))
		wants(t, page, "b \uFFFD\nc</pre>", "x_.txt")
		for _, path := range []string{"/chat/%00", "/chat/%FF", "/chat/%FF/files/%00"} {
			if r := b.send("GET", path, nil); r.Code != http.StatusNotFound {
				t.Errorf("GET %s: %d", path, r.Code)
			}
		}
	})
}

// What is not on the page of a conversation any more is said to be elsewhere.
func TestTheEndOfALongConversationIsShown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.talks()
		for i := range 201 {
			p := messages.Posted{Chat: "long", ID: messages.MessageID(fmt.Sprint("m", i)), Author: "telegram/42", Text: fmt.Sprintf("text %d.", i)}
			if err := w.Say(t.Context(), p, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			if i == 0 && strings.Contains(w.as(bob).get("/chat/long"), "Earlier messages") {
				t.Error("a conversation with one message is said to have earlier ones")
			}
		}
		page := w.as(bob).get("/chat/long")
		wants(t, page, "Earlier messages are in the session.", "text 1.", "text 200.", "<h1>text 0.</h1>", "<title>text 0. ·")
		if strings.Contains(page, "text 0.</pre>") {
			t.Error("more is shown than there is room for")
		}
	})
}

// A conversation that begins with a picture alone has a name, the same as in the list.
func TestAConversationWithoutWordsHasAName(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.talks()
		b := w.as(bob)
		r := b.upload("/chat", "", "a.txt", "abc")
		id, _, _ := strings.Cut(strings.TrimPrefix(r.Header().Get("Location"), "/chat/"), "#")
		for _, at := range []string{"/chat", "/chat/" + id} {
			wants(t, b.get(at), ">Conversation "+id[:8]+"<")
		}
	})
}

// Whoever comes from outside is taken for nobody with the same id on the platform.
func TestNobodySeesForSomebodyElse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		twin := signin.Account{Platform: "github", ID: bob.ID}
		w.roles[twin] = sessions.User
		s := w.fill()
		key := messages.ConversationKey{Platform: "telegram", ID: "another"}
		var conv sessions.Conversation
		w.do(func(ctx context.Context, tx *store.Tx) (err error) {
			if conv, _, err = tx.Conversations().GetOrCreateConversation(ctx, key, "demo"); err != nil {
				return err
			}
			_, err = tx.Inbox().InsertEntry(ctx, &sessions.Entry{ConversationID: conv.ID, In: messages.Inbound{
				Event: "twin", Kind: messages.KindMessage, Conversation: key, Sender: messages.Sender{ID: twin.ID, Platform: twin.Platform}, Text: "hello"}})
			return err
		})
		w.do(func(ctx context.Context, tx *store.Tx) error {
			for v, want := range map[store.Viewer][2]bool{
				{Platform: "github", ID: "42"}: {false, true}, {Platform: "telegram", ID: "42"}: {true, false}, {Platform: "telegram", ID: "43"}: {false, false}, {}: {true, true},
			} {
				own, err := tx.Pages().Sees(ctx, v, s.conversation.ID)
				if err != nil {
					return err
				}
				theirs, err := tx.Pages().Sees(ctx, v, conv.ID)
				if got := [2]bool{own, theirs}; got != want || err != nil {
					t.Errorf("%v sees %v, want %v (%v)", v, got, want, err)
				}
			}
			return nil
		})
	})
}
