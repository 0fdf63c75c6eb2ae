package telegram

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"remote-agent/internal/messages"
)

const (
	maxName     = 128  // code points of a person's or a file's name
	maxQuote    = 8000 // code points of a quoted message
	groupPerson = "someone"
)

// translate turns an update into an event. ok is false for an update that is
// nobody's business here: of an unknown kind, a service message, of a bot, or
// not meant for the bot. A press of a button that is ignored still has its
// Trigger. An error means that it could not be understood.
func (r *receiver) translate(me identity, raw json.RawMessage) (in messages.Inbound, ok bool, err error) {
	var u update
	if err := json.Unmarshal(raw, &u); err != nil {
		return in, false, fmt.Errorf("decoding the update: %w", err)
	}
	id, known := parseUpdateID(u.ID)
	if !known {
		return in, false, errNoUpdateID
	}
	in = messages.Inbound{Account: r.me.id, Event: eventID(id), Raw: raw}
	switch {
	case u.Message != nil, u.Edited != nil:
		in.Kind = messages.KindEdit
		if u.Message != nil {
			in.Kind = messages.KindMessage
		}
		in, ok, err = me.message(in, cmp.Or(u.Message, u.Edited))
		in.Calls = in.Kind == messages.KindEdit && !in.Private
		return in, ok, err
	case u.Callback != nil:
		in, ok = press(in, u.Callback)
		return in, ok, nil
	case u.Member != nil:
		// The bot also leaves a group that becomes a supergroup, and its work goes on there.
		if s := u.Member.New.Status; s != "kicked" && (s != "left" || u.Member.Chat.Type == "group") {
			return in, false, nil
		}
		in.Kind = messages.KindGone
		in.Conversation = makeKey(u.Member.Chat.ID, 0)
		in.Below = in.Conversation.ID + ":" // its topics
		in.Sender = sender(&u.Member.From)
		in.Private = u.Member.Chat.Type == "private"
		in.SentAt = time.Unix(u.Member.Date, 0).UTC()
		return in, true, nil
	}
	return in, false, nil
}

// message fills in from m.
func (me identity) message(in messages.Inbound, m *message) (messages.Inbound, bool, error) {
	if m.Chat.ID == 0 {
		return in, false, fmt.Errorf("the message has no chat")
	}
	in.Message = messages.MessageID(strconv.Itoa(m.ID))
	in.SentAt = time.Unix(m.Date, 0).UTC()
	if old, to := m.Chat.ID, m.MigrateTo; to != 0 || m.MigrateFrom != 0 {
		if to == 0 { // told from the new group's side
			old, to = m.MigrateFrom, m.Chat.ID
		}
		in.Kind = messages.KindMigrated
		in.Conversation = makeKey(old, 0)
		in.MigratedTo = makeKey(to, 0).ID
		return in, true, nil
	}
	// A bot, a channel, or an administrator who hides behind the group: nobody
	// whose authority could be checked (contract A3).
	if m.From == nil || m.From.IsBot || m.From.ID == 0 || m.SenderChat != nil {
		return in, false, nil
	}
	in.Conversation = makeKey(m.Chat.ID, m.topic())
	in.Sender = sender(m.From)
	in.Private = m.Chat.Type == "private"
	in.Attachments = attachments(m)

	text, entities := m.words()
	if text == "" && len(in.Attachments) == 0 {
		return in, false, nil // a service message
	}
	cleaned, addressed := me.addressed(m, text, entities)
	in.Album = m.Album
	if !in.Private && !addressed {
		if in.OnlyAlbum = in.Album != "" && in.Kind == messages.KindMessage; !in.OnlyAlbum {
			return in, false, nil
		}
	}
	in.Text, in.Cited = cleaned, cited(text, entities)
	in.Quotes = quotes(m)
	in.Attachments = append(in.Attachments, repliedFiles(m)...)
	if how, author, ok := m.foreign(); ok {
		if in.Text != "" { // somebody else's words are never an instruction
			in.Quotes = append(in.Quotes, quote(how, author, in.Text))
			in.Text, in.Cited = "", nil
		}
		for i := range in.Attachments {
			in.Attachments[i].Author = cmp.Or(author, "somebody else")
		}
	}
	return in, true, nil
}

