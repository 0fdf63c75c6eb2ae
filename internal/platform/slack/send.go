package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
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

// sender posts messages, changes them and takes them back.
type sender struct {
	api      *api
	me       *installation
	askers   askers
	asides   *asides
	streams  *streams
	statuses *statuses
	claims   claims                              // message -> delivery
	edited   *platform.Recent[string, time.Time] // message -> when it last showed progress
	log      *slog.Logger
	observe  func(string)
}

// Send implements platform.Adapter. With out.Again the conversation is searched
// for the delivery before anything is posted.
func (s *sender) Send(ctx context.Context, out messages.Outbound) (messages.Ref, error) {
	to, err := parseKey(out.Conversation)
	if err != nil {
		return messages.Ref{}, err
	}
	if err := within(out.Text); err != nil {
		return messages.Ref{}, err
	}
	if out.OnlyFor != "" {
		return s.asides.send(ctx, to, out)
	}
	if out.Again {
		ts, err := s.lookup(ctx, to, out)
		if err != nil || ts != "" {
			return sentAs(to, ts), err
		}
	} else if out.Text == platform.Placeholder {
		if out.Optional {
			if err := s.api.turn(ctx, placeholders, ""); err != nil {
				return messages.Ref{}, err
			}
		}
		if ts, opened, err := s.streams.openStream(ctx, to, out); opened {
			return sentAs(to, ts), err
		}
	}
	c := render(out.Text, out.Buttons)
	if to.opening != "" {
		c = renderOpening(out.Text)
	}
	var ts string
	err = s.api.inAnyForm(ctx, s.log, c, out.Text, out.Buttons, func(c content) (err error) {
		ts, err = s.api.post(ctx, to, out.Delivery, c)
		return err
	})
	if err != nil {
		s.asides.tellAsker(ctx, to, err)
		return messages.Ref{}, err
	}
	s.observe("sent")
	s.claims.Put(messageID(to, ts), claimed{delivery: out.Delivery, attached: out.Delivery != ""})
	if who := asker.FindStringSubmatch(out.Text); to.opening != "" && who != nil {
		s.askers.users.Put(messageID(to, ts), who[1])
	}
	s.statuses.after(ctx, out)
	return sentAs(to, ts), nil
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
func (a *api) post(ctx context.Context, to place, delivery messages.DeliveryID, c content) (string, error) {
	options := append(c.options(to), noPreviews)
	if delivery != "" {
		options = append(options, metadata(delivery))
	}
	var ts string
	err := a.limited(ctx, to.channel, request{method: "chat.postMessage"}, func(ctx context.Context, web *slack.Client) (err error) {
		_, ts, err = web.PostMessageContext(ctx, to.channel, options...)
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

// options returns what all ways to post have in common. The block of the buttons has the
// name of the account: see inOrganization.
func (c content) options(to place) []slack.MsgOption {
	for _, b := range c.blocks {
		if row, ok := b.(*slack.ActionBlock); ok {
			row.BlockID = to.account
		}
	}
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

// inAnyForm shows a message as c or, while Slack refuses the blocks, in a plainer form.
func (a *api) inAnyForm(ctx context.Context, log *slog.Logger, c content, markdown string, buttons []messages.Button, show func(c content) error) error {
	err := show(c)
	if !blocksRefused(err) {
		return err
	}
	for _, c := range plainer(markdown, buttons) {
		a.observe("blocks_refused")
		log.WarnContext(ctx, "slack refused the blocks of a message, sending it plainer", "err", err)
		if err = show(c); !blocksRefused(err) {
			break
		}
	}
	return err
}

// blocksRefused reports whether Slack refuses the form of a message, and may take another.
func blocksRefused(err error) bool {
	switch codeOf(err) {
	case "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long":
		return true
	}
	return false
}

// Edit implements platform.Editor. Progress goes into the message's stream if it
// has one that is open and that it can go on with; else the stream is closed and
// the message edited, not sooner than editEvery after the last time.
func (s *sender) Edit(ctx context.Context, edit platform.Edit) error {
	to, ts, err := parseRef(edit.Ref)
	if err != nil {
		return err
	}
	if err := within(edit.Text); err != nil {
		return err
	}
	id := messageID(to, ts)
	if st := s.streams.set.find(id); st != nil {
		if shown, err := s.streams.editStream(ctx, st, edit); shown || err != nil {
			return err
		}
	}
	_, known := s.claims.Get(id)
	err = s.update(ctx, to, ts, edit)
	if codeOf(err) == "streaming_state_conflict" {
		// A stream of a process that is gone.
		s.observe("stream_adopted")
		if err = s.streams.stopStream(ctx, to, ts, "", edit); err == nil {
			err = s.update(ctx, to, ts, edit)
		}
	}
	if err == nil && !edit.Progress {
		s.statuses.clearStatus(ctx, edit.Ref.Conversation, !known)
	}
	return err
}

// update puts another text into a message that is no open stream.
func (s *sender) update(ctx context.Context, to place, ts string, edit platform.Edit) error {
	id := messageID(to, ts)
	if edit.Progress {
		if at, ok := s.edited.Get(id); ok && time.Since(at) < editEvery {
			s.observe("shed")
			return exchange.Limited(editEvery - time.Since(at))
		}
		if err := s.api.turn(ctx, methodUpdate, id); err != nil {
			return err // before the text is rendered for nothing
		}
	}
	c := render(edit.Text, edit.Buttons)
	if to.thread == ts && asker.MatchString(edit.Text) {
		c = renderOpening(edit.Text) // the root of its thread; else the mention would be shown as it is written
	}
	show := func(c content) error { return s.change(ctx, to, ts, edit, c) }
	var err error
	if edit.Progress {
		err = show(c) // what is refused now is followed by another one
	} else {
		err = s.api.inAnyForm(ctx, s.log, c, edit.Text, edit.Buttons, show)
	}
	switch {
	case err == nil && edit.Progress:
		s.edited.Put(id, time.Now())
	case err == nil:
		s.claims.attached(id)
	}
	return err
}

// change makes one call of chat.update. A final text claims the message for its
// delivery if its metadata does not do so yet, as that of a stream that Slack
// ended: nobody shall take it for one that is open (see lookup).
func (s *sender) change(ctx context.Context, to place, ts string, edit platform.Edit, c content) error {
	id := messageID(to, ts)
	options := c.options(place{account: to.account, channel: to.channel})
	if known, ok := s.claims.Get(id); !edit.Progress && to.thread != "" && (!ok || !known.attached) {
		options = append(options, s.claims.metadata(id))
	}
	r := request{method: methodUpdate, idempotent: true}
	update := func(ctx context.Context, web *slack.Client) error {
		_, _, _, err := web.UpdateMessageContext(ctx, to.channel, ts, options...)
		return err
	}
	if edit.Progress {
		return s.api.admitted(ctx, "", r, update) // its turn was asked for
	}
	return s.api.limited(ctx, "", r, update)
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
func (s *sender) unclaimed(in place, out messages.Outbound, created time.Time, m slack.Message) bool {
	known, _ := s.claims.Get(messageID(in, m.Timestamp))
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
func (s *sender) lookup(ctx context.Context, in place, out messages.Outbound) (string, error) {
	me, err := s.me.whoami(ctx) // which also tells what time it is there
	if err != nil {
		return "", unsure(err)
	}
	created, since := s.api.madeAt(out.Delivery)
	ts, stream := "", ""
	err = s.api.read(ctx, in, window{since: since, metadata: true, pages: maxPages}, func(m slack.Message) bool {
		ours := m.User == me.user || m.BotID != "" && m.BotID == me.bot
		switch {
		case !ours:
		case m.Metadata.EventType == metadataType && m.Metadata.EventPayload[metadataDelivery] == string(out.Delivery):
			ts = m.Timestamp
		case s.unclaimed(in, out, created, m):
			stream = m.Timestamp
		}
		return ts == ""
	})
	if ts == "" && err == nil {
		ts = stream
	}
	if isTS(ts) {
		s.observe("found_sent")
		s.claims.Put(messageID(in, ts), claimed{delivery: out.Delivery, attached: ts != stream})
		return ts, nil
	}
	return "", lookupError(ctx, s.log, err)
}

// madeAt returns by Slack's clock when a delivery was made, give or take two seconds, or
// zero if that cannot be told, and from when on its message can be there.
func (a *api) madeAt(delivery messages.DeliveryID) (created, since time.Time) {
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

// claimed says which delivery a message belongs to, and whether the message's
// metadata says so, too.
type claimed struct {
	delivery messages.DeliveryID
	attached bool
}

// claims remembers that of the newest messages.
type claims struct {
	*platform.Recent[string, claimed]
}

// noDelivery is written where a message has to be claimed for a delivery that
// only another process knew.
const noDelivery = messages.DeliveryID("-")

// metadata returns the metadata for a message.
func (c claims) metadata(id string) slack.MsgOption {
	known, _ := c.Get(id)
	return metadata(cmp.Or(known.delivery, noDelivery))
}

// attached notes that a message has its metadata.
func (c claims) attached(id string) {
	known, _ := c.Get(id)
	known.attached = true
	c.Put(id, known)
}

// Delete implements platform.Deleter.
func (s *sender) Delete(ctx context.Context, ref messages.Ref) error {
	to, ts, err := parseRef(ref)
	if err != nil {
		return err
	}
	if st := s.streams.set.find(messageID(to, ts)); st != nil {
		st.mu.Lock()
		s.streams.streamOver(st)
		st.mu.Unlock()
	}
	err = s.api.limited(ctx, "", request{method: "chat.delete", idempotent: true}, func(ctx context.Context, web *slack.Client) error {
		_, _, err := web.DeleteMessageContext(ctx, to.channel, ts)
		return err
	})
	if codeOf(err) == "message_not_found" {
		return nil
	}
	return err
}

// Open implements platform.Opener: a thread in the same channel. Its root has the
// title, and metadata by which a repeated attempt finds it.
func (s *sender) Open(ctx context.Context, o platform.Opening) (messages.ConversationKey, error) {
	at, err := parseKey(o.Beside)
	if err != nil {
		return messages.ConversationKey{}, err
	}
	at.thread, at.opening = "", openingOf(string(o.Delivery))
	ref, err := s.Send(ctx, messages.Outbound{Delivery: o.Delivery, Conversation: makeKey(at), Text: o.Title, Again: o.Again})
	return ref.Conversation, err
}

// Link implements platform.Opener: the permalink of a thread's root.
func (s *sender) Link(ctx context.Context, key messages.ConversationKey) string {
	at, err := parseKey(key)
	if err != nil || at.thread == "" {
		return ""
	}
	link := ""
	err = s.api.limited(ctx, "", request{method: "chat.getPermalink", idempotent: true}, func(ctx context.Context, web *slack.Client) (err error) {
		link, err = web.GetPermalinkContext(ctx, &slack.PermalinkParameters{Channel: at.channel, Ts: at.thread})
		return err
	})
	if err != nil {
		s.log.InfoContext(ctx, "could not find out the address of a thread", "err", err)
	}
	return link
}
