package slack

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/slack-go/slack"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// metadataType marks the messages of this program for lookups. Everybody in the
// workspace can read metadata, so it holds opaque ids only.
const metadataType = "remote_agent"

const metadataDelivery = "delivery"

// metadata returns the metadata of a message that brings a delivery.
func metadata(delivery messages.DeliveryID) slack.MsgOption {
	return slack.MsgOptionMetadata(slack.SlackMetadata{
		EventType: metadataType, EventPayload: map[string]any{metadataDelivery: string(delivery)},
	})
}

const methodUpdate = "chat.update"

var errNoTS = errors.New("the answer has no timestamp")

// Send implements platform.Adapter. With out.Again the conversation is searched
// for the delivery before anything is posted.
func (a *Adapter) Send(ctx context.Context, out messages.Outbound) (messages.Ref, error) {
	to, err := parseKey(out.Conversation)
	if err != nil {
		return messages.Ref{}, err
	}
	if err := within(out.Text); err != nil {
		return messages.Ref{}, err
	}
	if out.OnlyFor != "" {
		return a.sendOnlyFor(ctx, to, out)
	}
	if out.Again {
		ts, err := a.lookup(ctx, to, out)
		if err != nil || ts != "" {
			return sentAs(to, ts), err
		}
	} else if out.Text == platform.Placeholder {
		if out.Optional {
			if err := a.turn(ctx, placeholders, ""); err != nil {
				return messages.Ref{}, err
			}
		}
		if ts, opened, err := a.openStream(ctx, to, out); opened {
			return sentAs(to, ts), err
		}
	}
	c := render(out.Text, out.Buttons)
	if to.opening != "" {
		c = renderOpening(out.Text)
	}
	ts, err := a.post(ctx, to, out.Delivery, c)
	if blocksRefused(err) {
		a.observe("blocks_refused")
		a.log.WarnContext(ctx, "slack refused the blocks of a message, sending it plain", "err", err)
		ts, err = a.post(ctx, to, out.Delivery, withoutBlocks(out.Text, out.Buttons))
	}
	if err != nil {
		a.tellAsker(ctx, to, err)
		return messages.Ref{}, err
	}
	a.observe("sent")
	a.claims.Put(messageID(to, ts), claimed{delivery: out.Delivery, attached: out.Delivery != ""})
	if who := asker.FindStringSubmatch(out.Text); to.opening != "" && who != nil {
		a.askers.Put(messageID(to, ts), who[1])
	}
	a.statusAfter(ctx, out)
	return sentAs(to, ts), nil
}

// statusAfter takes the status of the bot's work away if a message has not done
// so. Behind a placeholder, or beside a stream, the work goes on.
func (a *Adapter) statusAfter(ctx context.Context, out messages.Outbound) {
	switch {
	case a.sessionState() == sessionsOff:
		a.statuses.Put(out.Conversation.ID, time.Time{}) // a message ends that of an assistant's thread
	case out.Text != platform.Placeholder && !a.streams.in(out.Conversation):
		a.clearStatus(ctx, out.Conversation, out.Again)
	}
}

// sentAs returns where a message is. The first one of a new thread is its root.
func sentAs(to place, ts string) messages.Ref {
	if ts == "" {
		return messages.Ref{}
	}
	if to.opening != "" {
		to.opening, to.thread = "", ts
	}
	return messages.Ref{Conversation: makeKey(to), Message: messages.MessageID(ts)}
}

// post makes one message and returns its ts.
func (a *Adapter) post(ctx context.Context, to place, delivery messages.DeliveryID, c content) (string, error) {
	options := append(c.options(to), noPreviews)
	if delivery != "" {
		options = append(options, metadata(delivery))
	}
	var ts string
	err := a.limited(ctx, to.channel, request{method: "chat.postMessage"}, func(ctx context.Context) (err error) {
		_, ts, err = a.web.PostMessageContext(ctx, to.channel, options...)
		return err
	})
	if err == nil && !isTS(ts) {
		err = &fault.Error{Kind: fault.Unavailable, Uncertain: true, Err: errNoTS}
	}
	return ts, err
}

// noPreviews keeps Slack from fetching links: a preview leaks what is in the link
// (contract B4.12).
var noPreviews = slack.MsgOptionCompose(slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())

