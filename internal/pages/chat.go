package pages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/live"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

const (
	maxChats   = 100
	maxSpoken  = 200      // messages of a conversation on its page
	maxFiles   = 10       // of a message
	maxFile    = 20 << 20 // bytes, as much as is looked at
	maxUpload  = 25 << 20 // bytes of a form with files
	inMemory   = 1 << 20  // bytes of one that are not put on the disk
	inForm     = 1 << 18  // bytes of one that may be something else than its files
	uploads    = 4        // at once
	uploadTime = 2 * time.Minute

	placeholder = "…" // the text of a message that is still empty; see platform.Placeholder
)

// Talk takes what somebody says in their conversation in the browser. It returns once it
// is stored; the same id again changes nothing. A conversation of somebody else is
// fault.NotFound.
type Talk func(ctx context.Context, chat, id string, from messages.Sender, text string, files []messages.PostedFile) error

// chatKey is where the engine has a conversation in the browser.
func chatKey(id string) messages.ConversationKey {
	return messages.ConversationKey{Platform: "web", ID: id}
}

// isUpload reports whether a request may bring files.
func isUpload(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "multipart/form-data" && r.Method == http.MethodPost && (r.URL.Path == "/chat" || strings.HasPrefix(r.URL.Path, "/chat/"))
}

// chatPages are conversations in the browser.
type chatPages struct {
	storage   Storage
	show      *renderer
	commands  commands
	talk      Talk
	remove    func(ctx context.Context, account, id string) error // see About; may be nil
	uploading chan struct{}                                       // has room for those who send files
}

func (p *chatPages) routes(to *Pages) {
	to.page("GET /chat", p.chats)
	to.page("GET /chat/{id}", p.chat)
	to.file("GET /chat/{id}/files/{file}", p.chatFile)
	to.act("POST /chat", p.beginChat)
	to.act("POST /chat/{id}", p.sayInChat)
	to.act("POST /chat/{id}/press", p.pressInChat)
	to.act("POST /chat/{id}/stop", p.stopChat)
	to.act("POST /chat/{id}/delete", p.removeChat)
}

// chats lists the conversations of who is signed in, and begins another one.
func (p *chatPages) chats(r *request) (view, error) {
	until, err := r.number("until")
	if err != nil {
		return view{}, err
	}
	list, err := store.Within(r.Context(), p.storage.InRead, func(tx *store.Tx) ([]messages.Chat, error) {
		return tx.Board().Chats(r.Context(), r.actor(), until, maxChats+1)
	})
	if err != nil {
		return view{}, err
	}
	var more html.Node
	if len(list) > maxChats {
		more = older(r, "until", strconv.FormatInt(list[maxChats].ChangedAt.UnixMilli(), 10), "", "Older conversations")
		list = list[:maxChats]
	}
	body := html.Group{html.Tag("h1", "Chat"), sayForm(r, "/chat", "new"), html.Tag("h2", "Your conversations")}
	body = append(body, listed(html.Map(list, func(c messages.Chat) html.Node {
		return html.El("li", html.ID("c-"+c.ID), html.El("span", html.Class("what"), html.Link("/chat/"+c.ID, p.title(c))), meta(p.show.when(c.ChangedAt)))
	}), "None yet. Write something above to start a conversation. Only you see it here; owners can see it under Sessions."), more)
	return view{title: "Chat", body: body}, nil
}

// title is what a conversation is about: what was said first.
func (p *chatPages) title(c messages.Chat) string {
	if text := p.show.head200(c.Title); text != "" {
		return text
	}
	return "Conversation " + c.ID[:min(8, len(c.ID))]
}

