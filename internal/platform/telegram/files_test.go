package telegram_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/emulator/platformapi"
	emulator "remote-agent/internal/emulator/telegram"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/telegram"
)

func (b bundle) sendFile(t *testing.T, caption string) (messages.Ref, error) {
	t.Helper()
	return b.SendFile(t.Context(), platform.File{Conversation: key(ann), Name: "x.diff", Data: []byte("+x\n"), Caption: caption})
}

func TestSendFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.AddChat(emulator.Chat{ID: -100, Type: emulator.Supergroup, IsForum: true})
	asked := b.server.Person(ann).In(-100).InTopic(7).Says("diff?")
	topic := messages.ConversationKey{Platform: telegram.Name, ID: "-100:7"}
	ref, err := b.SendFile(t.Context(), platform.File{
		Delivery: "d", Conversation: topic, ReplyTo: messages.MessageID(strconv.Itoa(asked.MessageID)),
		Name: "../a \"b\"\r\n.diff", Data: []byte("+x\n"), Caption: "the **diff**",
	})
	if err != nil {
		t.Fatal(err)
	}
	m := b.server.ChatView(-100).Last()
	if strconv.Itoa(m.ID) != string(ref.Message) || ref.Conversation != topic || m.ThreadID != 7 || m.ReplyTo != asked.MessageID {
		t.Errorf("posted %+v as %+v", m, ref)
	}
	if m.Text != "the diff" || len(m.Entities) != 1 || m.Entities[0].Type != "bold" {
		t.Errorf("caption %q, %+v", m.Text, m.Entities)
	}
	if d := m.Document; d == nil || d.Name != `a "b" .diff` || string(d.Data) != "+x\n" {
		t.Errorf("document %+v", d)
	}
}

