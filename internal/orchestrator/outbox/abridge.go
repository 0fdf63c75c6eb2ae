package outbox

import (
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// abridge makes the deliveries of a text whose parts are more messages than an answer
// may be: its beginning, which is returned as head, and behind it what tells that
// something is missing and where it is, and the end. The whole text goes as a file where
// the platform has files; else /full posts it. rest is nil if nothing is to be left out.
func (o *Outbox) abridge(conv sessions.Conversation, entry sessions.Entry, text string, parts []string) (head string, rest []messages.Delivery) {
	p := conv.Key.Platform
	caps := o.Caps(p)
	if caps.MaxMessages <= 0 || len(parts) <= caps.MaxMessages {
		return "", nil
	}
	tail := []string{ending(caps, parts)}
	left := wording.Count(len(parts)-2, "message", "messages")
	gap := Answer(conv.ID, entry, "")
	if _, ok := o.Adapters[p].(platform.Filer); ok {
		gap.FileName, gap.File = fmt.Sprintf("answer-%s.md", tag(gap.ID)), []byte(text)
		gap.Text = fmt.Sprintf("✂ The middle is left out here, %s. This file has the whole answer; `%sfull` posts it as text.", left, o.Prefix(conv.Key))
	} else {
		gap.Text = fmt.Sprintf("✂ The middle is left out here, %s. `%sfull` posts the whole answer.", left, o.Prefix(conv.Key))
		if joined := gap.Text + "\n\n" + tail[0]; measured(caps, joined) <= caps.MaxText {
			gap.Text, tail = joined, tail[1:]
		}
	}
	rest = append(rest, gap)
	for _, part := range tail {
		rest = append(rest, Answer(conv.ID, entry, part))
	}
	return parts[0], rest
}

// wholeButtons are under an answer that was abridged, where the platform has buttons.
func (o *Outbox) wholeButtons(conv sessions.Conversation, entry sessions.Entry) []messages.Button {
	if !o.Caps(conv.Key.Platform).Buttons {
		return nil
	}
	return []messages.Button{{ID: command.TurnButton(conv.ID, entry.Seq, command.Full), Label: "All as text"}}
}

// ending returns the last part of a text, with what comes before it as far as it would
// say little alone, and no code block is cut.
func ending(caps platform.Capabilities, parts []string) string {
	n := len(parts)
	tail, before := parts[n-1], parts[n-2]
	if strings.Contains(before, "```") || strings.Contains(before, "~~~") {
		return tail
	}
	paragraphs := strings.Split(before, "\n\n")
	for _, paragraph := range slices.Backward(paragraphs) {
		joined := paragraph + "\n\n" + tail
		if measured(caps, joined) > caps.MaxText/2 {
			break
		}
		tail = joined
	}
	return tail
}

// tag is the end of a delivery's id, which no other delivery of a conversation has.
func tag(id messages.DeliveryID) string { return string(id[max(0, len(id)-8):]) }

// measured is the length of a text as a platform counts it.
func measured(caps platform.Capabilities, text string) int {
	if caps.Measure == nil {
		return len([]rune(text))
	}
	return caps.Measure(text)
}
