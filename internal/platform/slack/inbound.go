package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

// translator reads what Slack sends: events, interactions and slash commands.
type translator struct {
	me       *installation
	people   *people
	askers   askers
	commands vocabulary
	engaged  func(ctx context.Context, key messages.ConversationKey) (bool, error)
	log      *slog.Logger
	observe  func(string)
	gestures *platform.Recent[string, string] // client_msg_id -> ts that it was first seen with
	replyTo  *platform.Recent[string, string] // event or new- key -> response_url
	reached  *platform.Recent[string, string] // channel -> account that its events came to
	shared   *platform.Recent[string, bool]   // channel -> its last event that tells said that it is shared with another organization

	// revoked has room for one word that the app was removed; Run looks into it.
	revoked chan struct{}
}

// payloadKind says what a payload is, by where it came from.
type payloadKind string

// The kinds have the names that Socket Mode uses.
const (
	kindEvent       payloadKind = "events_api"
	kindCommand     payloadKind = "slash_commands"
	kindInteraction payloadKind = "interactive"
)

// receive translates one payload and stores what it means. It returns nil once
// that is durable, or if there is nothing to store. It may run again for the
// same payload: what is stored has the same event id.
func (t *translator) receive(ctx context.Context, sink platform.Sink, kind payloadKind, payload []byte) error {
	failpoint.Hit(failpoint.Received)
	r, err := t.translate(ctx, kind, payload)
	if err != nil {
		return err
	}
	return t.store(ctx, sink, r)
}

func (t *translator) translate(ctx context.Context, kind payloadKind, payload []byte) (platform.Meaning, error) {
	switch kind {
	case kindEvent:
		return t.translateEvent(ctx, payload)
	case kindCommand:
		return t.translateCommand(payload), nil
	case kindInteraction:
		return t.translateInteraction(payload), nil
	default:
		return platform.Meaning{Raw: payload, Reason: "unknown kind of envelope"}, nil
	}
}

func (t *translator) store(ctx context.Context, sink platform.Sink, r platform.Meaning) error {
	kept, err := platform.Store(ctx, sink, Name, t.me.ownAccount(), r)
	if kept {
		t.observe("malformed")
	}
	return err
}

// removed is called when an event says that the app is not installed any more.
func (t *translator) removed() {
	select {
	case t.revoked <- struct{}{}:
	default:
	}
}

// foreign counts what Slack sends and nobody here uses. It is not kept.
func (t *translator) foreign(ctx context.Context, kind string) {
	t.observe("foreign_event")
	t.log.DebugContext(ctx, "slack sent an event of a kind that is not used", "event", platform.Cut(kind, 40))
}

// translateEvent reads an event of the Events API. It returns an error only if
// it cannot be told yet whether the event is for the bot.
func (t *translator) translateEvent(ctx context.Context, payload []byte) (platform.Meaning, error) {
	r := platform.Meaning{Raw: payload}
	var env envelope
	if err := platform.Lenient(payload, &env); err != nil {
		r.Reason = "not JSON: " + platform.Cut(err.Error(), 200)
		return r, nil
	}
	r.Raw = stripped(payload)
	r.Event = eventID("ev", env.EventID)
	switch env.Type {
	case "event_callback":
	case "app_rate_limited":
		t.observe("events_limited")
		t.log.WarnContext(ctx, "slack holds events of this workspace back: more than 30000 in an hour", "team", env.TeamID)
		return r, nil
	default:
		t.foreign(ctx, env.Type)
		return r, nil
	}
	var ev event
	if err := platform.Lenient(env.Event, &ev); err != nil {
		r.Reason = "the event is not an object: " + platform.Cut(err.Error(), 200)
		return r, nil
	}
	me, err := t.receiver(ctx, env)
	if err != nil || me.user == "" {
		return r, err
	}
	in := messages.Inbound{Account: me.account(), Raw: r.Raw}
	t.reached.Put(ev.Channel, in.Account)
	if env.External || ev.Type == "message" || ev.Type == "app_mention" { // others need not tell
		t.shared.Put(ev.Channel, env.External)
	}
	var ok bool
	switch ev.Type {
	case "message", "app_mention":
		in, ok, err = t.message(ctx, me, env, ev, in)
	case "agent_session_stopped":
		in, ok, err = stopPressed(me, env, ev, in)
	case "app_uninstalled":
		t.removed()
	case "tokens_revoked":
		if len(ev.Tokens.Bot) > 0 {
			t.removed()
		}
	default:
		t.foreign(ctx, ev.Type)
	}
	if bad, is := err.(platform.Malformed); is { //nolint:errorlint // never wrapped
		r.Reason = string(bad)
		return r, nil
	}
	if ok {
		r.Events = []messages.Inbound{in}
	}
	return r, err
}

