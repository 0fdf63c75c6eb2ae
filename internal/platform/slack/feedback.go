package slack

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// statusEvery is how often a status is repeated. Slack shows one until a message
// is posted, for two minutes at most (contract B4.6).
const statusEvery = 30 * time.Second

// Typing implements platform.Typer with the status that Slack shows for agents.
// A direct message outside of a thread has none, and neither has a workspace
// that did not grant it.
func (a *Adapter) Typing(ctx context.Context, key messages.ConversationKey) error {
	to, err := parseKey(key)
	if err != nil {
		return err
	}
	if to.thread == "" || a.noStatus.Load() {
		return nil
	}
	if at, ok := a.statuses.get(key.ID); ok && time.Since(at) < statusEvery {
		return nil
	}
	a.statuses.put(key.ID, time.Now())
	return a.setStatus(ctx, to, "is working…")
}

// setStatus shows a status; an empty one takes it away.
func (a *Adapter) setStatus(ctx context.Context, to place, status string) error {
	r := request{method: "assistant.threads.setStatus", idempotent: true, params: url.Values{
		"channel_id": {to.channel}, "thread_ts": {to.thread}, "status": {status},
	}}
	var err error
	if status == "" {
		err = a.limited(ctx, "", r, nil)
	} else {
		err = a.shed(ctx, to.channel+to.thread, r, nil)
	}
	switch codeOf(err) {
	case "missing_scope", "unknown_method", "method_not_supported_for_channel_type", "feature_not_enabled", "no_permission", "not_allowed_token_type":
		if a.noStatus.CompareAndSwap(false, true) {
			a.log.InfoContext(ctx, "slack shows no status of the bot's work", "error", err)
		}
		return nil
	}
	return err
}

// clearStatus takes away a status that an edit would leave standing.
func (a *Adapter) clearStatus(ctx context.Context, key messages.ConversationKey) {
	at, ok := a.statuses.take(key.ID, time.Time{})
	if !ok || at.IsZero() || a.noStatus.Load() {
		return
	}
	to, err := parseKey(key)
	if err != nil || to.thread == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := a.setStatus(ctx, to, ""); err != nil {
		a.log.DebugContext(ctx, "could not take a status away", "conversation", key, "error", err)
	}
}

const (
	emojiSeen   = "eyes"
	emojiQueued = "inbox_tray"
)

// Mark implements platform.Marker with reactions. A mark takes the place of the
// one before it.
func (a *Adapter) Mark(ctx context.Context, ref messages.Ref, mark platform.Mark) error {
	to, ts, err := parseRef(ref)
	if err != nil {
		return err
	}
	id := to.channel + ts
	has, known := a.marks.get(id)
	if !known {
		has = []string{emojiSeen, emojiQueued} // perhaps: set by another process
	}
	var want []string
	switch mark {
	case platform.MarkSeen:
		want = []string{emojiSeen}
	case platform.MarkQueued:
		want = []string{emojiQueued}
	case platform.MarkNone:
	}
	if known || mark == platform.MarkNone {
		for _, emoji := range has {
			if slices.Contains(want, emoji) {
				continue
			}
			if err := a.react(ctx, "reactions.remove", to.channel, ts, emoji); err != nil {
				return err
			}
		}
	}
	for _, emoji := range want {
		if err := a.react(ctx, "reactions.add", to.channel, ts, emoji); err != nil {
			return err
		}
	}
	a.marks.put(id, want)
	return nil
}

// react makes one reaction call. What is already so is success.
func (a *Adapter) react(ctx context.Context, method, channel, ts, emoji string) error {
	err := a.limited(ctx, "", request{method: method, idempotent: true, params: url.Values{
		"channel": {channel}, "timestamp": {ts}, "name": {emoji},
	}}, nil)
	switch codeOf(err) {
	case "already_reacted", "no_reaction":
		return nil
	}
	return err
}

// Whisper implements platform.Whisperer: with a message that only the sender
// sees, or, where the bot cannot post one, with an answer to the command.
func (a *Adapter) Whisper(ctx context.Context, to messages.Inbound, text string) error {
	at, err := parseKey(to.Conversation)
	if err != nil {
		return err
	}
	c := render(shorten(text, maxPlain), nil)
	address, answerable := a.replyTo.get(string(to.Event))
	if answerable && at.opening != "" && a.respond(ctx, address, c) == nil {
		return nil
	}
	_, err = a.postEphemeral(ctx, at, to.Sender.ID, c)
	if err != nil && answerable && at.opening == "" {
		return a.respond(ctx, address, c)
	}
	return err
}

const (
	dialogBlock = "text" // the id of the block and of the field in it

	// The limits of a modal's title, button and field (views.open, text input).
	maxDialogTitle = 24
	maxDialogLabel = 2000
	maxDialogText  = 3000
)

// OpenDialog implements platform.Dialoger. A text that is longer than the 3000
// characters that Slack's field takes is fault.Invalid, and a press that is
// older than three seconds fault.NotFound.
func (a *Adapter) OpenDialog(ctx context.Context, in messages.Inbound, d platform.Dialog) error {
	if len([]rune(d.Text)) > maxDialogText {
		return fault.Newf(fault.Invalid, "The text is longer than the %d characters that can be edited here.", maxDialogText)
	}
	note := jsonArg(dialogNote{Action: d.ID, Key: in.Conversation.ID, Message: string(in.Message)})
	plainText := func(s string, n int) *slack.TextBlockObject {
		if r := []rune(s); len(r) > n {
			s = string(r[:n-1]) + "…"
		}
		return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
	}
	field := slack.NewPlainTextInputBlockElement(nil, dialogBlock).
		WithMultiline(true).WithMaxLength(maxDialogText).WithInitialValue(d.Text)
	view := slack.ModalViewRequest{
		Type:            slack.VTModal,
		Title:           plainText(first(d.Title, "Edit"), maxDialogTitle),
		Submit:          plainText(first(d.Submit, "Send"), maxDialogTitle),
		Close:           plainText("Cancel", maxDialogTitle),
		PrivateMetadata: note,
		CallbackID:      metadataType,
		Blocks: slack.Blocks{BlockSet: []slack.Block{
			slack.NewInputBlock(dialogBlock, plainText(first(d.Label, "Text"), maxDialogLabel), nil, field),
		}},
	}
	err := a.limited(ctx, "", request{method: "views.open", idempotent: true, params: url.Values{
		"trigger_id": {d.Trigger}, "view": {jsonArg(view)},
	}}, nil)
	switch codeOf(err) {
	case "expired_trigger_id", "trigger_expired", "trigger_exchanged", "invalid_trigger_id", "exchanged_trigger_id":
		return &fault.Error{Kind: fault.NotFound, Public: "That took too long. Press the button again.", Err: err}
	}
	return err
}