// chat shows a conversation.
func (p *chatPages) chat(r *request) (view, error) {
	ctx, id := r.Context(), r.PathValue("id")
	var (
		about   messages.Chat
		list    []messages.Posted
		session sessions.Session
		has     bool
	)
	err := p.storage.InRead(ctx, func(tx *store.Tx) error {
		if err := mustOwnChat(ctx, tx, r, id); err != nil {
			return err
		}
		var err error
		if about, err = tx.Board().Chat(ctx, id); err != nil {
			return err
		}
		if list, err = tx.Board().Posted(ctx, id, maxSpoken); err != nil {
			return err
		}
		conv, err := tx.Conversations().FindConversation(ctx, chatKey(id))
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err == nil {
			session, has, err = tx.Sessions().ActiveSession(ctx, conv.ID)
		}
		return err
	})
	if err != nil {
		return view{}, err
	}
	running := has && session.Status == sessions.Running
	title := wording.Head(p.title(about), 60)
	v := view{title: title, live: liveChat + id, body: html.Group{
		html.Tag("h1", title),
		html.El("p", html.Class("meta"), html.Link("/chat", "All conversations"),
			html.If(has, html.Group{html.Text(" · "), html.Link("/sessions/"+session.ID, "Session")})),
		html.El("section", html.Attr("aria-label", "Conversation"), transcript(running), html.On("data-follow", true), p.spoken(r, id, list)),
		html.If(running, html.El("div", html.Class("actions"), html.ID("running"), form(r, "/chat/"+id+"/stop", button("Stop", "danger")))),
		p.show.answered(r), // where they pressed it: the top may be far away
		sayForm(r, "/chat/"+id, id),
		html.If(p.remove != nil, html.El("div", html.Class("actions"), html.El("details", html.Tag("summary", "Delete"),
			html.Tag("p", "This deletes everything said here, with its files, plans and approvals. It keeps what is remembered about you (see Memory), usage totals, the audit log, and branches and saved files in repositories."),
			form(r, "/chat/"+id+"/delete", sure("Yes, delete this conversation and everything said in it"), button("Delete the conversation", "danger"))))),
	}}
	if running {
		v.badge = "◐"
	}
	return v, nil
}

// mustOwnChat is fault.NotFound if a conversation is not of who asks.
func mustOwnChat(ctx context.Context, tx *store.Tx, r *request, id string) error {
	ok, err := tx.Board().ChatOf(ctx, r.actor(), id)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "You have no such conversation.")
	}
	return err
}

// spoken shows the messages of a conversation, the last of them as long as there is room.
func (p *chatPages) spoken(r *request, chat string, list []messages.Posted) (turns html.Group) {
	earlier := html.El("p", html.Class("muted"), html.ID("earlier"), html.Text("Earlier messages are in the session."))
	size := 0
	for _, m := range slices.Backward(list) {
		node := p.spokenOne(r, chat, m)
		size += len(html.String(node))
		if size > maxPage && len(turns) > 0 {
			turns = append(turns, earlier)
			break
		}
		turns = append(turns, node)
	}
	if len(turns) == len(list) && len(list) > 0 && list[0].Seq > 1 {
		turns = append(turns, earlier)
	}
	slices.Reverse(turns)
	return turns
}

func (p *chatPages) spokenOne(r *request, chat string, m messages.Posted) html.Node {
	who, class := "Assistant", "assistant"
	var said html.Node
	switch {
	case m.Delivery == "":
		who, class = "You", "user"
		said = p.show.bounded(m.Text, maxText, func(text string) html.Node { return html.Styled("pre", "wrap", text) })
	case m.Text == placeholder:
		said = html.Styled("p", "muted", "Writing…")
	default:
		said = p.show.limited(m.Text, html.MaxMarkdown)
	}
	marks := map[string]string{"queued": "waits", "done": "✔ answered", "failed": "✖ failed or stopped"}
	files := html.Map(m.Files, func(f messages.PostedFile) html.Node {
		at := "/chat/" + chat + "/files/" + url.PathEscape(f.ID)
		if f.Gone {
			return html.Styled("p", "muted", "📎 "+p.show.head200(f.Name)+" was deleted: files are kept only for a limited time.")
		}
		if isPicture(f.MediaType) {
			return html.El("p", html.El("a", html.Href(at), html.El("img", html.Class("attached"), html.Attr("src", at), html.Attr("alt", p.show.head200(f.Name)), html.Attr("loading", "lazy"))))
		}
		return html.El("p", html.Text("📎 "), html.Link(at, p.show.head200(f.Name)), html.Styled("span", "meta", " "+bytesText(int(f.Size))))
	})
	buttons := html.Node(nil)
	if len(m.Buttons) > 0 && r.role != sessions.Reader {
		buttons = form(r, "/chat/"+chat+"/press", html.Class("inline"), hidden("message", string(m.ID)), html.Map(m.Buttons, func(b messages.Button) html.Node {
			return decision(b.Label, "action", b.ID, string(b.Style))
		}))
	}
	return html.El("article", html.Class("turn "+class), html.ID("p-"+string(m.ID)),
		html.El("h2", html.Text(who+" "), html.El("span", html.Class("meta"), p.show.when(m.At), html.If(marks[m.Mark] != "", html.Text(" · "+marks[m.Mark])))),
		html.El("div", said, files, buttons))
}

// isPicture reports whether a file may be shown as a picture.
func isPicture(mediaType string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mediaType)
}

