package slack

import (
	"cmp"
	"encoding/json"
	"html"
	"strings"

	"remote-agent/internal/lists"
	"remote-agent/internal/pattern"
)

// plainBlocks renders blocks as lines of plain text. Markup characters of
// Markdown and mrkdwn stay; links, mentions and entities of mrkdwn are resolved.
func plainBlocks(blocks []block) string {
	var lines []string
	for _, b := range blocks {
		if text := plainBlock(b); text != "" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}

func plainBlock(b block) string {
	switch b.Type {
	case "markdown":
		var text string
		_ = json.Unmarshal(b.Text, &text)
		return text
	case "section", "header":
		parts := []string{plainText(b.text())}
		for _, f := range b.Fields {
			parts = append(parts, plainText(f))
		}
		return joinNonEmpty("\n", parts)
	case "context", "actions", "context_actions", "rich_text":
		parts := lists.Map(b.Elements, plainElement)
		separator := " "
		if b.Type == "rich_text" {
			separator = "\n"
		}
		return joinNonEmpty(separator, parts)
	case "divider":
		return "---"
	case "image":
		return "[image]"
	case "input":
		if b.Label != nil {
			return b.Label.Text
		}
	case "plan":
		parts := []string{plainAny(b.Title)}
		for _, t := range b.Tasks {
			t.Type = "task_card"
			parts = append(parts, plainBlock(t))
		}
		return joinNonEmpty("\n", parts)
	case "task_card":
		return joinNonEmpty(" ", []string{"[" + b.Status + "]", plainAny(b.Title), plainAny(b.Details), plainAny(b.Output)})
	case "table":
		return plainTable(b)
	}
	return ""
}

func plainTable(b block) string {
	var lines []string
	for _, row := range b.Rows {
		cells := lists.Map(row, plainElement)
		lines = append(lines, strings.Join(cells, " | "))
	}
	return strings.Join(lines, "\n")
}

func joinNonEmpty(separator string, parts []string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, separator)
}

// plainAny renders a string, a text object or something with elements.
func plainAny(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return plainElement(raw)
}

// plainElement renders an element of a block. Buttons are in brackets.
func plainElement(raw json.RawMessage) string {
	var e element
	if json.Unmarshal(raw, &e) != nil {
		return ""
	}
	var text string
	if json.Unmarshal(e.Text, &text) != nil {
		var t textObject
		_ = json.Unmarshal(e.Text, &t)
		text = plainText(t)
	}
	switch e.Type {
	case "button":
		return "[" + text + "]"
	case "mrkdwn":
		return plainMrkdwn(text)
	case "user":
		return "@" + e.UserID
	case "emoji":
		return ":" + e.Name + ":"
	case "link":
		return cmp.Or(text, e.URL)
	}
	if len(e.Elements) > 0 {
		separator := ""
		if e.Type == "rich_text_list" || e.Type == "rich_text" {
			separator = "\n"
		}
		return strings.Join(lists.Map(e.Elements, plainElement), separator)
	}
	return text
}

func plainText(t textObject) string {
	if t.Type == "mrkdwn" {
		return plainMrkdwn(t.Text)
	}
	return t.Text
}

var angle = pattern.Lazy(`<([^<>\n]+)>`)

// plainMrkdwn resolves links, mentions and entities.
func plainMrkdwn(text string) string {
	text = angle.ReplaceAllStringFunc(text, func(found string) string {
		inner := found[1 : len(found)-1]
		target, label, labeled := strings.Cut(inner, "|")
		switch {
		case strings.HasPrefix(inner, "@"), strings.HasPrefix(inner, "#"):
			if labeled {
				return inner[:1] + label
			}
			return target
		case strings.HasPrefix(inner, "!"):
			if labeled {
				return label
			}
			return "@" + target[1:]
		case labeled:
			return label
		}
		return target
	})
	return html.UnescapeString(text)
}

var (
	ping      = pattern.Lazy(`<(!(?:channel|here|everyone|subteam\^[A-Z0-9]+)|@[UW][A-Z0-9]+)(?:\|[^<>\n]*)?>`)
	fences    = pattern.Lazy("(?s)```.*?(?:```|$)|`[^`\n]+`")
	backslash = pattern.Lazy(`\\.`)
)

// pingsIn returns the mentions that notify somebody, such as "!channel" and
// "@U1". In Markdown those in code and behind a backslash do not count.
func pingsIn(text string, markdown bool) []string {
	if markdown {
		text = fences.ReplaceAllString(text, "")
		text = backslash.ReplaceAllString(text, "")
	}
	return lists.Map(ping.FindAllStringSubmatch(text, -1), func(found []string) string { return found[1] })
}

// pingsOf returns the mentions in a message: in its blocks if it has some, and
// in its text.
func pingsOf(text string, blocks []block) []string {
	out := pingsIn(text, false)
	for _, b := range blocks {
		if b.Type == "markdown" {
			out = append(out, pingsIn(plainBlock(b), true)...)
			continue
		}
		if t := b.text(); t.Type == "mrkdwn" {
			out = append(out, pingsIn(t.Text, false)...)
		}
		for _, f := range b.Fields {
			if f.Type == "mrkdwn" {
				out = append(out, pingsIn(f.Text, false)...)
			}
		}
		for _, raw := range b.Elements {
			var t textObject
			if json.Unmarshal(raw, &t) == nil && t.Type == "mrkdwn" {
				out = append(out, pingsIn(t.Text, false)...)
			}
		}
	}
	return out
}
