//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
)

// sampleMessages has every type of block.
func sampleMessages() []messages.Message {
	return []messages.Message{
		{Role: messages.RoleUser, Blocks: []messages.Block{
			messages.Text{Text: "look at this é"},
			messages.Attachment{Name: "a.txt", MediaType: "text/plain", Size: 3, Source: "file-1", Text: "abc"},
		}},
		{Role: messages.RoleAssistant, ProviderMetadata: json.RawMessage(`{"id":"resp_1"}`), Blocks: []messages.Block{
			messages.Thinking{Text: "hm", Signature: "sig", Provider: "anthropic", Model: "m"},
			messages.Text{Text: "reading"},
			messages.ToolCall{ID: "call_0", Name: "list", Arguments: `{}`},
			messages.ToolCall{ID: "call_1", Name: "shell", Arguments: `{"cmd":"ls"}`},
		}},
		{Role: messages.RoleTool, Blocks: []messages.Block{
			messages.ToolResult{CallID: "call_0", Name: "list", Content: "a.txt"},
			messages.ToolResult{CallID: "call_1", Name: "shell", Content: "exit 1", IsError: true},
		}},
		messages.NewText(messages.RoleAssistant, "done"),
	}
}

func TestMessagesRoundTrip(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "chat").ID)
		want := sampleMessages()
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			seqs, err := tx.Messages().AppendMessages(ctx, s.ID, "run-1", want...)
			if diff := cmp.Diff([]int64{1, 2, 3, 4}, seqs); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
			return err
		})
		for i := range want {
			want[i].Seq = int64(i + 1)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Messages().RunMessages(ctx, "run-1")
			if err != nil {
				return err
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in order (-want +got):\n%s", diff)
			}
			newest, err := tx.Messages().MessagesBefore(ctx, s.ID, 4, 2)
			if diff := cmp.Diff([]messages.Message{want[2], want[1]}, newest); diff != "" {
				t.Errorf("before 4 (-want +got):\n%s", diff)
			}
			return err
		})
	})
}

func TestAppendMessagesNumbersUnderConcurrency(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "chat").ID)
		errs := together(20, func(i int) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Messages().AppendMessages(ctx, s.ID, fmt.Sprint("run-", i), sampleMessages()...)
				return err
			})
		})
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Messages().MessagesBefore(ctx, s.ID, 1000, 1000)
			if len(got) != 80 || got[0].Seq != 80 || got[79].Seq != 1 {
				t.Errorf("%d messages, want 80 without gaps", len(got))
			}
			after, _ := tx.Sessions().Session(ctx, s.ID)
			if after.LastSeq != 80 {
				t.Errorf("last number %d, want 80", after.LastSeq)
			}
			return err
		})
	})
}

func TestMessagesBeforeLeavesOutSystemAndKeepsStrangeText(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "chat").ID)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Messages().AppendMessages(ctx, s.ID, "r", messages.NewText(messages.RoleUser, "nul \x00 and \xff bytes"))
			if err != nil {
				return err
			}
			if err := store.Exec(ctx, tx, `
				INSERT INTO agent_messages (session_id, seq, role, kind, content, created_at)
				VALUES ($1, 2, 'system', 'system', 'be good', 0)`, s.ID); err != nil {
				return err
			}
			got, err := tx.Messages().MessagesBefore(ctx, s.ID, 100, 1)
			if len(got) != 1 || got[0].Role != messages.RoleUser || len(got[0].PlainText()) < len("nul and bytes") {
				t.Errorf("got %+v, want the user's message", got)
			}
			return err
		})
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Messages().AppendMessages(ctx, s.ID, "r", messages.Message{Role: messages.RoleAssistant})
			return err
		})
		wantKind(t, err, fault.Invalid)
	})
}
