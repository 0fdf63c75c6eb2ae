package slack

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// StreamState is where a streamed message stands.
type StreamState string

// The states of a stream. A message that was never streamed has none.
const (
	Streaming     StreamState = "streaming"
	StreamDone    StreamState = "done"
	StoppedByUser StreamState = "stopped_by_user"
	StreamKilled  StreamState = "killed" // by Slack; people see an error
)

// stream is what a running stream remembers.
type stream struct {
	mode      string // "markdown_text", "chunks" or, before the first, empty
	startedAt time.Time
	touchedAt time.Time
	markdown  int
	tasks     []task
	plan      string
	extra     []block
	text      string
}

type task struct{ id, title, status, details, output string }

// chunk is one element of the chunks argument.
type chunk struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Title   string          `json:"title"`
	Status  string          `json:"status"`
	Details string          `json:"details"`
	Output  string          `json:"output"`
	Blocks  json.RawMessage `json:"blocks"`
}

// take adds what a call brings to a copy of the stream.
func (st stream) take(p params) (stream, *apiError) {
	text, raw := p.get("markdown_text"), p.get("chunks")
	if text == "" && strings.TrimSpace(raw) == "[]" {
		raw = "" // as Slack's own libraries send it when they have no more text
	}
	var mode string
	switch {
	case text != "" && raw != "":
		return st, refuse("cannot_provide_both_markdown_text_and_chunks")
	case text != "":
		mode = "markdown_text"
	case raw != "":
		mode = "chunks"
	default:
		return st, nil
	}
	if st.mode != "" && st.mode != mode {
		return st, refuse("streaming_mode_mismatch")
	}
	st.mode = mode
	if mode == "markdown_text" {
		return st.addText(text)
	}
	var chunks []chunk
	if json.Unmarshal([]byte(raw), &chunks) != nil || len(chunks) == 0 {
		return st, refuse("invalid_chunks")
	}
	for _, c := range chunks {
		var refused *apiError
		if st, refused = st.addChunk(c); refused != nil {
			return st, refused
		}
	}
	return st, nil
}

func (st stream) addText(text string) (stream, *apiError) {
	st.markdown += utf8.RuneCountInString(text)
	if st.markdown > maxMarkdown {
		return st, refuse("msg_too_long")
	}
	st.text += text
	return st, nil
}

func (st stream) addChunk(c chunk) (stream, *apiError) {
	switch c.Type {
	case "markdown_text":
		return st.addText(c.Text)
	case "plan_update":
		if c.Title == "" {
			return st, refuse("invalid_chunks")
		}
		st.plan = c.Title
	case "task_update":
		known := c.Status == "" || c.Status == "pending" || c.Status == "in_progress" || c.Status == "complete" || c.Status == "error"
		if c.ID == "" || c.Title == "" || !known {
			return st, refuse("invalid_chunks")
		}
		next := task{c.ID, c.Title, c.Status, c.Details, c.Output}
		st.tasks = slices.Clone(st.tasks)
		if i := slices.IndexFunc(st.tasks, func(t task) bool { return t.id == c.ID }); i >= 0 {
			st.tasks[i] = next
		} else {
			st.tasks = append(st.tasks, next)
		}
	case "blocks":
		blocks, refused := checkBlocks(string(c.Blocks), inStream)
		if refused != nil {
			return st, refused
		}
		st.extra = append(append([]block(nil), st.extra...), blocks...)
	default:
		return st, refuse("invalid_chunks")
	}
	return st, nil
}

// plain returns what people see of the stream.
func (st stream) plain() string {
	parts := []string{st.plan}
	for _, t := range st.tasks {
		parts = append(parts, joinNonEmpty(" ", []string{"[" + t.status + "]", t.title, t.details, t.output}))
	}
	return joinNonEmpty("\n", append(parts, st.text, plainBlocks(st.extra)))
}

// put shows the stream in a message.
func (st *stream) put(m *Message) {
	m.stream = st
	m.Text, m.Plain = st.text, st.plain()
	m.Pings = append(pingsIn(st.text, true), pingsOf("", st.extra)...)
}

