package telegram

import (
	"encoding/json"

	"remote-agent/internal/messages"
)

// shown returns what m shows that is neither text nor a file, with what it says in words:
// they are data, as those of a file are.
func shown(m *message) []messages.Attachment {
	var list []messages.Attachment
	for _, c := range []struct {
		raw  json.RawMessage
		name string
	}{
		{m.Contact, "contact"}, {m.Location, "location"}, {m.Venue, "venue"}, {m.Poll, "poll"}, {m.Dice, "dice"},
		{m.Checklist, "checklist"}, {m.Game, "game"}, {m.Story, "story"}, {m.PaidMedia, "paid media"},
	} {
		if len(c.raw) == 0 || string(c.raw) == "null" || c.name == "location" && len(m.Venue) > 0 {
			continue
		}
		att := messages.Attachment{Name: c.name, Text: cutRunes(wordsOf(c.raw), maxQuote)}
		if att.Text == "" {
			att.Note = "this kind of content cannot be read"
		}
		list = append(list, att)
	}
	return list
}
