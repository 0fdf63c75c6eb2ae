package orchestrator

import (
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// page is how many messages one read of the history takes.
const page = 128

// assemble returns the message array of a turn: the newest messages of the
// session that fit the budget, ending with the request, repaired. It reads only
// the window, by index, and of that only what this process does not remember.
func (w *worker) assemble(ctx context.Context, d decision, budget int) ([]messages.Message, error) {
	session := d.begun.session.ID
	known := w.o.windows.get(session)
	var recent []messages.Message // newest first, without those that are known
	met := false                  // recent goes back to the newest known message
	tokens, before := 0, int64(1)<<62
	err := w.o.config.Storage.InRead(ctx, func(tx Tx) error {
		recent, met, tokens, before = nil, false, 0, int64(1)<<62
		limit := page
		if len(known) > 0 {
			limit = 4 // usually only the request is new
		}
		for tokens <= budget {
			batch, err := tx.MessagesBefore(ctx, session, before, limit)
			if err != nil {
				return err
			}
			for _, m := range batch {
				if i := len(known) - 1; i >= 0 && m.Seq == known[i].Seq {
					met = true
					return nil
				}
				recent = append(recent, m)
				tokens += messages.EstimateTokens(m)
			}
			if len(batch) < limit {
				return nil
			}
			before, limit = batch[len(batch)-1].Seq, page
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	slices.Reverse(recent)
	if met {
		recent = slices.Concat(known, recent)
	}
	array := messages.Window(recent, budget)
	w.o.windows.put(session, array)
	return messages.Repair(array), nil
}

// windowCache remembers the windows of the sessions that were worked on last.
// It is only a cache: an entry is used if its newest message is still there
// under its number, and messages never change once stored.
type windowCache struct {
	mu    sync.Mutex // guards all below
	limit int
	order *list.List // of *window, most recently used first
	byID  map[string]*list.Element
}

type window struct {
	session string
	msgs    []messages.Message // oldest first; not changed once stored here
}

func newWindowCache(limit int) *windowCache {
	return &windowCache{limit: limit, order: list.New(), byID: make(map[string]*list.Element)}
}

func (c *windowCache) get(session string) []messages.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[session]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*window).msgs
}

func (c *windowCache) put(session string, msgs []messages.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byID[session]; ok {
		e.Value.(*window).msgs = msgs
		c.order.MoveToFront(e)
		return
	}
	c.byID[session] = c.order.PushFront(&window{session: session, msgs: msgs})
	if c.order.Len() > c.limit {
		oldest := c.order.Back()
		delete(c.byID, oldest.Value.(*window).session)
		c.order.Remove(oldest)
	}
}

// extend adds messages that were just stored under the given numbers.
func (c *windowCache) extend(session string, msgs []messages.Message, seqs []int64) {
	known := c.get(session)
	if len(known) == 0 || len(msgs) != len(seqs) {
		return
	}
	next := slices.Clip(known)
	for i, m := range msgs {
		m.Seq = seqs[i]
		next = append(next, m)
	}
	c.put(session, next)
}

func (c *windowCache) forget(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byID[session]; ok {
		delete(c.byID, session)
		c.order.Remove(e)
	}
}

// maxReadFile is how much of a text file is given to the model.
const maxReadFile = 128 << 10

// needsFetch reports whether an entry has text files that were not read yet.
func (w *worker) needsFetch(entry sessions.Entry) bool {
	if _, done := w.filled[entry.ID]; done || entry.State == sessions.EntryRunning {
		return false
	}
	if _, ok := w.adapter().(platform.Fetcher); !ok {
		return false
	}
	return slices.ContainsFunc(entry.In.Attachments, isTextFile)
}

// isTextFile reports whether an attachment is text by its type or, where the
// platform does not know better, its name.
func isTextFile(a messages.Attachment) bool {
	if a.Source == "" || a.Text != "" || a.Note != "" {
		return false
	}
	kind, _, _ := mime.ParseMediaType(a.MediaType)
	switch {
	case strings.HasPrefix(kind, "text/"), kind == "application/json", kind == "application/xml",
		kind == "application/x-yaml", kind == "application/x-sh", kind == "application/toml":
		return true
	case kind != "" && kind != "application/octet-stream":
		return false
	}
	switch strings.ToLower(path.Ext(a.Name)) {
	case ".txt", ".md", ".log", ".go", ".py", ".js", ".ts", ".rs", ".java", ".c", ".h", ".sh", ".sql", ".css", ".html",
		".json", ".yaml", ".yml", ".toml", ".xml", ".csv", ".diff", ".patch", ".env", ".ini", ".cfg", ".mod", ".sum":
		return true
	}
	return false
}

// fetchAttachments reads the text files of an entry, up to a limit, outside of
// any transaction. What cannot be read is named to the model with the reason.
func (w *worker) fetchAttachments(entry sessions.Entry) {
	fetcher, _ := w.adapter().(platform.Fetcher)
	filled := slices.Clone(entry.In.Attachments)
	for i, a := range filled {
		if !isTextFile(a) {
			continue
		}
		ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
		text, cut, err := readText(ctx, fetcher, a)
		cancel()
		switch {
		case err != nil:
			filled[i].Note = "the file could not be read"
			w.o.config.Log.InfoContext(w.ctx, "Could not read an attachment", "entry", entry.ID, "err", err)
		case !utf8.ValidString(text):
			filled[i].Note = "not a text file"
		default:
			filled[i].Text = text
			if cut {
				filled[i].Note = fmt.Sprintf("only the first %d bytes of %d", len(text), a.Size)
			}
		}
	}
	if w.filled == nil {
		w.filled = make(map[string][]messages.Attachment)
	}
	w.filled[entry.ID] = filled
}

func readText(ctx context.Context, f platform.Fetcher, a messages.Attachment) (text string, cut bool, err error) {
	body, err := f.Fetch(ctx, a)
	if err != nil {
		return "", false, err
	}
	defer body.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(io.LimitReader(body, maxReadFile+1))
	if err != nil {
		return "", false, fmt.Errorf("read attachment: %w", err)
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

// jsonText returns text as a JSON document: itself if it is one, else as a
// string.
func jsonText(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(quoted)
}