// options returns what all ways to post have in common.
func (c content) options(to place) []slack.MsgOption {
	all := []slack.MsgOption{slack.MsgOptionText(c.text, false)}
	if c.blocks != nil {
		all = append(all, slack.MsgOptionBlocks(c.blocks...))
	}
	if to.thread != "" {
		all = append(all, slack.MsgOptionTS(to.thread))
	}
	return all
}

func within(markdown string) error {
	if len(markdown) <= 4*maxText && measure(markdown) <= maxText {
		return nil
	}
	return fault.Newf(fault.Invalid, "The message is longer than the %d characters that Slack allows.", maxText)
}

func blocksRefused(err error) bool {
	switch codeOf(err) {
	case "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long":
		return true
	}
	return false
}

// ephemeralMark begins the id of a message that only one person sees. It cannot
// be edited, found or answered (contract B2).
const ephemeralMark = "ephemeral-"

// sendOnlyFor posts a message that only one person sees. If the bot is not in
// the channel, it answers the slash command that was given there.
func (a *Adapter) sendOnlyFor(ctx context.Context, to place, out messages.Outbound) (messages.Ref, error) {
	c := render(out.Text, out.Buttons)
	ts, err := a.postEphemeral(ctx, to, out, c)
	if fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Gone) {
		if address, ok := a.replyTo.Get(out.Conversation.ID); ok && a.respond(ctx, address, c) == nil {
			ts, err = strconv.FormatInt(time.Now().UnixNano(), 10), nil
		}
	}
	if err != nil {
		return messages.Ref{}, err
	}
	return messages.Ref{Conversation: out.Conversation, Message: messages.MessageID(ephemeralMark + ts)}, nil
}

func (a *Adapter) postEphemeral(ctx context.Context, to place, out messages.Outbound, c content) (string, error) {
	var ts string
	r := request{method: "chat.postEphemeral"}
	post := func(ctx context.Context) (err error) {
		ts, err = a.web.PostEphemeralContext(ctx, to.channel, string(out.OnlyFor), c.options(to)...)
		return err
	}
	if out.Optional {
		err := a.shed(ctx, "", r, post)
		return ts, err
	}
	err := a.limited(ctx, to.channel, r, post)
	return ts, err
}

// tellAsker tells who gave a slash command that nothing can be posted there.
func (a *Adapter) tellAsker(ctx context.Context, to place, err error) {
	if !fault.Is(err, fault.Forbidden) && !fault.Is(err, fault.Gone) {
		return
	}
	text := fault.Public(err)
	if fault.Is(err, fault.Gone) {
		text = "Cannot post in this channel: it is archived, or the bot is not a member. Invite it with /invite, then ask again."
	}
	if address, ok := a.replyTo.Get(makeKey(to).ID); ok {
		if err := a.respond(ctx, address, render(text, nil)); err != nil {
			a.log.InfoContext(ctx, "could not tell that nothing can be posted", "err", err)
		}
	}
}

// Edit implements platform.Editor. Progress goes into the message's stream if it
// has one that is open and that it can go on with; else the stream is closed and
// the message edited, not sooner than editEvery after the last time.
func (a *Adapter) Edit(ctx context.Context, edit platform.Edit) error {
	to, ts, err := parseRef(edit.Ref)
	if err != nil {
		return err
	}
	if err := within(edit.Text); err != nil {
		return err
	}
	id := messageID(to, ts)
	if st := a.streams.find(id); st != nil {
		if shown, err := a.editStream(ctx, st, edit); shown || err != nil {
			return err
		}
	}
	_, known := a.claims.Get(id)
	err = a.update(ctx, to, ts, edit)
	if codeOf(err) == "streaming_state_conflict" {
		// A stream of a process that is gone.
		a.observe("stream_adopted")
		if err = a.stopStream(ctx, to, ts, "", edit); err == nil {
			err = a.update(ctx, to, ts, edit)
		}
	}
	if err == nil && !edit.Progress {
		a.clearStatus(ctx, edit.Ref.Conversation, !known)
	}
	return err
}

