// Package export writes the data of the store for people and other programs to
// keep, and reads it back: JSON Lines of everything or of one conversation, and
// a table of sessions as CSV.
//
// The JSON Lines are the same for both databases, so that they also move data
// from one to the other. The first line describes the file; then come codebases,
// people and what is remembered of them, and behind them a line with their counts
// and checksum; then each conversation, its rows in order and such a line; the last
// line counts the conversations. A file without it is torn. Nothing is collected in
// memory beyond one line.
package export

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/redact"
	"remote-agent/internal/store"
)

const (
	format  = "remote-agent-export"
	version = 3 // 1 had no end of the shared part, and no memories; 2 no chats in the browser
)

// The types of lines that mean more than a row.
const (
	typeHeader          = "export"
	typeSharedEnd       = "shared_end"
	typeMemoryPerson    = "memory_person" // whose memories follow, with seq in each
	typeMemoryAccount   = "memory_account"
	typeConversation    = "conversation"
	typeConversationEnd = "conversation_end"
	typeEntry           = "entry"
	typeEnd             = "end"
)

// Options says what to export.
type Options struct {
	ConversationID string // empty: everything

	// Redact, if not nil, takes credentials out of all texts. Raw bodies of
	// events and files, in which nothing can be found reliably, are left out.
	Redact *redact.Redactor

	At time.Time // when, for the header
}

// Counts says how much was written.
type Counts struct {
	Conversations, Rows int64

	Damaged []string // values that could not be read, and are empty in the export
}

// line is what can be on a line.
type line struct {
	Type string `json:"type"`

	Row map[string]json.RawMessage `json:"row,omitempty"`

	// Of the header.
	Format    string `json:"format,omitempty"`
	Version   int    `json:"version,omitempty"`
	Schema    int64  `json:"schema,omitempty"`
	CreatedAt string `json:"created_at,omitempty"`
	Scope     string `json:"scope,omitempty"`
	Redacted  bool   `json:"redacted,omitempty"`

	// Of the end of a conversation, and of the shared part.
	ID     string           `json:"id,omitempty"`
	Counts map[string]int64 `json:"counts,omitempty"`
	SHA256 string           `json:"sha256,omitempty"`

	// Of the end.
	Conversations *int64 `json:"conversations,omitempty"`
}

// writer writes lines.
type writer struct {
	out    *bufio.Writer
	redact *redact.Redactor
	sum    hash.Hash
	counts map[string]int64
	total  Counts
	within string // names the conversation, for people
}

// JSONL writes the export to out, from one snapshot of the database: what
// happens meanwhile is not in it. The same data gives the same lines, but for
// the time in the first.
func JSONL(ctx context.Context, s *store.Store, out io.Writer, o Options) (Counts, error) {
	w := &writer{out: bufio.NewWriterSize(out, 64<<10), redact: o.Redact, sum: sha256.New()}
	schema, err := s.SchemaVersion(ctx)
	if err != nil {
		return w.total, err
	}
	scope := cmp.Or(o.ConversationID, "all")
	err = w.put(line{Type: typeHeader, Format: format, Version: version, Schema: schema,
		CreatedAt: o.At.UTC().Format(time.RFC3339), Scope: scope, Redacted: o.Redact != nil})
	if err != nil {
		return w.total, err
	}
	err = s.InRead(ctx, func(tx *store.Tx) error { return w.all(ctx, tx, o.ConversationID) })
	if err != nil {
		return w.total, err
	}
	if err := w.put(line{Type: typeEnd, Conversations: &w.total.Conversations}); err != nil {
		return w.total, err
	}
	return w.total, unwritable(w.out.Flush())
}

func (w *writer) all(ctx context.Context, tx *store.Tx, conversationID string) error {
	if conversationID != "" {
		if _, err := tx.Conversations().Conversation(ctx, conversationID); err != nil {
			return err
		}
	}
	w.begin()
	if err := tx.Portable().ExportShared(ctx, conversationID, w.row); err != nil {
		return err
	}
	if err := w.end(typeSharedEnd, ""); err != nil {
		return err
	}
	if conversationID != "" {
		return w.conversation(ctx, tx, conversationID)
	}
	for after := ""; ; {
		ids, err := tx.Portable().ConversationIDs(ctx, after, 500)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if err := w.conversation(ctx, tx, id); err != nil {
				return err
			}
		}
		after = ids[len(ids)-1]
	}
}

func (w *writer) conversation(ctx context.Context, tx *store.Tx, id string) error {
	w.begin()
	w.within = ", conversation " + id
	if err := tx.Portable().ExportConversation(ctx, id, w.row); err != nil {
		return err
	}
	w.total.Conversations++
	return w.end(typeConversationEnd, id)
}

// begin begins a part of the file, and end writes the line behind it.
func (w *writer) begin() {
	w.sum.Reset()
	w.counts = make(map[string]int64)
}

func (w *writer) end(kind, id string) error {
	return w.put(line{Type: kind, ID: id, Counts: w.counts, SHA256: hex.EncodeToString(w.sum.Sum(nil))})
}

