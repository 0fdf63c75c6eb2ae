// Package transcript writes a session as Markdown for people: what was said, and
// each call of a tool with when it was made, how it ended and how long it took.
package transcript

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/redact"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// Options changes what is written.
type Options struct {
	Redact *redact.Redactor // takes credentials out; may be nil
	Whole  bool             // outputs of tools in full, not their first lines
	System bool             // also the system prompt and the configuration, for operators
	For    Reader
}

// Reader is who reads a transcript.
type Reader int

const (
	// Operator reads everything that is stored.
	Operator Reader = iota

	// Person is somebody who was alone with the assistant: everything but errors,
	// whose texts are for operators.
	Person

	// Everybody reads what could be read in the conversation: texts, and which
	// tools were called when. What a tool was given and returned may be about one
	// of them only, as with what is remembered of a person.
	Everybody
)

const (
	headLines = 40
	headBytes = 4000
)

// callKey finds the record of a call: a model may use an id again in a later
// message.
type callKey struct {
	seq int64
	id  string
}

type writer struct {
	out   *bufio.Writer
	o     Options
	calls map[callKey]sessions.ToolCall
	shown map[int64]bool // calls, by row
}

// Storage reads the database; *store.Store is one.
type Storage interface {
	InRead(ctx context.Context, fn func(tx *store.Tx) error) error
}

// Write writes the transcript of a session. Messages are read one by one; only
// the calls of the session are held in memory. It is fault.NotFound if there is
// no such session, fault.Invalid if id is none.
func Write(ctx context.Context, s Storage, out io.Writer, id string, o Options) error {
	w := &writer{out: bufio.NewWriter(out), o: o, calls: make(map[callKey]sessions.ToolCall), shown: make(map[int64]bool)}
	err := s.InRead(ctx, func(tx *store.Tx) error {
		if _, err := tx.Care().MeasureSession(ctx, id); err != nil { // checks the id
			return err
		}
		session, err := tx.Sessions().Session(ctx, id)
		if err != nil {
			return err
		}
		conversation, err := tx.Conversations().Conversation(ctx, session.ConversationID)
		if err != nil {
			return err
		}
		calls, err := tx.Calls().ToolCalls(ctx, id)
		if err != nil {
			return err
		}
		for _, c := range calls {
			w.calls[callKey{c.MessageSeq, strings.TrimSuffix(c.CallID, fmt.Sprintf("~%d", c.ID))}] = c
		}
		w.head(session, conversation)
		if err := tx.Lists().Transcript(ctx, id, func(m store.TranscriptMessage) error {
			w.message(m)
			return nil
		}); err != nil {
			return err
		}
		w.rest(calls)
		w.end(session)
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.out.Flush(); err != nil {
		return &fault.Error{Kind: fault.Unavailable, Public: "The transcript cannot be written.", Err: err}
	}
	return nil
}

func (w *writer) printf(format string, args ...any) {
	fmt.Fprintf(w.out, format, args...) //nolint:errcheck // Flush returns it
}

func (w *writer) clean(s string) string {
	if w.o.Redact == nil {
		return s
	}
	return w.o.Redact.String(s)
}

func (w *writer) head(s sessions.Session, c sessions.Conversation) {
	w.printf("# Session %s\n\n", s.ID)
	fact := func(name, value string) {
		if value != "" {
			w.printf("- %s: %s\n", name, w.clean(strings.Join(strings.Fields(value), " ")))
		}
	}
	fact("Conversation", string(c.Key.Platform)+" "+c.Key.ID+" ("+c.ID+")")
	fact("Assistant", s.Assistant)
	fact("Profile", s.AgentName)
	fact("Model", s.Model)
	fact("Started", moment(s.StartedAt))
	fact("Ended", moment(s.EndedAt))
	status := string(s.Status)
	if s.Active {
		status += ", active"
	}
	fact("Status", status)
	fact("Continues", s.ParentID)
	fact("Tokens", fmt.Sprintf("%d in, %d out", s.InputTokens, s.OutputTokens))
	if !w.o.System || w.o.For != Operator {
		return
	}
	for _, part := range []struct{ title, text string }{{"System prompt", s.SystemPrompt}, {"Configuration", string(s.Config)}} {
		part.text = cmp.Or(part.text, "(none is on record)")
		w.printf("\n## %s\n\n%s\n", part.title, w.clean(part.text))
	}
}

func (w *writer) end(s sessions.Session) {
	if s.Error != "" && w.o.For == Operator {
		w.printf("\n## Error of the last turn\n")
		w.fence("", s.Error, true)
	}
}

func (w *writer) message(m store.TranscriptMessage) {
	if w.o.For == Everybody && !spoken(m) {
		return
	}
	undone := ""
	if m.Undone {
		undone = ", undone"
	}
	w.printf("\n## %s, %s (message %d%s)\n", m.Role, moment(m.At), m.Seq, undone)
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case messages.Text:
			w.printf("\n%s\n", strings.TrimRight(w.clean(b.Text), "\n"))
		case messages.Thinking:
			if w.o.For != Everybody {
				w.printf("\n### Thinking\n")
				w.fence("", b.Text, w.o.Whole)
			}
		case messages.Attachment:
			if w.o.For == Everybody && m.Role == messages.RoleTool {
				break // as the result that it came with
			}
			w.printf("\n### Attachment %s (%s)\n", w.clean(b.Name), w.clean(attached(b)))
			w.fence("", b.Text, w.o.Whole)
		case messages.ToolCall:
			w.call(m.Seq, b)
		case messages.ToolResult:
			if w.o.For == Everybody {
				break
			}
			verdict := "Result"
			if b.IsError {
				verdict = "Error"
			}
			w.printf("\n### %s of %s `%s`\n", verdict, b.Name, b.CallID)
			if b.Summary != "" {
				w.printf("\n%s\n", w.clean(b.Summary))
			}
			w.fence("", b.Content, w.o.Whole)
		}
	}
}