// sayForm is where to say something. Sent twice it is said once.
func sayForm(r *request, to, draft string) html.Node {
	return form(r, to, html.ID("say"), html.Attr("enctype", "multipart/form-data"),
		html.El("label", html.Text("Message"), html.El("textarea", html.Attr("name", "text"), html.Attr("rows", "3"), html.Attr("data-draft", "chat-"+draft),
			html.Attr("placeholder", "Ask something, or /help"))),
		html.El("label", html.Text("Pictures and files: choose, drop or paste them"), html.El("br"),
			html.El("input", html.Attr("type", "file"), html.Attr("name", "files"), html.On("multiple", true),
				html.Attr("data-most", strconv.Itoa(maxFiles)), html.Attr("data-each", strconv.Itoa(maxFile)), html.Attr("data-all", strconv.Itoa(maxUpload-inForm)))),
		button("Send", "primary"))
}

// beginChat takes the first message of a conversation, and sayInChat a further one.
func (p *chatPages) beginChat(_ http.ResponseWriter, r *request) (outcome, error) {
	return p.sayIn(r, digest(r, "chat", r.PostForm.Get("nonce"))[:20])
}

func (p *chatPages) sayInChat(_ http.ResponseWriter, r *request) (outcome, error) {
	id, err := p.own(r)
	if err != nil {
		return outcome{}, err
	}
	return p.sayIn(r, id)
}

// own returns the conversation that a form is for, if it is of who asks.
func (p *chatPages) own(r *request) (id string, err error) {
	id = r.PathValue("id")
	return id, p.storage.InRead(r.Context(), func(tx *store.Tx) error { return mustOwnChat(r.Context(), tx, r, id) })
}

