package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

const (
	// maxUpload is the largest file that Slack takes.
	maxUpload = 1 << 30

	// maxCaption bounds what is said with a file, in bytes of Markdown.
	maxCaption = 3000

	// uploadTimeout bounds the transfer of one file.
	uploadTimeout = 5 * time.Minute

	fallbackName = "file"
)

var _ platform.Filer = (*Adapter)(nil)

var (
	errNoUpload = errors.New("the answer has no usable address or id for the upload")
	errNoFile   = errors.New("the file was gone before it was shared")
)

// SendFile implements platform.Filer. Until the last of its calls nobody sees
// anything, so only that one can be Uncertain. The Ref's Message is the file's
// id if Slack does not say which message shows it: it shares files later than
// it answers. With f.Again the conversation is searched for a file of the same name
// and size that was posted since.
func (a *Adapter) SendFile(ctx context.Context, f platform.File) (messages.Ref, error) {
	to, err := parseKey(f.Conversation)
	if err != nil {
		return messages.Ref{}, err
	}
	switch {
	case len(f.Data) == 0:
		return messages.Ref{}, fault.New(fault.Invalid, "Slack does not accept empty files.")
	case len(f.Data) > maxUpload:
		return messages.Ref{}, fault.New(fault.Invalid, "Slack accepts files of at most 1 GB.")
	}
	name := uploadName(f.Name)
	if f.Again {
		if ts, err := a.lookupFile(ctx, to, f.Delivery, name, len(f.Data)); err != nil || ts != "" {
			return sentAs(to, ts), err
		}
	}
	id, address, err := a.announceFile(ctx, name, len(f.Data))
	if err != nil {
		return messages.Ref{}, err
	}
	if err := a.upload(ctx, address, name, f.Data); err != nil {
		return messages.Ref{}, err
	}
	ts, err := a.shareFile(ctx, to, id, name, f.Caption)
	if err != nil {
		return messages.Ref{}, err
	}
	a.observe("sent")
	if ts != "" {
		return sentAs(to, ts), nil
	}
	return messages.Ref{Conversation: f.Conversation, Message: messages.MessageID(id)}, nil
}

// lookupFile returns the ts of the message that shows a file of a delivery, or nothing.
// If it cannot be told, the error is as that of lookup.
func (a *Adapter) lookupFile(ctx context.Context, in place, delivery messages.DeliveryID, name string, size int) (ts string, err error) {
	me, err := a.whoami(ctx)
	if err != nil {
		return "", unsure(err)
	}
	_, since := a.madeAt(delivery)
	err = a.read(ctx, in, window{since: since, pages: maxPages}, func(m slack.Message) bool {
		ours := m.User == me.user || m.BotID != "" && m.BotID == me.bot
		for _, f := range m.Files {
			if ours && f.Name == name && f.Size == size {
				ts = m.Timestamp
			}
		}
		return ts == ""
	})
	if isTS(ts) {
		a.observe("found_sent")
		return ts, nil
	}
	return "", lookupError(ctx, a.log, err)
}

// announceFile returns the id of a file to be and the address that takes it.
func (a *Adapter) announceFile(ctx context.Context, name string, size int) (id, address string, err error) {
	var out *slack.GetUploadURLExternalResponse
	err = a.limited(ctx, "", request{method: "files.getUploadURLExternal", idempotent: true}, func(ctx context.Context) (err error) {
		out, err = a.web.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: name, FileSize: size})
		return err
	})
	if err != nil {
		return "", "", err
	}
	u, err := url.Parse(out.UploadURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && !a.ownHost(u) || !isID(out.FileID) {
		return "", "", fault.Wrap(errNoUpload, fault.Unavailable, "uploading a file")
	}
	return out.FileID, out.UploadURL, nil
}

// upload sends the content of a file. The address is a credential by itself.
func (a *Adapter) upload(ctx context.Context, address, name string, data []byte) error {
	scrub := exchange.NewScrubber(nil, a.cfg.BotToken, address)
	call := &exchange.Call{Idempotent: true, Timeout: uploadTimeout, MaxAnswer: maxAnswer, Scrub: scrub}
	err := a.web.UploadToURL(call.Context(ctx), slack.UploadToURLParameters{UploadURL: address, Filename: name, Reader: bytes.NewReader(data)})
	if err == nil {
		return nil
	}
	switch call.Status() {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		// The address says who may upload. A new one is asked for next time.
		return fault.Wrap(scrub.Error(err), fault.Unavailable, "uploading a file")
	}
	return a.failed(ctx, request{method: "upload", idempotent: true}, call, err)
}

// shareFile makes an uploaded file a message. It returns the message's ts if
// Slack tells it.
func (a *Adapter) shareFile(ctx context.Context, to place, id, title, caption string) (string, error) {
	params := slack.CompleteUploadExternalParameters{
		Files: []slack.FileSummary{{ID: id, Title: title}}, Channel: to.channel, ThreadTimestamp: to.thread,
	}
	if caption = strings.TrimSpace(caption); caption != "" {
		params.InitialComment = escaped(shorten(caption, maxCaption))
	}
	var out struct { // the library does not tell where a file is shown
		Files json.RawMessage `json:"files"`
	}
	err := a.limited(ctx, to.channel, request{method: "files.completeUploadExternal", more: &out}, func(ctx context.Context) error {
		_, err := a.web.CompleteUploadExternalContext(ctx, params)
		return err
	})
	if err != nil {
		return "", unshared(err)
	}
	for _, f := range list[sharedFile](out.Files) {
		if ts := f.in(to.channel); f.ID == id && ts != "" {
			return ts, nil
		}
	}
	return "", nil
}

// unshared gives the codes that only sharing a file has the kinds that they have
// for messages.
func unshared(err error) error {
	switch codeOf(err) {
	case "invalid_channel":
		return fault.Wrap(err, fault.Gone, "sharing a file")
	case "posting_to_channel_denied":
		return &fault.Error{Kind: fault.Forbidden, Public: "The workspace does not allow the bot to post there.", Err: err}
	case "file_not_found": // not what NotFound means to the caller; it starts over
		return fault.Wrap(errNoFile, fault.Unavailable, "sharing a file")
	}
	return err
}

// sharedFile is what is read of a file that was shared.
type sharedFile struct {
	ID     string `json:"id"`
	Shares struct {
		Public  map[string]json.RawMessage `json:"public"`
		Private map[string]json.RawMessage `json:"private"`
	} `json:"shares"`
}

// in returns the ts of the message that shows the file in a channel.
func (f sharedFile) in(channel string) string {
	for _, shares := range []json.RawMessage{f.Shares.Public[channel], f.Shares.Private[channel]} {
		for _, s := range list[struct {
			TS string `json:"ts"`
		}](shares) {
			if isTS(s.TS) {
				return s.TS
			}
		}
	}
	return ""
}

// uploadName returns a plain name of one line.
func uploadName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = platform.Cut(strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }), " "), 255)
	if strings.Trim(name, ". ") == "" {
		return fallbackName
	}
	return name
}
