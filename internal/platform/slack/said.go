package slack

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/slack-go/slack"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// said returns what a message says. Apps, such as those that post alerts, say it in
// attachments and blocks, with a summary as the text or none. What a link shows is left out:
// nobody chose those words.
func said(m slack.Message) string {
	text := m.Text
	if all := ofBlocks(m.Blocks); m.BotID != "" && len(all) > len(text) {
		text = all
	}
	parts := []string{text}
	for _, a := range m.Attachments {
		if !a.IsShare && !a.IsMsgUnfurl && (m.BotID == "" || a.FromURL != "") {
			continue // people have no other attachments than previews
		}
		all := []string{a.Pretext, a.Title, a.Text, ofBlocks(a.Blocks)}
		for _, f := range a.Fields {
			all = append(all, f.Title+": "+f.Value)
		}
		parts = append(parts, cmp.Or(lines(all), a.Fallback))
	}
	return lines(parts)
}

// lines are the parts that say something, each on lines of its own.
func lines(parts []string) string {
	var kept []string
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n")
}

// ofBlocks returns what blocks say, as Slack writes text.
func ofBlocks(blocks slack.Blocks) string {
	var all any
	if raw, err := json.Marshal(blocks); err != nil || json.Unmarshal(raw, &all) != nil {
		return ""
	}
	return ofBlock(all)
}

// ofBlock is ofBlocks for a part of them.
func ofBlock(part any) string {
	var all []string
	switch part := part.(type) {
	case string:
		return part
	case []any:
		for _, p := range part {
			all = append(all, ofBlock(p))
		}
	case map[string]any:
		field := func(name string) string { s, _ := part[name].(string); return s }
		switch field("type") {
		case "text", "markdown": // which are not escaped, as others are
			return escaper.Replace(field("text"))
		case "link":
			return strings.TrimSuffix("<"+field("url")+"|"+escaper.Replace(field("text")), "|") + ">"
		case "user":
			return "<@" + field("user_id") + ">"
		case "emoji":
			return ":" + field("name") + ":"
		case "rich_text_section", "rich_text_preformatted", "rich_text_quote":
			within, _ := part["elements"].([]any)
			for _, e := range within {
				all = append(all, ofBlock(e))
			}
			return strings.Join(all, "")
		}
		all = []string{ofBlock(part["text"]), ofBlock(part["fields"]), ofBlock(part["elements"])}
	}
	return lines(all)
}

// quotes returns the messages that were shared, and the files with theirs. What a link
// shows is left out: nobody chose those words.
func quotes(all []shared, files []messages.Attachment) ([]messages.Quote, []messages.Attachment) {
	var out []messages.Quote
	for _, s := range all {
		if !s.Share && !s.Unfurl {
			continue
		}
		author := platform.Cut(s.Author, 80)
		if text := s.said(); text != "" && len(out) < maxAttachments {
			out = append(out, messages.Quote{Relation: "shared from", Author: author, Text: platform.Cut(plain(text, nil), maxQuote)})
		}
		for _, f := range attachments(list[file](s.Files)) {
			if f.Author = cmp.Or(author, "somebody else"); len(files) < maxReceived {
				files = append(files, f)
			}
		}
	}
	return out, files
}
