package slack

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// maxOpening bounds the request that is shown as the root of a thread.
const maxOpening = 2500

// translateCommand reads a slash command. It has no message, so the trigger is
// what tells it from others (contract B2). It asks for a conversation of its
// own: a thread that is opened when there is something to say to all. Only a
// command in a direct message is part of that.
func (t *translator) translateCommand(payload []byte) platform.Meaning {
	r := platform.Meaning{Raw: withoutSecrets(payload)}
	var s slash
	err := platform.Lenient(payload, &s)
	if s.SSLCheck == "1" {
		return platform.Meaning{}
	}
	if err != nil || !isID(s.TeamID) || !isID(s.ChannelID) || !isID(s.UserID) || s.Trigger == "" {
		r.Reason = "the slash command lacks its team, channel, user or trigger"
		return r
	}
	reached, _ := t.reached.Get(s.ChannelID)
	in := messages.Inbound{
		Account: inOrganization(reached, t.me.accountOf(s.TeamID, s.EnterpriseID, bool(s.OrgWide))),
		Event:   eventID("cmd", s.Trigger),
		Kind:    messages.KindMessage,
		Sender:  messages.Sender{ID: messages.UserID(s.UserID), Name: platform.Cut(s.UserName, 80), External: !t.me.installedIn(s.TeamID, s.EnterpriseID)},
		Trigger: s.Trigger,
		SentAt:  time.Now().UTC(),
		Raw:     r.Raw,
	}
	said := plain(s.Text, t.people.nameOf)
	in.Text, in.Whispered = t.commands.subcommand(said)
	in.Private = strings.HasPrefix(s.ChannelID, "D")
	at := place{account: in.Account, channel: s.ChannelID}
	if !in.Private || !in.Whispered { // a command in private is about that conversation
		at.opening = openingOf(s.Trigger)
		in.Opening = "<@" + s.UserID + "> asked: " + shorten(said, maxOpening)
	}
	in.Conversation = makeKey(at)
	in.Sender.External = in.Sender.External && t.outsider(in.Conversation)
	t.rememberURL(in, s.ResponseURL)
	t.replyTo.Put(in.Conversation.ID, s.ResponseURL)
	r.Events = []messages.Inbound{in}
	return r
}

// rememberURL keeps where an answer to in can be sent for half an hour. It is a
// credential, so it is not stored with the event.
func (t *translator) rememberURL(in messages.Inbound, url string) {
	if url != "" {
		t.replyTo.Put(string(in.Event), url)
	}
}

// translateInteraction reads that somebody pressed a button or sent a dialog.
func (t *translator) translateInteraction(payload []byte) platform.Meaning {
	r := platform.Meaning{Raw: withoutSecrets(payload)}
	var p interaction
	if err := platform.Lenient(payload, &p); err != nil {
		r.Reason = "not JSON: " + platform.Cut(err.Error(), 200)
		return r
	}
	if p.Type == "view_closed" {
		return r
	}
	enterprise := cmp.Or(p.Enterprise.ID, p.Team.EnterpriseID)
	team := cmp.Or(p.Team.ID, p.User.TeamID) // what is organization-wide has no team
	in := messages.Inbound{
		Account: t.me.accountOf(team, enterprise, bool(p.OrgWide)),
		Kind:    messages.KindAction,
		Sender:  messages.Sender{ID: messages.UserID(p.User.ID), Name: platform.Cut(cmp.Or(p.User.Name, p.User.Username), 80)},
		Trigger: p.Trigger,
		SentAt:  time.Now().UTC(),
		Raw:     r.Raw,
	}
	in.Sender.External = p.User.TeamID != "" && p.User.TeamID != team && p.User.TeamID != enterprise || !t.me.installedIn(team, enterprise)
	if me := t.me.self.Load(); me != nil && p.User.TeamID == me.team {
		in.Sender.External = false
	}
	if !isID(p.User.ID) || in.Account == "" || p.Trigger == "" {
		r.Reason = "the interaction lacks its user, team or trigger"
		return r
	}
	switch p.Type {
	case "block_actions":
		r.Events, r.Reason = pressedButtons(p, in)
	case "view_submission":
		r.Events, r.Reason = sentDialog(p, in)
	default:
		r.Event = eventID("act", p.Trigger)
		r.Reason = "unknown type of interaction " + strconv.Quote(platform.Cut(p.Type, 40))
	}
	for i := range r.Events {
		e := &r.Events[i]
		e.Sender.External = e.Sender.External && t.outsider(e.Conversation)
		t.rememberURL(*e, p.ResponseURL)
	}
	return r
}

func pressedButtons(p interaction, in messages.Inbound) ([]messages.Inbound, string) {
	channel := cmp.Or(p.Channel.ID, p.Container.ChannelID)
	message := cmp.Or(p.Container.MessageTS, p.Message.TS)
	thread := cmp.Or(p.Container.ThreadTS, p.Message.ThreadTS)
	if !isID(channel) || !isTS(message) || thread != "" && !isTS(thread) {
		return nil, "the button has no message"
	}
	in.Private = strings.HasPrefix(channel, "D")
	if thread == "" && !in.Private {
		thread = message
	}
	in.Message = messages.MessageID(message)
	var out []messages.Inbound
	for i, b := range list[pressed](p.Actions) {
		if b.Type != "" && b.Type != "button" {
			continue
		}
		in.Account = inOrganization(b.Block, in.Account)
		in.Conversation = makeKey(place{account: in.Account, channel: channel, thread: thread})
		in.Action = cmp.Or(b.Value, b.ActionID)
		in.Event = eventID("act", p.Trigger, strconv.Itoa(i))
		if in.Action != "" {
			out = append(out, in)
		}
	}
	return out, ""
}

// inOrganization returns the account of a conversation if it belongs to the same organization
// as the one of who acts in it: in a channel of several workspaces people act from each of
// them, and the conversation is one. Else it returns that of who acts.
func inOrganization(account, acting string) string {
	organization, _, ok := strings.Cut(acting, ":")
	if ok && strings.HasPrefix(account, organization+":") {
		return account
	}
	return acting
}

// dialogNote is what a dialog carries to be told from others when it is sent.
type dialogNote struct {
	Action  string `json:"a"`
	Key     string `json:"k"`
	Message string `json:"m,omitempty"`
}

func sentDialog(p interaction, in messages.Inbound) ([]messages.Inbound, string) {
	var note dialogNote
	if json.Unmarshal([]byte(p.View.Metadata), &note) != nil || note.Action == "" {
		return nil, "the dialog is not one of the bot's"
	}
	key := messages.ConversationKey{Platform: Name, ID: note.Key}
	to, err := parseKey(key)
	if in.Account = inOrganization(to.account, in.Account); err != nil || to.account != in.Account {
		return nil, "the dialog is of another conversation"
	}
	var state struct {
		Values map[string]map[string]struct {
			Value string `json:"value"`
		} `json:"values"`
	}
	if platform.Lenient(p.View.State, &state) != nil {
		return nil, "the dialog has no values"
	}
	in.Conversation, in.Message, in.Action = key, messages.MessageID(note.Message), note.Action
	in.Private = strings.HasPrefix(to.channel, "D")
	in.Text = strings.TrimSpace(state.Values[dialogBlock][dialogBlock].Value)
	in.Event = eventID("view", p.Trigger)
	return []messages.Inbound{in}, ""
}

// shorten returns at most n bytes of s and says so if it left something out.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return platform.Cut(s, n) + " …"
}