func TestSendFileAnswersADeletedMessage(t *testing.T) {
	t.Parallel()
	b := open(t)
	if _, err := b.SendFile(t.Context(), platform.File{Conversation: key(ann), ReplyTo: "12345", Name: "..", Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if m := b.server.ChatView(ann).Last(); m.Text != "" || m.Document == nil || m.Document.Name != "file" {
		t.Errorf("posted %+v", m)
	}
}

func TestLongCaptionsAreCut(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, caption := range []string{
		strings.Repeat("😀", 1024),
		"**" + strings.Repeat("ä ", 2000) + "**",
		strings.Repeat("x", 100_000),
		strings.Repeat("*a* ", 600),
		strings.Repeat("x", 1022) + "😀😀 **tail**",
	} {
		if _, err := b.sendFile(t, caption); err != nil {
			t.Fatal(err)
		}
		m := b.server.ChatView(ann).Last()
		if n := len(utf16.Encode([]rune(m.Text))); n > 1024 || n < 400 || !strings.HasSuffix(m.Text, "…") {
			t.Errorf("a caption of %d units: %q", n, m.Text)
		}
	}
	if _, err := b.sendFile(t, strings.Repeat("x", 1024)); err != nil {
		t.Fatal(err)
	}
	if m := b.server.ChatView(ann).Last(); m.Text != strings.Repeat("x", 1024) {
		t.Errorf("a caption that fits was changed: %q", m.Text)
	}
	if v := b.server.Violations(); len(v) != 0 {
		t.Errorf("violations %+v", v)
	}
}

func TestFilesThatTelegramDoesNotTake(t *testing.T) {
	t.Parallel()
	b := open(t)
	for name, data := range map[string][]byte{"empty": nil, "large": make([]byte, 50<<20+1)} {
		if _, err := b.SendFile(t.Context(), platform.File{Conversation: key(ann), Name: name, Data: data}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := b.server.Count("sendDocument"); n != 0 {
		t.Errorf("%d calls", n)
	}
	if _, err := b.SendFile(t.Context(), platform.File{Conversation: messages.ConversationKey{Platform: "x", ID: "1"}, Data: []byte("x")}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a foreign conversation: %v", err)
	}
}

func TestErrorsOfSendFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault     emulator.Fault
		kind      fault.Kind
		uncertain bool
	}{
		"Flood":        {emulator.FloodWait(30 * time.Second), fault.RateLimited, false},
		"Blocked":      {emulator.Refuse(403, "Forbidden: bot was blocked by the user"), fault.Gone, false},
		"Muted":        {emulator.Refuse(400, "Bad Request: not enough rights to send documents to the chat"), fault.Forbidden, false},
		"TooLarge":     {emulator.Refuse(413, "Request Entity Too Large"), fault.Invalid, false},
		"Unauthorized": {emulator.Refuse(401, "Unauthorized"), fault.Unauthorized, false},
		"ServerError":  {emulator.ServerError(502), fault.Unavailable, false},
		"DroppedAfter": {emulator.Fault{End: platformapi.After}, fault.Unavailable, true},
		"CutAnswer":    {emulator.Fault{End: platformapi.Short}, fault.Unavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.server.Inject("sendDocument", tt.fault)
			_, err := b.sendFile(t, "")
			if fault.KindOf(err) != tt.kind || fault.Uncertain(err) != tt.uncertain {
				t.Errorf("%v: kind %q, uncertain %v", err, fault.KindOf(err), fault.Uncertain(err))
			}
			if strings.Contains(err.Error(), "AAHsecret") {
				t.Errorf("the error contains the token: %v", err)
			}
			if n := b.server.Count("sendDocument"); n != 1 {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

func TestSendFileFallsBack(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.server.Inject("sendDocument",
		emulator.FloodWait(time.Second),
		emulator.Refuse(400, "Bad Request: message thread not found"),
		emulator.Refuse(400, "Bad Request: can't parse entities: whatever"))
	k := messages.ConversationKey{Platform: telegram.Name, ID: strconv.FormatInt(ann, 10) + ":9"}
	if _, err := b.SendFile(t.Context(), platform.File{Conversation: k, Name: "a", Data: []byte("x"), Caption: "**b**"}); err != nil {
		t.Fatal(err)
	}
	m := b.server.ChatView(ann).Last()
	if m.ThreadID != 0 || m.Text != "b" || len(m.Entities) != 0 || m.Document == nil || string(m.Document.Data) != "x" {
		t.Errorf("posted %+v", m)
	}
}

func TestAMessageBecomesAFile(t *testing.T) {
	t.Parallel()
	refuse := func(why string) emulator.Fault { return emulator.Refuse(400, "Bad Request: "+why) }
	for name, tt := range map[string]struct {
		faults []emulator.Fault
		kind   fault.Kind
		plain  bool // the caption
		calls  int
	}{
		"taken":                         {calls: 1},
		"for a short flood":             {faults: []emulator.Fault{emulator.FloodWait(time.Second)}, calls: 2},
		"without its formatting":        {faults: []emulator.Fault{refuse("can't parse entities: whatever")}, plain: true, calls: 2},
		"once without its formatting":   {faults: []emulator.Fault{refuse("can't parse entities: x"), refuse("can't parse entities: x")}, kind: fault.Invalid, calls: 2},
		"as it was":                     {faults: []emulator.Fault{refuse("message is not modified: specified new message content is the same")}, calls: 1},
		"not by a server that is old":   {faults: []emulator.Fault{refuse("there is no media in the message to edit")}, kind: fault.Unsupported, calls: 1},
		"nor by one that is a bit less": {faults: []emulator.Fault{refuse("message type can't be changed")}, kind: fault.Unsupported, calls: 1},
		"not where the answer is lost":  {faults: []emulator.Fault{{End: platformapi.After}}, kind: fault.Unavailable, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			ref, err := b.sendText(t, "…")
			if err != nil {
				t.Fatal(err)
			}
			b.server.Inject("editMessageMedia", tt.faults...)
			err = b.EditFile(t.Context(), ref, platform.File{Name: "a", Data: []byte("x"), Caption: "**b**"})
			if fault.KindOf(err) != tt.kind || fault.Uncertain(err) || b.server.Count("editMessageMedia") != tt.calls {
				t.Errorf("%v after %d calls", err, b.server.Count("editMessageMedia"))
			}
			if m := b.server.ChatView(ann).Last(); m.Document != nil && (m.Text != "b" || len(m.Entities) == 0 != tt.plain) {
				t.Errorf("caption %q, %+v", m.Text, m.Entities)
			}
		})
	}
}

func TestFilesKeepTheRate(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *telegram.Config) { c.ChatSendRate = 10 })
	started := time.Now()
	for range 4 {
		if _, err := b.sendFile(t, ""); err != nil {
			t.Fatal(err)
		}
	}
	if d := time.Since(started); d < 150*time.Millisecond { // a burst of two, then ten a second
		t.Errorf("four files took %v", d)
	}
}

func TestMenuOfAChat(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := t.Context()
	names := func() []string {
		var out []string
		for _, c := range b.server.ChatMenu(ann) {
			out = append(out, c.Command)
		}
		return out
	}
	if err := b.SetMenu(ctx, []platform.CommandInfo{{Name: "help", Description: "h"}, {Name: "stop", Description: "s"}, {Name: "help", Description: "again"}}); err != nil {
		t.Fatal(err)
	}
	topic := messages.ConversationKey{Platform: telegram.Name, ID: strconv.FormatInt(ann, 10) + ":9"}
	if err := b.SetChatMenu(ctx, topic, []platform.CommandInfo{
		{Name: "review", Description: strings.Repeat("ä", 300)}, {Name: "stop", Description: "x"}, {Name: "Not-OK", Description: "x"},
		{Name: strings.Repeat("a", 33), Description: "x"}, {Name: "silent"}, {Name: "review", Description: "x"},
	}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"help", "stop", "review"}, names()); d != "" {
		t.Error(d)
	}
	if got := b.server.ChatMenu(7); len(got) != 2 {
		t.Errorf("the menu of another chat is %v", got)
	}
	many := make([]platform.CommandInfo, 120)
	for i := range many {
		many[i] = platform.CommandInfo{Name: fmt.Sprintf("c%d", i), Description: "d"}
	}
	if err := b.SetChatMenu(ctx, key(ann), many); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 100 || got[0] != "help" || got[99] != "c97" {
		t.Errorf("menu %v", got)
	}
	for _, none := range [][]platform.CommandInfo{nil, {{Name: "Not-OK", Description: "x"}}, {{Name: "help", Description: "x"}}} {
		if err := b.SetChatMenu(ctx, key(ann), many); err != nil {
			t.Fatal(err)
		}
		if err := b.SetChatMenu(ctx, key(ann), none); err != nil {
			t.Fatal(err)
		}
		if got := len(b.server.Menu()); got != 2 { // of SetMenu
			t.Errorf("%v left %d menus", none, got)
		}
	}
	if err := b.SetChatMenu(ctx, key(4242), many); !fault.Is(err, fault.Gone) {
		t.Errorf("the menu of an unknown chat: %v", err)
	}
}
