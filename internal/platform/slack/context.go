package slack

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const (
	// maxContext and maxContextBytes bound what is read of a thread: its root and
	// the messages that stand nearest before the mention.
	maxContext      = 50
	maxContextBytes = 32 << 10
	contextPages    = 16 // a turn waits 20 s for them
	maxQuote        = 4000
)

// history reads what was said before.
type history struct {
	api    *api
	me     *installation
	people *people
}

// maxNames is how many names are asked for at once.
const maxNames = 20

// people knows what the people of the workspace are called.
type people struct {
	api     *api
	log     *slog.Logger
	names   *platform.Recent[string, string] // by user id
	unnamed chan string                      // user ids whose names Run asks for
}

// senderName returns the name of who wrote ev. One that is not known is asked
// for and missing until then: an event does not wait for a name.
func (p *people) senderName(ev event) string {
	if name := ev.Profile.name(); name != "" {
		return name
	}
	name, known := p.names.Get(ev.User)
	if !known {
		select {
		case p.unnamed <- ev.User:
		default:
		}
	}
	return name
}

// askNames finds out names until ctx is done.
func (p *people) askNames(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-p.unnamed:
			if _, known := p.names.Get(id); known {
				continue
			}
			if _, err := p.askName(ctx, id); err != nil && ctx.Err() == nil {
				p.names.Put(id, "")
				p.log.DebugContext(ctx, "could not find out a name", "err", err)
			}
		}
	}
}

// askName finds out the name of a user and remembers it.
func (p *people) askName(ctx context.Context, id string) (string, error) {
	var out *slack.User
	err := p.api.limited(ctx, "", request{method: "users.info", idempotent: true}, func(ctx context.Context, web *slack.Client) (err error) {
		out, err = web.GetUserInfoContext(ctx, id)
		return err
	})
	if err != nil {
		return "", err
	}
	name := cmp.Or(profile{out.Profile.DisplayName, out.Profile.RealName, out.Name}.name(), id)
	p.names.Put(id, name)
	return name, nil
}

// nameOf returns the name of a user if it is known.
func (p *people) nameOf(id string) string {
	name, _ := p.names.Get(id)
	return name
}

// NameOf implements platform.Namer. Events of messages come without a name.
func (a *Adapter) NameOf(ctx context.Context, id messages.UserID) string {
	if name := a.people.nameOf(string(id)); name != "" {
		return name
	}
	name, err := a.people.askName(ctx, string(id))
	if err != nil {
		a.people.log.DebugContext(ctx, "could not find out a name", "err", err)
	}
	return name
}

// author returns the name of who wrote m, asking for at most maxNames names.
func (p *people) author(ctx context.Context, m slack.Message, asked *int) string {
	name := cmp.Or(platform.Cut(m.Username, 80), p.nameOf(m.User))
	if name != "" || !isID(m.User) || *asked >= maxNames {
		return cmp.Or(name, m.User)
	}
	*asked++
	name, err := p.askName(ctx, m.User)
	if err != nil {
		*asked = maxNames // it is only a name
		return m.User
	}
	return name
}

// Context implements platform.Contexter: the root of the thread and the newest
// messages before in, without the bot's own: only a root that it wrote by itself says what
// the thread is about.
func (h *history) Context(ctx context.Context, in messages.Inbound) ([]messages.Quote, error) {
	at, err := parseKey(in.Conversation)
	if err != nil || at.thread == "" || string(in.Message) == at.thread {
		return nil, err
	}
	me, err := h.me.whoami(ctx)
	if err != nil {
		return nil, err
	}
	var root *slack.Message
	var newest []slack.Message
	w := window{pages: contextPages}
	if isTS(string(in.Message)) {
		w.before = string(in.Message)
	}
	err = h.api.read(ctx, at, w, func(m slack.Message) bool {
		own := m.User == me.user && (m.Timestamp != at.thread || asker.MatchString(m.Text))
		m.Text = said(m)
		for _, a := range m.Attachments {
			m.Files = append(m.Files, a.Files...)
		}
		switch {
		case own:
		case m.Timestamp == string(in.Message) || m.Text == "" && len(m.Files) == 0:
		case m.SubType != "bot_message" && !counts(m.SubType):
		case m.Timestamp == at.thread:
			root = &m
		default:
			newest = append(newest, m)
			if len(newest) > maxContext {
				newest = newest[1:]
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if root != nil {
		newest = append([]slack.Message{*root}, newest...)
	}
	return h.quoted(ctx, newest), nil
}

// quoted turns messages into quotes. If they are too long together, those in
// the middle go: the root says what it is about, the newest where it stands.
func (h *history) quoted(ctx context.Context, all []slack.Message) []messages.Quote {
	asked := 0
	total := 0
	var out []messages.Quote
	for _, m := range all {
		q := messages.Quote{Relation: "thread", Author: h.people.author(ctx, m, &asked), Text: shorten(plain(m.Text, h.people.nameOf), maxQuote)}
		for _, f := range m.Files {
			q.Files = append(q.Files, attachments([]file{{ID: f.ID, Name: f.Name, Title: f.Title, Type: f.Mimetype, Size: int64(f.Size), Mode: f.Mode}})...)
		}
		for _, a := range q.Files {
			q.Text = strings.TrimSpace(q.Text + "\n[" + platform.Cut(a.Name, 200) + "]")
		}
		total += len(q.Text)
		out = append(out, q)
	}
	for len(out) > 2 && total > maxContextBytes {
		total -= len(out[1].Text)
		out = append(out[:1], out[2:]...)
	}
	return out
}

// window is a part of a conversation.
type window struct {
	since    time.Time // zero: from its beginning
	before   string    // ts that it ends before, or empty; what is nearest is read, however many pages there are
	metadata bool
	pages    int
}

// read calls each for the messages of a conversation until it returns false.
// A thread comes oldest first, a channel newest first.
func (a *api) read(ctx context.Context, in place, w window, each func(slack.Message) bool) error {
	params := slack.GetConversationHistoryParameters{ChannelID: in.channel, Limit: pageSize, Latest: w.before, IncludeAllMetadata: w.metadata}
	if !w.since.IsZero() {
		params.Oldest = second(w.since.Unix())
	}
	for n := range w.pages {
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
		if read := len(page); w.before != "" && n >= w.pages/2 && read > 0 { // too long: skip half of what is left
			at := page[read-1].Timestamp
			params.Cursor, params.Oldest = "", max(at, second((timeOf(at).Unix()+timeOf(w.before).Unix())/2))
		}
	}
	return nil
}

// second returns the ts that a second begins with.
func second(unix int64) string { return strconv.FormatInt(unix, 10) + ".000000" }

// page reads one page of a thread or a channel.
func (a *api) page(ctx context.Context, in place, p slack.GetConversationHistoryParameters) (page []slack.Message, next string, err error) {
	if in.thread == "" {
		err = a.limited(ctx, "", request{method: "conversations.history", idempotent: true}, func(ctx context.Context, web *slack.Client) error {
			got, err := web.GetConversationHistoryContext(ctx, &p)
			if err == nil {
				page, next = got.Messages, got.ResponseMetaData.NextCursor
			}
			return err
		})
		return page, next, err
	}
	err = a.limited(ctx, "", request{method: "conversations.replies", idempotent: true}, func(ctx context.Context, web *slack.Client) (err error) {
		page, _, next, err = web.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: p.ChannelID, Timestamp: in.thread, Cursor: p.Cursor, Latest: p.Latest, Limit: p.Limit, Oldest: p.Oldest,
			IncludeAllMetadata: p.IncludeAllMetadata,
		})
		return err
	})
	return page, next, err
}
