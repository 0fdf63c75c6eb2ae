package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// Files reads what people attach besides text, and keeps it.
type Files interface {
	// Reads reports whether Take may make something of an attachment.
	Reads(a messages.Attachment) bool

	// Take looks at the content of an attachment, which open fetches, and returns the
	// attachment with what a model can be given of it, or with a Note that says
	// why there is nothing.
	Take(ctx context.Context, a messages.Attachment, open func(context.Context) (io.ReadCloser, error)) messages.Attachment

	// Show returns messages with the data of the files that they have. It changes
	// nothing that it is given.
	Show(ctx context.Context, array []messages.Message) ([]messages.Message, error)
}

const (
	// maxFiles is how many files of a message are read.
	maxFiles = 20

	// maxFilesBefore is how many files of what was said before the bot was called are read.
	// Of each text file, only the beginning is shown.
	maxFilesBefore, maxTextBefore = 5, 16 << 10

	// maxReadings is how often a file is begun to be read: a process that ends meanwhile
	// may have been ended by it.
	maxReadings = 3

	// maxHeard is how much of what was said in a recording is shown, in bytes.
	maxHeard = 1500
)

// readsAny reports whether something of attachments is to be looked at before the turn
// can begin.
func (w *worker) readsAny(list []messages.Attachment) bool {
	if _, ok := w.adapter().(platform.Fetcher); !ok {
		return false
	}
	return slices.ContainsFunc(list, func(a messages.Attachment) bool { return a.Source != "" })
}

// attachments brings the files of an entry into a turn that is prepared. They are read
// once for an entry, and what was said in recordings is shown with that, before the
// turn begins. What cannot be read is named to the model and to the person with the
// reason; if nothing else came, the person is answered with that.
func (pr preparation) attachments(ctx context.Context, entry *sessions.Entry, r *ready) {
	r.attachments, r.came = entry.In.Attachments, len(entry.In.Attachments)
	if !pr.readsAny(r.attachments) {
		return
	}
	r.attachments = pr.readAttachments(ctx, entry, r.attachments)
	failed := failures(r.attachments)
	r.work.Notice = joinNotices(failed...)
	usable := slices.ContainsFunc(r.attachments, func(a messages.Attachment) bool {
		return a.Text != "" || a.File != "" || a.Source == "" || isSticker(a)
	})
	if !usable && strings.TrimSpace(entry.In.Text) == "" && len(entry.In.Quotes) == 0 {
		r.unreadable, r.work.Notice = r.work.Notice, ""
	}
}

// filesBefore adds the newest files of what was said before that can be read. The person
// is told of no others: they were not meant for the bot.
func (pr preparation) filesBefore(ctx context.Context, entry *sessions.Entry, r *ready) {
	var list []messages.Attachment
	files := pr.o.config.Files
	for _, q := range slices.Backward(r.earlier) {
		for _, a := range slices.Backward(q.Files) {
			if len(list) < maxFilesBefore && (isTextFile(a) || a.Note == "" && files != nil && files.Reads(a)) {
				a.Author = cmp.Or(q.Author, "somebody else")
				list = append(list, a)
			}
		}
	}
	if !pr.readsAny(list) {
		return
	}
	slices.Reverse(list)
	r.attachments = pr.readAttachments(ctx, entry, append(slices.Clip(r.attachments), list...))
	for i, a := range r.attachments[r.came:] {
		if len(a.Text) > maxTextBefore {
			a.Text, a.Note = strings.ToValidUTF8(a.Text[:maxTextBefore], ""), "only the beginning"
			r.attachments[r.came+i] = a
		}
	}
}

// readAttachments reads files of a turn that is prepared, up to a limit. What was read of one is on
// record before the next one is fetched, and is good for as long as the file is kept. That
// one is begun is on record as well, so that a file that ends the process is left out.
func (pr preparation) readAttachments(ctx context.Context, entry *sessions.Entry, list []messages.Attachment) []messages.Attachment {
	p := &entry.Preparation
	list = slices.Clone(list)
	fetcher, ok := pr.adapter().(platform.Fetcher)
	read, begun := 0, false
	for i, a := range list {
		switch {
		case !ok || a.Source == "" || a.Text != "" || a.Note != "": // Note: by the adapter
			continue
		case read == maxFiles:
			list[i].Note = tooMany
			continue
		}
		read++
		known := i < len(p.Files) && p.Files[i].Source == a.Source
		if known && pr.stillKept(ctx, p.Files[i]) {
			list[i] = p.Files[i]
			continue
		}
		if !begun {
			begun, p.Readings = true, p.Readings+1
			pr.keep(ctx, *entry)
		}
		if p.Readings > maxReadings {
			list[i].Note = endsReading
		} else {
			list[i] = pr.readOne(ctx, *entry, fetcher, a)
		}
		if known {
			p.Files[i] = list[i]
		} else {
			p.Files = slices.Clone(list[:i+1])
		}
		p.FilesAt, p.Readings = time.Now(), 1 // the next one is begun with that, if there is one
		pr.keepFile(ctx, *entry, list[i], !known)
	}
	return list
}

