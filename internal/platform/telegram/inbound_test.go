package telegram

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"remote-agent/internal/messages"
)

func newTestAdapter(tb testing.TB) *Adapter {
	tb.Helper()
	a, err := New(Config{Token: "4711:AAHsecretsecretsecret"})
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

var me = identity{id: 4711, username: "acme_bot"}

const (
	annJSON   = `"from":{"id":42,"first_name":"Ann","last_name":"Lee"}`
	privJSON  = `"chat":{"id":42,"type":"private"}`
	groupJSON = `"chat":{"id":-100,"type":"supergroup","title":"Team"}`
)

func msg(parts ...string) string {
	return `{"update_id":7,"message":{"message_id":5,"date":1700000000,` + strings.Join(parts, ",") + `}}`
}

func TestTranslate(t *testing.T) {
	t.Parallel()
	base := func(change func(*messages.Inbound)) *messages.Inbound {
		in := messages.Inbound{
			Account: "4711", Event: "7", Kind: messages.KindMessage,
			Conversation: messages.ConversationKey{Platform: "telegram", ID: "42"}, Message: "5",
			Sender: messages.Sender{ID: "42", Name: "Ann Lee"}, Private: true, SentAt: time.Unix(1700000000, 0).UTC(),
		}
		change(&in)
		return &in
	}
	group := func(text string) *messages.Inbound {
		return base(func(in *messages.Inbound) { in.Private, in.Conversation.ID, in.Text = false, "-100", text })
	}
	tests := map[string]struct {
		in   string
		want *messages.Inbound // nil: ignored
	}{
		"Private": {msg(annJSON, privJSON, `"text":"hi"`), base(func(in *messages.Inbound) { in.Text = "hi" })},
		"Edit": {
			`{"update_id":7,"edited_message":{"message_id":5,"date":1700000000,"edit_date":1700000001,` + annJSON + `,` + privJSON + `,"text":"hi"}}`,
			base(func(in *messages.Inbound) { in.Kind, in.Text = messages.KindEdit, "hi" }),
		},
		"PrivateTopic": {
			msg(annJSON, privJSON, `"text":"hi","message_thread_id":9,"is_topic_message":true`),
			base(func(in *messages.Inbound) { in.Text, in.Conversation.ID = "hi", "42:9" }),
		},
		"ThreadOfRepliesIsNoTopic": {
			msg(annJSON, privJSON, `"text":"hi","message_thread_id":9`),
			base(func(in *messages.Inbound) { in.Text = "hi" }),
		},
		"UnknownFieldsAndKinds": {
			msg(annJSON, privJSON, `"text":"hi","from_the_future":{"x":[1]},"forward_origin2":1`),
			base(func(in *messages.Inbound) { in.Text = "hi" }),
		},
		"GroupChatterIsIgnored": {msg(annJSON, groupJSON, `"text":"hi all"`), nil},
		"GroupMention": {
			msg(annJSON, groupJSON, `"text":"😀 @Acme_Bot do it","entities":[{"type":"mention","offset":3,"length":9}]`),
			group("😀 do it"),
		},
		"GroupMentionFirst": {
			msg(annJSON, groupJSON, `"text":"@acme_bot: do it","entities":[{"type":"mention","offset":0,"length":9}]`),
			group("do it"),
		},
		"GroupMentionLeavesCodeAsItIs": {
			msg(annJSON, groupJSON, `"text":"@acme_bot why?\nif x:\n    y()  # @acme_bot no","entities":[{"type":"mention","offset":0,"length":9},{"type":"mention","offset":32,"length":9}]`),
			group("why?\nif x:\n    y()  # no"),
		},
		"GroupMentionWithoutEntitiesLeavesCodeAsItIs": {
			msg(annJSON, groupJSON, `"text":"@acme_bot why?\nif x:\n    y()"`), group("why?\nif x:\n    y()"),
		},
		"GroupMentionOfAnother": {
			msg(annJSON, groupJSON, `"text":"@acme_bot2 do it","entities":[{"type":"mention","offset":0,"length":10}]`), nil,
		},
		"LinkBehindWords": {
			msg(annJSON, privJSON, `"text":"😀 see here or https://b.example","entities":[{"type":"text_link","offset":7,"length":4,"url":"https://a.example/x"},{"type":"text_link","offset":15,"length":17,"url":"https://b.example"}]`),
			base(func(in *messages.Inbound) { in.Text = "😀 see here (https://a.example/x) or https://b.example" }),
		},
		"LinksBehindWordsAndAMention": {
			msg(annJSON, groupJSON, `"text":"a @acme_bot b","entities":[{"type":"text_link","offset":0,"length":1,"url":"https://a.example"},{"type":"mention","offset":2,"length":9},{"type":"bold","offset":12,"length":1},{"type":"text_link","offset":12,"length":1,"url":"https://b.example"},{"type":"text_link","offset":12,"length":9,"url":"https://c.example"}]`),
			group("a (https://a.example) b (https://b.example)"),
		},
		"LinkBehindWordsOfACaptionThatIsQuoted": {
			msg(annJSON, privJSON, `"caption":"see here","photo":[{"file_id":"p"}],"caption_entities":[{"type":"blockquote","offset":0,"length":8},{"type":"text_link","offset":4,"length":4,"url":"https://a.example"}]`),
			base(func(in *messages.Inbound) {
				in.Text, in.Cited = "see here (https://a.example)", []string{"see here (https://a.example)"}
				in.Attachments = []messages.Attachment{{Name: "photo.jpg", MediaType: "image/jpeg", Source: "p"}}
			}),
		},
		"GroupMentionInCode": {
			msg(annJSON, groupJSON, `"text":"@acme_bot","entities":[{"type":"code","offset":0,"length":9}]`), nil,
		},
		"GroupMentionWithoutEntities": {msg(annJSON, groupJSON, `"text":"do it @acme_bot"`), group("do it")},
		"GroupTextMention": {
			msg(annJSON, groupJSON, `"text":"Acme do it","entities":[{"type":"text_mention","offset":0,"length":4,"user":{"id":4711,"is_bot":true}}]`),
			group("do it"),
		},
		"GroupCommand":                 {msg(annJSON, groupJSON, `"text":"/status now"`), group("/status now")},
		"GroupCommandForUs":            {msg(annJSON, groupJSON, `"text":"/status@ACME_bot now"`), group("/status now")},
		"AnswerWithACommandForAnother": {msg(annJSON, groupJSON, `"text":"/status@other_bot","reply_to_message":{"message_id":3,"date":1,"from":{"id":4711,"is_bot":true},"chat":{"id":-100},"text":"hi"}`), nil},
		"GroupCommandForAnother":       {msg(annJSON, groupJSON, `"text":"/status@other_bot now"`), nil},
		"GroupPath":                    {msg(annJSON, groupJSON, `"text":"/etc/hosts is wrong"`), nil},
		"MentionThenCommand": {
			msg(annJSON, groupJSON, `"text":"@acme_bot /reset","entities":[{"type":"mention","offset":0,"length":9}]`), group("/reset"),
		},
		"GroupReplyToBot": {
			msg(annJSON, groupJSON, `"text":"why?","reply_to_message":{"message_id":4,"from":{"id":4711,"is_bot":true,"first_name":"Acme"},"chat":{"id":-100},"text":"because"}`),
			func() *messages.Inbound {
				in := group("why?")
				in.Quotes = []messages.Quote{{Relation: "reply to", Author: "Acme", Text: "because"}}
				return in
			}(),
		},
		"TopicOfBotIsNoReply": {
			msg(annJSON, groupJSON, `"text":"hi","message_thread_id":4,"is_topic_message":true,"reply_to_message":{"message_id":4,"from":{"id":4711,"is_bot":true},"chat":{"id":-100},"forum_topic_created":{"name":"x"}}`), nil,
		},
		"QuotedPart": {
			msg(annJSON, privJSON, `"text":"why?","quote":{"text":"cause","position":2},"reply_to_message":{"message_id":4,"from":{"id":43,"first_name":"Bob"},"chat":{"id":42},"text":"because"}`),
			base(func(in *messages.Inbound) {
				in.Text, in.Quotes = "why?", []messages.Quote{{Relation: "reply to", Author: "Bob", Text: "cause"}}
			}),
		},
		"GroupReplyToAPicture": {
			msg(annJSON, groupJSON, `"text":"@acme_bot what is this?","entities":[{"type":"mention","offset":0,"length":9}],"reply_to_message":{"message_id":4,"from":{"id":43,"first_name":"Bob"},"chat":{"id":-100},"caption":"look","photo":[{"file_id":"S"},{"file_id":"L","file_size":9}]}`),
			func() *messages.Inbound {
				in := group("what is this?")
				in.Quotes = []messages.Quote{{Relation: "reply to", Author: "Bob", Text: "look\n[photo.jpg]"}}
				in.Attachments = []messages.Attachment{{Name: "photo.jpg", MediaType: "image/jpeg", Size: 9, Source: "L", Author: "Bob"}}
				return in
			}(),
		},
		"GroupReplyToARecording": {
			msg(annJSON, groupJSON, `"text":"@acme_bot what does he say?","entities":[{"type":"mention","offset":0,"length":9}],"reply_to_message":{"message_id":4,"from":{"id":42,"first_name":"\u200b"},"chat":{"id":-100},"voice":{"file_id":"V"}}`),
			func() *messages.Inbound {
				in := group("what does he say?")
				in.Quotes = []messages.Quote{{Relation: "reply to", Text: "[voice.ogg]"}}
				in.Attachments = []messages.Attachment{{Name: "voice.ogg", MediaType: "audio/ogg", Source: "V", Author: "someone"}}
				return in
			}(),
		},
		"ReplyToAHeardRecording": {
			msg(annJSON, privJSON, `"text":"again","reply_to_message":{"message_id":4,"from":{"id":42,"first_name":"Ann"},"chat":{"id":42},"voice":{"file_id":"V"}}`),
			base(func(in *messages.Inbound) {
				in.Text, in.Quotes = "again", []messages.Quote{{Relation: "reply to", Author: "Ann", Text: "[voice.ogg]"}}
			}),
		},
		"ReplyToAPictureElsewhere": {
			msg(annJSON, privJSON, `"text":"what is this?","external_reply":{"origin":{"type":"channel","chat":{"id":-1005,"type":"channel","title":"News"},"message_id":5},"chat":{"id":-1005,"type":"channel","title":"News"},"message_id":5,"photo":[{"file_id":"L"}]}`),
			base(func(in *messages.Inbound) {
				in.Text, in.Quotes = "what is this?", []messages.Quote{{Relation: "reply to", Author: "News", Text: "[photo.jpg]"}}
				in.Attachments = []messages.Attachment{{Name: "photo.jpg", MediaType: "image/jpeg", Source: "L", Author: "News"}}
			}),
		},
		"ReplyToARecordingOfAnotherTopic": {
			msg(annJSON, privJSON, `"text":"why?","message_thread_id":4,"is_topic_message":true,"quote":{"text":"listen"},"reply_to_message":{"message_id":4,"chat":{"id":42},"forum_topic_created":{}},"external_reply":{"origin":{"type":"user","sender_user":{"id":43,"first_name":"Bob"}},"voice":{"file_id":"V"}}`),
			base(func(in *messages.Inbound) {
				in.Conversation.ID = "42:4"
				in.Text, in.Quotes = "why?", []messages.Quote{{Relation: "reply to", Author: "Bob", Text: "listen\n[voice.ogg]"}}
				in.Attachments = []messages.Attachment{{Name: "voice.ogg", MediaType: "audio/ogg", Source: "V", Author: "Bob"}}
			}),
		},
		"ReplyElsewhereToWhatIsNotTold": {
			msg(annJSON, privJSON, `"text":"why?","external_reply":{"origin":{"type":"hidden_user","sender_user_name":"Eve"}}`),
			base(func(in *messages.Inbound) { in.Text = "why?" }),
		},
		"ReplyToAPoll": {
			msg(annJSON, privJSON, `"text":"this","reply_to_message":{"message_id":4,"from":{"id":43,"first_name":"Bob"},"chat":{"id":42},"poll":{"question":"Which?","options":[{"text":"This"}]}}`),
			base(func(in *messages.Inbound) {
				in.Text, in.Quotes = "this", []messages.Quote{{Relation: "reply to", Author: "Bob", Text: "[poll]\nWhich?\nThis"}}
			}),
		},
		"ReplyToWhatCannotBeRead": {
			msg(annJSON, privJSON, `"text":"nice","reply_to_message":{"message_id":4,"from":{"id":43,"first_name":"Bob"},"chat":{"id":42},"video":{"file_id":"V"},"poll":{"id":"1"}}`),
			base(func(in *messages.Inbound) {
				in.Text, in.Quotes = "nice", []messages.Quote{{Relation: "reply to", Author: "Bob", Text: "[video.mp4]\n[poll]"}}
			}),
		},
		"ForwardIsNoInstruction": {
			msg(annJSON, privJSON, `"text":"/reset","forward_origin":{"type":"hidden_user","sender_user_name":"Eve"}`),
			base(func(in *messages.Inbound) {
				in.Quotes = []messages.Quote{{Relation: "forwarded from", Author: "Eve", Text: "/reset"}}
			}),
		},
		"ForwardedFile": {
			msg(annJSON, privJSON, `"caption":"x","document":{"file_id":"D","file_name":"a.txt","mime_type":"text/plain","file_size":3},"forward_origin":{"type":"hidden_user","sender_user_name":"Eve"}`),
			base(func(in *messages.Inbound) {
				in.Quotes = []messages.Quote{{Relation: "forwarded from", Author: "Eve", Text: "x"}}
				in.Attachments = []messages.Attachment{{Name: "a.txt", MediaType: "text/plain", Size: 3, Source: "D", Author: "Eve"}}
			}),
		},
		"ForwardOfUnknownKind": {
			msg(annJSON, privJSON, `"text":"x","forward_origin":{"type":"from_the_future"}`),
			base(func(in *messages.Inbound) { in.Quotes = []messages.Quote{{Relation: "forwarded from", Text: "x"}} }),
		},
		"InlineBotIsNoInstruction": {
			msg(annJSON, privJSON, `"text":"/reset","via_bot":{"id":9,"is_bot":true,"first_name":"Gif Search","username":"gif"}`),
			base(func(in *messages.Inbound) {
				in.Quotes = []messages.Quote{{Relation: "sent through", Author: "Gif Search", Text: "/reset"}}
			}),
		},
		"InlineBotsFile": {
			msg(annJSON, privJSON, `"document":{"file_id":"D","file_name":"a.txt","mime_type":"text/plain","file_size":3},"via_bot":{"id":9,"is_bot":true,"first_name":"Gif Search"}`),
			base(func(in *messages.Inbound) {
				in.Attachments = []messages.Attachment{{Name: "a.txt", MediaType: "text/plain", Size: 3, Source: "D", Author: "Gif Search"}}
			}),
		},
		"InlineBotInGroup": {msg(annJSON, groupJSON, `"text":"/reset@acme_bot","via_bot":{"id":9,"is_bot":true,"first_name":"Gif Search"}`), nil},
		"ForwardInGroup":   {msg(annJSON, groupJSON, `"text":"/reset","forward_origin":{"type":"hidden_user","sender_user_name":"Eve"}`), nil},
		"CaptionAndPhoto": {
			msg(annJSON, privJSON, `"caption":"look","photo":[{"file_id":"s","file_size":1},{"file_id":"L","file_size":9}]`),
			base(func(in *messages.Inbound) {
				in.Text = "look"
				in.Attachments = []messages.Attachment{{Name: "photo.jpg", MediaType: "image/jpeg", Size: 9, Source: "L"}}
			}),
		},
		"DocumentWithHostileName": {
			msg(annJSON, privJSON, `"document":{"file_id":"D","file_name":"..\\..\\etc/pass\u0000wd","mime_type":"text/plain","file_size":30000000}`),
			base(func(in *messages.Inbound) {
				in.Attachments = []messages.Attachment{{Name: "pass wd", MediaType: "text/plain", Size: 30000000, Source: "D", Note: "larger than the 20 MB that Telegram lets bots download"}}
			}),
		},
		"Location": {
			msg(annJSON, privJSON, `"location":{"latitude":1,"longitude":2}`),
			base(func(in *messages.Inbound) {
				in.Attachments = []messages.Attachment{{Name: "location", Text: "latitude: 1\nlongitude: 2"}}
			}),
		},
		"Venue": {
			msg(annJSON, privJSON, `"location":{"latitude":-1.25,"longitude":0},"venue":{"location":{"latitude":-1.25,"longitude":0},"title":"Station","address":"1 Main St"}`),
			base(func(in *messages.Inbound) {
				in.Attachments = []messages.Attachment{{Name: "venue", Text: "Station\n1 Main St\nlatitude: -1.25\nlongitude: 0"}}
			}),
		},
		"Contact": {
			msg(annJSON, privJSON, `"contact":{"phone_number":"+15550100","first_name":"Bob","user_id":"odd"}`),
			base(func(in *messages.Inbound) {
				in.Attachments = []messages.Attachment{{Name: "contact", Text: "Bob\n+15550100"}}
			}),
		},
		"Poll": {
			msg(annJSON, privJSON, `"poll":{"id":"1","question":"Which?","options":[{"text":"This","voter_count":2},{"text":"That","voter_count":0}]}`),
			base(func(in *messages.Inbound) {
				in.Attachments = []messages.Attachment{{Name: "poll", Text: "Which?\nThis\nvoter_count: 2\nThat\nvoter_count: 0"}}
			}),
		},
		"Checklist": {
			msg(annJSON, privJSON, `"checklist":{"title":"Release","tasks":[{"id":1,"text":"test","completion_date":9},{"id":2,"text":"tag"}]}`),
			base(func(in *messages.Inbound) {
				in.Attachments = []messages.Attachment{{Name: "checklist", Text: "Release\ntest\ncompletion_date: 9\ntag"}}
			}),
		},
		"Dice": {
			msg(annJSON, privJSON, `"dice":{"emoji":"🎯","value":6}`),
			base(func(in *messages.Inbound) {
				in.Attachments = []messages.Attachment{{Name: "dice", Text: "🎯\nvalue: 6"}}
			}),
		},
		"ForwardedContact": {
			msg(annJSON, privJSON, `"contact":{"phone_number":"+15550100","first_name":"Bob"},"forward_origin":{"type":"hidden_user","sender_user_name":"Eve"}`),
			base(func(in *messages.Inbound) {
				in.Attachments = []messages.Attachment{{Name: "contact", Text: "Bob\n+15550100", Author: "Eve"}}
			}),
		},
		"Story": {
			msg(annJSON, privJSON, `"story":{"id":1,"chat":{"id":2}}`),
			base(func(in *messages.Inbound) {
				in.Attachments = []messages.Attachment{{Name: "story", Note: "this kind of content cannot be read"}}
			}),
		},
		"RichMessage": {
			msg(annJSON, privJSON, `"rich_message":{"blocks":[{"type":"paragraph","text":["a",{"type":"bold","text":"b"}]}]}`),
			base(func(in *messages.Inbound) { in.Text = "a\nb" }),
		},
		"Bot":            {msg(`"from":{"id":9,"is_bot":true,"first_name":"B"}`, privJSON, `"text":"hi"`), nil},
		"AnonymousAdmin": {msg(annJSON, groupJSON, `"sender_chat":{"id":-100},"text":"/status"`), nil},
		"NoSender":       {msg(groupJSON, `"text":"/status"`), nil},
		"ServiceMessage": {msg(annJSON, groupJSON, `"new_chat_members":[{"id":4711,"is_bot":true}]`), nil},
		"Pinned":         {msg(annJSON, privJSON, `"pinned_message":{"message_id":1}`), nil},
		"ChannelPost":    {`{"update_id":7,"channel_post":{"message_id":5,"chat":{"id":-5,"type":"channel"},"text":"/status"}}`, nil},
		"Callback":       {`{"update_id":7,"callback_query":{"id":"1"}}`, nil},
		"Future":         {`{"update_id":7,"from_the_future":{"id":"1"}}`, nil},
		"PartOfAlbum": {
			msg(annJSON, groupJSON, `"media_group_id":"g1","photo":[{"file_id":"f","file_size":9}]`),
			base(func(in *messages.Inbound) {
				in.Conversation.ID, in.Private, in.Album, in.OnlyAlbum = "-100", false, "g1", true
				in.Attachments = []messages.Attachment{{Name: "photo.jpg", MediaType: "image/jpeg", Size: 9, Source: "f"}}
			}),
		},
		"PhotoForNobody": {msg(annJSON, groupJSON, `"photo":[{"file_id":"f","file_size":9}]`), nil},
		"MovedAway": {
			msg(annJSON, groupJSON, `"migrate_to_chat_id":-200`),
			base(func(in *messages.Inbound) {
				in.Kind, in.Conversation.ID, in.MigratedTo, in.Private, in.Sender = messages.KindMigrated, "-100", "-200", false, messages.Sender{}
			}),
		},
		"MovedHere": {
			msg(groupJSON, `"migrate_from_chat_id":-50,"sender_chat":{"id":-100}`),
			base(func(in *messages.Inbound) {
				in.Kind, in.Conversation.ID, in.MigratedTo, in.Private, in.Sender = messages.KindMigrated, "-50", "-100", false, messages.Sender{}
			}),
		},
		"Blocked": {
			`{"update_id":7,"my_chat_member":{"date":1700000000,` + annJSON + `,` + privJSON + `,"old_chat_member":{"status":"member"},"new_chat_member":{"status":"kicked"}}}`,
			base(func(in *messages.Inbound) {
				in.Kind, in.Message, in.Below = messages.KindGone, "", in.Conversation.ID+":"
			}),
		},
		"Removed": {
			`{"update_id":7,"my_chat_member":{"date":1700000000,` + annJSON + `,` + groupJSON + `,"old_chat_member":{"status":"member"},"new_chat_member":{"status":"left"}}}`,
			base(func(in *messages.Inbound) {
				in.Kind, in.Message, in.Conversation.ID, in.Below, in.Private = messages.KindGone, "", "-100", "-100:", false
			}),
		},
		"LeftForASupergroup": {
			`{"update_id":7,"my_chat_member":{"date":1700000000,` + annJSON + `,"chat":{"id":-50,"type":"group"},"old_chat_member":{"status":"member"},"new_chat_member":{"status":"left"}}}`, nil,
		},
		"Unblocked": {
			`{"update_id":7,"my_chat_member":{"date":1,` + annJSON + `,` + privJSON + `,"new_chat_member":{"status":"from_the_future"}}}`, nil,
		},
	}
	a := newTestAdapter(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok, err := a.translate(me, json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if ok != (tt.want != nil) {
				t.Fatalf("accepted %v: %+v", ok, got)
			}
			if !ok {
				return
			}
			if string(got.Raw) != tt.in {
				t.Errorf("Raw is %s", got.Raw)
			}
			if diff := cmp.Diff(*tt.want, got, cmpopts.IgnoreFields(messages.Inbound{}, "Raw")); diff != "" {
				t.Errorf("translate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTranslateRefuses(t *testing.T) {
	t.Parallel()
	a := newTestAdapter(t)
	for _, in := range []string{``, `null`, `[]`, `"x"`, `{`, `{}`, `{"update_id":-1}`, `{"update_id":9223372036854775807}`, `{"update_id":1e3}`, `{"update_id":7,"message":[]}`, `{"update_id":7,"message":{"text":5}}`, `{"update_id":7,"message":{}}`, `{"update_id":7,"callback_query":[]}`, `{"update_id":7,"callback_query":{"id":5}}`, `{"update_id":7,"callback_query":{"id":"5","message":5}}`, `{"update_id":7,"callback_query":{"id":"5","data":{}}}`} {
		if _, ok, err := a.translate(me, json.RawMessage(in)); err == nil || ok {
			t.Errorf("%s: accepted %v, error %v", in, ok, err)
		}
	}
}

func TestTranslatePress(t *testing.T) {
	t.Parallel()
	const (
		id      = `"id":"99"`
		data    = `"data":"b-1_Z"`
		ours    = `"message":{"message_id":5,"date":1700000000,"from":{"id":4711,"is_bot":true},`
		private = ours + privJSON + `}`
	)
	query := func(parts ...string) string {
		return `{"update_id":7,"callback_query":{` + strings.Join(parts, ",") + `}}`
	}
	base := func(change func(*messages.Inbound)) *messages.Inbound {
		in := messages.Inbound{
			Account: "4711", Event: "7", Kind: messages.KindAction,
			Conversation: messages.ConversationKey{Platform: "telegram", ID: "42"}, Message: "5",
			Sender: messages.Sender{ID: "42", Name: "Ann Lee"}, Private: true, Action: "b-1_Z", Trigger: "99",
		}
		change(&in)
		return &in
	}
	tests := map[string]struct {
		in      string
		want    *messages.Inbound // nil: ignored
		trigger string            // if it is ignored: who waits for an answer
	}{
		"Private": {query(id, annJSON, private, data), base(func(*messages.Inbound) {}), ""},
		"GroupNeedsNoMention": {
			query(id, annJSON, ours+groupJSON+`}`, data),
			base(func(in *messages.Inbound) { in.Conversation.ID, in.Private = "-100", false }), "",
		},
		"Topic": {
			query(id, annJSON, ours+groupJSON+`,"message_thread_id":9,"is_topic_message":true}`, data),
			base(func(in *messages.Inbound) { in.Conversation.ID, in.Private = "-100:9", false }), "",
		},
		"ThreadOfRepliesIsNoTopic": {
			query(id, annJSON, ours+groupJSON+`,"message_thread_id":9}`, data),
			base(func(in *messages.Inbound) { in.Conversation.ID, in.Private = "-100", false }), "",
		},
		"UnknownFields": {query(id, annJSON, private, data, `"x":[1]`), base(func(*messages.Inbound) {}), ""},
		"LongestData":   {query(id, annJSON, private, `"data":"`+strings.Repeat("x", 64)+`"`), base(func(in *messages.Inbound) { in.Action = strings.Repeat("x", 64) }), ""},
		"NoMessage":     {query(id, annJSON, data), nil, "99"},
		"NullMessage":   {query(id, annJSON, `"message":null`, data), nil, "99"},
		"Inaccessible":  {query(id, annJSON, `"message":{"message_id":5,"date":0,`+privJSON+`}`, data), nil, "99"},
		"NoChat":        {query(id, annJSON, `"message":{"message_id":5,"date":1}`, data), nil, "99"},
		"Inline":        {query(id, annJSON, `"inline_message_id":"x"`, data), nil, "99"},
		"NoData":        {query(id, annJSON, private), nil, "99"},
		"Game":          {query(id, annJSON, private, `"game_short_name":"x"`), nil, "99"},
		"ForgedData":    {query(id, annJSON, private, `"data":"a\u0000b"`), nil, "99"},
		"LongData":      {query(id, annJSON, private, `"data":"`+strings.Repeat("x", 65)+`"`), nil, "99"},
		"Bot":           {query(id, `"from":{"id":9,"is_bot":true}`, private, data), nil, "99"},
		"NoSender":      {query(id, private, data), nil, "99"},
		"SenderIsZero":  {query(id, `"from":{}`, private, data), nil, "99"},
		"NoID":          {query(annJSON, private, data), nil, ""},
		"ForgedID":      {query(`"id":"a b"`, annJSON, private, data), nil, ""},
		"Empty":         {query(), nil, ""},
	}
	a := newTestAdapter(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := time.Now()
			got, ok, err := a.translate(me, json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if ok != (tt.want != nil) {
				t.Fatalf("accepted %v: %+v", ok, got)
			}
			if !ok {
				if got.Trigger != tt.trigger {
					t.Errorf("trigger %q, want %q", got.Trigger, tt.trigger)
				}
				return
			}
			if got.SentAt.Before(before.Add(-time.Second)) || got.SentAt.After(time.Now()) {
				t.Errorf("sent at %v", got.SentAt)
			}
			if diff := cmp.Diff(*tt.want, got, cmpopts.IgnoreFields(messages.Inbound{}, "Raw", "SentAt")); diff != "" {
				t.Errorf("translate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForgedEntities(t *testing.T) {
	t.Parallel()
	a := newTestAdapter(t)
	for _, offset := range []int{-1 << 62, -1, 0, 1, 3, 4, 5, 100, 1 << 62} {
		for _, length := range []int{-1 << 62, -1, 0, 1, 2, 9, 1 << 62} {
			in := msg(annJSON, groupJSON, fmt.Sprintf(`"text":"😀@acme_bot","entities":[{"type":"mention","offset":%d,"length":%d}]`, offset, length))
			_, ok, err := a.translate(me, json.RawMessage(in))
			if err != nil || ok {
				t.Errorf("offset %d, length %d: accepted %v, error %v", offset, length, ok, err)
			}
		}
	}
}

func FuzzTranslate(f *testing.F) {
	f.Add([]byte(msg(annJSON, privJSON, `"text":"hi"`)))
	f.Add([]byte(msg(annJSON, groupJSON, `"text":"😀 @acme_bot x","entities":[{"type":"mention","offset":3,"length":9}]`)))
	f.Add([]byte(msg(annJSON, groupJSON, `"caption":"/a@acme_bot","sticker":{"file_id":"x","emoji":"😀"},"reply_to_message":{"from":{"id":4711}}`)))
	f.Add([]byte(`{"update_id":7,"my_chat_member":{"new_chat_member":{"status":"left"}}}`))
	f.Add([]byte(msg(annJSON, privJSON, `"rich_message":{"blocks":[[[{"text":{}}]]]}`)))
	for _, press := range []string{
		`"id":"9",` + annJSON + `,"data":"x","message":{"message_id":5,"date":1,"message_thread_id":3,"is_topic_message":true,` + groupJSON + `}`,
		`"id":"9",` + annJSON + `,"data":"x","message":{"message_id":5,"date":0,` + privJSON + `}`,
		`"id":"9",` + annJSON + `,"data":"\u0000","inline_message_id":"x"`, `"id":"9","from":{"id":9,"is_bot":true},"data":"x"`,
	} {
		f.Add([]byte(`{"update_id":7,"callback_query":{` + press + `}}`))
	}
	a := newTestAdapter(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, ok, err := a.translate(me, raw)
		if ok && err != nil {
			t.Fatal("accepted with an error")
		}
		if !ok {
			return
		}
		if in.Kind == messages.KindAction && (!opaqueForm.MatchString(in.Action) || !opaqueForm.MatchString(in.Trigger) || in.Message == "") {
			t.Fatalf("accepted press %+v", in)
		}
		if in.Event == "" || in.Conversation.ID == "" || len(in.Conversation.ID) > 255 {
			t.Fatalf("accepted %+v", in)
		}
		if in.Kind != messages.KindMigrated && in.Kind != messages.KindGone && (in.Sender.Bot || in.Sender.ID == "" || in.Sender.ID == "0") {
			t.Fatalf("accepted sender %+v", in.Sender)
		}
		if _, err := parseKey(in.Conversation); err != nil {
			t.Fatal(err)
		}
	})
}

// TestEditThatCalls: who forgot the mention adds it. What the edit is depends on whether the message
// was heard.
func TestEditThatCalls(t *testing.T) {
	t.Parallel()
	a := newTestAdapter(t)
	for _, tt := range []struct {
		of, chat, text string
		ok, calls      bool
	}{
		{"message", groupJSON, "run the tests", false, false},
		{"message", groupJSON, "@acme_bot run the tests", true, false},
		{"edited_message", groupJSON, "run all tests", false, true},
		{"edited_message", groupJSON, "@acme_bot run all tests", true, true},
		{"edited_message", groupJSON, "/status@acme_bot", true, true},
		{"edited_message", privJSON, "run all tests", true, false},
	} {
		in, ok, err := a.translate(me, json.RawMessage(`{"update_id":1,"`+tt.of+`":{"message_id":5,"date":1,`+annJSON+`,`+tt.chat+`,"text":"`+tt.text+`"}}`))
		if err != nil || ok != tt.ok || in.Calls != tt.calls {
			t.Errorf("%s %q: %v, calls %v, %v", tt.of, tt.text, ok, in.Calls, err)
		}
	}
}
