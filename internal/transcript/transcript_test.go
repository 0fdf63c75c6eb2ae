package transcript_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/redact"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/transcript"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

const key = "hunter2hunter2"

// stored returns the id of a session that has something of everything.
func stored(t *testing.T, db *store.Store) (id string) {
	t.Helper()
	ctx := t.Context()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		c, _, err := tx.Conversations().GetOrCreateConversation(ctx, messages.ConversationKey{Platform: "hub", ID: "room"}, "demo")
		if err != nil {
			return err
		}
		s, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{
			ConversationID: c.ID, Assistant: "demo", AgentName: "reviewer", Model: "m-1", SystemPrompt: "Be terse with " + key, UserPrompt: "Look",
		})
		if err != nil {
			return err
		}
		id = s.ID
		e := sessions.Entry{ConversationID: c.ID, In: messages.Inbound{Event: "1", Kind: messages.KindMessage, Conversation: c.Key, Text: "Look"}}
		if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
			return err
		}
		var lines strings.Builder
		for i := range 60 {
			fmt.Fprintf(&lines, "line %d\n", i+1)
		}
		seqs, err := tx.Messages().AppendMessages(ctx, id, e.ID,
			messages.Message{Role: messages.RoleUser, Blocks: []messages.Block{
				messages.Text{Text: "Look at this, the key is " + key},
				messages.Attachment{Name: "plan.pdf", MediaType: "application/pdf", File: strings.Repeat("ab", 32), Pages: 3, Note: "cut", Text: "from the plan"},
			}},
			messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
				messages.Thinking{Text: "I wonder."}, messages.Text{Text: "I look."},
				messages.ToolCall{ID: "c1", Name: "shell", Arguments: `{"command":"ls"}`}, messages.ToolCall{ID: "c2", Name: "shell", Arguments: `{"command":"id"}`},
			}},
			messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{
				messages.ToolResult{CallID: "c1", Name: "shell", Summary: "60 lines", Content: lines.String()},
				messages.Attachment{Name: "picture-1.png", MediaType: "image/png", File: strings.Repeat("cd", 32), Width: 4, Height: 2, Data: "pixels"},
				messages.ToolResult{CallID: "c2", Name: "shell", Content: "```\nrefused\n```", IsError: true},
			}},
			messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Thinking{Text: "Only that."}}})
		if err != nil {
			return err
		}
		if err := tx.Sessions().RecordTurn(ctx, id, sessions.TurnRecord{Error: "the model is away"}); err != nil {
			return err
		}
		return storetest.Calls(ctx, tx,
			sessions.ToolCall{SessionID: id, MessageSeq: seqs[1], CallID: "c1", Name: "shell", Request: `{}`, Status: sessions.ToolCompleted},
			sessions.ToolCall{SessionID: id, CallID: "own-1", Name: "edit", Request: `{"file":"a.go"}`, Response: `{"ok":true}`, Status: sessions.ToolFailed, Error: "no\nsuch file"})
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestReadersSeeWhatIsForThem: everybody reads what was said and which tools were called, who was
// alone with the assistant all but errors, an operator everything.
func TestReadersSeeWhatIsForThem(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) { //nolint:thelper // a test
		db := open(t)
		id := stored(t, db)
		const everybody, person, operator = transcript.Everybody, transcript.Person, transcript.Operator
		read := make(map[transcript.Reader]string)
		for _, r := range []transcript.Reader{everybody, person, operator} {
			var out strings.Builder
			if err := transcript.Write(t.Context(), db, &out, id, transcript.Options{For: r, System: true, Redact: redact.New(key)}); err != nil {
				t.Fatal(err)
			}
			read[r] = out.String()
		}
		for part, from := range map[string]transcript.Reader{ // who reads it, and those above
			"# Session " + id: everybody, "- Conversation: hub room (": everybody, "- Profile: reviewer\n": everybody,
			"Look at this, the key is ": everybody, "\nI look.\n": everybody,
			"### Attachment plan.pdf (application/pdf; 3 pages; files/ab/" + strings.Repeat("ab", 32) + "; cut)": everybody,
			"\n```\nfrom the plan\n```\n":       everybody,
			"### Call of shell `c1`: completed": everybody, "### Call of shell `c2`: not recorded\n": everybody,
			"## Other tool calls\n\n### Call of edit `own-1`: failed": everybody,
			"### Thinking\n\n```\nI wonder.\n```":                     person, "Only that.": person, "```json\n{\"command\":\"ls\"}\n```": person,
			"### Result of shell `c1`\n\n60 lines\n\n```\nline 1\n": person, "\nline 40\n```\n\n(": person,
			"### Attachment picture-1.png (image/png; 4 x 2 pixels; files/cd/" + strings.Repeat("cd", 32) + ")": person, "## tool, ": person,
			"### Error of shell `c2`\n\n````\n```\nrefused\n```\n````": person, `{"file":"a.go"}`: person, `{"ok":true}`: person,
			", no such file\n": operator, "## System prompt\n\nBe terse with ": operator, "## Error of the last turn\n\n```\nthe model is away\n```": operator,
			"## Configuration\n\n": operator,
		} {
			for r, text := range read {
				if want := r <= from; strings.Contains(text, part) != want {
					t.Errorf("reader %d has %q: %t, want %t", r, part, !want, want)
				}
			}
		}
		for r, text := range read {
			if strings.Contains(text, "pixels\n") || strings.Contains(text, key) || strings.Contains(text, "line 41") {
				t.Errorf("reader %d has a credential or all of an output:\n%s", r, text)
			}
		}
	})
}

// TestWholeTranscript has outputs in full, and without Redact what is stored.
func TestWholeTranscript(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	var out strings.Builder
	if err := transcript.Write(t.Context(), db, &out, stored(t, db), transcript.Options{Whole: true}); err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]bool{"line 60\n```\n": true, "more bytes": false, key: true, "## System prompt": false} {
		if strings.Contains(out.String(), part) != want {
			t.Errorf("it has %q: %t\n%s", part, !want, out.String())
		}
	}
}

// TestNoTranscript says why.
func TestNoTranscript(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)(t)
	for id, want := range map[string]fault.Kind{"x": fault.Invalid, "01968d20-0000-7000-8000-000000000000": fault.NotFound} {
		var out strings.Builder
		if err := transcript.Write(t.Context(), db, &out, id, transcript.Options{}); !fault.Is(err, want) || out.Len() > 0 {
			t.Errorf("session %q: %v and %q, want %s", id, err, out.String(), want)
		}
	}
	id := stored(t, db)
	if err := transcript.Write(t.Context(), db, full{}, id, transcript.Options{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a full disk: %v", err)
	}
}

// full is a writer that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, fmt.Errorf("no space left") }
