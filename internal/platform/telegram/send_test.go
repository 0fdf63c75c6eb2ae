package telegram_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/emulator/platformapi"
	emulator "remote-agent/internal/emulator/telegram"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/telegram"
)

func open(t *testing.T, change ...func(*telegram.Config)) bundle {
	t.Helper()
	b := setup(t, change...)
	b.server.AddChat(emulator.Chat{ID: ann, Type: emulator.Private})
	return b
}

func (b bundle) sendText(t *testing.T, text string) (messages.Ref, error) {
	t.Helper()
	return b.Send(t.Context(), messages.Outbound{Delivery: "d", Conversation: key(ann), Text: text})
}

func TestSendRendersAndDisablesPreviews(t *testing.T) {
	t.Parallel()
	b := open(t)
	asked := b.server.Person(ann).Says("hi")
	ref, err := b.Send(t.Context(), messages.Outbound{
		Conversation: key(ann), ReplyTo: messages.MessageID(strconv.Itoa(asked.MessageID)), Text: "**b** https://example.com", Silent: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	m := b.server.ChatView(ann).Last()
	if strconv.Itoa(m.ID) != string(ref.Message) || m.Text != "b https://example.com" || m.ReplyTo != asked.MessageID || !m.Silent || !m.PreviewDisabled() {
		t.Errorf("posted %+v", m)
	}
	if len(m.Entities) == 0 || m.Entities[0].Type != "bold" {
		t.Errorf("entities %+v", m.Entities)
	}
	if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "_x_"}); err != nil {
		t.Fatal(err)
	}
	if m := b.server.ChatView(ann).Last(); m.Text != "x" || !m.PreviewDisabled() {
		t.Errorf("edited to %+v", m)
	}
	for _, c := range b.server.Calls("sendMessage", "editMessageText") {
		if _, ok := c.Params["parse_mode"]; ok {
			t.Error("parse_mode was sent")
		}
	}
}

func TestSendAnswersADeletedMessage(t *testing.T) {
	t.Parallel()
	b := open(t)
	if _, err := b.Send(t.Context(), messages.Outbound{Conversation: key(ann), ReplyTo: "12345", Text: "x"}); err != nil {
		t.Error(err)
	}
}