// update puts another text into a message that is no open stream.
func (a *Adapter) update(ctx context.Context, to place, ts string, edit platform.Edit) error {
	id := messageID(to, ts)
	if edit.Progress {
		if at, ok := a.edited.Get(id); ok && time.Since(at) < editEvery {
			a.observe("shed")
			return exchange.Limited(editEvery - time.Since(at))
		}
		if err := a.turn(ctx, methodUpdate, id); err != nil {
			return err // before the text is rendered for nothing
		}
	}
	c := render(edit.Text, edit.Buttons)
	if to.thread == ts && asker.MatchString(edit.Text) {
		c = renderOpening(edit.Text) // the root of its thread; else the mention would be shown as it is written
	}
	err := a.change(ctx, to, ts, edit, c)
	if blocksRefused(err) && !edit.Progress {
		if c := withoutBlocks(edit.Text, edit.Buttons); len(c.text) <= maxPlain {
			a.observe("blocks_refused")
			a.log.WarnContext(ctx, "slack refused the blocks of an edit, sending it plain", "err", err)
			err = a.change(ctx, to, ts, edit, c)
		}
	}
	switch {
	case err == nil && edit.Progress:
		a.edited.Put(id, time.Now())
	case err == nil:
		a.claims.attached(id)
	}
	return err
}

// change makes one call of chat.update. A final text claims the message for its
// delivery if its metadata does not do so yet, as that of a stream that Slack
// ended: nobody shall take it for one that is open (see lookup).
func (a *Adapter) change(ctx context.Context, to place, ts string, edit platform.Edit, c content) error {
	id := messageID(to, ts)
	options := c.options(place{channel: to.channel})
	if known, ok := a.claims.Get(id); !edit.Progress && to.thread != "" && (!ok || !known.attached) {
		options = append(options, a.claims.metadata(id))
	}
	r := request{method: methodUpdate, idempotent: true}
	update := func(ctx context.Context) error {
		_, _, _, err := a.web.UpdateMessageContext(ctx, to.channel, ts, options...)
		return err
	}
	if edit.Progress {
		return a.admitted(ctx, r, update) // its turn was asked for
	}
	return a.limited(ctx, "", r, update)
}

// parseRef returns where a message is. What cannot be edited is NotFound.
func parseRef(ref messages.Ref) (place, string, error) {
	to, err := parseKey(ref.Conversation)
	if err != nil {
		return to, "", err
	}
	if ts := string(ref.Message); isTS(ts) {
		return to, ts, nil
	}
	return to, "", fault.Newf(fault.NotFound, "%q is not a Slack message.", ref.Message)
}

// maxPages and pageSize bound a lookup: 4000 messages since the delivery was
// made.
const (
	maxPages = 20
	pageSize = 200
)

// unclaimed reports whether m can only be a stream that was opened for an answer
// and not closed since: a message of the bot in that thread, later than what is
// answered, that neither its metadata nor this process gives to another delivery.
func (a *Adapter) unclaimed(in place, out messages.Outbound, created time.Time, m slack.Message) bool {
	known, _ := a.claims.Get(messageID(in, m.Timestamp))
	after := timeOf(in.thread)
	if isTS(string(out.ReplyTo)) {
		after = timeOf(string(out.ReplyTo))
	}
	// What was never a placeholder may be sent beside a turn that has a stream.
	if begins := created.Add(-2 * time.Second); out.Text != platform.Placeholder && begins.After(after) {
		after = begins
	}
	return in.thread != "" && m.Timestamp != in.thread && m.Metadata.EventType == "" && m.SubType == "" && len(m.Files) == 0 &&
		timeOf(m.Timestamp).After(after) && (known.delivery == "" || known.delivery == out.Delivery)
}

// lookup returns the ts of the message that brought a delivery, or nothing. If
// it cannot be told, the error is Uncertain, as that of the attempt before was,
// unless the bot may not read the conversation: then a stray message is the
// lesser evil.
func (a *Adapter) lookup(ctx context.Context, in place, out messages.Outbound) (string, error) {
	me, err := a.whoami(ctx) // which also tells what time it is there
	if err != nil {
		return "", unsure(err)
	}
	created, since := a.madeAt(out.Delivery)
	ts, stream := "", ""
	err = a.read(ctx, in, window{since: since, metadata: true, pages: maxPages}, func(m slack.Message) bool {
		ours := m.User == me.user || m.BotID != "" && m.BotID == me.bot
		switch {
		case !ours:
		case m.Metadata.EventType == metadataType && m.Metadata.EventPayload[metadataDelivery] == string(out.Delivery):
			ts = m.Timestamp
		case a.unclaimed(in, out, created, m):
			stream = m.Timestamp
		}
		return ts == ""
	})
	if ts == "" && err == nil {
		ts = stream
	}
	if isTS(ts) {
		a.observe("found_sent")
		a.claims.Put(messageID(in, ts), claimed{delivery: out.Delivery, attached: ts != stream})
		return ts, nil
	}
	return "", lookupError(ctx, a.log, err)
}