// foreign says whose words a message has if they are not its sender's: it was forwarded, or an
// inline bot made it, of which the sender saw what the bot showed, and not what it sends.
func (m *message) foreign() (how, name string, ok bool) {
	switch {
	case m.ForwardOrigin != nil:
		return "forwarded from", m.ForwardOrigin.name(), true
	case m.ViaBot != nil:
		return "sent through", m.ViaBot.name(), true
	}
	return "", "", false
}

// cited returns the parts of a text that are formatted as a quotation or as a
// block of code: the text itself does not show it.
func cited(text string, entities []entity) (parts []string) {
	var units []uint16
	for _, e := range entities {
		switch e.Type {
		case "blockquote", "expandable_blockquote", "pre":
		default:
			continue
		}
		if units == nil {
			units = utf16.Encode([]rune(text))
		}
		if !e.within(units) {
			continue
		}
		if part := strings.TrimSpace(string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// within reports whether an entity is a part of a text, in UTF-16 units.
func (e entity) within(units []uint16) bool {
	return e.Offset >= 0 && e.Length > 0 && e.Offset <= len(units) && e.Length <= len(units)-e.Offset
}

// topic returns the forum topic that m is in, or 0. Threads of replies have an
// id as well and are no topics.
func (m *message) topic() int {
	if m.TopicMessage {
		return m.Thread
	}
	return 0
}

// words returns the text of m, or the caption of what it shows.
func (m *message) words() (string, []entity) {
	switch {
	case m.Text != "":
		return withLinks(m.Text, m.Entities)
	case m.Caption != "":
		return withLinks(m.Caption, m.CaptionEntities)
	default:
		return wordsOf(m.RichMessage), nil
	}
}

// withLinks writes the address of each link behind the words that it is on, which
// alone do not show it. The entities that are returned are those of the new text.
func withLinks(text string, entities []entity) (string, []entity) {
	if !slices.ContainsFunc(entities, func(e entity) bool { return e.URL != "" }) {
		return text, entities
	}
	units, entities := utf16.Encode([]rune(text)), slices.Clone(entities)
	for _, link := range slices.Backward(slices.Clone(entities)) {
		end := link.Offset + link.Length
		if link.URL == "" || !link.within(units) || strings.Contains(string(utf16.Decode(units[link.Offset:end])), link.URL) {
			continue
		}
		address := utf16.Encode([]rune(" (" + link.URL + ")"))
		units = slices.Insert(units, end, address...)
		for i, e := range entities {
			switch {
			case e.Offset >= end:
				entities[i].Offset += len(address)
			case e.Offset <= link.Offset && e.Offset+e.Length >= end:
				entities[i].Length += len(address)
			}
		}
	}
	return string(utf16.Decode(units)), entities
}

func sender(u *user) messages.Sender {
	return messages.Sender{ID: messages.UserID(strconv.FormatInt(u.ID, 10)), Name: u.name(), Bot: u.IsBot}
}

// name returns a person's name for display.
func (u *user) name() string {
	name := cleanName(u.FirstName + " " + u.LastName)
	if name == "" && u.Username != "" {
		name = "@" + cleanName(u.Username)
	}
	return name
}

func (c *chatInfo) name() string {
	return cmp.Or(cleanName(c.Title), cleanName(c.Username))
}

func (o *origin) name() string {
	switch {
	case o == nil:
		return ""
	case o.SenderUser != nil:
		return o.SenderUser.name()
	case o.SenderName != "":
		return cleanName(o.SenderName)
	case o.SenderChat != nil:
		return o.SenderChat.name()
	case o.Chat != nil:
		return o.Chat.name()
	}
	return ""
}

// cleanName makes a name that a stranger chose fit for one line.
func cleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' {
			return ' '
		}
		return r
	}, s)
	return cutRunes(strings.Join(strings.Fields(s), " "), maxName)
}

