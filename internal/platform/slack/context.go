package slack

import (
	"bufio"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/slack-go/slack"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
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
	var root *slack.Message
	var newest []slack.Message
	w := window{pages: contextPages}
	if isTS(string(in.Message)) {
		w.before = string(in.Message)
	}
	err = a.read(ctx, at, w, func(m slack.Message) bool {
		switch {
		case m.Timestamp == string(in.Message) || m.User == me.user || strings.TrimSpace(m.Text) == "":
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
	return a.quoted(ctx, newest), nil
}

// quoted turns messages into quotes. If they are too long together, those in
// the middle go: the root says what it is about, the newest where it stands.
func (a *Adapter) quoted(ctx context.Context, all []slack.Message) []messages.Quote {
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
func (a *Adapter) author(ctx context.Context, m slack.Message, asked *int) string {
	name := first(platform.Cut(m.Username, 80), a.nameOf(m.User))
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
	var out *slack.User
	err := a.limited(ctx, "", request{method: "users.info", idempotent: true}, func(ctx context.Context) (err error) {
		out, err = a.web.GetUserInfoContext(ctx, id)
		return err
	})
	if err != nil {
		return "", err
	}
	name := first(profile{out.Profile.DisplayName, out.Profile.RealName, out.Name}.name(), id)
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
	// The file is read leniently: the library refuses one of whose many fields has
	// another type than it expects.
	err := a.limited(ctx, "", request{method: "files.info", idempotent: true, more: &out}, func(ctx context.Context) error {
		_, _, _, err := a.web.GetFileInfoContext(ctx, att.Source, 1, 1)
		return err
	})
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

// download returns what the library writes to it, in a goroutine that ends at the
// latest with Close. It knows about the answer before the first byte is read.
func (a *Adapter) download(ctx context.Context, address, kind string) (io.ReadCloser, error) {
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithValue(ctx, downloadKey{}, kind))
	d := &download{r: bufio.NewReader(io.LimitReader(r, maxDownload)), pipe: r, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		err := a.web.GetFileContext(ctx, address, w)
		if _, classified := errors.AsType[*fault.Error](err); err != nil && !classified {
			err = (&exchange.Call{Idempotent: true, Scrub: a.scrub}).Failure(ctx, "downloading a file", err)
		}
		_ = w.CloseWithError(err) // nil is the end of the file
	}()
	if _, err := d.r.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// download is a file that is being read.
type download struct {
	r      *bufio.Reader
	pipe   *io.PipeReader
	cancel context.CancelFunc
	done   chan struct{} // closed when nothing is written any more
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) { return d.r.Read(p) }

// Close implements io.Closer.
func (d *download) Close() error {
	d.cancel()
	err := d.pipe.Close()
	<-d.done
	return err
}

// downloadKey marks the requests of downloads with the type that the file has.
type downloadKey struct{}

// downloadable returns the error of an answer that is not the file: the library
// tells the states apart by text only, and takes the page to sign in, which who may
// not read a file is shown, for the file.
func downloadable(resp *http.Response, kind string) error {
	got, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	want, _, _ := mime.ParseMediaType(kind)
	switch {
	case resp.StatusCode == http.StatusOK && (got != "text/html" || want == "text/html"):
		return nil
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusTooManyRequests:
		return fault.Newf(fault.Unavailable, "Slack cannot provide the file right now (HTTP status %d).", resp.StatusCode)
	case resp.StatusCode == http.StatusNotFound:
		return fault.New(fault.NotFound, "Slack no longer has the file.")
	default:
		return fault.New(fault.Forbidden, "The Slack app may not read files: it needs the scope files:read.")
	}
}
