package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
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
// it answers.
func (a *Adapter) SendFile(ctx context.Context, f platform.File) (messages.Ref, error) {
	to, err := parseKey(f.Conversation)
	if err != nil {
		return messages.Ref{}, err
	}
	switch {
	case len(f.Data) == 0:
		return messages.Ref{}, fault.New(fault.Invalid, "Slack takes no empty files.")
	case len(f.Data) > maxUpload:
		return messages.Ref{}, fault.New(fault.Invalid, "Slack takes files of at most 1 GB.")
	}
	name := uploadName(f.Name)
	id, address, err := a.announceFile(ctx, name, len(f.Data))
	if err != nil {
		return messages.Ref{}, err
	}
	if err := a.upload(ctx, address, f.Data); err != nil {
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

// announceFile returns the id of a file to be and the address that takes it.
func (a *Adapter) announceFile(ctx context.Context, name string, size int) (id, address string, err error) {
	var out struct {
		ID  string `json:"file_id"`
		URL string `json:"upload_url"`
	}
	err = a.limited(ctx, "", request{
		method: "files.getUploadURLExternal", idempotent: true,
		params: url.Values{"filename": {name}, "length": {strconv.Itoa(size)}},
	}, &out)
	if err != nil {
		return "", "", err
	}
	u, err := url.Parse(out.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && !a.ownHost(u) || !isID(out.ID) {
		return "", "", fault.Wrap(errNoUpload, fault.Unavailable, "uploading a file")
	}
	return out.ID, out.URL, nil
}

// upload sends the content of a file. The address is a credential by itself, so
// the token is not sent along.
func (a *Adapter) upload(ctx context.Context, address string, data []byte) error {
	inner, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(inner, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return fault.Wrap(a.scrub(err), fault.Internal, "uploading a file")
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	seen := &outcome{}
	if _, _, err := a.exchange(req, seen); err != nil {
		switch seen.status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
			// The address says who may upload. A new one is asked for next time.
			return fault.Wrap(a.scrub(err), fault.Unavailable, "uploading a file")
		}
		return a.failed(ctx, request{method: "upload", idempotent: true}, err, seen)
	}
	return nil
}

// shareFile makes an uploaded file a message. It returns the message's ts if
// Slack tells it.
func (a *Adapter) shareFile(ctx context.Context, to place, id, title, caption string) (string, error) {
	type entry struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	params := url.Values{"channel_id": {to.channel}, "files": {jsonArg([]entry{{id, title}})}}
	if to.thread != "" {
		params.Set("thread_ts", to.thread)
	}
	if caption = strings.TrimSpace(caption); caption != "" {
		params.Set("initial_comment", escaped(shorten(caption, maxCaption)))
	}
	var out struct {
		Files json.RawMessage `json:"files"`
	}
	err := a.limited(ctx, to.channel, request{method: "files.completeUploadExternal", params: params}, &out)
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
		return &fault.Error{Kind: fault.Forbidden, Public: "The workspace does not let me post there.", Err: err}
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
	name = cut(strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }), " "), 255)
	if strings.Trim(name, ". ") == "" {
		return fallbackName
	}
	return name
}