// quotes returns what m refers to.
func quotes(m *message) []messages.Quote {
	replied := m.replied()
	if replied == nil {
		return nil
	}
	text, _ := replied.words()
	if m.Quote != nil && m.Quote.Text != "" {
		text = m.Quote.Text
	}
	for _, att := range attachments(replied) {
		text = strings.TrimSpace(text + "\n[" + att.Name + "]\n" + att.Text)
	}
	if text == "" {
		return nil
	}
	return []messages.Quote{quote("reply to", replied.author(), text)}
}

// replied returns what m replies to, or nil. Of a message of another chat or topic
// Telegram tells what it shows, and its text as a quote.
func (m *message) replied() *message {
	if m.ReplyTo != nil && !m.replyIsTopic() {
		return m.ReplyTo
	}
	return m.ExternalReply
}

func quote(relation, author, text string) messages.Quote {
	return messages.Quote{Relation: relation, Author: author, Text: cutRunes(text, maxQuote)}
}

// repliedFiles returns the pictures, documents and recordings of the message that m
// replies to: they are what it is about. They are somebody's, as what is quoted is. In a
// private chat a recording of that chat was heard when it came.
func repliedFiles(m *message) (files []messages.Attachment) {
	replied := m.replied()
	if replied == nil || replied.Sticker != nil {
		return nil
	}
	for _, a := range attachments(replied) {
		heard := strings.HasPrefix(a.MediaType, "audio/") && m.Chat.Type == "private" && replied == m.ReplyTo
		if a.Source != "" && !heard && !strings.HasPrefix(a.MediaType, "video/") {
			a.Author = cmp.Or(replied.author(), groupPerson)
			files = append(files, a)
		}
	}
	return files
}

// author returns whose message m is, for display.
func (m *message) author() string {
	switch {
	case m.Origin != nil:
		return m.Origin.name()
	case m.SenderChat != nil:
		return m.SenderChat.name()
	case m.From != nil:
		return m.From.name()
	}
	return groupPerson
}

// replyIsTopic reports whether what m replies to is only the topic it is in:
// Telegram shows every message of a topic as a reply to the topic's creation.
func (m *message) replyIsTopic() bool {
	return m.TopicMessage && (m.ReplyTo.ID == m.Thread || len(m.ReplyTo.TopicCreated) > 0)
}

// addressed reports whether m is meant for the bot: it mentions it, is a
// command for it, or answers it. The text is returned without the mention and
// with a bare command name.
func (me identity) addressed(m *message, text string, entities []entity) (string, bool) {
	replied := m.ReplyTo != nil && m.ReplyTo.From != nil && m.ReplyTo.From.ID == me.id && !m.replyIsTopic()
	if _, _, ok := m.foreign(); ok {
		return text, replied
	}
	if m.Chat.Type != "private" {
		cut, mentioned := me.takeMentions(text, entities)
		if mentioned {
			text, replied = cut, true
		}
	}
	text, command := me.command(text)
	return text, command != notOurs && (replied || command == ours)
}

type commandFor int

const (
	noCommand commandFor = iota
	ours                 // "/cmd" or "/cmd@us"
	notOurs              // "/cmd@other_bot"
)

