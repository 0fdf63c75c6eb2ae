package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/media"
	"remote-agent/internal/messages"
)

// MaxFetched is the largest file that is looked at: what Telegram hands out.
const MaxFetched = 20 << 20

const (
	fetchPatience = time.Minute
	hearPatience  = 3 * time.Minute
	maxTranscript = 64 << 10 // bytes
)

// Transcriber writes down what is said in a recording. fault.Unavailable and
// fault.RateLimited mean that it may work later, others that an operator has to look.
type Transcriber interface {
	Transcribe(ctx context.Context, name string, audio io.Reader) (string, error)
}

// Deaf is what a person is told where recordings are not written down.
const Deaf = "I cannot listen to voice messages here; set TRANSCRIBE_BASE_URL to the address of a transcription API (such as https://api.example.com/v1), " +
	"and TRANSCRIBE_MODEL, or send it as text."

// Intake looks at what came with a message: it fetches it, checks it, and makes it
// what a model can be given. It is safe for concurrent use.
type Intake struct {
	store      *Store
	decoder    *media.Decoder
	transcribe Transcriber // nil: recordings are not written down
	log        *slog.Logger
}

// NewIntake returns an Intake that keeps files in a store. transcribe may be nil.
func NewIntake(s *Store, transcribe Transcriber, log *slog.Logger) *Intake {
	return &Intake{store: s, decoder: media.NewDecoder(), transcribe: transcribe, log: log}
}

// Reads reports whether Take can make something of an attachment, as far as its type
// and name tell.
func (*Intake) Reads(a messages.Attachment) bool {
	return media.Claims(a.MediaType, a.Name) != media.Unknown
}

// Take fetches the content of an attachment and returns the attachment with what came
// of it: File and a size for a picture or a document, Text for a recording, or Note,
// which says in a few words why there is nothing, for the model and the person. It
// never holds more of the file in memory than the decoder needs.
func (i *Intake) Take(ctx context.Context, a messages.Attachment, open func(context.Context) (io.ReadCloser, error)) messages.Attachment {
	kind := media.Claims(a.MediaType, a.Name)
	if kind.IsAudio() && i.transcribe == nil {
		a.Note = Deaf
		return a
	}
	file, size, err := i.fetch(ctx, open)
	if file != nil {
		defer discard(file)
	}
	if err == nil {
		a.Size = size
		a, err = i.look(ctx, a, file, size)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		a.Note = "it was not read because the turn ended first"
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.NotFound), fault.Is(err, fault.Unsupported):
		a.Note = short(fault.Public(err))
	default:
		i.log.WarnContext(ctx, "could not read an attachment", "type", a.MediaType, "bytes", size, "err", err)
		a.Note = "it could not be read: " + short(fault.Public(err))
	}
	return a
}

// short is a text for a person as a part of a sentence.
func short(public string) string { return strings.TrimSuffix(strings.TrimSpace(public), ".") }

// fetch is fetchOnce, again if that fails for a passing reason.
func (i *Intake) fetch(ctx context.Context, open func(context.Context) (io.ReadCloser, error)) (file *os.File, size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	err = fault.Fetching.Do(ctx, func() error {
		if file != nil {
			discard(file)
		}
		file, size, err = i.fetchOnce(ctx, open)
		return err
	})
	return file, size, err
}