// digest makes an id of what somebody sends.
func digest(r *request, parts ...string) string {
	sum := sha256.Sum256([]byte(r.actor() + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

func (p *chatPages) sayIn(r *request, chat string) (outcome, error) {
	ctx := r.Context()
	text := r.typed()
	once := r.PostForm.Get("nonce")
	if len(text) > maxMessage {
		return outcome{}, fault.New(fault.Invalid, "The message is too long: send at most 64 KiB.")
	}
	parts := []string{chat, once, text}
	var files []messages.PostedFile
	if r.MultipartForm != nil {
		select {
		case p.uploading <- struct{}{}:
			defer func() { <-p.uploading }()
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		}
		for _, h := range r.MultipartForm.File["files"] {
			if h.Filename == "" && h.Size == 0 {
				continue // no file was chosen
			}
			if len(files) == maxFiles {
				return outcome{}, fault.Newf(fault.Invalid, "Send at most %d files with a message.", maxFiles)
			}
			f, err := readUpload(h)
			if err != nil {
				return outcome{}, err
			}
			files = append(files, f)
			sum := sha256.Sum256(f.Data)
			parts = append(parts, f.Name, string(sum[:]))
		}
	}
	if text == "" && len(files) == 0 {
		return outcome{}, fault.New(fault.Invalid, "The message has no text.")
	}
	from := messages.Sender{ID: r.session.Account.ID, Platform: r.session.Platform}
	if err := p.talk(ctx, chat, digest(r, parts...), from, text, files); err != nil {
		return outcome{}, err
	}
	return outcome{to: "/chat/" + chat + "#say"}, nil
}

// readUpload reads a file of a form. What it is, its content says.
func readUpload(h *multipart.FileHeader) (f messages.PostedFile, err error) {
	if h.Size > maxFile {
		return f, fault.Newf(fault.Invalid, "A file is larger than %d MB, which is the limit.", maxFile>>20)
	}
	body, err := h.Open()
	if err != nil {
		return f, fault.Wrap(err, fault.Unavailable, "read a file that was sent")
	}
	defer body.Close() //nolint:errcheck // only read
	if f.Data, err = io.ReadAll(io.LimitReader(body, maxFile)); err != nil {
		return f, fault.Wrap(err, fault.Unavailable, "read a file that was sent")
	}
	name := strings.ToValidUTF8(path.Base(strings.ReplaceAll(h.Filename, `\`, "/")), "_")
	if len(name) > 200 {
		name = cut(name, 180) + cut(path.Ext(name), 20)
	}
	kind, _, _ := strings.Cut(http.DetectContentType(f.Data), ";")
	if kind == "text/plain" || kind == "application/octet-stream" {
		if byName, _, _ := strings.Cut(mime.TypeByExtension(path.Ext(name)), ";"); byName != "" && len(byName) < 100 && !isPicture(byName) {
			kind = byName
		}
	}
	f.Name, f.MediaType, f.Size = name, kind, int64(len(f.Data))
	return f, nil
}

// pressInChat presses a button under a message of a conversation.
func (p *chatPages) pressInChat(_ http.ResponseWriter, r *request) (outcome, error) {
	ctx, id, action, under := r.Context(), r.PathValue("id"), r.PostForm.Get("action"), r.PostForm.Get("message")
	err := p.storage.InRead(ctx, func(tx *store.Tx) error {
		if err := mustOwnChat(ctx, tx, r, id); err != nil {
			return err
		}
		// What an event names is deleted with it.
		there, err := tx.Board().HasPosted(ctx, id, messages.MessageID(under))
		if err == nil && !there {
			err = fault.New(fault.NotFound, "The message with this button is gone.")
		}
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	if action == "" || len(action) > 100 {
		return outcome{}, fault.New(fault.Invalid, "There is no such button.")
	}
	in := r.event(chatKey(id), p.show.now())
	in.Kind, in.Action, in.Message, in.Private = messages.KindAction, action, messages.MessageID(under), true
	said, err := p.commands.give(ctx, in, "Received; the answer appears here.")
	return outcome{to: "/chat/" + id + "#said", said: said}, err
}

func (p *chatPages) stopChat(_ http.ResponseWriter, r *request) (outcome, error) {
	id, err := p.own(r)
	if err != nil {
		return outcome{}, err
	}
	in := r.event(chatKey(id), p.show.now())
	in.Text, in.Private = "/stop", true
	said, err := p.commands.give(r.Context(), in, "Stopping.")
	return outcome{to: "/chat/" + id + "#said", said: said}, err
}

// removeChat deletes a conversation of who asks, once that was confirmed. Readers may, too:
// it is theirs.
func (p *chatPages) removeChat(_ http.ResponseWriter, r *request) (outcome, error) {
	id, err := p.own(r)
	switch {
	case err != nil:
		return outcome{}, err
	case r.PostForm.Get("sure") != "yes":
		return outcome{}, fault.New(fault.Invalid, "Nothing was deleted: tick the box to confirm.")
	case p.remove == nil:
		return outcome{}, fault.New(fault.Unsupported, "Conversations cannot be deleted here.")
	}
	if err := p.remove(r.Context(), r.actor(), id); err != nil {
		return outcome{}, err
	}
	return outcome{to: "/chat", said: "Deleted the conversation."}, nil
}

// chatFile sends a file of a conversation: a picture to be shown, others to be kept.
func (p *chatPages) chatFile(w http.ResponseWriter, r *request) error {
	ctx, cancel := context.WithTimeout(r.Context(), pagePatience)
	defer cancel()
	id := r.PathValue("id")
	var f messages.PostedFile
	err := p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if err = mustOwnChat(ctx, tx, r, id); err == nil {
			f, err = tx.Board().PostedFile(ctx, id, r.PathValue("file"))
		}
		return err
	})
	if err != nil {
		return err
	}
	kind, how := "application/octet-stream", "attachment"
	if isPicture(f.MediaType) {
		kind, how = f.MediaType, "inline"
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("Content-Disposition", mime.FormatMediaType(how, map[string]string{"filename": f.Name}))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(uploadTime)) // as for a form with it
	_, _ = w.Write(f.Data)                                                         // a browser that left needs no answer
	return nil
}

// watchedChat returns what the page of a conversation has to be told of.
func watchedChat(ctx context.Context, from Storage, r *request, id string) (topics []live.Topic, err error) {
	err = from.InRead(ctx, func(tx *store.Tx) error {
		if err := mustOwnChat(ctx, tx, r, id); err != nil {
			return err
		}
		topics = []live.Topic{live.Chat(id)}
		conv, err := tx.Conversations().FindConversation(ctx, chatKey(id))
		if err == nil {
			topics = append(topics, live.Conversation(conv.ID))
		}
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
		return err
	})
	return topics, err
}

var errUpload = fault.New(fault.Invalid, "The files are too large: send at most 25 MB at once.")

// readUploads reads a form that may have files.
func readUploads(r *http.Request) error {
	if r.ContentLength > maxUpload {
		readWritten(r)
		return errUpload
	}
	err := r.ParseMultipartForm(inMemory) //nolint:gosec // ServeHTTP has bounded the body
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return errUpload
	}
	if err != nil {
		return fault.New(fault.Invalid, "The form could not be read.")
	}
	return nil
}

// readWritten reads of a form that is too large what stands before its files, so that what
// somebody wrote is not lost. A browser that could send nothing of the files would not read
// the answer.
func readWritten(r *http.Request) {
	r.PostForm = make(url.Values)
	parts, err := r.MultipartReader()
	for fields := 0; err == nil && fields < 20; fields++ {
		var part *multipart.Part
		if part, err = parts.NextPart(); err != nil || part.FileName() != "" {
			break
		}
		value, _ := io.ReadAll(io.LimitReader(part, maxForm))
		r.PostForm.Add(part.FormName(), string(value))
	}
	_, _ = io.Copy(io.Discard, r.Body)
}
