package slack

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
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
	// maxUpload is the largest file that Slack takes, maxDownload that is read.
	maxUpload   = 1 << 30
	maxDownload = 64 << 20

	// maxCaption bounds what is said with a file, in bytes of Markdown.
	maxCaption = 3000

	// uploadTimeout bounds the transfer of one file.
	uploadTimeout = 5 * time.Minute

	fallbackName = "file"
)

var (
	errNoUpload = errors.New("the answer has no usable address or id for the upload")
	errNoFile   = errors.New("the file was gone before it was shared")
)

// files posts files and reads those of people.
type files struct {
	api     *api
	me      *installation
	token   string
	log     *slog.Logger
	observe func(string)
}

// SendFile implements platform.Filer. Until the last of its calls nobody sees
// anything, so only that one can be Uncertain. The Ref's Message is the file's
// id if Slack does not say which message shows it: it shares files later than
// it answers. With f.Again the conversation is searched for a file of the same name
// and size that was posted since.
func (fs *files) SendFile(ctx context.Context, f platform.File) (messages.Ref, error) {
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
		if ts, err := fs.lookupFile(ctx, to, f.Delivery, name, len(f.Data)); err != nil || ts != "" {
			return sentAs(to, ts), err
		}
	}
	id, address, err := fs.announceFile(ctx, name, len(f.Data))
	if err != nil {
		return messages.Ref{}, err
	}
	if err := fs.upload(ctx, address, name, f.Data); err != nil {
		return messages.Ref{}, err
	}
	ts, err := fs.shareFile(ctx, to, id, name, f.Caption)
	if err != nil {
		return messages.Ref{}, err
	}
	fs.observe("sent")
	if ts != "" {
		return sentAs(to, ts), nil
	}
	return messages.Ref{Conversation: f.Conversation, Message: messages.MessageID(id)}, nil
}

// lookupFile returns the ts of the message that shows a file of a delivery, or nothing.
// If it cannot be told, the error is as that of lookup.
func (fs *files) lookupFile(ctx context.Context, in place, delivery messages.DeliveryID, name string, size int) (ts string, err error) {
	me, err := fs.me.whoami(ctx)
	if err != nil {
		return "", unsure(err)
	}
	_, since := fs.api.madeAt(delivery)
	err = fs.api.read(ctx, in, window{since: since, pages: maxPages}, func(m slack.Message) bool {
		ours := m.User == me.user || m.BotID != "" && m.BotID == me.bot
		for _, f := range m.Files {
			if ours && f.Name == name && f.Size == size {
				ts = m.Timestamp
			}
		}
		return ts == ""
	})
	if isTS(ts) {
		fs.observe("found_sent")
		return ts, nil
	}
	return "", lookupError(ctx, fs.log, err)
}

// announceFile returns the id of a file to be and the address that takes it.
func (fs *files) announceFile(ctx context.Context, name string, size int) (id, address string, err error) {
	var out *slack.GetUploadURLExternalResponse
	err = fs.api.limited(ctx, "", request{method: "files.getUploadURLExternal", idempotent: true}, func(ctx context.Context, web *slack.Client) (err error) {
		out, err = web.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: name, FileSize: size})
		return err
	})
	if err != nil {
		return "", "", err
	}
	u, err := url.Parse(out.UploadURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && !fs.api.ownHost(u) || !isID(out.FileID) {
		return "", "", fault.Wrap(errNoUpload, fault.Unavailable, "uploading a file")
	}
	return out.FileID, out.UploadURL, nil
}

// upload sends the content of a file. The address is a credential by itself.
func (fs *files) upload(ctx context.Context, address, name string, data []byte) error {
	scrub := exchange.NewScrubber(nil, fs.token, address)
	call := &exchange.Call{Idempotent: true, Timeout: uploadTimeout, MaxAnswer: maxAnswer, Scrub: scrub}
	err := fs.api.web.UploadToURL(call.Context(ctx), slack.UploadToURLParameters{UploadURL: address, Filename: name, Reader: bytes.NewReader(data)})
	if err == nil {
		return nil
	}
	switch call.Status() {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		// The address says who may upload. A new one is asked for next time.
		return fault.Wrap(scrub.Error(err), fault.Unavailable, "uploading a file")
	}
	return failed(ctx, request{method: "upload", idempotent: true}, call, err)
}

