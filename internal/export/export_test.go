//nolint:thelper // the functions run tests, they are no helpers: Helper would hide the line that failed
package export_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"remote-agent/internal/audit"
	"remote-agent/internal/export"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/messages"
	"remote-agent/internal/redact"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/transcript"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

const secret = "sk-9fQ2xLw7Kz4TtVb1RnYc8Hd5" // an alphabet would be taken for an example

// fill stores conversations with everything that an export holds; the last
// message of each waits and an answer is on its way.
func fill(t *testing.T, s *store.Store, conversations int) (first sessions.Session) {
	t.Helper()
	for i := range conversations {
		err := s.InTx(t.Context(), func(tx *store.Tx) error {
			session, err := fillOne(t.Context(), tx, i)
			if i == 0 {
				first = session
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return first
}

func fillOne(ctx context.Context, tx *store.Tx, i int) (sessions.Session, error) {
	key := messages.ConversationKey{Platform: "test", ID: fmt.Sprint("chat ", i)}
	c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key, "demo")
	if err != nil {
		return sessions.Session{}, err
	}
	s, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo", UserPrompt: "=SUM(1) <b>&"})
	if err != nil {
		return s, err
	}
	for n, state := range []sessions.EntryState{sessions.EntryDone, sessions.EntryWaiting} {
		e := sessions.Entry{ConversationID: c.ID, State: state, In: messages.Inbound{
			Event: messages.EventID(fmt.Sprint(i, "/", n)), Kind: messages.KindMessage, Conversation: key, Text: "key " + secret, Raw: []byte("\x00raw")}}
		if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
			return s, err
		}
		if n > 0 {
			break
		}
		seqs, err := tx.Messages().AppendMessages(ctx, s.ID, e.ID,
			messages.Message{Role: messages.RoleUser, Blocks: []messages.Block{messages.Text{Text: "Run it with " + secret + " “please”\nnow"}}},
			messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
				messages.Text{Text: "Running."}, messages.ToolCall{ID: "c1", Name: "shell", Arguments: `{"command":"echo ` + secret + `"}`}}},
			messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{messages.ToolResult{CallID: "c1", Name: "shell", Content: "```\n" + secret}}})
		if err != nil {
			return s, err
		}
		if _, err := tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: s.ID, EntryID: e.ID, Model: "m"}); err != nil {
			return s, err
		}
		if err := tx.Sessions().EndOpenRun(ctx, s.ID, e.ID, sessions.RunEnd{Status: sessions.RunFailed, Error: "refused " + secret, Took: time.Second}); err != nil {
			return s, err
		}
		call := sessions.ToolCall{SessionID: s.ID, MessageSeq: seqs[1], CallID: "c1", Name: "shell", Request: `{"command":"echo"}`, Status: sessions.ToolExecuting}
		if err := storetest.Calls(ctx, tx, call); err != nil {
			return s, err
		}
		for _, state := range []messages.DeliveryState{messages.DeliverySent, messages.DeliveryPending} {
			d := messages.Delivery{ConversationID: c.ID, EventID: e.ID, Text: "answer", State: state, Final: true, FileName: "a.txt", File: []byte("file")}
			if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

func jsonl(t *testing.T, s *store.Store, o export.Options) string {
	t.Helper()
	var out bytes.Buffer
	o.At = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if _, err := export.JSONL(t.Context(), s, &out, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// eachPair runs a test from each database to each.
func eachPair(t *testing.T, test func(t *testing.T, from, to *store.Store, first sessions.Session)) {
	t.Helper()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		from := open(t)
		first := fill(t, from, 1)
		t.Run("to SQLite", func(t *testing.T) { test(t, from, storetest.SQLite(t)(t), first) })
		t.Run("to Postgres", func(t *testing.T) { test(t, from, storetest.Postgres(t)(t), first) })
	})
}

// wantAudited checks that the audit log says once that a conversation was imported.
func wantAudited(t *testing.T, s *store.Store, conversation string) {
	t.Helper()
	rows, err := store.Within(t.Context(), s.InRead, func(tx *store.Tx) ([]audit.Row, error) {
		return tx.AuditLog().Rows(t.Context(), store.AuditFilter{Action: "conversation.import", ConversationID: conversation, Limit: 9})
	})
	if err != nil || len(rows) != 1 || rows[0].Actor != "cli" || rows[0].Target == "" {
		t.Errorf("the audit log has of the import: %+v, %v", rows, err)
	}
}

func TestExportAndImportBetweenDatabases(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to *store.Store, first sessions.Session) {
		text := jsonl(t, from, export.Options{})
		done, err := export.Import(t.Context(), to, strings.NewReader(text))
		if err != nil || done.Conversations != 1 || done.Skipped != 0 {
			t.Fatalf("import = %+v, %v", done, err)
		}
		if done.Entries == 0 || done.Entries != int64(strings.Count(text, `"lane":"turn","state":"waiting"`)) || done.Deliveries != int64(strings.Count(text, `"state":"pending"`)) {
			t.Errorf("%+v does not say what was open:\n%s", done, text)
		}
		again, err := export.Import(t.Context(), to, strings.NewReader(text))
		if err != nil || again != (export.Imported{Skipped: 1}) {
			t.Errorf("again = %+v, %v; want it skipped", again, err)
		}
		wantAudited(t, to, first.ConversationID)
		// What was open is settled, and nothing else differs.
		settled := strings.NewReplacer(
			`"lane":"turn","state":"waiting"`, `"lane":"turn","state":"stopped"`,
			`"state":"pending","attempts":0,"error":""`, `"state":"failed","attempts":0,"error":"`+store.ErrRestored+`"`,
			`"status":"executing"`, `"status":"failed"`, `"error_details":null`, `"error_details":"`+store.ErrRestored+`"`)
		want := strings.Split(settled.Replace(text), "\n")
		got := strings.Split(jsonl(t, to, export.Options{}), "\n")
		for i := range want {
			if strings.Contains(want[i], `"conversation_end"`) {
				continue // its checksum
			}
			w := strings.Replace(want[i], `"session_id":null,"message_id":"","error":null`, `"session_id":null,"message_id":"","error":"`+store.ErrRestored+`"`, strings.Count(want[i], `"stopped"`))
			if i >= len(got) || w != got[i] {
				t.Errorf("line %d:\n%s", i+1, cmp.Diff(w, got[i]))
			}
		}
		var shown, original bytes.Buffer
		if err := transcript.Write(t.Context(), to, &shown, first.ID, transcript.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := transcript.Write(t.Context(), from, &original, first.ID, transcript.Options{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, `"type":"run","row":{`) || !strings.Contains(text, `"status":"failed","result"`) {
			t.Errorf("no run, or no failed session, is exported:\n%s", text)
		}
		for _, part := range []string{"Run it with", "Call of shell `c1`: failed", "````\n```\n"} {
			if !strings.Contains(shown.String(), part) {
				t.Errorf("the transcript has no %q:\n%s", part, shown.String())
			}
		}
		err = to.InRead(t.Context(), func(tx *store.Tx) error {
			work, err := tx.Conversations().ConversationsWithWork(t.Context(), 10)
			if len(work) > 0 {
				t.Errorf("conversations with work after an import: %v", work)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestExportIsStableAndRedacted(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		s := open(t)
		first := fill(t, s, 3)
		learn(t, s, "test/42", "I prefer tabs", memorytest.Vector("I prefer tabs"))
		text := jsonl(t, s, export.Options{})
		if text != jsonl(t, s, export.Options{}) {
			t.Error("two exports of the same data differ")
		}
		if !strings.Contains(text, secret) {
			t.Error("nothing to redact: the test proves nothing")
		}
		clean := jsonl(t, s, export.Options{Redact: redact.New()})
		if strings.Contains(clean, secret) || strings.Contains(clean, "AHJhdw==") {
			t.Errorf("a secret, or a raw body, is in a redacted export:\n%s", clean)
		}
		to := storetest.SQLite(t)(t)
		if done, err := export.Import(t.Context(), to, strings.NewReader(clean)); err != nil || done.Conversations != 3 || done.Memories != 1 {
			t.Errorf("import of a redacted export = %+v, %v", done, err)
		}
		if err := to.InRead(t.Context(), func(tx *store.Tx) error { // vectors are left out, and made again
			bare, err := tx.Memories().BareMemories(t.Context(), "tiny", 10, time.Now())
			if len(bare) != 1 {
				t.Errorf("%d memories wait to be embedded, want 1", len(bare))
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		one := jsonl(t, s, export.Options{ConversationID: first.ConversationID})
		if strings.Count(one, `"type":"conversation",`) != 1 || !strings.Contains(one, first.ID) {
			t.Errorf("one conversation:\n%s", one)
		}
		var table bytes.Buffer
		if _, err := export.Sessions(t.Context(), s, &table, export.Options{}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&table).ReadAll()
		if err != nil || len(rows) != 4 || rows[1][4] != "'=SUM(1) <b>&" || rows[1][13] != "3" {
			t.Errorf("CSV = %q, %v", rows, err)
		}
	})
}

func TestBrokenExportsChangeNothing(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		source := storetest.SQLite(t)(t)
		fill(t, source, 2)
		learn(t, source, "test/42", "I prefer tabs", nil)
		learn(t, source, "test/42", "My dog is called Rex", nil)
		text := jsonl(t, source, export.Options{})
		lines := strings.SplitAfter(text, "\n")
		message, memoryEnd := 0, 0
		for i, l := range lines {
			if strings.HasPrefix(l, `{"type":"shared_end"`) {
				memoryEnd = i
			}
			if strings.HasPrefix(l, `{"type":"message"`) {
				message = i
			}
		}
		without := strings.Join(append(append([]string(nil), lines[:message]...), lines[message+1:]...), "")
		twice := strings.Join(append(append(append([]string(nil), lines[:message+1]...), lines[message]), lines[message+1:]...), "")
		s := open(t)
		for name, c := range map[string]struct{ text, want string }{
			"torn between lines": {strings.Join(lines[:len(lines)-2], ""), "incomplete"},
			"torn in a line":     {text[:len(text)-10], "incomplete"},
			"a missing row":      {without, "some are missing"},
			"a row twice":        {twice, "twice"},
			"a changed row":      {strings.Replace(text, "Running.", "Sleeping", 1), "changed after the export"},
			"a newer format":     {strings.Replace(text, `"version":3`, `"version":4`, 1), "newer version"},
			"a newer schema":     {strings.Replace(text, `"schema":`, `"schema":9`, 1), "schema version"},
			"something else":     {"{}\n", "not an export"},
			"no JSON":            {"hello\n", "not JSON"},
			"nothing":            {"", "incomplete"},
			"no counts":          {strings.Replace(text, `"counts":{"conversation"`, `"count":{"conversation"`, 1), "twice"},
			"no shared end":      {strings.Replace(text, lines[memoryEnd], "", 1), "before the conversations is missing"},
			"a missing memory":   {strings.Replace(text, lines[memoryEnd-1], "", 1), "1 of 2 rows of type semantic_memory"},
			"a memory twice":     {strings.Replace(text, lines[memoryEnd-1], lines[memoryEnd-1]+lines[memoryEnd-1], 1), "twice"},
			"a changed memory":   {strings.Replace(text, "I prefer tabs", "I prefer tags", 1), "changed after the export"},
			"a row in between":   {strings.Replace(text, lines[memoryEnd], lines[memoryEnd]+lines[memoryEnd-1], 1), "outside of a conversation"},
			"data behind it":     {text + lines[message], "data after the end"},
			"fewer than it says": {strings.Replace(text, `"conversations":2`, `"conversations":3`, 1), "conversations are missing"},
			"a foreign line":     {strings.Replace(text, `"type":"tool_call"`, `"type":"tool"`, 1), "tool"},
		} {
			_, err := export.Import(t.Context(), s, strings.NewReader(c.text))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), c.want) {
				t.Errorf("%s: error = %v, want invalid with %q", name, err, c.want)
			}
			ids, err := conversations(t, s)
			if err != nil || len(ids) != 0 {
				t.Errorf("%s: %d conversations were stored, %v", name, len(ids), err)
			}
		}
	})
}

// A conversation that was deleted comes back as it was. Of it stayed that its messages were
// received, which they were once, and what it cost, which is not counted twice.
func TestADeletedConversationComesBack(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to *store.Store, first sessions.Session) {
		if _, err := export.Import(t.Context(), to, strings.NewReader(jsonl(t, from, export.Options{}))); err != nil {
			t.Fatal(err)
		}
		_, entry, _ := strings.Cut(jsonl(t, to, export.Options{}), `{"type":"entry","row":{"id":"`)
		err := to.InTx(t.Context(), func(tx *store.Tx) error {
			for _, r := range []spend.Record{{Micros: 5 << 32, Known: true}, {Micros: 5 << 32, Known: true}, {}} {
				r.EntryID, r.ConversationID, r.SessionID = entry[:len(first.ID)], first.ConversationID, first.ID
				r.Actor, r.Assistant, r.Model, r.At = "test/1", "demo", "m", time.UnixMilli(1795608000123)
				if err := tx.Spending().AddUsage(t.Context(), r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		text := jsonl(t, to, export.Options{})
		err = to.InTx(t.Context(), func(tx *store.Tx) error {
			return tx.Conversations().DeleteConversation(t.Context(), first.ConversationID)
		})
		if err != nil {
			t.Fatal(err)
		}
		if done, err := export.Import(t.Context(), to, strings.NewReader(text)); err != nil || done.Conversations != 1 {
			t.Fatalf("import = %+v, %v", done, err)
		}
		if diff := cmp.Diff(text, jsonl(t, to, export.Options{})); diff != "" {
			t.Errorf("it came back another way (-want +got):\n%s", diff)
		}
		err = to.InRead(t.Context(), func(tx *store.Tx) error {
			sum, err := tx.Spending().SumUsage(t.Context(), store.UsageFilter{})
			if sum.Micros != 10<<32 {
				t.Errorf("it cost %+v", sum)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A repository that is registered here already is the one that imported conversations work
// on, by the id that it has here.
func TestConversationsFollowTheirCodebase(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to *store.Store, first sessions.Session) {
		register := func(s *store.Store, conversation string) (id string) {
			err := s.InTx(t.Context(), func(tx *store.Tx) error {
				repo, known, err := tx.Registry().FindCodebase(t.Context(), "https://github.com/acme/web")
				if err == nil && !known {
					repo, err = tx.Registry().Create(t.Context(), sessions.Codebase{Name: "acme/web", RepositoryURL: "https://github.com/acme/web", DefaultCwd: "/srv/web"})
				}
				if id = repo.ID; err != nil || conversation == "" {
					return err
				}
				return tx.Conversations().UpdateConversation(t.Context(), conversation, sessions.ConversationUpdate{CodebaseID: &id})
			})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		register(from, first.ConversationID)
		here := register(to, "")
		if _, err := export.Import(t.Context(), to, strings.NewReader(jsonl(t, from, export.Options{}))); err != nil {
			t.Fatal(err)
		}
		err := to.InRead(t.Context(), func(tx *store.Tx) error {
			c, err := tx.Conversations().Conversation(t.Context(), first.ConversationID)
			if c.CodebaseID != here {
				t.Errorf("it works on %q, want %s", c.CodebaseID, here)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A cell is what it was, but for what a spreadsheet would run, and without credentials.
func TestCellsOfATable(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t)(t)
	prompts := []string{"-12.5", "\t=1", "\r=1", "@now", "+1 to that", "a key " + secret}
	err := s.InTx(t.Context(), func(tx *store.Tx) error {
		for i, prompt := range prompts {
			c, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), messages.ConversationKey{Platform: "test", ID: fmt.Sprint(i)}, "demo")
			if err != nil {
				return err
			}
			if _, err := tx.Sessions().CreateSession(t.Context(), sessions.NewSession{ConversationID: c.ID, Assistant: "demo", UserPrompt: prompt}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if _, err := export.Sessions(t.Context(), s, &table, export.Options{Redact: redact.New()}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(table.String(), secret) {
		t.Error("a credential is in the table")
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-12.5", "'\t=1", "'@now", "'+1 to that"} {
		if !slices.ContainsFunc(rows, func(row []string) bool { return row[4] == want }) {
			t.Errorf("no cell is %q: %q", want, rows)
		}
	}
}

// learn stores a fact about a person.
func learn(t *testing.T, s *store.Store, person, text string, v memory.Vector) {
	t.Helper()
	f := memory.Fact{Scope: memory.Scope{Person: person}, RunID: uuid.NewString(), Text: text, Origin: memory.ByPerson, Now: time.Now()}
	if v != nil {
		f.Embedding = memory.Embedding{Vector: v, Model: "tiny"}
	}
	err := s.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Memories().UpsertFact(t.Context(), f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// known returns what is recalled of a person by words, best first.
func known(t *testing.T, s *store.Store, person, words string) (texts []string) {
	t.Helper()
	err := s.InRead(t.Context(), func(tx *store.Tx) error {
		found, err := tx.Memories().Recall(t.Context(), memory.Query{Scope: memory.Scope{Person: person}, Text: words, Limit: 10, Now: time.Now()})
		texts = nil
		for _, m := range found {
			texts = append(texts, fmt.Sprintf("%d %s", m.Number, m.Text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestMemoriesComeAlong(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		from := open(t)
		first := fill(t, from, 1)
		learn(t, from, "test/42", "I prefer tabs", memorytest.Vector("I prefer tabs"))
		learn(t, from, "test/42", "My dog is called Rex", nil)
		learn(t, from, "test/77", "I prefer spaces", nil)
		learn(t, from, "test/99", "I live in Oslo", nil)
		off := func(s *store.Store) error {
			return s.InTx(t.Context(), func(tx *store.Tx) error {
				if err := tx.Memories().SetMemoryOn(t.Context(), "test/77", false); err != nil {
					return err
				}
				_, err := tx.Memories().InsertEpisode(t.Context(), memory.Episode{
					Scope: memory.Scope{Person: "test/42"}, RunID: uuid.NewString(), Text: "Ann released the parser", Origin: memory.Learned, Now: time.Now()})
				return err
			})
		}
		if err := off(from); err != nil {
			t.Fatal(err)
		}
		one := jsonl(t, from, export.Options{ConversationID: first.ConversationID})
		if strings.Contains(one, "tabs") || strings.Contains(one, "memory") {
			t.Errorf("the export of a conversation has what is remembered of people:\n%s", one)
		}
		text := jsonl(t, from, export.Options{})
		for name, to := range map[string]*store.Store{"to SQLite": storetest.SQLite(t)(t), "to Postgres": storetest.Postgres(t)(t)} {
			t.Run(name, func(t *testing.T) {
				memoriesArrive(t, to, text)
				brokenMemories(t, to, text)
			})
		}
	})
}

func memoriesArrive(t *testing.T, to *store.Store, text string) {
	t.Helper()
	learn(t, to, "test/99", "I live in Rome", nil)
	done, err := export.Import(t.Context(), to, strings.NewReader(text))
	if err != nil || done.Memories != 4 {
		t.Fatalf("import = %+v, %v, want 4 memories", done, err)
	}
	again, err := export.Import(t.Context(), to, strings.NewReader(text))
	if err != nil || again.Memories != 0 {
		t.Errorf("again = %+v, %v, want no memories", again, err)
	}
	for _, tt := range []struct {
		person, words string
		want          []string
	}{
		{"test/42", "tabs", []string{"1 I prefer tabs"}},
		{"test/42", "dog", []string{"2 My dog is called Rex"}},
		{"test/42", "parser", []string{"3 Ann released the parser"}},
		{"test/77", "spaces tabs", []string{"1 I prefer spaces"}},
		{"test/99", "live", []string{"1 I live in Rome"}}, // who is known here keeps what is known here
	} {
		if diff := cmp.Diff(tt.want, known(t, to, tt.person, tt.words)); diff != "" {
			t.Errorf("of %s, %q (-want +got):\n%s", tt.person, tt.words, diff)
		}
	}
	err = to.InRead(t.Context(), func(tx *store.Tx) error {
		if on, err := tx.Memories().MemoryOn(t.Context(), "test/77"); on || err != nil {
			t.Errorf("memory of one who switched it off is on: %v, %v", on, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	learn(t, to, "test/42", "Something new", nil)
	if got := known(t, to, "test/42", "something new"); len(got) != 1 || got[0] != "4 Something new" {
		t.Errorf("the next number after an import: %q", got)
	}
}

// Accounts that were linked are one person after a move, but for one of whom
// something is remembered there.
func TestLinkedAccountsComeAlong(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		from := open(t)
		learn(t, from, "test/42", "I prefer tabs", nil)
		learn(t, from, "other/AB", "My dog is called Rex", nil)
		join := func(host, guest string) {
			t.Helper()
			err := from.InTx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Persons().JoinPeople(t.Context(), memory.Account{Name: host, LinkedAt: time.Now()}, memory.Account{Name: guest, LinkedAt: time.Now()})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		join("test/42", "other/AB")
		join("test/42", "third/x")
		text := jsonl(t, from, export.Options{})
		for name, to := range map[string]*store.Store{"to SQLite": storetest.SQLite(t)(t), "to Postgres": storetest.Postgres(t)(t)} {
			t.Run(name, func(t *testing.T) {
				learn(t, to, "third/x", "I live in Rome", nil)
				for range 2 { // a second time changes nothing
					if _, err := export.Import(t.Context(), to, strings.NewReader(text)); err != nil {
						t.Fatal(err)
					}
				}
				for person, want := range map[string][]string{
					"test/42": {"1 I prefer tabs", "2 My dog is called Rex"}, "other/AB": {"1 I prefer tabs", "2 My dog is called Rex"}, "third/x": {"1 I live in Rome"},
				} {
					got := known(t, to, person, "tabs dog live")
					slices.Sort(got)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("of %s (-want +got):\n%s", person, diff)
					}
				}
			})
		}
	})
}

// brokenMemories are refused, and nothing of them is stored.
func brokenMemories(t *testing.T, to *store.Store, text string) {
	t.Helper()
	text = strings.ReplaceAll(text, "test/42", "test/43")
	vector := base64.StdEncoding.EncodeToString(memorytest.Vector("I prefer tabs").Encode())
	if !strings.Contains(text, vector) {
		t.Fatal("the vector is not in the export")
	}
	nan := memorytest.Vector("x")
	nan[7] = float32(math.NaN())
	for name, bad := range map[string]string{
		"short":    strings.Replace(text, vector, vector[:1000], 1),
		"zero":     strings.Replace(text, vector, base64.StdEncoding.EncodeToString(make([]byte, memory.EncodedSize)), 1),
		"NaN":      strings.Replace(text, vector, base64.StdEncoding.EncodeToString(nan.Encode()), 1),
		"empty":    strings.Replace(text, `"fact":"I prefer tabs"`, `"fact":""`, 1),
		"too long": strings.Replace(text, `"fact":"I prefer tabs"`, `"fact":"`+strings.Repeat("x", memory.MaxText+1)+`"`, 1),
		"number":   strings.Replace(text, `"seq":2,`, `"seq":"two",`, 1),
		"twice":    strings.Replace(text, `"seq":2,`, `"seq":1,`, 1),
		"sure":     strings.Replace(text, `"confidence":0.5`, `"confidence":7`, 1),
		"extra":    strings.Replace(text, `"fact":`, `"more":1,"fact":`, 1),
	} {
		_, err := export.Import(t.Context(), to, strings.NewReader(resealed(t, bad)))
		if err == nil || !strings.Contains(fault.Public(err), "Line ") || strings.Contains(fault.Public(err), "changed after the export") {
			t.Errorf("%s: %v, want an error about a line", name, err)
		}
		if got := known(t, to, "test/43", "prefer tabs dog"); len(got) != 0 {
			t.Errorf("%s: stored %q", name, got)
		}
	}
}

// resealed gives the shared part of a changed export the checksum that fits.
func resealed(t *testing.T, text string) string {
	t.Helper()
	lines := strings.SplitAfter(text, "\n")
	sum := sha256.New()
	for i, l := range lines[1:] {
		if !strings.HasPrefix(l, `{"type":"shared_end"`) {
			_, _ = sum.Write([]byte(l))
			continue
		}
		head, _, _ := strings.Cut(l, `"sha256"`)
		lines[i+1] = head + `"sha256":"` + hex.EncodeToString(sum.Sum(nil)) + "\"}\n"
		return strings.Join(lines, "")
	}
	t.Fatal("no end of the shared part")
	return ""
}

// What an earlier version wrote, without an end of the shared part, is read.
func TestImportOfTheFirstFormat(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		source := storetest.SQLite(t)(t)
		fill(t, source, 2)
		lines := strings.SplitAfter(jsonl(t, source, export.Options{}), "\n")
		if !strings.HasPrefix(lines[1], `{"type":"shared_end"`) {
			t.Fatalf("line 2 is %s", lines[1])
		}
		first := strings.Replace(lines[0], `"version":3`, `"version":1`, 1) + strings.Join(lines[2:], "")
		done, err := export.Import(t.Context(), open(t), strings.NewReader(first))
		if err != nil || done.Conversations != 2 {
			t.Errorf("import = %+v, %v", done, err)
		}
	})
}

// What was said in the browser comes along as what was said elsewhere, in the session, and
// its chat is in the list of who said it.
func TestChatsInTheBrowserComeAlong(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to *store.Store, _ sessions.Session) {
		ctx, chat := t.Context(), "chat-"+to.Dialect()
		key := messages.ConversationKey{Platform: "web", ID: chat}
		if err := from.Say(ctx, messages.Posted{Chat: chat, ID: messages.MessageID(chat), Author: "test/ann", Text: "asked in the browser"}, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		var s sessions.Session
		err := from.InTx(ctx, func(tx *store.Tx) error {
			c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key, "demo")
			if err != nil {
				return err
			}
			if s, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo"}); err != nil {
				return err
			}
			e := sessions.Entry{ConversationID: c.ID, State: sessions.EntryDone, In: messages.Inbound{
				Event: messages.EventID(chat), Message: messages.MessageID(chat), Kind: messages.KindMessage, Conversation: key, Text: "asked in the browser"}}
			if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
				return err
			}
			_, err = tx.Messages().AppendMessages(ctx, s.ID, e.ID,
				messages.Message{Role: messages.RoleUser, Blocks: []messages.Block{messages.Text{Text: "asked in the browser"}}},
				messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Text{Text: "answered there"}}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := export.Import(ctx, to, strings.NewReader(jsonl(t, from, export.Options{}))); err != nil {
			t.Fatal(err)
		}
		var shown bytes.Buffer
		if err := transcript.Write(ctx, to, &shown, s.ID, transcript.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"asked in the browser", "answered there"} {
			if !strings.Contains(shown.String(), part) {
				t.Errorf("the transcript has no %q:\n%s", part, shown.String())
			}
		}
		err = to.InRead(ctx, func(tx *store.Tx) error {
			c, err := tx.Conversations().FindConversation(ctx, key)
			if err != nil || c.ID == "" {
				t.Errorf("the conversation %v: %v", c, err)
			}
			list, err := tx.Board().Chats(ctx, "test/ann", 0, 10)
			if len(list) == 0 || list[0].ID != chat || list[0].Title != "asked in the browser" {
				t.Errorf("chats in the browser: %v", list)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func conversations(t *testing.T, s *store.Store) (ids []string, err error) {
	t.Helper()
	err = s.InRead(t.Context(), func(tx *store.Tx) error {
		ids, err = tx.Portable().ConversationIDs(t.Context(), "", 10)
		return err
	})
	return ids, err
}

func TestImportRefusesAnotherConversationAtTheSamePlace(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		source, s := storetest.SQLite(t)(t), open(t)
		fill(t, source, 1)
		fill(t, s, 1)
		_, err := export.Import(t.Context(), s, strings.NewReader(jsonl(t, source, export.Options{})))
		if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), "Line 3:") {
			t.Errorf("error = %v, want a conflict in line 3", err)
		}
	})
}

func TestDumpMakesAnEqualDatabase(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t)(t)
	first := fill(t, s, 2)
	var dump bytes.Buffer
	if err := s.Dump(t.Context(), &dump); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("no sqlite3 in the PATH")
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	cmd := exec.CommandContext(t.Context(), program, "-bail", path)
	cmd.Stdin = &dump
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sqlite3: %v: %s", err, out)
	}
	if version, err := store.CheckFile(t.Context(), path); err != nil || version != store.LatestSchema() {
		t.Errorf("CheckFile = %d, %v", version, err)
	}
	again := storetest.Open(t, store.Options{URL: "sqlite:" + path})
	if diff := cmp.Diff(jsonl(t, s, export.Options{}), jsonl(t, again, export.Options{})); diff != "" {
		t.Errorf("the copy differs:\n%s", diff)
	}
	err = again.InRead(t.Context(), func(tx *store.Tx) error {
		hits, err := tx.Search().Messages(t.Context(), store.SearchFilter{Words: "please"})
		if len(hits) != 2 || hits[1].SessionID != first.ID {
			t.Errorf("the copy finds %+v", hits)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// What stands in the browser comes along, with its files, and is its person's as before.
// Nothing of it waits: what was not taken there is not taken here.
func TestChatsInTheBrowserMove(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to *store.Store, _ sessions.Session) {
		const chat, ann = "0123456789abcdef0123", "telegram/42"
		said := func(id, text string, files ...messages.PostedFile) {
			if err := from.Say(t.Context(), messages.Posted{Chat: chat, ID: messages.MessageID(id), Author: ann, Text: text, Files: files}, []byte(`{"waits":1}`)); err != nil {
				t.Fatal(err)
			}
		}
		if list := posted(t, from, chat); len(list) == 0 { // eachPair fills once for both
			said("m1", "what is this "+secret, messages.PostedFile{ID: "f1", Name: "a.png", MediaType: "image/png", Data: []byte("\x00picture")})
			if _, err := from.Post(t.Context(), messages.Posted{Chat: chat, Delivery: "d1", Text: "A picture.", Buttons: []messages.Button{{ID: "b", Label: "Press"}}}); err != nil {
				t.Fatal(err)
			}
			if err := from.MarkPosted(t.Context(), chat, "m1", "done"); err != nil {
				t.Fatal(err)
			}
			said("m2", "and that")
			if err := from.MarkPosted(t.Context(), chat, "m2", "queued"); err != nil {
				t.Fatal(err)
			}
			err := from.InTx(t.Context(), func(tx *store.Tx) error {
				_, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), messages.ConversationKey{Platform: "web", ID: chat}, "demo")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		text := jsonl(t, from, export.Options{})
		if done, err := export.Import(t.Context(), to, strings.NewReader(text)); err != nil || done.Conversations != 2 {
			t.Fatalf("import = %+v, %v", done, err)
		}
		want := posted(t, from, chat)
		want[2].Mark = ""
		if diff := cmp.Diff(want, posted(t, to, chat)); diff != "" || len(want) != 3 {
			t.Errorf("what stands there (-want +got):\n%s", diff)
		}
		if f, err := to.OpenPosted(t.Context(), chat, "f1"); err != nil || string(f.Data) != "\x00picture" {
			t.Errorf("the file is %q, %v", f.Data, err)
		}
		err := to.InRead(t.Context(), func(tx *store.Tx) error {
			list, err := tx.Board().Chats(t.Context(), ann, 0, 9)
			if len(list) != 1 || list[0].ID != chat {
				t.Errorf("their chats: %+v", list)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		err = to.Untaken(t.Context(), "", "", 9, func(_ string, id messages.MessageID, _ []byte) { t.Errorf("%s waits", id) })
		if err != nil {
			t.Error(err)
		}
		said2 := messages.Posted{Chat: chat, ID: "m3", Author: ann, Text: "it goes on"}
		if err := to.Say(t.Context(), said2, []byte(`{}`)); err != nil {
			t.Error(err)
		}
		clean := jsonl(t, from, export.Options{Redact: redact.New()})
		if strings.Contains(clean, secret) || strings.Contains(clean, base64.StdEncoding.EncodeToString([]byte("\x00picture"))) {
			t.Error("a secret, or a file, is in a redacted export")
		}
		if done, err := export.Import(t.Context(), storetest.SQLite(t)(t), strings.NewReader(clean)); err != nil || done.Conversations != 2 {
			t.Errorf("import of a redacted export = %+v, %v", done, err)
		}
	})
}

func posted(t *testing.T, s *store.Store, chat string) (list []messages.Posted) {
	t.Helper()
	err := s.InRead(t.Context(), func(tx *store.Tx) (err error) {
		list, err = tx.Board().Posted(t.Context(), chat, 99)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