// row writes a row with its columns in their order.
func (w *writer) row(kind string, row []store.Field) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"type":%q,"row":{`, kind)
	for i, f := range row {
		if i > 0 {
			b.WriteByte(',')
		}
		if f.Damaged {
			w.total.Damaged = append(w.total.Damaged, fmt.Sprintf("%s of %s %v%s", f.Name, kind, row[0].Value, w.within))
		}
		value, err := w.value(f.Value)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "export "+kind+" "+f.Name)
		}
		fmt.Fprintf(&b, "%q:%s", f.Name, value)
	}
	b.WriteString("}}\n")
	w.total.Rows++
	w.counts[kind]++
	_, _ = w.sum.Write(b.Bytes()) // a hash takes everything
	_, err := w.out.Write(b.Bytes())
	return unwritable(err)
}

func (w *writer) value(v any) ([]byte, error) {
	if w.redact != nil {
		v = redacted(w.redact, v)
	}
	if raw, ok := v.(json.RawMessage); ok { // the databases write it differently
		var decoded any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&decoded); err != nil {
			return nil, err
		}
		v = decoded
	}
	return encode(v)
}

// encode is json.Marshal without the escapes for web pages.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// redacted returns v without credentials. Text that is JSON stays JSON: its
// strings are looked at one by one.
func redacted(r *redact.Redactor, v any) any {
	switch v := v.(type) {
	case []byte:
		return nil
	case json.RawMessage:
		if clean, ok := redactedJSON(r, []byte(v)); ok {
			return json.RawMessage(clean)
		}
		return json.RawMessage("null")
	case string:
		if len(v) > 1 && (v[0] == '{' || v[0] == '[') {
			if clean, ok := redactedJSON(r, []byte(v)); ok {
				return string(clean)
			}
		}
		return r.String(v)
	}
	return v
}

func redactedJSON(r *redact.Redactor, raw []byte) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var decoded any
	if d.Decode(&decoded) != nil || d.More() {
		return nil, false
	}
	clean, err := encode(walk(r, decoded))
	return clean, err == nil
}

func walk(r *redact.Redactor, v any) any {
	switch v := v.(type) {
	case string:
		return redacted(r, v)
	case []any:
		for i := range v {
			v[i] = walk(r, v[i])
		}
	case map[string]any:
		for key, value := range v {
			v[key] = walk(r, value)
		}
	}
	return v
}

func (w *writer) put(l line) error {
	encoded, err := encode(l)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "encode a line")
	}
	_, err = w.out.Write(append(encoded, '\n'))
	return unwritable(err)
}

func unwritable(err error) error {
	if err == nil {
		return nil
	}
	return &fault.Error{Kind: fault.Unavailable, Public: "The export cannot be written; is the disk full?", Err: err}
}

// csvColumns are the columns of Sessions: those of seed 003's agent_sessions
// first.
var csvColumns = []string{
	"id", "agent_name", "provider", "model", "user_prompt", "status", "started_at", "ended_at", "result", "error",
	"conversation_id", "platform_type", "platform_conversation_id", "messages", "tool_calls", "input_tokens", "output_tokens",
}

// Sessions writes the sessions as CSV with a header line, the newest first. Times
// are UTC in RFC 3339. A cell that a spreadsheet would run as a formula begins
// with an apostrophe.
func Sessions(ctx context.Context, s *store.Store, out io.Writer, o Options) (Counts, error) {
	w := csv.NewWriter(out)
	if err := w.Write(csvColumns); err != nil {
		return Counts{}, unwritable(err)
	}
	var total Counts
	err := s.InRead(ctx, func(tx *store.Tx) error {
		for before := ""; ; {
			rows, err := tx.Lists().Sessions(ctx, store.SessionFilter{ConversationID: o.ConversationID, Before: before, Limit: 500})
			if err != nil || len(rows) == 0 {
				return err
			}
			for _, r := range rows {
				if err := w.Write(sessionCells(r, o.Redact)); err != nil {
					return unwritable(err)
				}
				total.Rows++
			}
			before = rows[len(rows)-1].ID
		}
	})
	if err != nil {
		return total, err
	}
	w.Flush()
	return total, unwritable(w.Error())
}

func sessionCells(r store.SessionRow, clean *redact.Redactor) []string {
	cells := []string{
		r.ID, r.AgentName, r.Assistant, r.Model, r.UserPrompt, string(r.Status), at(r.StartedAt), at(r.EndedAt), r.Result, r.Error,
		r.ConversationID, string(r.Key.Platform), r.Key.ID, strconv.Itoa(r.Messages), strconv.Itoa(r.ToolCalls),
		strconv.FormatInt(r.InputTokens, 10), strconv.FormatInt(r.OutputTokens, 10),
	}
	for i, c := range cells {
		if clean != nil {
			c = clean.String(c)
		}
		cells[i] = cell(c)
	}
	return cells
}

// cell returns a text that no spreadsheet runs as a formula.
func cell(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

func at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