// attached says what a file is: its type, its size, where it is kept, and why it was not
// read or what was made of it.
func attached(a messages.Attachment) string {
	parts := []string{cmp.Or(a.MediaType, "of no type")}
	switch {
	case a.Width > 0:
		parts = append(parts, fmt.Sprintf("%d x %d pixels", a.Width, a.Height))
	case a.Pages > 0:
		parts = append(parts, fmt.Sprintf("%d pages", a.Pages))
	case a.Seconds > 0:
		parts = append(parts, fmt.Sprintf("%d s", a.Seconds))
	}
	if a.File != "" {
		parts = append(parts, "files/"+a.File[:min(2, len(a.File))]+"/"+a.File)
	}
	if a.Note != "" {
		parts = append(parts, a.Note)
	}
	return strings.Join(parts, "; ")
}

// spoken reports whether everybody may read something of a message.
func spoken(m store.TranscriptMessage) bool {
	return slices.ContainsFunc(m.Blocks, func(b messages.Block) bool {
		switch b.(type) {
		case messages.Text, messages.ToolCall:
			return true
		case messages.Attachment:
			return m.Role != messages.RoleTool
		case messages.Thinking, messages.ToolResult:
		}
		return false
	})
}

func (w *writer) call(seq int64, b messages.ToolCall) {
	about := "not recorded"
	if c, ok := w.calls[callKey{seq, b.ID}]; ok {
		about = w.about(c)
		w.shown[c.ID] = true
	}
	w.printf("\n### Call of %s `%s`: %s\n", b.Name, b.ID, about)
	if w.o.For != Everybody {
		w.fence("json", b.Arguments, w.o.Whole)
	}
}

// about says when a call was made, how it ended and how long it took.
func (w *writer) about(c sessions.ToolCall) string {
	parts := []string{string(c.Status), moment(c.CreatedAt)}
	if !c.CompletedAt.IsZero() {
		parts = append(parts, c.Duration.String())
	}
	if c.Error != "" && w.o.For == Operator {
		parts = append(parts, strings.Join(strings.Fields(w.clean(c.Error)), " "))
	}
	return strings.Join(parts, ", ")
}

// rest lists calls that no message of the session holds: those of agents with a
// loop of their own.
func (w *writer) rest(calls []sessions.ToolCall) {
	first := true
	for _, c := range calls {
		if w.shown[c.ID] {
			continue
		}
		if first {
			w.printf("\n## Other tool calls\n")
			first = false
		}
		w.printf("\n### Call of %s `%s`: %s\n", c.Name, c.CallID, w.about(c))
		if w.o.For == Everybody {
			continue
		}
		w.fence("json", c.Request, w.o.Whole)
		if c.Response != "" {
			w.fence("json", c.Response, w.o.Whole)
		}
	}
}

// fence writes a code block whose fence is longer than any in the text.
func (w *writer) fence(language, text string, whole bool) {
	text = strings.TrimRight(w.clean(text), "\n")
	if text == "" {
		return
	}
	left := 0
	if !whole {
		text, left = head(text)
	}
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	w.printf("\n%s%s\n%s\n%s\n", marks, language, text, marks)
	if left > 0 {
		w.printf("\n(%d more bytes)\n", left)
	}
}

// head returns the first lines of a text and how many bytes are left.
func head(text string) (string, int) {
	end := 0
	for range headLines {
		next := strings.IndexByte(text[end:], '\n')
		if next < 0 {
			end = len(text)
			break
		}
		end += next + 1
	}
	if end > headBytes {
		end = headBytes
		for end > 0 && text[end]&0xc0 == 0x80 { // not inside a letter
			end--
		}
	}
	return strings.TrimRight(text[:end], "\n"), len(text) - end
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
