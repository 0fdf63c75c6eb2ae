package telegram

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

const (
	// maxUpload is the largest file that the Bot API takes (sendDocument).
	maxUpload = 50 << 20

	// maxCaption is the limit of a caption; counting UTF-16 units keeps it in
	// every way of counting (Bot API, sendDocument).
	maxCaption = 1024

	// uploadTimeout bounds the upload of one file.
	uploadTimeout = 5 * time.Minute

	fallbackName = "file"
)

// SendFile implements platform.Filer. A caption that is too long is cut. What a
// bot sends as a document is not compressed or changed.
func (s *poster) SendFile(ctx context.Context, f platform.File) (messages.Ref, error) {
	to, err := parseKey(f.Conversation)
	if err != nil {
		return messages.Ref{}, err
	}
	if err := uploadable(f.Data); err != nil {
		return messages.Ref{}, err
	}
	caption := s.caption(f.Caption)
	params := bot.SendDocumentParams{
		ChatID:          to.id,
		MessageThreadID: to.thread,
		Caption:         caption.text,
		CaptionEntities: caption.entities,
		ReplyParameters: replyTo(f.ReplyTo),

		DisableNotification: true, // the text that it belongs to comes before it
	}
	sent, err := s.postFile(ctx, to, params, f)
	if isThreadGone(err) && params.MessageThreadID != 0 {
		params.MessageThreadID, params.ReplyParameters = 0, nil // as Send does
		sent, err = s.postFile(ctx, to, params, f)
	}
	if isEntityError(err) {
		s.observe("entities_refused")
		s.log.WarnContext(ctx, "telegram refused the formatting of a caption, sending it plain", "err", err)
		params.CaptionEntities = nil
		sent, err = s.postFile(ctx, to, params, f)
	}
	if err != nil {
		return messages.Ref{}, err
	}
	s.observe("sent")
	return messages.Ref{Conversation: f.Conversation, Message: messages.MessageID(strconv.Itoa(sent.ID))}, nil
}

// postFile posts once, when the rate limits allow it.
func (s *poster) postFile(ctx context.Context, to chat, params bot.SendDocumentParams, f platform.File) (*models.Message, error) {
	var sent *models.Message
	err := s.client.paced(ctx, to.id, func() error {
		return s.client.callWithin(ctx, uploadTimeout, "sendDocument", false, func(ctx context.Context, api *bot.Bot) (err error) {
			// Each attempt has a reader and parameters of its own: after an early
			// answer the library may still be reading those of the last one.
			own := params
			own.Document = &models.InputFileUpload{Filename: uploadName(f.Name), Data: bytes.NewReader(f.Data)}
			sent, err = api.SendDocument(ctx, &own)
			return err
		})
	})
	return sent, err
}

// uploadName returns a name that fits into one line of a header.
func uploadName(name string) string {
	name = cleanName(name[strings.LastIndexAny(name, `/\`)+1:])
	if strings.Trim(name, ". ") == "" {
		return fallbackName
	}
	return name
}

// caption renders a caption within Telegram's limit.
func (s *poster) caption(markdown string) rendered {
	if strings.TrimSpace(markdown) == "" {
		return rendered{}
	}
	return s.render.render(cutRunes(markdown, maxText)).cut(maxCaption)
}

// cut returns r with at most limit UTF-16 units of text, the last of which then
// says that something is missing.
func (r rendered) cut(limit int) rendered {
	if r.length <= limit {
		return r
	}
	text := strings.TrimRightFunc(platform.CutUTF16(r.text, limit-1), unicode.IsSpace)
	kept := platform.UTF16Len(text)
	out := rendered{text: text + "…", length: kept + 1}
	for _, e := range r.entities {
		if e.Offset >= kept {
			continue
		}
		e.Length = min(e.Length, kept-e.Offset)
		out.entities = append(out.entities, e)
	}
	return out
}

// files reads what people attach.
type files struct{ client *client }

// maxDownload is the largest file that the Bot API hands out (getFile).
const maxDownload = 20 << 20

// Fetch implements platform.Fetcher. The download link holds the token, so it
// is neither returned nor logged.
func (f *files) Fetch(ctx context.Context, att messages.Attachment) (io.ReadCloser, error) {
	if att.Source == "" {
		return nil, fault.New(fault.Unsupported, "That kind of attachment cannot be read.")
	}
	if att.Size > maxDownload {
		return nil, fault.New(fault.Invalid, "Telegram lets bots download files of at most 20 MB.")
	}
	file, err := ask(ctx, f.client, "getFile", (*bot.Bot).GetFile, &bot.GetFileParams{FileID: att.Source})
	if err != nil {
		return nil, err
	}
	if file.FilePath == "" || strings.HasPrefix(file.FilePath, "/") || strings.Contains(file.FilePath, "..") {
		return nil, fault.Wrap(errBadPath, fault.Unsupported, "downloading a file")
	}
	return f.download(ctx, (&url.URL{Path: file.FilePath}).EscapedPath())
}

func (f *files) download(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.client.base+"/file/bot"+f.client.token+"/"+path, http.NoBody)
	if err != nil {
		return nil, fault.Wrap(f.client.scrub.Error(err), fault.Internal, "downloading a file")
	}
	resp, err := f.client.http.Do(req)
	if err != nil {
		return nil, (&exchange.Call{Idempotent: true, Scrub: f.client.scrub}).Failure(ctx, "downloading a file", err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		kind := fault.NotFound
		if resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests {
			kind = fault.Unavailable
		}
		return nil, fault.Wrap(statusError(resp.StatusCode), kind, "downloading a file")
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxDownload), resp.Body}, nil
}
