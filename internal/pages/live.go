package pages

import (
	"context"
	"net/http"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/live"
	"remote-agent/internal/store"
)

// What the changes of a page are of, as /events is asked for it.
const (
	liveAll     = "all"      // any conversation that they see
	liveSession = "session/" // the conversation of the session with the id behind it
	liveChat    = "chat/"    // the conversation in the browser with the id behind it
)

// partHeader is set by the script of a page that is open, which asks for the page itself
// without what is around all of them.
const partHeader = "Bot-Part"

func isPart(r *http.Request) bool { return r.Header.Get(partHeader) != "" }

// livePages tell pages that are open of what changes.
type livePages struct {
	storage Storage
	role    roleOf
	changes *live.Hub // nil: nobody is told
	now     func() time.Time
}

func (p *livePages) routes(to *Pages) { to.file("GET /events", p.stream) }

// stream tells a page that is open when something that it shows has changed.
func (p *livePages) stream(w http.ResponseWriter, r *request) error {
	if p.changes == nil {
		return fault.New(fault.NotFound, "There is no such page.")
	}
	topic := r.URL.Query().Get("topic")
	asked, cancel := context.WithTimeout(r.Context(), pagePatience)
	topics, all, err := p.watched(asked, r, topic)
	cancel()
	if err != nil {
		return err
	}
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.URL.Query().Get("after")
	}
	stream, ok := p.changes.Subscribe(live.Asked{
		Owner: r.session.ID, Topics: topics, All: all, Access: []live.Topic{live.Access, live.Browser(r.session.ID)}, After: after,
	})
	if !ok {
		w.Header().Set("Retry-After", "10")
		return fault.New(fault.Unavailable, "Too many pages are open to update this one as things change. Reload it to see changes.")
	}
	feed := live.Feed{Stream: stream, Check: func(ctx context.Context) bool { return p.mayWatch(ctx, r, topic) }}
	if all && !r.owner() {
		feed.Passes = func(ctx context.Context, changed []live.Topic) bool { return p.seesAny(ctx, r, changed) }
	}
	live.Serve(w, r.Request, feed)
	return nil
}

// watched returns what a page has to be told of, if who asks sees it.
func (p *livePages) watched(ctx context.Context, r *request, topic string) (topics []live.Topic, all bool, err error) {
	if topic == liveAll {
		return nil, true, nil
	}
	if id, ok := strings.CutPrefix(topic, liveChat); ok {
		topics, err := watchedChat(ctx, p.storage, r, id)
		return topics, false, err
	}
	id, ok := strings.CutPrefix(topic, liveSession)
	if !ok {
		return nil, false, fault.New(fault.Invalid, "There are no changes of that name.")
	}
	row, err := sessionOf(ctx, p.storage, r, id)
	return []live.Topic{live.Conversation(row.ConversationID)}, false, err
}

// mayWatch reports whether a stream may go on: the session is good, the role is what it
// was when it began, and the page is still one that they see.
func (p *livePages) mayWatch(ctx context.Context, r *request, topic string) bool {
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	_, role, err := p.role.session(ctx, p.storage, r.session.Hash, p.now())
	if err != nil || role != r.role {
		return false
	}
	_, _, err = p.watched(ctx, r, topic)
	return err == nil
}

// seesAny reports whether who looks sees one of the conversations that changed.
func (p *livePages) seesAny(ctx context.Context, r *request, changed []live.Topic) bool {
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	var ids []string
	for _, t := range changed {
		if id, ok := t.Conversation(); ok {
			ids = append(ids, id)
		}
	}
	sees, err := store.Within(ctx, p.storage.InRead, func(tx *store.Tx) (bool, error) { return tx.Pages().SeesAny(ctx, r.viewer(), ids) })
	return err == nil && sees
}
