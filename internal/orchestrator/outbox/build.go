package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// watches is how long people surely watch after they sent a message: until then its
// answer takes the place of the placeholder. A later one is a new message, because an
// edit notifies nobody.
const watches = 5 * time.Second

// lockScreen is how much of an answer a message begins with, in code points: about
// what a phone shows of it.
const lockScreen = 160

// NewID returns the id of a new delivery.
func NewID() messages.DeliveryID {
	return messages.DeliveryID(uuid.Must(uuid.NewV7()).String())
}

// Answer makes a delivery that answers an entry of a conversation. It may exist as
// soon as it is committed, so its state is sending.
func Answer(conversationID string, entry sessions.Entry, text string) messages.Delivery {
	d := messages.Delivery{
		ID:             NewID(),
		ConversationID: conversationID,
		EventID:        entry.ID,
		Text:           text,
		Final:          true,
		State:          messages.DeliverySending,
		Asker:          entry.In.Sender,
	}
	if !entry.In.Private {
		d.ReplyTo = entry.In.Message
	}
	return d
}

// Split cuts a text for a platform.
func (o *Outbox) Split(p messages.Platform, text string) []string {
	caps := o.Caps(p)
	if caps.MaxText <= 0 {
		return []string{text}
	}
	if parts := platform.Split(text, caps.MaxText, caps.Measure); len(parts) > 0 {
		return parts
	}
	return []string{text}
}

// extract takes what is better posted as a file out of a text, where the platform
// has files.
func (o *Outbox) extract(p messages.Platform, text string) (string, []platform.FilePart) {
	x, ok := o.Adapters[p].(platform.Extractor)
	if !ok {
		return text, nil
	}
	return x.Extract(text)
}

// Word is what a person reads at the end of a turn.
type Word struct {
	Text    string
	Buttons []messages.Button
	Card    string // what the placeholder says instead, if the text is to be a message of its own
	Quiet   bool   // nobody has to be notified: it answers what somebody did a moment ago
	Failed  bool   // there is no answer
	Whole   bool   // all of it is to be shown, in however many messages
	Below   bool   // something stands below the placeholder that is read before it
}

// IsLate reports whether an answer has to notify whom it is for, and an edit does not
// do so: nobody watches a standing task, or for long.
func (o *Outbox) IsLate(entry sessions.Entry) bool {
	return o.Caps(entry.In.Conversation.Platform).SilentEdits && (entry.In.Schedule != 0 || time.Since(entry.AcceptedAt) >= watches)
}

// progressOver is what the placeholder says when the last word is a message of its own.
func progressOver(entry sessions.Entry, word Word, took time.Duration) string {
	switch {
	case word.Card != "":
		return word.Card
	case word.Failed:
		return "✖ Tried for " + wording.Clock(time.Since(entry.AcceptedAt))
	case time.Since(entry.AcceptedAt) < watches: // only what was told on the way is between the two
		return "✔ Answered below"
	case took < watches: // it waited its turn
		return "✔ Answered after " + wording.Clock(time.Since(entry.AcceptedAt))
	}
	return "✔ Worked for " + wording.Clock(took)
}

// Beginning returns what a message says until its id is on record: the first words of
// its text, for the notification, and never all of it, so that one that is left behind
// is no second answer.
func Beginning(text string) string {
	text = strings.TrimSpace(text)
	if parts := platform.Split(text, lockScreen, nil); len(parts) > 1 {
		text = parts[0]
		if strings.HasSuffix(text, "`") {
			text += "\n" // behind the end of a code block
		}
		return text + " …"
	}
	if i := strings.LastIndexFunc(text, unicode.IsSpace); i > 0 {
		return strings.TrimSpace(text[:i]) + " …"
	}
	if r := []rune(text); len(r) > 3 {
		return string(r[:len(r)/2]) + "…"
	}
	return text + " …"
}

