package slack

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

const (
	// maxContext and maxContextBytes bound what is read of a thread: its root and
	// the messages that stand nearest before the mention.
	maxContext      = 50
	maxContextBytes = 32 << 10
	contextPages    = 10
	maxQuote        = 4000

	// maxNames is how many names are asked for at once.
	maxNames = 20

	maxDownload = 64 << 20
)

// said is what is read of an earlier message.
type said struct {
	TS      string  `json:"ts"`
	User    string  `json:"user"`
	BotID   string  `json:"bot_id"`
	Subtype string  `json:"subtype"`
	Name    string  `json:"username"` // of a bot
	Text    string  `json:"text"`
	Profile profile `json:"user_profile"`
}

// Context implements platform.Contexter: the root of the thread and the newest
// messages before in, without the bot's own.
func (a *Adapter) Context(ctx context.Context, in messages.Inbound) ([]messages.Quote, error) {
	at, err := parseKey(in.Conversation)
	if err != nil || at.thread == "" || string(in.Message) == at.thread {
		return nil, err
	}
	me, err := a.whoami(ctx)
	if err != nil {
		return nil, err
	}
	var root *said
	var newest []said
	w := window{pages: contextPages}
	if isTS(string(in.Message)) {
		w.before = string(in.Message)
	}
	err = read(ctx, a, at, w, func(m said) bool {
		switch {
		case m.TS == string(in.Message) || m.User == me.user || strings.TrimSpace(m.Text) == "":
		case m.Subtype != "bot_message" && !counts(m.Subtype):
		case m.TS == at.thread:
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
		newest = append([]said{*root}, newest...)
	}
	return a.quoted(ctx, newest), nil
}

// quoted turns messages into quotes. If they are too long together, those in
// the middle go: the root says what it is about, the newest where it stands.
func (a *Adapter) quoted(ctx context.Context, all []said) []messages.Quote {
	asked := 0
	total := 0
	var out []messages.Quote
	for _, m := range all {
		text := shorten(plain(m.Text, a.nameOf), maxQuote)
		total += len(text)
		out = append(out, messages.Quote{Relation: "thread", Author: a.author(ctx, m, &asked), Text: text})
	}
	for len(out) > 2 && total > maxContextBytes {
		total -= len(out[1].Text)
		out = append(out[:1], out[2:]...)
	}
	return out
}

// author returns the name of who wrote m, asking for at most maxNames names.
func (a *Adapter) author(ctx context.Context, m said, asked *int) string {
	name := first(m.Profile.name(), cut(m.Name, 80), a.nameOf(m.User))
	if name != "" || !isID(m.User) || *asked >= maxNames {
		return first(name, m.User)
	}
	*asked++
	name, err := a.askName(ctx, m.User)
	if err != nil {
		*asked = maxNames // it is only a name
		return m.User
	}
	return name
}

// askName finds out the name of a user and remembers it.
func (a *Adapter) askName(ctx context.Context, id string) (string, error) {
	var out struct {
		User struct {
			Name    string  `json:"name"`
			Profile profile `json:"profile"`
		} `json:"user"`
	}
	err := a.limited(ctx, "", request{method: "users.info", idempotent: true, params: url.Values{"user": {id}}}, &out)
	if err != nil {
		return "", err
	}
	name := first(out.User.Profile.name(), cut(out.User.Name, 80), id)
	a.names.Put(id, name)
	return name, nil
}

var errElsewhere = errors.New("the file is not on Slack's servers")

// Fetch implements platform.Fetcher. The address of a file is asked for anew, so
// that the token is sent to no address of a message.
func (a *Adapter) Fetch(ctx context.Context, att messages.Attachment) (io.ReadCloser, error) {
	if !isID(att.Source) {
		return nil, fault.New(fault.Unsupported, "That kind of attachment cannot be read.")
	}
	if att.Size > maxDownload {
		return nil, fault.New(fault.Invalid, "The file is too large.")
	}
	var out struct {
		File file `json:"file"`
	}
	err := a.limited(ctx, "", request{method: "files.info", idempotent: true, params: url.Values{"file": {att.Source}}}, &out)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(first(out.File.Download, out.File.Private))
	if err != nil || !a.ownHost(address) {
		return nil, fault.Wrap(errElsewhere, fault.Unsupported, "downloading a file")
	}
	return a.download(ctx, address.String(), out.File.Type)
}

// ownHost reports whether the token may be sent to an address.
func (a *Adapter) ownHost(u *url.URL) bool {
	if u.Scheme == "https" && u.Host == "files.slack.com" {
		return true
	}
	api, err := url.Parse(a.base)
	return err == nil && a.base != defaultAPIURL && u.Scheme == api.Scheme && u.Host == api.Host
}

func (a *Adapter) download(ctx context.Context, address, kind string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fault.Wrap(a.scrub(err), fault.Internal, "downloading a file")
	}
	req.Header.Set("Authorization", "Bearer "+a.cfg.BotToken)
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, fault.Wrap(a.scrub(err), networkKind(ctx), "downloading a file")
	}
	got, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	want, _, _ := mime.ParseMediaType(kind)
	// Who may not read a file is shown the page to sign in.
	if resp.StatusCode == http.StatusOK && (got != "text/html" || want == "text/html") {
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxDownload), resp.Body}, nil
	}
	_ = resp.Body.Close()
	switch {
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusTooManyRequests:
		return nil, fault.Newf(fault.Unavailable, "Slack does not hand out the file now (HTTP status %d).", resp.StatusCode)
	case resp.StatusCode == http.StatusNotFound:
		return nil, fault.New(fault.NotFound, "Slack no longer has the file.")
	default:
		return nil, fault.New(fault.Forbidden, "The Slack app may not read files: it needs the scope files:read.")
	}
}