// The table "Error -> action" of the platform contracts.
func TestErrorsOfSend(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault     emulator.Fault
		kind      fault.Kind
		uncertain bool
		after     time.Duration
	}{
		"LongFlood":     {emulator.FloodWait(30 * time.Second), fault.RateLimited, false, 30 * time.Second},
		"TooLong":       {emulator.Refuse(400, "Bad Request: message is too long"), fault.Invalid, false, 0},
		"NoChat":        {emulator.Refuse(400, "Bad Request: chat not found"), fault.Gone, false, 0},
		"Blocked":       {emulator.Refuse(403, "Forbidden: bot was blocked by the user"), fault.Gone, false, 0},
		"Kicked":        {emulator.Refuse(403, "Forbidden: bot was kicked from the supergroup chat"), fault.Gone, false, 0},
		"Deactivated":   {emulator.Refuse(403, "Forbidden: user is deactivated"), fault.Gone, false, 0},
		"Muted":         {emulator.Refuse(400, "Bad Request: not enough rights to send text messages to the chat"), fault.Forbidden, false, 0},
		"Restricted":    {emulator.Refuse(400, "Bad Request: CHAT_RESTRICTED"), fault.Forbidden, false, 0},
		"NoWriteAccess": {emulator.Refuse(400, "Bad Request: have no write access to the chat"), fault.Forbidden, false, 0},
		"MayNotWrite":   {emulator.Refuse(403, "Forbidden: CHAT_WRITE_FORBIDDEN"), fault.Forbidden, false, 0},
		"Unauthorized":  {emulator.Refuse(401, "Unauthorized"), fault.Unauthorized, false, 0},
		"NotFound":      {emulator.Refuse(404, "Not Found"), fault.Unauthorized, false, 0},
		"ServerError":   {emulator.ServerError(500), fault.Unavailable, false, 0},
		"BadGateway":    {emulator.ServerError(502), fault.Unavailable, false, 0},
		"DroppedAfter":  {emulator.Fault{End: platformapi.After}, fault.Unavailable, true, 0},
		"CutAnswer":     {emulator.Fault{End: platformapi.Short}, fault.Unavailable, true, 0},
		"TruncatedJSON": {emulator.Fault{End: platformapi.Truncated}, fault.Unavailable, true, 0},
		"Garbage":       {emulator.Fault{End: platformapi.Garbage}, fault.Unavailable, true, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.server.Inject("sendMessage", tt.fault)
			_, err := b.sendText(t, "hello")
			if fault.KindOf(err) != tt.kind || fault.Uncertain(err) != tt.uncertain {
				t.Errorf("%v: kind %q, uncertain %v", err, fault.KindOf(err), fault.Uncertain(err))
			}
			if said := strings.HasPrefix(fault.Public(err), "The bot "); said != (tt.kind == fault.Forbidden || tt.kind == fault.Gone) {
				t.Errorf("people read %q", fault.Public(err))
			}
			if after, _ := fault.Retry(err); after != tt.after {
				t.Errorf("retry after %v, want %v", after, tt.after)
			}
			if strings.Contains(err.Error(), "AAHsecret") {
				t.Errorf("the error contains the token: %v", err)
			}
			if n := b.server.Count("sendMessage"); n != 1 {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

func TestErrorsOfEditAreNeverUncertain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault emulator.Fault
		kind  fault.Kind
	}{
		"DroppedAfter": {emulator.Fault{End: platformapi.After}, fault.Unavailable},
		"Garbage":      {emulator.Fault{End: platformapi.Garbage}, fault.Unavailable},
		"NotFound":     {emulator.Refuse(400, "Bad Request: message to edit not found"), fault.NotFound},
		"TooOld":       {emulator.Refuse(400, "Bad Request: message can't be edited"), fault.NotFound},
		"TopicClosed":  {emulator.Refuse(400, "Bad Request: TOPIC_CLOSED"), fault.NotFound},
		"NotModified":  {emulator.Refuse(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			ref, err := b.sendText(t, "one")
			if err != nil {
				t.Fatal(err)
			}
			b.server.Inject("editMessageText", tt.fault)
			err = b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "two"})
			if fault.KindOf(err) != tt.kind || fault.Uncertain(err) {
				t.Errorf("%v: kind %q, uncertain %v", err, fault.KindOf(err), fault.Uncertain(err))
			}
		})
	}
}

func TestSendFallsBack(t *testing.T) {
	t.Parallel()
	t.Run("ToPlainText", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		b.server.Inject("sendMessage", emulator.Refuse(400, "Bad Request: can't parse entities: whatever"))
		if _, err := b.sendText(t, "**b**"); err != nil {
			t.Fatal(err)
		}
		if m := b.server.ChatView(ann).Last(); m.Text != "b" || len(m.Entities) != 0 {
			t.Errorf("posted %+v", m)
		}
	})
	t.Run("ToThePlainTextOnlyOnce", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		refuse := emulator.Refuse(400, "Bad Request: can't parse entities: whatever")
		b.server.Inject("sendMessage", refuse, refuse, refuse)
		if _, err := b.sendText(t, "**b**"); !fault.Is(err, fault.Invalid) {
			t.Errorf("error %v", err)
		}
		if n := b.server.Count("sendMessage"); n != 2 {
			t.Errorf("%d attempts", n)
		}
	})
	for name, refusal := range map[string]string{"Deleted": "message thread not found", "Closed": "TOPIC_CLOSED"} {
		t.Run("ToTheGeneralTopic/"+name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			asked, err := b.sendText(t, "what?")
			if err != nil {
				t.Fatal(err)
			}
			b.server.Inject("sendMessage", emulator.Refuse(400, "Bad Request: "+refusal))
			k := messages.ConversationKey{Platform: telegram.Name, ID: strconv.FormatInt(ann, 10) + ":9"}
			if _, err := b.Send(t.Context(), messages.Outbound{Conversation: k, ReplyTo: asked.Message, Text: "x"}); err != nil {
				t.Fatal(err)
			}
			if m := b.server.ChatView(ann).Last(); m.ThreadID != 0 || m.ReplyTo != 0 {
				t.Errorf("posted %+v", m)
			}
		})
	}
	t.Run("AfterAShortFlood", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		b.server.Inject("sendMessage", emulator.FloodWait(time.Second))
		started := time.Now()
		if _, err := b.sendText(t, "x"); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(started); d < time.Second {
			t.Errorf("waited %v", d)
		}
	})
}

func TestMovedGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.AddChat(emulator.Chat{ID: -5, Type: emulator.Group})
	b.server.Migrate(-5, -1005)
	_, err := b.Send(t.Context(), messages.Outbound{Conversation: key(-5), Text: "x"})
	moved, ok := errors.AsType[*platform.MovedError](err)
	if !fault.Is(err, fault.Conflict) || !ok || moved.To != "-1005" {
		t.Errorf("error %v", err)
	}
}

func TestSendRefusesWithoutACall(t *testing.T) {
	t.Parallel()
	b := open(t)
	if _, err := b.sendText(t, strings.Repeat("😀", 2049)); !fault.Is(err, fault.Invalid) {
		t.Errorf("too long: %v", err)
	}
	for _, k := range []messages.ConversationKey{{Platform: telegram.Name, ID: "x"}, {Platform: telegram.Name, ID: "1:x"}, {Platform: "slack", ID: "1"}} {
		if _, err := b.Send(t.Context(), messages.Outbound{Conversation: k, Text: "x"}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", k, err)
		}
	}
	if err := b.Edit(t.Context(), platform.Edit{Ref: messages.Ref{Conversation: key(ann), Message: "x"}, Text: "x"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("no message: %v", err)
	}
	if n := len(b.server.Calls()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestUnreachableServerIsNotUncertain(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	_ = l.Close()
	b := setup(t, func(c *telegram.Config) { c.APIURL = url })
	_, err = b.sendText(t, "x")
	if !fault.Is(err, fault.Unavailable) || fault.Uncertain(err) || strings.Contains(err.Error(), "AAHsecret") {
		t.Errorf("error %v, uncertain %v", err, fault.Uncertain(err))
	}
}

// A page of a server between here and Telegram: who could not wait for Telegram's answer
// does not know what became of the message.
func TestPagesOfAGateway(t *testing.T) {
	t.Parallel()
	for status, uncertain := range map[int]bool{
		http.StatusBadGateway: true, http.StatusGatewayTimeout: true, http.StatusInternalServerError: false, http.StatusServiceUnavailable: false,
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "<html>", status)
			}))
			t.Cleanup(server.Close)
			b := setup(t, func(c *telegram.Config) { c.APIURL = server.URL })
			if _, err := b.sendText(t, "x"); !fault.Is(err, fault.Unavailable) || fault.Uncertain(err) != uncertain {
				t.Errorf("%v, uncertain %v", err, fault.Uncertain(err))
			}
		})
	}
}