// fetchOnce brings the content to the disk, to its end or to the limit.
func (i *Intake) fetchOnce(ctx context.Context, open func(context.Context) (io.ReadCloser, error)) (file *os.File, size int64, err error) {
	body, err := open(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer body.Close() //nolint:errcheck // only read
	file, err = i.store.spool()
	if err != nil {
		return nil, 0, fault.Wrap(err, fault.Unavailable, "store a file that is being read")
	}
	size, err = io.Copy(file, io.LimitReader(body, MaxFetched+1))
	switch {
	case err != nil:
		return file, size, fault.Wrap(err, fault.Unavailable, "fetch a file")
	case size > MaxFetched:
		return file, size, fault.Newf(fault.Invalid, "it is larger than %d MB, which is the limit.", MaxFetched>>20)
	}
	return file, size, nil
}

func discard(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// look makes of a file what it is by its content.
func (i *Intake) look(ctx context.Context, a messages.Attachment, file *os.File, size int64) (messages.Attachment, error) {
	head := make([]byte, min(size, media.SniffLen))
	if _, err := file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return a, fault.Wrap(err, fault.Unavailable, "read a file")
	}
	switch kind := media.Sniff(head); {
	case kind.IsImage():
		return i.picture(ctx, a, file, size)
	case kind == media.PDF:
		return i.document(ctx, a, file, size)
	case kind.IsAudio():
		return i.recording(ctx, a, file, size)
	}
	return a, fault.New(fault.Invalid, media.Reason(head))
}

func (i *Intake) picture(ctx context.Context, a messages.Attachment, file *os.File, size int64) (messages.Attachment, error) {
	p, err := i.decoder.Shrink(ctx, file, size)
	if err != nil {
		return a, err
	}
	hash, err := i.store.Put(ctx, p.Data)
	if err != nil {
		return a, err
	}
	a.File = hash
	a.MediaType, a.Size, a.Width, a.Height = string(p.Kind), int64(len(p.Data)), p.Width, p.Height
	if p.FromWidth != p.Width || p.FromHeight != p.Height {
		a.Note = fmt.Sprintf("scaled from %d x %d pixels", p.FromWidth, p.FromHeight)
	}
	return a, nil
}

func (i *Intake) document(ctx context.Context, a messages.Attachment, file *os.File, size int64) (messages.Attachment, error) {
	pages, err := media.CheckPDF(file, size)
	if err != nil {
		return a, err
	}
	data := make([]byte, size)
	if _, err := file.ReadAt(data, 0); err != nil {
		return a, fault.Wrap(err, fault.Unavailable, "read a file")
	}
	hash, err := i.store.Put(ctx, data)
	if err != nil {
		return a, err
	}
	a.File, a.MediaType, a.Pages = hash, string(media.PDF), pages
	return a, nil
}

func (i *Intake) recording(ctx context.Context, a messages.Attachment, file *os.File, size int64) (messages.Attachment, error) {
	if i.transcribe == nil {
		return a, fault.New(fault.Unsupported, Deaf)
	}
	kind, length, err := media.CheckAudio(file, size)
	if err != nil {
		return a, err
	}
	a.MediaType, a.Seconds = string(kind), int(math.Ceil(length.Seconds()))
	// The API goes by the name's ending.
	name := map[media.Kind]string{media.OggAudio: "voice.ogg", media.MP4Audio: "voice.m4a", media.MP3: "voice.mp3", media.WAV: "voice.wav"}[kind]
	ctx, cancel := context.WithTimeout(ctx, hearPatience)
	defer cancel()
	var text string
	err = fault.Fetching.Do(ctx, func() (err error) {
		text, err = i.transcribe.Transcribe(ctx, name, io.NewSectionReader(file, 0, size))
		return err
	})
	if err != nil {
		return a, err
	}
	if text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")); text == "" {
		return a, fault.New(fault.Invalid, "no speech was recognized in it")
	}
	if len(text) > maxTranscript {
		text = strings.ToValidUTF8(text[:maxTranscript], "")
		a.Note = "only the beginning was transcribed"
	}
	a.Text = text
	return a, nil
}

// Show is Store.Show.
func (i *Intake) Show(ctx context.Context, array []messages.Message) ([]messages.Message, error) {
	return i.store.Show(ctx, array)
}

// Show returns the messages of a request with the bytes of the files that they have; see
// messages.ShowFiles.
func (s *Store) Show(ctx context.Context, array []messages.Message) ([]messages.Message, error) {
	return messages.ShowFiles(array, func(a messages.Attachment) (messages.Attachment, error) {
		data, err := s.Get(ctx, a.File)
		if fault.Is(err, fault.NotFound) {
			return a.Noted("the file is no longer kept"), nil
		}
		a.Data = string(data)
		return a, err
	})
}