// stillKept reports whether what was read of an attachment can be used: its file may
// have been deleted since, with another message that had it.
func (pr preparation) stillKept(ctx context.Context, a messages.Attachment) bool {
	if a.File == "" {
		return true
	}
	kept := false
	err := pr.o.config.Storage.InRead(ctx, func(tx port.Tx) (err error) {
		kept, err = tx.Messages().HasFile(ctx, a.File)
		return err
	})
	return err != nil || kept // holdFiles looks again
}

// keepFile is keep, and puts what was said in a recording that is new into the chat.
func (pr preparation) keepFile(ctx context.Context, entry sessions.Entry, a messages.Attachment, fresh bool) {
	err := pr.hold(ctx, func(tx port.Tx) error {
		if fresh && a.Spoken() {
			if err := pr.notice(ctx, tx, entry, heard(a)); err != nil {
				return err
			}
		}
		return tx.Inbox().UpdateEntry(ctx, entry.ID, sessions.EntryUpdate{Preparation: &entry.Preparation})
	})
	if err != nil && !errors.Is(err, sessions.ErrLeaseLost) && ctx.Err() == nil {
		pr.o.config.Log.WarnContext(ctx, "could not keep what was read of an attachment", "entry", entry.ID, "err", err)
	}
}

// tooMany is the note of files beyond the limit.
var tooMany = fmt.Sprintf("only the first %d files of a message are read", maxFiles)

// endsReading is the note of a file that may end the process.
var endsReading = fmt.Sprintf("it was not read, because I was interrupted %d times while reading the files of this message", maxReadings)

// failures says what was not read, each reason once.
func failures(list []messages.Attachment) (failed []string) {
	over := 0
	for _, a := range list {
		switch {
		case a.Source == "" || a.Text != "" || a.File != "" || isSticker(a):
		case a.Note == tooMany:
			over++
		case !slices.Contains(failed, failure(a)):
			failed = append(failed, failure(a))
		}
	}
	if over > 0 {
		failed = append(failed, fmt.Sprintf("⚠ Only the first %d files of a message are read; %d more were left out.", maxFiles, over))
	}
	return failed
}

// isSticker reports whether an attachment is only named on purpose: its adapter says
// what it means.
func isSticker(a messages.Attachment) bool { return strings.HasPrefix(a.Note, "a sticker") }

// failure is what a person is told of a file that was not read.
func failure(a messages.Attachment) string {
	if strings.HasPrefix(a.Note, "I ") {
		return "⚠ " + a.Note
	}
	return fmt.Sprintf("⚠ %s: %s.", a.Name, a.Note)
}

// heard quotes what was said in a recording, so that the person sees what is answered.
func heard(a messages.Attachment) string {
	text := a.Text
	if len(text) > maxHeard {
		text = strings.ToValidUTF8(text[:maxHeard], "") + "…"
	}
	return "🎤 " + length(a.Seconds) + "\n" + indent(text)
}

func length(seconds int) string { return fmt.Sprintf("%d:%02d", seconds/60, seconds%60) }

// readOne reads one file: a text file as it is, others as Files does.
func (pr preparation) readOne(ctx context.Context, entry sessions.Entry, fetcher platform.Fetcher, a messages.Attachment) messages.Attachment {
	if d, ok := fetcher.(platform.Describer); ok && a.Name == "" && a.MediaType == "" {
		told, err := d.Describe(ctx, a)
		if err != nil {
			pr.o.config.Log.InfoContext(ctx, "could not ask what an attachment is", "entry", entry.ID, "err", err)
			a.Name, a.Note = "file", unread(err)
			return a
		}
		if a = told; a.Note != "" {
			return a
		}
	}
	switch {
	case isTextFile(a):
		return pr.readTextFile(ctx, entry, fetcher, a)
	case pr.o.config.Files != nil && pr.o.config.Files.Reads(a):
		return pr.o.config.Files.Take(ctx, a, func(ctx context.Context) (io.ReadCloser, error) { return fetcher.Fetch(ctx, a) })
	case untold(a):
		if read := pr.readTextFile(ctx, entry, fetcher, a); read.Text != "" && !strings.ContainsFunc(read.Text, isBinary) {
			return read
		}
	}
	a.Note = "files of this kind cannot be opened here; supported are text, JPEG, PNG, WebP, GIF, PDF and voice messages"
	return a
}