// askTimeout is how long an event waits for Slack to tell who we are, which
// matters only until it has told once.
const askTimeout = time.Second

// receiver returns the identity that an event was delivered to. Its user is
// empty if that is another installation of the app than this adapter's.
func (t *translator) receiver(ctx context.Context, env envelope) (identity, error) {
	var to identity
	team := env.ContextTeamID
	if len(env.Authorizations) > 0 {
		first := env.Authorizations[0]
		if first.IsBot {
			to.user = first.UserID
		}
		switch {
		case first.OrgWide && first.EnterpriseID != "":
			to.enterprise = first.EnterpriseID
		case first.OrgWide:
			to.enterprise = env.EnterpriseID
		case first.TeamID != "":
			team = first.TeamID
		}
	}
	team = cmp.Or(team, env.TeamID)
	to.team = team
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	me, err := t.me.whoami(ctx)
	switch {
	case err != nil && to.user != "" && isID(team):
		return to, nil // the event tells what is needed
	case err != nil:
		return identity{}, fmt.Errorf("finding out who received an event: %w", err)
	case me.enterprise != "" && me.enterprise == env.EnterpriseID || me.enterprise != "" && me.enterprise == to.enterprise:
		me.team = team
		return me, nil
	case me.enterprise == "" && (me.team == team || me.team == env.ContextTeamID || me.team == env.TeamID):
		return me, nil
	}
	t.observe("foreign_team")
	return identity{}, nil
}

// message reads what a person said. Two events tell of a mention, as
// app_mention and as message, in any order; both become the same event, whose
// id is made of the channel and the message (contracts B1.7, B1.8).
func (t *translator) message(ctx context.Context, me identity, env envelope, ev event, in messages.Inbound) (messages.Inbound, bool, error) {
	in.Kind = messages.KindMessage
	switch {
	case ev.Subtype == "message_deleted" || ev.Subtype == "message_changed" && buried(ev):
		deleted, ok := deletionOf(ev)
		if !ok {
			return in, false, nil
		}
		in.Kind, ev = messages.KindDeleted, deleted
	case ev.Subtype == "message_changed":
		changed, ok := editOf(ev)
		if !ok {
			return in, false, nil
		}
		in.Kind, ev = messages.KindEdit, changed
	case ev.Hidden:
		return in, false, nil
	}
	if !counts(ev.Subtype) || ev.BotID != "" || ev.User == me.user || ev.User == "USLACKBOT" {
		return in, false, nil
	}
	if !isID(ev.Channel) || !isID(ev.User) || !isTS(ev.TS) || ev.ThreadTS != "" && !isTS(ev.ThreadTS) {
		return in, false, platform.Malformed("the message lacks its channel, user or timestamp")
	}
	p := place{account: in.Account, channel: ev.Channel}
	in.Private = ev.ChannelType == "im" || ev.ChannelType == "" && strings.HasPrefix(ev.Channel, "D")
	if ev.ThreadTS != ev.TS {
		p.thread = ev.ThreadTS
	}
	inThread := p.thread != ""
	if !in.Private && !inThread {
		p.thread = ev.TS
	}
	in.Conversation = makeKey(p)
	mentioned := ev.Type == "app_mention" || mentions(ev.Text, me.user)
	if ok, err := t.addressed(ctx, me, ev, in, mentioned, inThread); err != nil || !ok {
		return in, false, err
	}
	if in.Kind == messages.KindDeleted {
		in.Event, in.Message, in.SentAt = eventID("deleted", ev.Channel, ev.TS), messages.MessageID(ev.TS), timeOf(ev.EventTS)
		return in, true, nil
	}
	t.fill(me, env, ev, &in)
	if in.Text == "" && len(in.Attachments) == 0 && len(in.Quotes) == 0 {
		if !mentioned {
			return in, false, nil
		}
		if !inThread {
			in.Text = "/help" // somebody calls and says nothing
		}
	}
	return in, true, nil
}

