package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/localsocket"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
)

const (
	// maxBody bounds a message with its JSON, in bytes: a character may take six there
	// ("\u0000"), and files have paths.
	maxBody   = 6*maxLine + 1<<20
	maxFiles  = 100
	pingEvery = 10 * time.Second // how soon a watcher that is gone is noticed
)

// conversationName is what conversations may be called from outside.
var conversationName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// CheckConversation returns an error if a conversation cannot be called that.
func CheckConversation(name string) error {
	if !conversationName.MatchString(name) {
		return fault.Newf(fault.Invalid, "%q is not a valid conversation name: use up to 100 letters, digits, dots, dashes and underscores.", name)
	}
	return nil
}

// Handler serves a Backend below /console/, for a Client. Who can connect may say
// anything as the person at the console.
func Handler(b Backend) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, serve func(w http.ResponseWriter, r *http.Request, conversation string) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			name := r.PathValue("conversation")
			err := error(nil)
			if name != "" {
				err = CheckConversation(name)
			}
			if err == nil {
				err = serve(w, r, name)
			}
			if err != nil {
				localsocket.WriteError(w, err)
			}
		})
	}
	handle("POST /console/{conversation}/messages", func(w http.ResponseWriter, r *http.Request, name string) error {
		return say(w, r, b, name)
	})
	handle("GET /console/{conversation}/state", func(w http.ResponseWriter, r *http.Request, name string) error {
		state, err := b.State(r.Context(), name)
		return reply(w, state, err)
	})
	handle("GET /console/{conversation}/events", func(w http.ResponseWriter, r *http.Request, name string) error {
		return stream(w, r, b, name)
	})
	handle("GET /console/commands", func(w http.ResponseWriter, r *http.Request, _ string) error {
		names, err := b.Commands(r.Context())
		return reply(w, names, err)
	})
	return mux
}

func reply(w http.ResponseWriter, value any, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the other side may be gone
	return nil
}

func say(w http.ResponseWriter, r *http.Request, b Backend, name string) error {
	var m Message
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&m)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return fault.New(fault.Invalid, "The message is too long: send at most 1 MiB.")
	}
	if err != nil {
		return fault.Newf(fault.Invalid, "The request is not a message in JSON: %v.", err)
	}
	if m, err = checked(m); err != nil {
		return err
	}
	id, err := b.Say(r.Context(), name, m)
	return reply(w, id, err)
}

// checked returns a message as it may be said.
func checked(m Message) (Message, error) {
	switch {
	case strings.TrimSpace(m.Text) == "":
		return m, fault.New(fault.Invalid, "The message has no text.")
	case len(m.Text) > maxLine:
		return m, fault.New(fault.Invalid, "The message is too long: send at most 1 MiB.")
	case len(m.Files) > maxFiles:
		return m, fault.Newf(fault.Invalid, "The message has %d files: send at most %d.", len(m.Files), maxFiles)
	}
	files := make([]messages.Attachment, 0, len(m.Files))
	for _, f := range m.Files {
		if !filepath.IsAbs(f.Source) {
			return m, fault.Newf(fault.Invalid, "The path of the file %q is not absolute.", f.Name)
		}
		file, ok := attachment(f.Source) // as this process sees it
		if !ok {
			return m, fault.Newf(fault.NotFound, "The bot cannot read %s: move it to a folder that the bot's user can read.", f.Source)
		}
		files = append(files, file)
	}
	m.Files = files
	return m, nil
}

// stream sends what is shown, a JSON object a line, until the other side is gone. An
// empty line now and then finds that out.
func stream(w http.ResponseWriter, r *http.Request, b Backend, name string) error {
	events, err := b.Watch(r.Context(), name)
	if err != nil {
		return err
	}
	defer events.Close() //nolint:errcheck // nothing is read any more
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	if err := flush.Flush(); err != nil {
		return nil //nolint:nilerr // the other side is gone
	}
	next := make(chan Event)
	go func() { //nolint:contextcheck // it has the request's
		defer close(next)
		for {
			e, err := events.Next(r.Context())
			if err != nil {
				return
			}
			select {
			case next <- e:
			case <-r.Context().Done():
				return
			}
		}
	}()
	defer func() {
		for range next { //nolint:revive // its end is waited for
		}
	}()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	encoder := json.NewEncoder(w)
	for {
		var err error
		select {
		case e, ok := <-next:
			if !ok {
				return nil
			}
			err = encoder.Encode(e)
		case <-ping.C:
			_, err = w.Write([]byte("\n"))
		}
		if err == nil {
			err = flush.Flush()
		}
		if err != nil {
			return nil //nolint:nilerr // as above; the request's context ends with it
		}
	}
}