// shareFile makes an uploaded file a message. It returns the message's ts if
// Slack tells it.
func (fs *files) shareFile(ctx context.Context, to place, id, title, caption string) (string, error) {
	params := slack.CompleteUploadExternalParameters{
		Files: []slack.FileSummary{{ID: id, Title: title}}, Channel: to.channel, ThreadTimestamp: to.thread,
	}
	if caption = strings.TrimSpace(caption); caption != "" {
		params.InitialComment = escaped(shorten(caption, maxCaption))
	}
	var out struct { // the library does not tell where a file is shown
		Files json.RawMessage `json:"files"`
	}
	err := fs.api.limited(ctx, to.channel, request{method: "files.completeUploadExternal", more: &out}, func(ctx context.Context, web *slack.Client) error {
		_, err := web.CompleteUploadExternalContext(ctx, params)
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

var errElsewhere = errors.New("the file is not on Slack's servers")

// Fetch implements platform.Fetcher. The address of a file is asked for anew, so
// that the token is sent to no address of a message.
func (fs *files) Fetch(ctx context.Context, att messages.Attachment) (io.ReadCloser, error) {
	if !isID(att.Source) {
		return nil, fault.New(fault.Unsupported, "That kind of attachment cannot be read.")
	}
	if att.Size > maxDownload {
		return nil, fault.New(fault.Invalid, "The file is too large.")
	}
	f, err := fs.info(ctx, att.Source)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(cmp.Or(f.Download, f.Private))
	if err != nil || !fs.api.ownHost(address) {
		return nil, fault.Wrap(errElsewhere, fault.Unsupported, "downloading a file")
	}
	return fs.download(ctx, address.String(), f.kind())
}

// Describe implements platform.Describer: of a file that comes from another organization,
// an event has no more than the id (file_access: check_file_info).
func (fs *files) Describe(ctx context.Context, att messages.Attachment) (messages.Attachment, error) {
	f, err := fs.info(ctx, att.Source)
	if err != nil {
		return att, err
	}
	f.ID = att.Source
	told := attachments([]file{f})[0]
	told.Author = att.Author
	return told, nil
}

// info asks for a file. It is read leniently: the library refuses one of whose many
// fields has another type than it expects.
func (fs *files) info(ctx context.Context, id string) (file, error) {
	var out struct {
		File file `json:"file"`
	}
	err := fs.api.limited(ctx, "", request{method: "files.info", idempotent: true, more: &out}, func(ctx context.Context, web *slack.Client) error {
		_, _, _, err := web.GetFileInfoContext(ctx, id, 1, 1)
		return err
	})
	switch codeOf(err) {
	case "file_not_found", "file_deleted", "access_denied":
		err = &fault.Error{Kind: fault.NotFound, Public: "Slack has no such file for the bot: it was deleted, or it is not shared with the bot.", Err: err}
	}
	return out.File, err
}

// download returns what the library writes to it, in a goroutine that ends at the
// latest with Close. It knows about the answer before the first byte is read.
func (fs *files) download(ctx context.Context, address, kind string) (io.ReadCloser, error) {
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithValue(ctx, downloadKey{}, kind))
	d := &download{r: bufio.NewReader(io.LimitReader(r, maxDownload)), pipe: r, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		err := fs.api.web.GetFileContext(ctx, address, w)
		if _, classified := errors.AsType[*fault.Error](err); err != nil && !classified {
			err = (&exchange.Call{Idempotent: true, Scrub: fs.api.scrub}).Failure(ctx, "downloading a file", err)
		}
		_ = w.CloseWithError(err) // nil is the end of the file
	}()
	if _, err := d.r.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		_ = d.Close()
		return nil, err
	}
	return d, nil
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
