package outbox

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// AddReply stores the answer to a control command. For Hold it belongs
// to this process. Each part is one call: a person who gives a command waits for its
// reply, and one that stands twice after a failure that leaves open whether it was sent
// misleads nobody.
func (o *Outbox) AddReply(ctx context.Context, tx port.Tx, conv sessions.Conversation, entry sessions.Entry, reply command.Reply) ([]messages.Delivery, error) {
	var all []messages.Delivery
	for _, d := range reply.Edits { // from now on they hold up no turn, whatever they answered
		d.Control, d.Final, d.State = true, true, messages.DeliveryPlaced
		d.NextAt = time.Now().Add(Hold)
		if err := tx.Deliveries().UpdateDelivery(ctx, d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	if reply.Text == "" {
		return all, nil
	}
	reply = o.withoutFilesForAll(entry, reply)
	parts := o.Split(conv.Key.Platform, reply.Text)
	for i, part := range parts {
		d := Answer(conv.ID, entry, part)
		d.Control = true
		if entry.In.Whispered {
			d.OnlyFor = entry.In.Sender.ID
		}
		if i == len(parts)-1 {
			d.Buttons = reply.Buttons
		}
		d.NextAt = time.Now().Add(Hold)
		if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
			return nil, err
		}
		d.State, d.Whole = messages.DeliveryPending, true // nothing was sent yet, as this process knows
		all = append(all, d)
	}
	if p := reply.Plan; p != nil {
		shown := *p
		shown.DeliveryID = string(all[len(all)-1].ID)
		if err := tx.Proposals().SettlePlan(ctx, shown); err != nil {
			return nil, err
		}
	}
	return o.addFiles(ctx, tx, conv, entry, reply.Files, all)
}

// withoutFilesForAll takes the files out of a reply that only one person may see
// where others read: no platform shows a file to one person. The text says so.
func (o *Outbox) withoutFilesForAll(entry sessions.Entry, reply command.Reply) command.Reply {
	if _, ok := o.Adapters[entry.In.Conversation.Platform].(platform.Filer); !ok || !entry.In.Aside() {
		return reply
	}
	for _, f := range reply.Files {
		reply.Text += fmt.Sprintf("\n\n`%s` is not attached because everyone here would see it. Use the command in a direct message, or in the thread if everyone may see it.", f.Name)
	}
	reply.Files = nil
	return reply
}

// addFiles stores the files of a reply, where the platform can show them.
func (o *Outbox) addFiles(ctx context.Context, tx port.Tx, conv sessions.Conversation, entry sessions.Entry, files []command.File, all []messages.Delivery) ([]messages.Delivery, error) {
	if _, ok := o.Adapters[conv.Key.Platform].(platform.Filer); !ok {
		return all, nil
	}
	for _, f := range files {
		d := Answer(conv.ID, entry, "")
		d.Control, d.FileName, d.File = true, f.Name, f.Data
		if entry.In.Whispered {
			d.OnlyFor = entry.In.Sender.ID
		}
		d.NextAt = time.Now().Add(Hold)
		if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
			return nil, err
		}
		if err := AuditFiles(ctx, tx, entry.In.Actor(), []messages.Delivery{d}); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}
