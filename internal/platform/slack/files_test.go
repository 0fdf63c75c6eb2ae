package slack_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator/platformapi"
	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/slack"
)

func diffFile(conversation string) platform.File {
	return platform.File{
		Delivery: "d", Conversation: key(conversation), Name: "../a.diff", Data: []byte("+x\n"), Caption: "the diff <!channel> & more",
	}
}

// channelWorld has the channel C1, in which the bot is, with a message of Ann.
func channelWorld(t *testing.T) (*world, emulator.Sent) {
	t.Helper()
	w := newWorld(t, overHTTP)
	w.server.AddChannel(emulator.Channel{ID: "C1"})
	return w, w.server.User("U1").In("C1").Says("<@UBOT> the diff?")
}

func TestSendFileIntoAThread(t *testing.T) {
	t.Parallel()
	w, asked := channelWorld(t)
	f := diffFile("T1/C1/" + asked.TS)
	ref, err := w.SendFile(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	posts := w.server.Channel("C1").FromBot()
	if len(posts) != 1 || len(posts[0].Files) != 1 {
		t.Fatalf("posted %+v", posts)
	}
	if m := posts[0]; m.ThreadTS != asked.TS || !strings.Contains(m.Text, "the diff") || strings.Contains(m.Text, "<!channel>") || len(m.Pings) != 0 {
		t.Errorf("posted %+v", m)
	}
	if got := posts[0].Files[0]; got.Name != "a.diff" || string(got.Data) != "+x\n" {
		t.Errorf("file %+v", got)
	}
	if ref.Conversation != f.Conversation || ref.Message != messages.MessageID(posts[0].Files[0].ID) && ref.Message != messages.MessageID(posts[0].TS) {
		t.Errorf("ref %+v", ref)
	}
}

func TestSendFileToAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP)
	f := diffFile("T1/DU1")
	f.Caption = ""
	if _, err := w.SendFile(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if posts := w.server.Channel("DU1").FromBot(); len(posts) != 1 || len(posts[0].Files) != 1 || posts[0].Text != "" || posts[0].ThreadTS != "" {
		t.Errorf("posted %+v", posts)
	}
}

func TestErrorsOfSendFile(t *testing.T) {
	t.Parallel()
	const share = "files.completeUploadExternal"
	for name, tt := range map[string]struct {
		method    string
		fault     emulator.Fault
		kind      fault.Kind
		uncertain bool
	}{
		"NoAddress":      {"files.getUploadURLExternal", emulator.Fault{End: platformapi.After}, fault.Unavailable, false},
		"MissingScope":   {"files.getUploadURLExternal", emulator.Refuse("missing_scope"), fault.Forbidden, false},
		"UploadDropped":  {emulator.Upload, emulator.Fault{End: platformapi.After}, fault.Unavailable, false},
		"Flood":          {share, emulator.RateLimited(30 * time.Second), fault.RateLimited, false},
		"Unauthorized":   {share, emulator.Refuse("invalid_auth"), fault.Unauthorized, false},
		"NotInChannel":   {share, emulator.Refuse("not_in_channel"), fault.Forbidden, false},
		"Denied":         {share, emulator.Refuse("posting_to_channel_denied"), fault.Forbidden, false},
		"NoChannel":      {share, emulator.Refuse("channel_not_found"), fault.Gone, false},
		"InvalidChannel": {share, emulator.Refuse("invalid_channel"), fault.Gone, false},
		"FileGone":       {share, emulator.Refuse("file_not_found"), fault.Unavailable, false},
		"TooLarge":       {share, emulator.Refuse("file_upload_size_restricted"), fault.Invalid, false},
		"DroppedAfter":   {share, emulator.Fault{End: platformapi.After}, fault.Unavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, overHTTP)
			w.server.Inject(tt.method, tt.fault)
			_, err := w.SendFile(t.Context(), diffFile("T1/DU1"))
			if fault.KindOf(err) != tt.kind || fault.Uncertain(err) != tt.uncertain {
				t.Errorf("%v: kind %q, uncertain %v", err, fault.KindOf(err), fault.Uncertain(err))
			}
			if err != nil && (strings.Contains(err.Error(), "secretsecret") || strings.Contains(err.Error(), "/upload/")) {
				t.Errorf("the error contains a credential: %v", err)
			}
			if posts := w.server.Channel("DU1").FromBot(); len(posts) != 0 && !tt.uncertain {
				t.Errorf("posted %+v", posts)
			}
		})
	}
}

func TestFilesThatSlackDoesNotTake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, f := range map[string]platform.File{
		"empty":                {Conversation: key("T1/C1"), Name: "a"},
		"foreign conversation": {Conversation: key("nowhere"), Name: "a", Data: []byte("x")},
	} {
		if _, err := b.SendFile(t.Context(), f); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(b.api.made("files.getUploadURLExternal")); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestRefOfAFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ conversation, shares, message, in string }{
		"Public":       {"T1/C1", `{"public":{"C1":[{"ts":"1700000200.000100"}]}}`, "1700000200.000100", "T1/C1"},
		"Private":      {"T1/C1/1700000000.000001", `{"private":{"C1":[{"ts":"1700000200.000100"}]}}`, "1700000200.000100", "T1/C1/1700000000.000001"},
		"OtherChannel": {"T1/C1", `{"public":{"C2":[{"ts":"1700000200.000100"}]}}`, "F1", "T1/C1"},
		"Odd":          {"T1/C1", `{"public":{"C1":"x"}}`, "F1", "T1/C1"},
		"Untold":       {"T1/C1/new-ab", `{}`, "F1", "T1/C1/new-ab"},
		"Opening":      {"T1/C1/new-ab", `{"public":{"C1":[{"ts":"1700000200.000100"}]}}`, "1700000200.000100", "T1/C1/1700000200.000100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.api.answer("files.getUploadURLExternal", `{"ok":true,"file_id":"F1","upload_url":"`+b.api.URL+`/upload/one-time"}`)
			b.api.answer("files.completeUploadExternal", `{"ok":true,"files":[{"id":"F1","shares":`+tt.shares+`}]}`)
			ref, err := b.SendFile(t.Context(), diffFile(tt.conversation))
			if err != nil {
				t.Fatal(err)
			}
			if ref != (messages.Ref{Conversation: key(tt.in), Message: messages.MessageID(tt.message)}) {
				t.Errorf("ref %+v", ref)
			}
		})
	}
}

func TestUploadAddressIsChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, answer := range []string{
		`{"ok":true}`, `{"ok":true,"file_id":"F1","upload_url":"http://192.0.2.1/x"}`,
		`{"ok":true,"file_id":"../F1","upload_url":"` + b.api.URL + `/upload/x"}`, `{"ok":true,"file_id":"F1","upload_url":"%zz"}`,
	} {
		b.api.answer("files.getUploadURLExternal", answer)
		if _, err := b.SendFile(t.Context(), diffFile("T1/C1")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", answer, err)
		}
	}
	if n := len(b.api.made("files.completeUploadExternal")); n != 0 {
		t.Errorf("%d files were shared", n)
	}
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.answer("files.info", `{"ok":true,"file":{"id":"F1","size":"odd","mimetype":"text/plain","url_private":"`+b.api.URL+`/api/file"}}`)
	for answer, kind := range map[string]fault.Kind{
		"the content": "", "": "", "<html>Sign in</html>": fault.Forbidden, "302": fault.Forbidden, "403": fault.Forbidden, "404": fault.NotFound,
		"429": fault.Unavailable, "503": fault.Unavailable,
	} {
		b.api.answer("file", answer)
		body, err := b.Fetch(t.Context(), messages.Attachment{Source: "F1"})
		if fault.KindOf(err) != kind {
			t.Errorf("%q: %v", answer, err)
		}
		if err != nil {
			continue
		}
		if got, err := io.ReadAll(body); string(got) != answer || err != nil || body.Close() != nil {
			t.Errorf("%q was read as %q, %v", answer, got, err)
		}
	}
}

// A person reads why a file could not be read, so nothing about what they may do themselves.
func TestWhyAFileIsNotHandedOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const gone = "Slack has no such file for the bot: it was deleted, or it is not shared with the bot."
	for answer, public := range map[string]string{
		`"file_not_found"`: gone, `"file_deleted"`: gone, `"access_denied"`: gone,
		`"missing_scope","needed":"files:read"`: "The Slack app lacks the scope files:read. Add it to the app and install it again.",
	} {
		b.api.answer("files.info", `{"ok":false,"error":`+answer+`}`)
		_, err := b.Fetch(t.Context(), messages.Attachment{Source: "F1"})
		if fault.Public(err) != public {
			t.Errorf("%s: a person reads %q", answer, fault.Public(err))
		}
		if _, err = b.Describe(t.Context(), messages.Attachment{Source: "F1"}); fault.Public(err) != public {
			t.Errorf("%s: of a file that is only named, a person reads %q", answer, fault.Public(err))
		}
	}
}

// Slack hands out a canvas as HTML, under a type of its own.
func TestACanvasIsRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const canvas = `{"id":"F1","name":"Plan","mimetype":"application/vnd.slack-docs","filetype":"quip","size":9`
	b.event(`{"type":"message","subtype":"file_share","channel":"D1","user":"U1","text":"","ts":"10.1","files":[` + canvas + `}]}`)
	att := b.one(t).Attachments[0]
	if want := (messages.Attachment{Name: "Plan", MediaType: "text/html", Size: 9, Source: "F1"}); att != want {
		t.Errorf("it is %+v", att)
	}
	b.api.answer("files.info", `{"ok":true,"file":`+canvas+`,"url_private":"`+b.api.URL+`/api/file"}}`)
	b.api.answer("file", "<html><h1>Plan</h1></html>")
	body, err := b.Fetch(t.Context(), att)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(body); string(got) != "<html><h1>Plan</h1></html>" || err != nil || body.Close() != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// What Slack tells of a file does not make it one of whoever asks.
func TestAFileThatIsDescribedKeepsItsAuthor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.answer("files.info", `{"ok":true,"file":{"id":"F1","name":"a.txt","mimetype":"text/plain"}}`)
	got, err := b.Describe(t.Context(), messages.Attachment{Source: "F1", Author: "Bo"})
	if want := (messages.Attachment{Name: "a.txt", MediaType: "text/plain", Source: "F1", Author: "Bo"}); err != nil || got != want {
		t.Errorf("it is %+v, %v", got, err)
	}
}

// Who closes a download that has stalled does not wait for it.
func TestStalledDownload(t *testing.T) {
	t.Parallel()
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/files.info" {
			_, _ = io.WriteString(w, `{"ok":true,"file":{"id":"F1","url_private":"`+server.URL+`/f"}}`)
			return
		}
		_, _ = io.WriteString(w, "abc")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	b := setup(t, func(c *slack.Config) { c.APIURL = server.URL })
	body, err := b.Fetch(t.Context(), messages.Attachment{Source: "F1"})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(body, got); err != nil || string(got) != "abc" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
}
