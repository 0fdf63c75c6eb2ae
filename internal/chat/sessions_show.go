package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/transcript"
)

// showSession shows the end of a session, or what was said in it before a message, and
// the whole as a file where the platform has files. Who reads it follows from
// where it is asked: only in a private chat it has what tools were given and
// returned.
func (hi *history) showSession(ctx context.Context, r command.Request, named string, before int64) (command.Reply, error) {
	var row store.SessionRow
	var sum spend.Sum
	var said []store.ListedMessage
	number := 0
	err := hi.store.InRead(ctx, func(tx *store.Tx) error {
		p, err := placeOf(ctx, tx, r)
		if err != nil {
			return err
		}
		id, err := p.find(named)
		if err != nil {
			return err
		}
		number = p.number(id)
		if row, err = tx.Lists().SessionRow(ctx, id); err != nil {
			return err
		}
		if sum, err = tx.Spending().SumUsage(ctx, spend.Filter{SessionID: id}); err != nil {
			return err
		}
		f := store.MessageFilter{SessionID: id, Desc: true, Limit: messagesShown + 1}
		if before > 0 {
			f.After = store.ListedMessage{SessionID: id, TranscriptMessage: store.TranscriptMessage{Message: messages.Message{Seq: before}}}.Cursor()
		}
		said, err = tx.Search().ListMessages(ctx, f)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**Session %d**, %s, with %s: %s", number, sessionMoment(row.StartedAt), hi.answeredBy(row), facts(row, sum))
	if row.Active {
		b.WriteString(". Active")
	}
	b.WriteString(".\n\n")
	older := len(said) > messagesShown
	said = said[:min(messagesShown, len(said))]
	for _, m := range slices.Backward(said) {
		b.WriteString(hi.line(m))
	}
	switch {
	case len(said) == 0:
		b.WriteString("It has no messages.")
	case older:
		fmt.Fprintf(&b, "\nEarlier messages: `/sessions show %d before %d`.", number, said[len(said)-1].Seq)
	}
	return hi.withFile(ctx, r, row.ID, fmt.Sprintf("session-%d.md", number), command.Reply{Text: b.String()})
}

func (hi *history) answeredBy(row store.SessionRow) string {
	parts := []string{row.Assistant}
	if row.Model != "" {
		parts = append(parts, row.Model)
	}
	if row.AgentName != "" && row.AgentName != "default" {
		parts = append(parts, "profile "+row.AgentName)
	}
	return hi.quoted(strings.Join(parts, " "), promptLen)
}

// line is a message of a short transcript: what was written, and which tools were
// called. Thoughts and outputs of tools are in the file only.
func (hi *history) line(m store.ListedMessage) string {
	var parts []string
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case messages.Text:
			parts = append(parts, hi.quoted(b.Text, lineLen))
		case messages.Attachment:
			if m.Role == messages.RoleTool {
				break
			}
			parts = append(parts, "file "+hi.quoted(b.Name, promptLen))
		case messages.ToolCall:
			parts = append(parts, "calls "+hi.quoted(b.Name, promptLen))
		case messages.ToolResult, messages.Thinking:
		}
	}
	if len(parts) == 0 {
		return ""
	}
	undone := ""
	if m.Undone {
		undone = " (undone)"
	}
	return fmt.Sprintf("- %s%s: %s\n", m.Role, undone, strings.Join(parts, ", "))
}

// withFile adds the whole transcript as a file. A file is posted for everybody to
// see, so what one person alone saw the question of gets none.
func (hi *history) withFile(ctx context.Context, r command.Request, id, name string, reply command.Reply) (command.Reply, error) {
	if !hi.postsFiles(r.Conv.Key.Platform) || r.Entry.In.Whispered {
		return reply, nil
	}
	o := transcript.Options{Redact: hi.redact, For: transcript.Everybody}
	if r.Entry.In.Private {
		o.For = transcript.Person
	}
	var file limited
	err := transcript.Write(ctx, hi.store, &file, id, o)
	switch {
	case file.full:
		reply.Text += fmt.Sprintf("\n\nThe full session is too long to attach. Use `bot sessions show %s` on the server.", id)
	case err != nil:
		return reply, err
	default:
		reply.Text += "\n\nThe full session is attached."
		reply.Files = []command.File{{Name: name, Data: []byte(file.text.String())}}
	}
	return reply, nil
}

// limited holds what fits into a file.
type limited struct {
	text strings.Builder
	full bool
}

var errFull = errors.New("the file is full")

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.text.Len()+len(p) > maxFile {
		l.full = true
		return 0, errFull
	}
	return l.text.Write(p)
}
