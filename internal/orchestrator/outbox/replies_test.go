package outbox

import (
	"context"
	"strings"
	"testing"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// poster is a platform with files and with messages for one person.
type poster struct{ platform.Filer }

func (poster) Capabilities() platform.Capabilities { return platform.Capabilities{OnlyFor: true} }

// recorded only takes deliveries, and what the audit log is told of them.
type recorded struct {
	port.Tx
	sessions.DeliveryStore
	all   []messages.Delivery
	audit []sessions.AuditEntry
}

func (b *recorded) Audit(_ context.Context, e sessions.AuditEntry) error {
	b.audit = append(b.audit, e)
	return nil
}

func (b *recorded) Deliveries() sessions.DeliveryStore { return b }

func (b *recorded) AddDelivery(_ context.Context, d *messages.Delivery) error {
	b.all = append(b.all, *d)
	return nil
}

func TestFilesOfAWhisperedReplyAreNotPostedForEverybody(t *testing.T) {
	t.Parallel()
	const p = "p"
	o := New(Config{Adapters: map[messages.Platform]platform.Adapter{p: poster{}}})
	conv := sessions.Conversation{ID: "c", Key: messages.ConversationKey{Platform: p, ID: "c"}}
	reply := command.Reply{Text: "Changes:", Files: []command.File{{Name: "changes.patch", Data: []byte("+secret\n")}}}
	for name, tt := range map[string]struct {
		whispered, private bool
		files              int
	}{
		"Said":               {files: 1},
		"Whispered":          {whispered: true},
		"WhisperedInPrivate": {whispered: true, private: true, files: 1},
	} {
		tx := &recorded{}
		in := messages.Inbound{Conversation: conv.Key, Sender: messages.Sender{ID: "42"}, Whispered: tt.whispered, Private: tt.private}
		if _, err := o.AddReply(t.Context(), tx, conv, sessions.Entry{ID: "e", In: in}, reply); err != nil {
			t.Fatal(err)
		}
		files := 0
		for _, d := range tx.all {
			if d.FileName != "" {
				files++
			}
			if told := strings.Contains(d.Text, "changes.patch"); d.FileName == "" && told != (tt.files == 0) {
				t.Errorf("%s: the text is %q", name, d.Text)
			}
			if only := d.OnlyFor == "42"; only != tt.whispered {
				t.Errorf("%s: %q is for %q", name, d.Text+d.FileName, d.OnlyFor)
			}
		}
		if len(tx.audit) != tt.files {
			t.Errorf("%s: the audit log has %d files", name, len(tx.audit))
		}
		for _, e := range tx.audit {
			if e.Action != "file.send" || e.Actor != "p/42" || e.Effect == "" || strings.Contains(e.Detail, "secret") {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if files != tt.files {
			t.Errorf("%s: %d files are posted, want %d", name, files, tt.files)
		}
	}
}