// addressed reports whether a message is for the bot: said in private, with a
// mention, or in a thread that the bot takes part in.
func (t *translator) addressed(ctx context.Context, me identity, ev event, in messages.Inbound, mentioned, inThread bool) (bool, error) {
	switch {
	case in.Private:
		return true, nil
	case in.Kind == messages.KindMessage && mentioned:
		return true, nil
	case in.Kind == messages.KindMessage && !inThread:
		return false, nil
	case inThread && ev.Parent == me.user && me.user != "":
		return true, nil // a thread that the bot opened
	case inThread && t.askers.began(ev):
		return true, nil // the mention may not be stored yet
	case t.engaged == nil:
		return false, nil
	}
	ok, err := t.engaged(ctx, in.Conversation)
	if err != nil {
		return false, fmt.Errorf("asking whether the bot takes part in a thread: %w", err)
	}
	return ok, nil
}

// fill completes in with what ev says.
func (t *translator) fill(me identity, env envelope, ev event, in *messages.Inbound) {
	if in.Kind == messages.KindEdit {
		in.Event = eventID("edit", ev.Channel, ev.TS, ev.Edited.TS)
	} else {
		first := ev.TS
		if ev.ClientID != "" {
			// One gesture can come as two messages (contract B1.10).
			first = t.gestures.First(ev.Channel+" "+ev.ClientID, ev.TS)
			in.Aliases = []messages.EventID{eventID("client", ev.Channel, ev.ClientID)}
		}
		in.Event = eventID("msg", ev.Channel, first)
	}
	in.Message = messages.MessageID(ev.TS)
	in.SentAt = timeOf(ev.TS)
	t.askers.remember(me, env, ev)
	in.Sender = messages.Sender{ID: messages.UserID(ev.User), Name: t.people.senderName(ev), External: external(me, env, ev)}
	in.Attachments = attachments(list[file](ev.Files))
	in.Quotes, in.Attachments = quotes(list[shared](ev.Attachments), in.Attachments)
	in.Text = t.commands.commanded(plain(withoutMention(ev.Text, me.user), t.people.nameOf), begins(ev.Text, me.user))
	if in.Private {
		in.Text = startCode.ReplaceAllString(in.Text, "/start $1")
		in.Text = linkCode.ReplaceAllString(in.Text, "/link $1")
	}
}

// startCode is how the owner's code is sent, as Slack would take "/start" for
// one of its own commands.
var startCode = pattern.Lazy(`^(?i:start) ([A-Za-z0-9_-]{6,64})$`)

// linkCode is how a code that links two accounts is sent, for the same reason.
var linkCode = pattern.Lazy(`^/?(?i:link) ([A-Za-z2-7-]{26,32})$`)

// external reports whether the sender belongs to another organization that
// shares the channel. Where a shared channel does not tell, it counts as such.
func external(me identity, env envelope, ev event) bool {
	if !env.External {
		return false
	}
	for _, team := range []string{ev.UserTeam, ev.SourceTeam, ev.Team} {
		if team != "" {
			return team != me.team && (me.enterprise == "" || team != me.enterprise)
		}
	}
	return true
}

// outsider reports whether who acts in a conversation, from a workspace that is not ours, is of
// another organization. What is not a message does not tell whose a workspace is, nor whether
// the channel is shared: the last message did. Where none has come yet, they count as such.
func (t *translator) outsider(in messages.ConversationKey) bool {
	at, err := parseKey(in)
	shared, known := t.shared.Get(at.channel)
	return err != nil || shared || !known
}

// editOf returns the message that a message_changed event is about. Slack also
// sends one when it adds a preview; then nobody edited.
func editOf(ev event) (event, bool) {
	var changed event
	if platform.Lenient(ev.Message, &changed) != nil || changed.Edited.TS == "" {
		return changed, false
	}
	changed.Type, changed.Channel, changed.ChannelType = ev.Type, ev.Channel, ev.ChannelType
	return changed, true
}

// buried reports whether a change is the deletion of a message that has answers: in the
// place of one that begins a thread a tombstone stays.
func buried(ev event) bool {
	var left event
	return platform.Lenient(ev.Message, &left) == nil && left.Subtype == "tombstone"
}