// madeAt returns by Slack's clock when a delivery was made, give or take two seconds, or
// zero if that cannot be told, and from when on its message can be there.
func (a *Adapter) madeAt(delivery messages.DeliveryID) (created, since time.Time) {
	id, err := uuid.Parse(string(delivery))
	if err != nil || id.Version() != 7 {
		return created, since
	}
	made := time.Unix(id.Time().UnixTime())
	if !made.After(time.Now()) {
		created = a.clock.At(made)
	}
	return created, a.clock.Since(made)
}

// lookupError returns the error of a lookup that has found nothing.
func lookupError(ctx context.Context, log *slog.Logger, err error) error {
	switch {
	case fault.Is(err, fault.Forbidden):
		log.WarnContext(ctx, "cannot look up whether a message was sent", "err", err)
		return nil
	case fault.Is(err, fault.Gone), fault.Is(err, fault.Unauthorized), fault.Is(err, fault.Canceled):
		return err
	case err != nil:
		return unsure(err)
	}
	return nil
}

// unsure returns err as one that leaves open whether the message is there. How long
// Slack wants to be left alone stays known.
func unsure(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Uncertain: true, RetryAfter: exchange.RetryAfter(err), Err: err}
}

// window is a part of a conversation.
type window struct {
	since    time.Time // zero: from its beginning
	before   string    // ts that it ends before, or empty
	metadata bool
	pages    int
}

// read calls each for the messages of a conversation until it returns false.
// A thread comes oldest first, a channel newest first.
func (a *Adapter) read(ctx context.Context, in place, w window, each func(slack.Message) bool) error {
	params := slack.GetConversationHistoryParameters{ChannelID: in.channel, Limit: pageSize, Latest: w.before, IncludeAllMetadata: w.metadata}
	if !w.since.IsZero() {
		params.Oldest = strconv.FormatInt(w.since.Unix(), 10) + ".000000"
	}
	for range w.pages {
		page, next, err := a.page(ctx, in, params)
		if err != nil {
			return err
		}
		for _, m := range page {
			if !each(m) {
				return nil
			}
		}
		if next == "" {
			return nil
		}
		params.Cursor = next
	}
	return nil
}

// page reads one page of a thread or a channel.
func (a *Adapter) page(ctx context.Context, in place, p slack.GetConversationHistoryParameters) (page []slack.Message, next string, err error) {
	if in.thread == "" {
		err = a.limited(ctx, "", request{method: "conversations.history", idempotent: true}, func(ctx context.Context) error {
			got, err := a.web.GetConversationHistoryContext(ctx, &p)
			if err == nil {
				page, next = got.Messages, got.ResponseMetaData.NextCursor
			}
			return err
		})
		return page, next, err
	}
	err = a.limited(ctx, "", request{method: "conversations.replies", idempotent: true}, func(ctx context.Context) (err error) {
		page, _, next, err = a.web.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: p.ChannelID, Timestamp: in.thread, Cursor: p.Cursor, Latest: p.Latest, Limit: p.Limit, Oldest: p.Oldest,
			IncludeAllMetadata: p.IncludeAllMetadata,
		})
		return err
	})
	return page, next, err
}

// respond posts a message through the address that came with a command or a
// press. It is a credential and works five times within half an hour.
func (a *Adapter) respond(ctx context.Context, address string, c content) error {
	u, err := url.Parse(address)
	api, _ := url.Parse(a.base)
	if err != nil || u.Host == "" || u.Host != api.Host && (u.Host != "hooks.slack.com" || u.Scheme != "https") {
		return fault.New(fault.Invalid, "The address for answers is not one of Slack's.")
	}
	call := &exchange.Call{Timeout: callTimeout, MaxAnswer: maxAnswer, Scrub: a.scrub}
	err = slack.PostWebhookCustomHTTPContext(call.Context(ctx), address, a.client, &slack.WebhookMessage{
		ResponseType: slack.ResponseTypeEphemeral, Text: c.text, Blocks: &slack.Blocks{BlockSet: c.blocks},
	})
	if err != nil {
		return call.Failure(ctx, "answering a command", err)
	}
	return nil
}