// startStream needs a thread, and in channels the recipient. It takes no metadata.
// The agent session of the thread, if there are any, begins to process with it.
func startStream(r *request) (map[string]any, *apiError) {
	c, refused := r.writable(r.p.channel())
	if refused != nil {
		return nil, refused
	}
	if r.p.get("thread_ts") == "" {
		return nil, refuse("invalid_arguments", "[ERROR] missing required field: thread_ts")
	}
	root, refused := c.root(r.p.get("thread_ts"))
	switch {
	case refused != nil:
		return nil, refused
	case root == "":
		return nil, refuse("thread_not_found")
	}
	user, team := r.p.get("recipient_user_id"), r.p.get("recipient_team_id")
	if c.info.Kind != Direct {
		switch _, known := r.ws.users[user]; {
		case team == "":
			return nil, refuse("missing_recipient_team_id")
		case user == "":
			return nil, refuse("missing_recipient_user_id")
		case !known || r.ws.user(user).TeamID != team:
			return nil, refuse("user_not_found")
		}
	}
	opts := r.ws.server.opts
	now := opts.Now()
	st, refused := stream{startedAt: now, touchedAt: now}.take(r.p)
	if refused != nil {
		return nil, refused
	}
	m := r.ws.botMessage()
	m.ThreadTS, m.Stream = root, Streaming
	m.UnfurlLinks, m.UnfurlMedia = r.p.flag("unfurl_links"), r.p.flag("unfurl_media")
	st.put(m)
	c.post(m)
	if opts.AgentSessions {
		c.thread(root).session.Status = "processing"
	}
	return map[string]any{"channel": c.info.ID, "ts": m.TS}, nil
}

// streaming returns the running stream that a call is about.
func (r *request) streaming() (*channel, *Message, *apiError) {
	c, refused := r.writable(r.p.channel())
	if refused != nil {
		return nil, nil, refused
	}
	m, refused := c.own(r.p.get("ts"), "message_not_owned_by_app")
	if refused != nil {
		return nil, nil, refused
	}
	switch m.Stream {
	case Streaming:
		return c, m, nil
	case StoppedByUser:
		if r.method == "chat.appendStream" {
			return nil, nil, refuse("stopped_by_user")
		}
	default: // it is over
	}
	return nil, nil, refuse("message_not_in_streaming_state")
}

func appendStream(r *request) (map[string]any, *apiError) {
	c, old, refused := r.streaming()
	if refused != nil {
		return nil, refused
	}
	if r.p.get("markdown_text") == "" && r.p.get("chunks") == "" {
		return nil, refuse("markdown_text_or_chunks_required")
	}
	st, refused := old.stream.take(r.p)
	if refused != nil {
		return nil, refused
	}
	st.touchedAt = r.ws.server.opts.Now()
	m := *old
	st.put(&m)
	m.Appends++
	m.UpdatedAt = st.touchedAt
	c.show(ChangeStreamed, &m)
	return map[string]any{"channel": c.info.ID, "ts": m.TS}, nil
}

// stopStream refuses a stream that a user stopped like one that has ended.
func stopStream(r *request) (map[string]any, *apiError) {
	c, old, refused := r.streaming()
	if refused != nil {
		return nil, refused
	}
	metadata, given, refused := checkMetadata(r.p)
	if refused != nil {
		return nil, refused
	}
	blocks, refused := checkBlocks(r.p.get("blocks"), inStream)
	if refused != nil {
		return nil, refused
	}
	st, refused := old.stream.take(r.p)
	if refused != nil {
		return nil, refused
	}
	if strings.TrimSpace(st.plain()) == "" && len(blocks) == 0 {
		return nil, refuse("no_text")
	}
	m := *old
	st.put(&m)
	m.stream, m.Stream, m.UpdatedAt = nil, StreamDone, r.ws.server.opts.Now()
	if len(blocks) > 0 {
		m.Blocks = json.RawMessage(r.p.get("blocks"))
		m.Plain = joinNonEmpty("\n", []string{m.Plain, plainBlocks(blocks)})
	}
	if given {
		m.Metadata = metadata
	}
	if t := c.thread(m.ThreadTS); t.session.Status != "" {
		t.session.Status = "active"
		if status := r.p.get("session_status"); status != "" {
			t.session.Status = status
		}
	}
	c.show(ChangeEdited, &m)
	c.echo("message_changed", &m, old)
	return map[string]any{"channel": c.info.ID, "ts": m.TS, "message": c.wire(&m, true)}, nil
}

// expire ends a stream that idled or ran too long. The lock must be held.
func (w *Workspace) expire(m *Message) {
	if m.Stream != Streaming {
		return
	}
	now, o := w.server.opts.Now(), w.server.opts
	if o.StreamIdle > 0 && now.Sub(m.stream.touchedAt) > o.StreamIdle || o.StreamMax > 0 && now.Sub(m.stream.startedAt) > o.StreamMax {
		w.end(m, StreamKilled)
	}
}

func (w *Workspace) end(old *Message, state StreamState) {
	m := *old
	m.Stream, m.stream = state, nil
	w.channels[m.Channel].replace(&m)
}

// KillStream ends a running stream as Slack does with some that are too long,
// and reports whether there was one.
func (w *Workspace) KillStream(channelID, ts string) bool {
	w.server.mu.Lock()
	defer w.server.unlock()
	m := w.open(channelID).byTS[ts]
	if m == nil || m.Stream != Streaming {
		return false
	}
	w.end(m, StreamKilled)
	return true
}
