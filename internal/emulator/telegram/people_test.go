package telegram_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"

	"remote-agent/internal/emulator/telegram"
)

// received returns the pending updates as the library decodes them.
func received(t *testing.T, a api) []models.Update {
	t.Helper()
	var list []models.Update
	if err := json.Unmarshal(a.ok("getUpdates", nil).Result, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestUpdatesHaveTheShapesThatTheLibraryKnows(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	s.AddUser(telegram.User{ID: 42, FirstName: "Alice", Username: "alice"})
	s.AddChat(telegram.Chat{ID: -1001, Type: telegram.Supergroup, Title: "Team", IsForum: true})
	alice := s.Person(42)
	room := alice.In(-1001)

	hi := alice.Says("/start@test_bot code")
	alice.ReplyingTo(hi.MessageID).Says("again")
	alice.Edits(hi.MessageID, "/start other")
	room.InTopic(5).Says("@test_bot hello")
	room.Anonymously().Says("hidden")
	room.Joins()
	room.AddsBot()
	alice.Sends(telegram.Attachment{Kind: "photo", Data: []byte{1}}, "look")
	alice.Sends(telegram.Attachment{Kind: "sticker", Name: "😀"}, "")
	alice.SendsAlbum("both", telegram.Attachment{Name: "a"}, telegram.Attachment{Name: "b"})
	alice.Presses(1, "data")
	alice.StopsDraft(9)
	alice.With("location", map[string]any{"latitude": 1.5, "longitude": 2}).Says("")
	alice.Blocks()
	s.Migrate(-7, -1007)

	u := received(t, a)
	checks := map[string]bool{
		"command":      u[0].Message.Entities[0].Type == models.MessageEntityTypeBotCommand && u[0].Message.Entities[0].Length == 15,
		"sender":       u[0].Message.From.ID == 42 && u[0].Message.From.Username == "alice" && u[0].Message.Chat.Type == models.ChatTypePrivate,
		"reply":        u[1].Message.ReplyToMessage.Text == "/start@test_bot code",
		"edit":         u[2].EditedMessage.Text == "/start other" && u[2].EditedMessage.EditDate > 0,
		"topic":        u[3].Message.MessageThreadID == 5 && u[3].Message.IsTopicMessage && u[3].Message.Chat.IsForum,
		"anonymous":    u[4].Message.SenderChat.ID == -1001 && u[4].Message.From.IsBot && u[4].Message.From.ID == 1087968824,
		"join":         u[5].Message.NewChatMembers[0].ID == 42,
		"member":       u[6].MyChatMember.NewChatMember.Type == models.ChatMemberTypeMember,
		"bot joins":    u[7].Message.NewChatMembers[0].ID == 1000,
		"photo":        len(u[8].Message.Photo) == 1 && u[8].Message.Caption == "look",
		"sticker":      u[9].Message.Sticker.Emoji == "😀",
		"album":        u[10].Message.MediaGroupID != "" && u[10].Message.MediaGroupID == u[11].Message.MediaGroupID && u[11].Message.Caption == "",
		"callback":     u[12].CallbackQuery.Data == "data" && u[12].CallbackQuery.From.ID == 42,
		"stop":         u[13].StoppedMessageGeneration != nil,
		"extra field":  u[14].Message.Location.Latitude == 1.5,
		"blocked":      u[15].MyChatMember.NewChatMember.Type == models.ChatMemberTypeBanned,
		"migrate to":   u[16].Message.MigrateToChatID == -1007,
		"migrate from": u[17].Message.MigrateFromChatID == -7 && u[17].Message.Chat.ID == -1007,
	}
	for name, ok := range checks {
		if !ok {
			t.Errorf("%s is not as the library expects", name)
		}
	}
}

func TestRawUpdates(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	id := s.DeliverRaw(0, func(id int64) string { return `{"update_id":` + string(rune('0'+id)) + `,"message":"wrong"}` })
	if r := a.ok("getUpdates", nil); string(r.Result) != `[{"update_id":1,"message":"wrong"}]` || id != 1 {
		t.Errorf("got %s", r.Result)
	}
	s.DeliverRaw(0, func(int64) string { return `{{{` })
	if _, err := a.try("getUpdates", map[string]any{"offset": 2}); err == nil {
		t.Error("a malformed update must make a malformed answer")
	}
}

func TestChangesAreReported(t *testing.T) {
	t.Parallel()
	var kinds []string
	s, a := setup(t, telegram.Options{OnChange: func(c telegram.Change) {
		kinds = append(kinds, string(c.Kind)+"="+c.Message.Text)
	}})
	hi := s.Person(42).Says("hi")
	a.ok("sendMessage", map[string]any{"chat_id": 42, "text": "yes"})
	a.ok("editMessageText", map[string]any{"chat_id": 42, "message_id": 2, "text": "no"})
	s.Person(42).Deletes(hi.MessageID)
	if got := strings.Join(kinds, " "); got != "received=hi sent=yes edited=no deleted=hi" {
		t.Errorf("got %s", got)
	}
}

func TestViolationsOfEntities(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	s.Person(42).Says("hi")
	send := func(entities ...any) {
		a.ok("sendMessage", map[string]any{"chat_id": 42, "text": "0123456789", "entities": entities})
	}
	e := func(kind string, offset, length int) any {
		return map[string]any{"type": kind, "offset": offset, "length": length}
	}
	send(e("bold", 0, 4), e("italic", 1, 2), e("code", 5, 2), e("blockquote", 0, 10))
	if v := s.Violations(); len(v) != 0 {
		t.Fatalf("nesting is allowed: %v", v)
	}
	send(e("bold", 0, 4), e("italic", 2, 4))
	send(e("pre", 0, 4), e("italic", 1, 2))
	send(e("bold", 0, 4), e("code", 1, 2))
	if v := s.Violations(); len(v) != 3 {
		t.Errorf("violations %v", v)
	}
}

// FuzzSendMessage sends any text and entities, and checks that what is visible
// is something that Telegram could show.
func FuzzSendMessage(f *testing.F) {
	f.Add("hello", `[{"type":"bold","offset":0,"length":5}]`)
	f.Add(" \r\n😀x \t", `[{"type":"code","offset":3,"length":3}]`)
	f.Add("x\r", `[{"type":"pre","offset":0,"length":2,"language":"go"}]`)
	f.Add("", `[`)
	s, a := setup(f, telegram.Options{KeepCalls: -1, KeepMessages: 4})
	s.Person(42).Says("hi")
	f.Fuzz(func(t *testing.T, text, entities string) {
		a.t = t
		r := a.call("sendMessage", map[string]any{"chat_id": 42, "text": text, "entities": entities})
		if !r.OK {
			return
		}
		m := s.ChatView(42).Last()
		total := len(utf16.Encode([]rune(m.Text)))
		if m.Text != strings.TrimRight(m.Text, " \n\t") || m.Text == "" || utf8.RuneCountInString(m.Text) > 4096 {
			t.Errorf("text %q", m.Text)
		}
		for _, e := range m.Entities {
			if e.Offset < 0 || e.Length < 1 || e.Offset+e.Length > total {
				t.Errorf("entity %+v in %q", e, m.Text)
			}
		}
	})
}

// FuzzFindEntities checks that no text makes an entity outside of it.
func FuzzFindEntities(f *testing.F) {
	f.Add("/start@bot @alice https://x.org/ 😀")
	f.Add("/@//@@ http:// _/a")
	f.Fuzz(func(t *testing.T, text string) {
		total := len(utf16.Encode([]rune(text)))
		last := 0
		for _, e := range telegram.FindEntities(text) {
			if e.Offset < last || e.Length < 1 || e.Offset+e.Length > total {
				t.Errorf("entity %+v in %q", e, text)
			}
			last = e.Offset + e.Length
		}
	})
}

func TestCreateForumTopic(t *testing.T) {
	t.Parallel()
	s, a := setup(t, telegram.Options{})
	const group = int64(-1001)
	s.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup})
	try := func(name, want string) {
		t.Helper()
		if r := a.call("createForumTopic", map[string]any{"chat_id": group, "name": name}); !strings.Contains(r.Description, want) || r.OK != (want == "") {
			t.Errorf("%q: %+v, want %q", name, r, want)
		}
	}
	try("one", "the chat is not a forum")
	s.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, IsForum: true})
	try("one", "not enough rights")
	s.Person(42).In(group).PromotesBot()
	try("", "TOPIC_TITLE_EMPTY")
	try(strings.Repeat("x", 129), "TOPIC_TITLE_EMPTY")
	try("one", "")
	topics := s.Topics(group)
	if len(topics) != 1 || topics[0].Name != "one" {
		t.Fatalf("topics %v", topics)
	}
	if r := a.call("sendMessage", map[string]any{"chat_id": group, "text": "hi", "message_thread_id": topics[0].ID}); !r.OK {
		t.Errorf("in the topic: %+v", r)
	}
}