// command reports whose command text is, and takes our name off it.
func (me identity) command(text string) (string, commandFor) {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if len(trimmed) < 2 || trimmed[0] != '/' || !isNameByte(trimmed[1]) {
		return text, noCommand
	}
	end := 1
	for end < len(trimmed) && (isNameByte(trimmed[end]) || trimmed[end] == '-') {
		end++
	}
	if end == len(trimmed) || trimmed[end] != '@' {
		if end < len(trimmed) && !unicode.IsSpace(rune(trimmed[end])) {
			return text, noCommand // a path such as /etc/hosts
		}
		return text, ours
	}
	name := end + 1
	for name < len(trimmed) && isNameByte(trimmed[name]) {
		name++
	}
	if !strings.EqualFold(trimmed[end+1:name], me.username) {
		return text, notOurs
	}
	return trimmed[:end] + trimmed[name:], ours
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// takeMentions returns text without the mentions of the bot. Offsets count
// UTF-16 units and are whatever the update says: one that is out of range is
// passed over. A message without any entities is searched for the name.
func (me identity) takeMentions(text string, entities []entity) (string, bool) {
	if !strings.Contains(text, "@") && !slices.ContainsFunc(entities, func(e entity) bool { return e.Type == "text_mention" }) {
		return text, false
	}
	if len(entities) == 0 {
		return me.takeName(text)
	}
	units := utf16.Encode([]rune(text))
	found := false
	for _, e := range slices.Backward(entities) {
		if !e.within(units) {
			continue
		}
		said := string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
		switch {
		case e.Type == "mention" && strings.EqualFold(said, "@"+me.username):
		case e.Type == "text_mention" && e.User != nil && e.User.ID == me.id:
		default:
			continue
		}
		found = true
		end := e.Offset + e.Length
		if e.Offset > 0 && units[e.Offset-1] == ' ' && end < len(units) && units[end] == ' ' {
			end++ // one space is enough where the mention was
		}
		units = append(units[:e.Offset:e.Offset], units[end:]...)
	}
	if !found {
		return text, false
	}
	return closeGap(string(utf16.Decode(units))), true
}

// takeName is takeMentions for a text that came without entities.
func (me identity) takeName(text string) (string, bool) {
	name := "@" + me.username
	found := false
	for from := 0; from+len(name) <= len(text); {
		i := strings.IndexByte(text[from:], '@')
		if i < 0 || from+i+len(name) > len(text) {
			break
		}
		start, end := from+i, from+i+len(name)
		from = start + 1
		whole := (start == 0 || !isNameByte(text[start-1])) && (end == len(text) || !isNameByte(text[end]))
		if whole && strings.EqualFold(text[start:end], name) {
			if start > 0 && text[start-1] == ' ' && end < len(text) && text[end] == ' ' {
				end++
			}
			text, from, found = text[:start]+text[end:], start, true
		}
	}
	if !found {
		return text, false
	}
	return closeGap(text), true
}

// closeGap tidies what a mention leaves behind at the ends: "@bot: do it" is "do it". The
// rest stays as it was written: it may be code, whose indentation counts.
func closeGap(text string) string {
	text = strings.TrimSpace(text)
	if rest := strings.TrimLeft(text, ",:"); rest != text && (rest == "" || rest[0] == ' ' || rest[0] == '\n') {
		return strings.TrimSpace(rest)
	}
	return text
}

// attachments returns what m shows besides text, as metadata.
func attachments(m *message) []messages.Attachment {
	document, photo := m.Document, (*file)(nil)
	if m.Animation != nil { // which is also given as a document
		document = nil
	}
	if n := len(m.Photo); n > 0 { // sizes of one picture, the largest last
		photo = &m.Photo[n-1]
	}
	var list []messages.Attachment
	for _, c := range []struct {
		file       *file
		name, mime string
	}{
		{photo, "photo.jpg", "image/jpeg"}, {document, "file", "application/octet-stream"}, {m.Animation, "animation.mp4", "video/mp4"},
		{m.Audio, "audio.mp3", "audio/mpeg"}, {m.Video, "video.mp4", "video/mp4"}, {m.VideoNote, "video-note.mp4", "video/mp4"},
		{m.Voice, "voice.ogg", "audio/ogg"}, {m.Sticker, "sticker.webp", "image/webp"},
	} {
		f := c.file
		if f == nil || f.ID == "" {
			continue
		}
		switch {
		case f == m.Sticker && f.Animated:
			c.name, c.mime = "sticker.tgs", "application/x-tgsticker"
		case f == m.Sticker && f.Video:
			c.name, c.mime = "sticker.webm", "video/webm"
		}
		att := messages.Attachment{Name: fileName(f.Name, c.name), MediaType: cmp.Or(f.MIMEType, c.mime), Size: max(f.Size, 0), Source: f.ID}
		if att.Size > maxDownload {
			att.Note = "larger than the 20 MB that Telegram lets bots download"
		}
		if f == m.Sticker && f.Emoji != "" {
			att.Note = "a sticker that means " + cleanName(f.Emoji)
		}
		list = append(list, att)
	}
	return append(list, shown(m)...)
}

// fileName makes a file's name harmless to show; it still must not be used as a
// path.
func fileName(name, fallback string) string {
	name = cleanName(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if name == "" || name == "." || name == ".." || name == "/" {
		return fallback
	}
	return name
}
