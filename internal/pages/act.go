package pages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

const maxMessage = 64 << 10 // bytes of what somebody says

// viewer is who looks, as the database asks.
func (r *request) viewer() store.Viewer {
	if r.owner() {
		return store.Viewer{}
	}
	return store.Viewer{Platform: r.session.Platform, ID: r.session.Account.ID}
}

// event is something that who is signed in does in a conversation. A form that is sent
// twice is one event: it is named by the form's nonce, and by what it says, so that who
// goes back and writes something else is heard.
func (r *request) event(key messages.ConversationKey, now time.Time) messages.Inbound {
	sum := sha256.Sum256([]byte(r.URL.Path + "?" + r.PostForm.Encode()))
	return messages.Inbound{
		Event: messages.EventID(fmt.Sprintf("web:%s:%s:%x", r.session.ID, r.PostForm.Get("nonce"), sum[:8])), Kind: messages.KindMessage, Conversation: key,
		Sender: messages.Sender{ID: r.session.Account.ID, Platform: r.session.Platform}, SentAt: now.UTC(),
	}
}

// newNonce names a form, so that what it says is done once however often it is sent.
func newNonce() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

func isNonce(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}

// typed is the text of a form as a person wrote it, indented as it was: browsers end lines in
// their own way, and what is no text goes nowhere.
func (r *request) typed() string {
	text := strings.ReplaceAll(strings.ToValidUTF8(r.PostForm.Get("text"), "\uFFFD"), "\x00", "")
	return strings.TrimRightFunc(strings.ReplaceAll(text, "\r\n", "\n"), unicode.IsSpace)
}

// openingOf is what the chat shows of what was done in the browser.
func (r *request) openingOf(text string) string {
	return "**" + r.actor() + "** in the browser:\n\n> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// commands takes in a command; see Config.
type commands func(ctx context.Context, in messages.Inbound) (answer command.Reply, known bool, err error)

// give gives a command, and says what became of it, in Markdown; later is said if that is
// not known yet.
func (c commands) give(ctx context.Context, in messages.Inbound, later string) (string, error) {
	answer, known, err := c(ctx, in)
	switch {
	case err != nil:
		return "", err
	case !known:
		return later, nil
	}
	text := cmp.Or(answer.Text, answer.Note)
	switch {
	case answer.Then != "":
		return strings.TrimSpace(text + " It runs now."), nil
	case text == "":
		return "Done.", nil
	}
	return text, nil
}

// mustSee is fault.NotFound if who asks does not see a conversation: that it exists is
// nobody else's business.
func mustSee(ctx context.Context, tx *store.Tx, r *request, conversationID string) error {
	ok, err := tx.Pages().Sees(ctx, r.viewer(), conversationID)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "There is nothing by that name, or you may not see it.")
	}
	return err
}

// sessionOf returns a session and its conversation, if who asks sees it.
func sessionOf(ctx context.Context, from Storage, r *request, id string) (row store.SessionRow, err error) {
	err = from.InRead(ctx, func(tx *store.Tx) (err error) {
		if row, err = tx.Lists().SessionRow(ctx, id); err == nil {
			err = mustSee(ctx, tx, r, row.ConversationID)
		}
		return err
	})
	return row, err
}

// conversationOf returns a conversation.
func conversationOf(ctx context.Context, from Storage, id string) (sessions.Conversation, error) {
	return store.Within(ctx, from.InRead, func(tx *store.Tx) (sessions.Conversation, error) { return tx.Conversations().Conversation(ctx, id) })
}

// sessionForms are what is done with a session.
type sessionForms struct {
	storage  Storage
	commands commands
	accept   func(ctx context.Context, events ...messages.Inbound) error
	deletes  func(ctx context.Context, id, by string) error // see About; may be nil
	now      func() time.Time
}

func (p *sessionForms) routes(to *Pages) {
	to.act("POST /sessions/{id}/stop", p.stop)
	to.act("POST /sessions/{id}/retry", p.retry)
	to.act("POST /sessions/{id}/undo", p.undo)
	to.act("POST /sessions/{id}/fork", p.fork)
	to.act("POST /sessions/{id}/message", p.message)
	to.act("POST /sessions/{id}/delete", p.remove)
}

// order gives a command in the conversation of a session. The chat shows who gave it if
// it is answered there.
func (p *sessionForms) order(r *request, text, later string) (outcome, error) {
	row, err := sessionOf(r.Context(), p.storage, r, r.PathValue("id"))
	if err != nil {
		return outcome{}, err
	}
	in := r.event(row.Key, p.now())
	in.Text, in.Opening = text, r.openingOf("`"+text+"`")
	said, err := p.commands.give(r.Context(), in, later)
	return outcome{to: r.back("/sessions/" + row.ID), said: said}, err
}

