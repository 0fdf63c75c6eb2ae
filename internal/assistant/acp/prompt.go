package acp

import (
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

const (
	// summaryLimit bounds what an agent is told of the conversation before its
	// session, in bytes: about 16,000 tokens.
	summaryLimit = 48 << 10

	// What an entry of the summary is cut to, in bytes.
	entryLimit = 6 << 10
	shortEntry = 600
	tinyEntry  = 120
)

// prompt returns what the agent is told in a turn. A session that knows the
// conversation gets the new message only; any other gets the instructions and a
// summary before it, each under a heading. What others wrote is indented, so
// that it cannot pass for a heading.
func (a *Assistant) prompt(o opened, turn assistant.Turn) string {
	history, request, since := split(turn.Array)
	var parts []string
	if turn.System != "" && (o.fresh || turn.System != o.agent.system) {
		parts = append(parts, "# Instructions from the operator of this bot\n\n"+strings.TrimSpace(turn.System))
	}
	o.agent.system = turn.System
	if o.fresh && len(history) > 0 {
		parts = append(parts, "# The conversation so far\n\nYou have no memory of it; this is the record, shortened where it is long. "+
			"The parts named Assistant were said by you or by the assistant before you.\n\n"+summary(history, summaryLimit))
	}
	if len(since) > 0 {
		parts = append(parts, "# This request was interrupted\n\nYou worked on the request below and were stopped before you had answered. "+
			"What was recorded of your work stands below it. A call without a result may have happened or not. "+
			"Look at the state of things first, and do not repeat what has an effect without having checked. Then finish the request.",
			"# The request\n\n"+indent(request), "# What was recorded of your work\n\n"+summary(since, summaryLimit))
		return strings.Join(parts, "\n\n")
	}
	if len(parts) == 0 {
		return request
	}
	return strings.Join(append(parts, "# The new message\n\n"+request), "\n\n")
}

// split takes an array apart: what was before the last request, the request,
// and what was done on it already, which is nothing unless the turn was
// interrupted.
func split(array []messages.Message) (history []messages.Message, request string, since []messages.Message) {
	for i, m := range slices.Backward(array) {
		if m.Role == messages.RoleUser {
			return array[:i], words(m), array[i+1:]
		}
	}
	return nil, "(There is no request on record.)", array
}

// words returns a user's message as text.
func words(m messages.Message) string {
	var parts []string
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case messages.Text:
			parts = append(parts, b.Text)
		case messages.Attachment:
			parts = append(parts, file(b))
		case messages.ToolCall, messages.ToolResult, messages.Thinking:
		}
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

func file(f messages.Attachment) string {
	head := "[Attached file " + oneLine(f.Name, 200)
	if f.MediaType != "" {
		head += ", " + oneLine(f.MediaType, 100)
	}
	if f.Note != "" {
		head += "; " + oneLine(f.Note, 300)
	}
	if f.Text == "" {
		return head + "]"
	}
	return head + "; its text:]\n" + indent(f.Text)
}

// entry is one paragraph of a summary.
type entry struct{ head, text string }

// size returns about how long the entry is with its text cut to limit.
func (e entry) size(limit int) int { return len(e.head) + min(len(e.text), limit) + 16 }

func (e entry) show(limit int) string {
	if e.text == "" {
		return e.head
	}
	return e.head + "\n" + indent(cut(e.text, limit))
}

// summary returns the messages as text of about limit bytes. If they do not
// fit, the newest keep their length as far as half of it goes, older ones are
// short, then tiny, and the oldest are left out.
func summary(msgs []messages.Message, limit int) string {
	entries := record(msgs)
	whole := 0
	for _, e := range entries {
		whole += e.size(entryLimit)
	}
	steps := []struct{ length, until int }{{entryLimit, limit / 2}, {shortEntry, limit * 3 / 4}, {tinyEntry, limit}}
	if whole <= limit {
		steps[0].until = limit
	}
	var parts []string
	used, step := 0, 0
	for i, e := range slices.Backward(entries) {
		for len(parts) > 0 && step < len(steps) && used+e.size(steps[step].length) > steps[step].until {
			step++
		}
		if step == len(steps) {
			parts = append(parts, fmt.Sprintf("[%d earlier parts are left out.]", i+1))
			break
		}
		parts = append(parts, e.show(steps[step].length))
		used += e.size(steps[step].length)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n\n")
}

// record lists what was said and done. Reasoning is no part of it.
func record(msgs []messages.Message) []entry {
	var entries []entry
	names := map[string]string{} // of the tools, by call id
	for _, m := range msgs {
		if m.Role == messages.RoleUser {
			entries = append(entries, entry{"Person:", words(m)})
			continue
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case messages.Text:
				if text := strings.TrimSpace(b.Text); text != "" {
					entries = append(entries, entry{head: "Assistant:", text: text})
				}
			case messages.ToolCall:
				names[b.ID] = oneLine(b.Name, 64)
				entries = append(entries, entry{head: "Assistant called the tool " + names[b.ID] + ":", text: b.Arguments})
			case messages.ToolResult:
				head := "Result of " + names[b.CallID] + ":"
				if b.IsError {
					head = "Failed result of " + names[b.CallID] + ":"
				}
				entries = append(entries, entry{head: head, text: strings.TrimSpace(b.Content)})
			case messages.Attachment:
				head := "Assistant:"
				if m.Role == messages.RoleTool {
					head = "It came with:"
				}
				entries = append(entries, entry{head: head, text: file(b)})
			case messages.Thinking:
			}
		}
	}
	return entries
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