// deletionOf returns the message that was deleted, with the time of that as its event's.
func deletionOf(ev event) (event, bool) {
	var deleted event
	if platform.Lenient(ev.Previous, &deleted) != nil || deleted.TS == "" {
		return deleted, false
	}
	deleted.Type, deleted.Channel, deleted.ChannelType, deleted.EventTS = ev.Type, ev.Channel, ev.ChannelType, ev.TS
	return deleted, true
}

// stopPressed reads that somebody pressed Slack's own Stop.
func stopPressed(me identity, env envelope, ev event, in messages.Inbound) (messages.Inbound, bool, error) {
	if !isID(ev.Channel) || !isID(ev.User) || !isTS(ev.ThreadTS) {
		return in, false, platform.Malformed("the event lacks its channel, user or thread")
	}
	in.Kind = messages.KindMessage
	in.Conversation = makeKey(place{account: in.Account, channel: ev.Channel, thread: ev.ThreadTS})
	in.Event = eventID("stopped", ev.Channel, ev.ThreadTS, ev.EventTS)
	in.Private = strings.HasPrefix(ev.Channel, "D")
	in.Sender = messages.Sender{ID: messages.UserID(ev.User), External: external(me, env, ev)}
	in.SentAt = timeOf(ev.EventTS)
	in.Text = "/stop"
	for _, ts := range list[string](ev.Streams) {
		if isTS(ts) && len(in.Aliases) < maxStreams {
			in.Aliases = append(in.Aliases, haltOf(ev.Channel, ts))
		}
	}
	return in, true, nil
}

// maxAttachments bounds the shared messages that are taken over, maxReceived the files:
// how many of them are read is not decided here.
const (
	maxAttachments = 20
	maxReceived    = 100
)

func attachments(files []file) []messages.Attachment {
	var out []messages.Attachment
	for _, f := range files {
		if len(out) == maxReceived {
			break
		}
		att := messages.Attachment{Name: cmp.Or(f.Name, f.Title), MediaType: f.kind(), Size: max(f.Size, 0)}
		switch {
		case f.Mode == "tombstone" || f.Mode == "hidden_by_limit":
			att.Name, att.Note = cmp.Or(att.Name, fallbackName), "the file was deleted or is hidden by the workspace's plan"
		case isID(f.ID):
			att.Source = f.ID
		default:
			continue
		}
		out = append(out, att)
	}
	return out
}

// withoutSecrets returns a JSON payload without the credentials that Slack puts
// at its top: the verification token and the URLs that take answers. What is
// not an object is returned as it is.
func withoutSecrets(payload []byte) []byte {
	if !json.Valid(payload) {
		return payload
	}
	return stripped(payload)
}

// stripped is withoutSecrets for a payload that is known to be JSON.
func stripped(payload []byte) []byte {
	if !bytes.HasPrefix(bytes.TrimLeft(payload, blanks), []byte("{")) {
		return payload
	}
	// A member is copied as it stands: reading and writing all of them takes ten times as long.
	out := make([]byte, 0, len(payload))
	rest := bytes.TrimLeft(payload, blanks)[1:]
	for {
		rest = bytes.TrimLeft(rest, blanks+",")
		if rest[0] == '}' {
			break
		}
		n := valueLength(rest)
		name := rest[:n]
		colon := n + bytes.IndexByte(rest[n:], ':') + 1
		value := bytes.TrimLeft(rest[colon:], blanks)
		end := valueLength(value)
		if !secret(name) {
			out = append(append(append(append(out, ','), name...), ':'), value[:end]...)
		}
		rest = value[end:]
	}
	if len(out) == 0 {
		return []byte("{}")
	}
	out[0] = '{'
	return append(out, '}')
}

// blanks are JSON's.
const blanks = " \t\r\n"

// secret reports whether a member of a payload is a credential, by its name as JSON.
func secret(name []byte) bool {
	plain := name[1 : len(name)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		var s string
		if json.Unmarshal(name, &s) != nil {
			return true
		}
		plain = []byte(s)
	}
	switch string(plain) {
	case "token", "response_url", "response_urls":
		return true
	}
	return false
}

// valueLength is how long the value is that JSON, which is valid, begins with.
func valueLength(text []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
			if !quoted && depth == 0 {
				return i + 1
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0 && (c == ',' || c == ':' || strings.IndexByte(blanks, c) >= 0):
			return i
		}
	}
	return len(text)
}