// Whatever a server between here and Telegram answers, the token does not get
// into the error: neither from the URL, nor echoed, nor by a redirect.
func TestTokenDoesNotLeak(t *testing.T) { //nolint:tparallel // what follows the subtests needs their end
	t.Parallel()
	stolen := make(chan string, 8)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen <- r.Referer() + r.URL.String()
	}))
	t.Cleanup(thief.Close)
	for name, handler := range map[string]http.HandlerFunc{
		"Echo": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no route for "+r.URL.String(), http.StatusBadGateway)
		},
		"Echo200": func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.String()) },
		"EchoError": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"ok":false,"error_code":400,"description":"bad `+r.URL.Path+`"}`)
		},
		"Redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			b := setup(t, func(c *telegram.Config) { c.APIURL = server.URL })
			_, sendErr := b.sendText(t, "x")
			_, checkErr := b.Check(t.Context())
			_, fetchErr := b.Fetch(t.Context(), messages.Attachment{Source: "f"})
			for _, err := range []error{sendErr, checkErr, fetchErr} {
				if err == nil {
					t.Error("no error")
				}
				for e := err; e != nil; e = errors.Unwrap(e) {
					if strings.Contains(e.Error(), "AAHsecret") || strings.Contains(fault.Public(e), "AAHsecret") {
						t.Errorf("the token is in %v", e)
					}
				}
			}
		})
	}
	select {
	case s := <-stolen:
		t.Errorf("a redirect was followed: %s", s)
	default:
	}
}

func TestSmallCalls(t *testing.T) {
	t.Parallel()
	b := open(t)
	asked := b.server.Person(ann).Says("hi")
	ref := messages.Ref{Conversation: key(ann), Message: messages.MessageID(strconv.Itoa(asked.MessageID))}
	if err := b.Typing(t.Context(), key(ann)); err != nil {
		t.Error(err)
	}
	if v := b.server.ChatView(ann); v.LastAction != "typing" {
		t.Errorf("action %q", v.LastAction)
	}
	for mark, want := range map[platform.Mark][]string{platform.MarkSeen: {"👀"}, platform.MarkQueued: {"🫡"}} {
		if err := b.Mark(t.Context(), ref, mark); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, b.server.ChatView(ann).Message(asked.MessageID).Reactions); diff != "" {
			t.Error(diff)
		}
	}
	if err := b.Mark(t.Context(), ref, platform.MarkNone); err != nil {
		t.Error(err)
	}
	if got := b.server.ChatView(ann).Message(asked.MessageID).Reactions; len(got) != 0 {
		t.Errorf("reactions %v", got)
	}
	if err := b.SetMenu(t.Context(), []platform.CommandInfo{{Name: "help", Description: strings.Repeat("ä", 300)}, {Name: "not-allowed", Description: "x"}}); err != nil {
		t.Error(err)
	}
	menu := b.server.Menu()
	if len(menu) != 2 {
		t.Errorf("menu %v", menu)
	}
	for scope, list := range menu {
		if len(list) != 1 || list[0].Command != "help" {
			t.Errorf("menu of %s: %v", scope, list)
		}
	}
	account, err := b.Check(t.Context())
	if err != nil || account != (platform.Account{ID: "4711", Name: "@acme_bot"}) {
		t.Errorf("Check: %+v, %v", account, err)
	}
	if got := b.OwnerLink(account, "c0de"); got != "https://t.me/acme_bot?start=c0de" {
		t.Errorf("OwnerLink: %s", got)
	}
	for _, name := range []string{"", "@"} {
		if got := b.OwnerLink(platform.Account{Name: name}, "c0de"); got != "send the bot: /start c0de" {
			t.Errorf("OwnerLink of an unknown account: %s", got)
		}
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	b := open(t)
	stop := b.run(t)
	defer stop()
	b.server.Person(ann).Sends(emulator.Attachment{Kind: "document", Name: "a b.txt", MIME: "text/plain", Data: []byte("content")}, "look")
	b.await(t, 1)
	in := b.sink.Events()[0]
	if len(in.Attachments) != 1 || in.Text != "look" {
		t.Fatalf("received %+v", in)
	}
	r, err := b.Fetch(t.Context(), in.Attachments[0])
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil || string(data) != "content" {
		t.Errorf("fetched %q, %v", data, err)
	}
	_ = r.Close()
	if _, err := b.Fetch(t.Context(), messages.Attachment{Source: "x", Size: 21 << 20}); !fault.Is(err, fault.Invalid) {
		t.Errorf("too large: %v", err)
	}
	if _, err := b.Fetch(t.Context(), messages.Attachment{Name: "location"}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("nothing to fetch: %v", err)
	}
}

// The path of a file is put behind the token, so it must not lead out of the folder of files.
func TestFilesAreBelowTheirRoot(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/etc/passwd", "../bot1:x/getMe", "documents/../../bot1:x/getMe"} {
		asked := make(chan string, 8)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Path
			_, _ = io.WriteString(w, `{"ok":true,"result":{"file_id":"f","file_path":"`+path+`"}}`)
		}))
		t.Cleanup(server.Close)
		b := setup(t, func(c *telegram.Config) { c.APIURL = server.URL })
		if _, err := b.Fetch(t.Context(), messages.Attachment{Source: "f"}); !fault.Is(err, fault.Unsupported) || len(asked) != 1 {
			t.Errorf("%q: %v, %d requests", path, err, len(asked))
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	ok := telegram.Config{Token: "1:x"}
	hook := telegram.Config{Token: "1:x", Webhook: true, WebhookSecret: secret, Surroundings: platform.Surroundings{PublicURL: "https://example.com"}}
	for name, tt := range map[string]struct {
		cfg    telegram.Config
		change func(*telegram.Config)
		want   string
	}{
		"OK":             {ok, func(*telegram.Config) {}, ""},
		"OKWebhook":      {hook, func(*telegram.Config) {}, ""},
		"NoToken":        {ok, func(c *telegram.Config) { c.Token = "" }, "TELEGRAM_BOT_TOKEN"},
		"TokenNoID":      {ok, func(c *telegram.Config) { c.Token = "abc" }, "TELEGRAM_BOT_TOKEN"},
		"TokenWithPath":  {ok, func(c *telegram.Config) { c.Token = "1:x/../y" }, "TELEGRAM_BOT_TOKEN"},
		"URL":            {ok, func(c *telegram.Config) { c.APIURL = "ftp://x" }, "TELEGRAM_API_URL"},
		"URL of nobody":  {ok, func(c *telegram.Config) { c.APIURL = "https://:443/" }, "TELEGRAM_API_URL"},
		"Rate":           {ok, func(c *telegram.Config) { c.SendRate = -1 }, "TELEGRAM_SEND_RATE"},
		"NoSecret":       {hook, func(c *telegram.Config) { c.WebhookSecret = "" }, "TELEGRAM_WEBHOOK_SECRET"},
		"ShortSecret":    {hook, func(c *telegram.Config) { c.WebhookSecret = "fifteen-letters" }, "TELEGRAM_WEBHOOK_SECRET"},
		"LongSecret":     {hook, func(c *telegram.Config) { c.WebhookSecret = strings.Repeat("x", 257) }, "TELEGRAM_WEBHOOK_SECRET"},
		"SecretAlphabet": {hook, func(c *telegram.Config) { c.WebhookSecret = strings.Repeat("ä", 20) }, "TELEGRAM_WEBHOOK_SECRET"},
		"NoPublicURL":    {hook, func(c *telegram.Config) { c.PublicURL = "" }, "PUBLIC_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := tt.cfg
			tt.change(&cfg)
			_, err := telegram.New(cfg)
			if (err == nil) != (tt.want == "") {
				t.Fatalf("error %v", err)
			}
			if err != nil && (!fault.Is(err, fault.Invalid) || !strings.HasPrefix(fault.Public(err), tt.want)) {
				t.Errorf("error %v, want Invalid naming %s", err, tt.want)
			}
		})
	}
}

func TestProgressEditsAreShedAndFinalOnesAreNot(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *telegram.Config) { c.ChatSendRate = 1 })
	ref, err := b.sendText(t, "…")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "a", Progress: true}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("progress right after a message: %v", err)
	}
	if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "final"}); err != nil {
		t.Error(err)
	}
	if m := b.server.ChatView(ann).Last(); m.Text != "final" || m.Edits != 1 {
		t.Errorf("shows %q after %d edits", m.Text, m.Edits)
	}
}

func TestProgressDoesNotWaitForAFlood(t *testing.T) {
	t.Parallel()
	b := open(t)
	ref, err := b.sendText(t, "…")
	if err != nil {
		t.Fatal(err)
	}
	b.server.Inject("editMessageText", emulator.FloodWait(time.Second))
	for range 2 {
		if err := b.Edit(t.Context(), platform.Edit{Ref: ref, Text: "a", Progress: true}); !fault.Is(err, fault.RateLimited) {
			t.Errorf("progress: %v", err)
		}
	}
	if n := b.server.Count("editMessageText"); n != 1 {
		t.Errorf("%d edits were tried", n)
	}
}

// A mark that Telegram refuses for a while silences the chat like a message that it refuses.
func TestMarksObeyAFlood(t *testing.T) {
	t.Parallel()
	b := open(t)
	asked := b.server.Person(ann).Says("hi")
	ref := messages.Ref{Conversation: key(ann), Message: messages.MessageID(strconv.Itoa(asked.MessageID))}
	b.server.Inject("setMessageReaction", emulator.FloodWait(30*time.Second))
	for range 2 {
		if err := b.Mark(t.Context(), ref, platform.MarkSeen); !fault.Is(err, fault.RateLimited) {
			t.Errorf("a mark: %v", err)
		}
	}
	if err := b.Typing(t.Context(), key(ann)); !fault.Is(err, fault.RateLimited) {
		t.Errorf("typing: %v", err)
	}
	if n := b.server.Count("setMessageReaction") + b.server.Count("sendChatAction"); n != 1 {
		t.Errorf("%d calls", n)
	}
}