// active returns the session that the path names, for what is about the last turn of its
// conversation: on the page of a session that has ended it would be that of another one.
func (p *sessionForms) active(r *request) (row store.SessionRow, err error) {
	row, err = sessionOf(r.Context(), p.storage, r, r.PathValue("id"))
	switch {
	case err != nil:
	case r.role == sessions.Reader:
		err = fault.New(fault.Forbidden, "You can view this, but not change it.")
	case !row.Active:
		err = fault.New(fault.Conflict, "This session has ended, and its conversation continues in another one, so nothing was done. Use the page of that session.")
	}
	return row, err
}

// onActive is order for what is about the last turn of a conversation.
func (p *sessionForms) onActive(r *request, text, later string) (outcome, error) {
	if _, err := p.active(r); err != nil {
		return outcome{}, err
	}
	return p.order(r, text, later)
}

// back returns where a form wants to go next, or the given path.
func (r *request) back(path string) string {
	if to := r.PostForm.Get("back"); to != "" {
		return localPath(to)
	}
	return path
}

func (p *sessionForms) stop(_ http.ResponseWriter, r *request) (outcome, error) {
	return p.order(r, "/stop", "Stopping.")
}

func (p *sessionForms) retry(_ http.ResponseWriter, r *request) (outcome, error) {
	return p.onActive(r, "/retry", "Retrying; the answer appears here and in the chat.")
}

func (p *sessionForms) undo(_ http.ResponseWriter, r *request) (outcome, error) {
	if r.PostForm.Get("sure") != "yes" {
		return outcome{}, fault.New(fault.Invalid, "Nothing was undone: tick the box to confirm.")
	}
	return p.onActive(r, "/undo", "Undoing the last turn; the chat shows the result.")
}

// fork goes on from a message of the session in a new one. The chat says what came of it,
// for who is there has to know with which session they talk.
func (p *sessionForms) fork(_ http.ResponseWriter, r *request) (outcome, error) {
	text := "/fork"
	if n := r.PostForm.Get("messages"); n != "" {
		if number, err := strconv.Atoi(n); err != nil || number <= 0 {
			return outcome{}, fault.New(fault.Invalid, "Enter how many messages to keep, at least 1, or leave it empty to keep all.")
		}
		text += " " + n
	}
	switch place := r.PostForm.Get("place"); place {
	case "":
	case "thread":
		text += " thread"
	default:
		return outcome{}, fault.New(fault.Invalid, "A fork starts in a thread, or here.")
	}
	row, err := p.active(r)
	if err != nil {
		return outcome{}, err
	}
	in := r.event(row.Key, p.now())
	in.Text = text
	return outcome{to: "/sessions/" + row.ID, said: "Forking; the chat shows the result, and the new session appears in the list."}, p.accept(r.Context(), in)
}

// message says something in the conversation of a session: it is answered there, and
// steers a turn that runs.
func (p *sessionForms) message(_ http.ResponseWriter, r *request) (outcome, error) {
	ctx, id := r.Context(), r.PathValue("id")
	text := r.typed()
	switch {
	case text == "":
		return outcome{}, fault.New(fault.Invalid, "The message has no text.")
	case len(text) > maxMessage:
		return outcome{}, fault.New(fault.Invalid, "The message is too long: send at most 64 KiB.")
	case r.role == sessions.Reader:
		return outcome{}, fault.New(fault.Forbidden, "You can view this, but not write here. Ask in your own chat.")
	}
	row, err := p.active(r)
	if err != nil {
		return outcome{}, err
	}
	if _, is := command.Parse(text); is {
		return p.order(r, text, "Sent; the answer appears in the chat.")
	}
	in := r.event(row.Key, p.now())
	in.Text = text
	in.Opening = r.openingOf(text)
	if err := p.accept(ctx, in); err != nil {
		return outcome{}, err
	}
	return outcome{to: "/sessions/" + id, said: "Sent. The answer appears here and in the chat."}, nil
}

// remove deletes a session, once that was confirmed.
func (p *sessionForms) remove(_ http.ResponseWriter, r *request) (outcome, error) {
	switch {
	case !r.owner():
		return outcome{}, fault.New(fault.Forbidden, "Only an owner can delete a session.")
	case r.PostForm.Get("sure") != "yes":
		return outcome{}, fault.New(fault.Invalid, "Nothing was deleted: tick the box to confirm.")
	case p.deletes == nil:
		return outcome{}, fault.New(fault.Unsupported, "Sessions cannot be deleted here.")
	}
	if err := p.deletes(r.Context(), r.PathValue("id"), r.actor()); err != nil {
		return outcome{}, err
	}
	return outcome{to: "/sessions", said: "Deleted the session."}, nil
}