// Last makes the deliveries of a last word. The placeholder, which may be nil,
// takes the first part, unless that has to notify whom it is for, or the placeholder
// tells of the way to it: then it is a message of its own. Only the first part
// notifies. last is the one that has the buttons.
func (o *Outbox) Last(conv sessions.Conversation, entry sessions.Entry, placed *messages.Delivery, word Word, took time.Duration) (changed, added []messages.Delivery, last messages.DeliveryID) {
	p := conv.Key.Platform
	text, files := o.extract(p, word.Text)
	parts := o.Split(p, text)
	var rest []messages.Delivery
	if !word.Whole {
		var head string
		if head, rest = o.abridge(conv, entry, word.Text, parts); rest != nil {
			parts, files = []string{head}, nil
		}
	}
	first := Beginning(parts[0])
	if placed != nil {
		d := *placed
		d.Final, d.NextAt = true, time.Time{}
		if d.Message == "" {
			d.State = messages.DeliverySending // it may exist as soon as this is committed
		}
		switch {
		case d.Message == "":
			d.Placeholder, first = first, ""
			d.Text, parts = parts[0], parts[1:]
		case word.Card != "" || word.Below || !word.Quiet && o.IsLate(entry):
			d.Text = progressOver(entry, word, took)
		default:
			first = ""
			d.Text, parts = parts[0], parts[1:]
		}
		if len(parts)+len(rest) == 0 {
			d.Buttons = word.Buttons
		}
		changed, last = []messages.Delivery{d}, d.ID
	}
	for i, part := range parts {
		d := Answer(conv.ID, entry, part)
		d.Placeholder = first
		first = ""
		if i == len(parts)-1 && rest == nil {
			d.Buttons = word.Buttons
		}
		added, last = append(added, d), d.ID
	}
	if n := len(rest); n > 0 {
		rest[n-1].Buttons = slices.Concat(word.Buttons, o.wholeButtons(conv, entry))
		added, last = append(added, rest...), rest[n-1].ID
	}
	for _, f := range files {
		d := Answer(conv.ID, entry, "")
		d.FileName, d.File = f.Name, f.Data
		added = append(added, d)
	}
	return changed, added, last
}

// HasFiles reports whether files are among deliveries.
func HasFiles(added []messages.Delivery) bool {
	return slices.ContainsFunc(added, func(d messages.Delivery) bool { return d.FileName != "" })
}

// AuditFiles writes down which files go to a chat, in the transaction that puts
// them on their way.
func AuditFiles(ctx context.Context, tx port.Tx, actor string, added []messages.Delivery) error {
	for _, d := range added {
		if d.FileName == "" {
			continue
		}
		sum := sha256.Sum256(d.File)
		err := Audit(ctx, tx, sessions.AuditEntry{
			Actor: actor, Action: "file.send", ConversationID: d.ConversationID, Target: wording.Head(d.FileName, 200), Effect: "file:" + string(d.ID),
		}, map[string]any{"delivery": d.ID, "bytes": len(d.File), "sha256": hex.EncodeToString(sum[:])})
		if err != nil {
			return err
		}
	}
	return nil
}

// Audit writes an effect down before it happens: what cannot be written down is not
// done, and a process that dies at any point leaves one row for what happened or was
// about to. A row has names, ids and sums, and nothing that anybody wrote: it
// outlives the session that it is about.
func Audit(ctx context.Context, tx port.Tx, e sessions.AuditEntry, detail any) error {
	encoded, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("encode the audit entry: %w", err)
	}
	e.Detail = string(encoded)
	return tx.Audit(ctx, e)
}

// AddNotice stores a notice that comes before whatever is answered next. One that
// belongs to no message of a person, whose answer would notify them, does so itself.
func AddNotice(ctx context.Context, tx port.Tx, conversationID, entryID, text string) error {
	d := messages.Delivery{
		ID: NewID(), ConversationID: conversationID, EventID: entryID, Text: text, Final: true,
	}
	if entryID == "" {
		d.Placeholder = Beginning(text)
	}
	return tx.Deliveries().AddDelivery(ctx, &d)
}

// Held makes a delivery that this process sends at once. For Hold it belongs to it. It
// is stored as one that may have been sent; who stored it knows better.
func Held(conversationID string, entry sessions.Entry, text string) messages.Delivery {
	d := Answer(conversationID, entry, text)
	d.Control, d.NextAt = true, time.Now().Add(Hold)
	return d
}