// holdFiles makes sure, in the transaction that stores a message, that the files it
// has are still there: the message that had them before may have been deleted since
// they were looked at. Then they are looked at again.
func (r *run) holdFiles(ctx context.Context, tx port.Tx, list []messages.Attachment) error {
	for _, a := range list {
		if a.File == "" {
			continue
		}
		held, err := tx.Messages().HoldFile(ctx, a.File)
		if err != nil {
			return err
		}
		if !held {
			delete(r.w.ready, r.d.entry.ID)
			return fault.New(fault.Unavailable, "A file was deleted at this moment; it is read again.")
		}
	}
	return nil
}

// show returns the messages of a request with their files. An agent has seen what
// came before the request.
func (r *run) show(ctx context.Context, array []messages.Message) ([]messages.Message, error) {
	files := r.w.o.config.Files
	if files == nil {
		return array, nil
	}
	from := 0
	if r.w.runsAgent() {
		for from = len(array) - 1; from > 0 && array[from].Role != messages.RoleUser; from-- {
		}
	}
	shown, err := files.Show(ctx, array[max(0, from):])
	if err != nil || from <= 0 {
		return shown, err
	}
	return append(slices.Clip(array[:from]), shown...), nil
}

// maxReadFile is how much of a text file is given to the model.
const maxReadFile = 128 << 10

// untold reports whether the type of an attachment leaves open whether it is text: source
// code is told as application/x-php and the like, and TypeScript as a video.
func untold(a messages.Attachment) bool {
	kind, _, _ := mime.ParseMediaType(a.MediaType)
	return kind == "" || strings.HasPrefix(kind, "application/") || kind == "video/mp2t"
}

// isBinary reports whether a rune is one that no text has.
func isBinary(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) && r != '\x1b' }

// isTextFile reports whether an attachment is text by its type or, where that
// leaves it open, its name.
func isTextFile(a messages.Attachment) bool {
	if a.Source == "" || a.Text != "" || a.Note != "" {
		return false
	}
	kind, _, _ := mime.ParseMediaType(a.MediaType)
	switch {
	case strings.HasPrefix(kind, "text/"), kind == "application/json", kind == "application/xml",
		kind == "application/x-yaml", kind == "application/x-sh", kind == "application/toml":
		return true
	case !untold(a):
		return false
	}
	switch strings.ToLower(path.Ext(a.Name)) {
	case ".txt", ".md", ".log", ".go", ".py", ".js", ".ts", ".rs", ".java", ".c", ".h", ".sh", ".sql", ".css", ".html",
		".json", ".yaml", ".yml", ".toml", ".xml", ".csv", ".diff", ".patch", ".env", ".ini", ".cfg", ".mod", ".sum":
		return true
	}
	return false
}

// readTextFile reads a file as text. What cannot be read is named to the model with
// the reason.
func (pr preparation) readTextFile(ctx context.Context, entry sessions.Entry, fetcher platform.Fetcher, a messages.Attachment) messages.Attachment {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var text string
	var cut bool
	err := fault.Fetching.Do(ctx, func() (err error) {
		text, cut, err = readText(ctx, fetcher, a)
		return err
	})
	switch {
	case err != nil:
		a.Note = unread(err)
		pr.o.config.Log.InfoContext(ctx, "could not read an attachment", "entry", entry.ID, "err", err)
	case text == "":
		a.Note = "the file is empty"
	case !utf8.ValidString(text):
		a.Note = "not a text file"
	default:
		a.Text = text
		if cut {
			a.Note = fmt.Sprintf("only the first %d bytes of %d", len(text), a.Size)
		}
	}
	return a
}

// unread is the note of a file that could not be read.
func unread(err error) string {
	return "the file could not be read: " + strings.TrimSuffix(fault.Public(err), ".")
}

func readText(ctx context.Context, f platform.Fetcher, a messages.Attachment) (text string, cut bool, err error) {
	body, err := f.Fetch(ctx, a)
	if err != nil {
		return "", false, err
	}
	defer body.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(io.LimitReader(body, maxReadFile+1))
	if err != nil {
		return "", false, fault.Wrap(err, fault.Unavailable, "read an attachment")
	}
	if len(raw) > maxReadFile {
		raw, cut = raw[:maxReadFile], true
		for range utf8.UTFMax - 1 { // not in the middle of a character
			if r, size := utf8.DecodeLastRune(raw); r != utf8.RuneError || size > 1 {
				break
			}
			raw = raw[:len(raw)-1]
		}
	}
	return string(raw), cut, nil
}
