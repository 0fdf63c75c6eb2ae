package slack

import (
	"net/http"
	"strings"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// responses are the URLs at which the bot may answer commands and interactions.
type responses struct {
	*platform

	byID map[string]*responseURL
}

// responseURL is where the bot may answer one of them.
type responseURL struct {
	url     string
	ws      *Workspace
	user    string
	channel string
	message *Message // to which the interaction belongs; nil for commands
	at      time.Time
	uses    int
}

const maxResponses = 5

// add makes a URL. The lock must be held.
func (r *responses) add(w *Workspace, user, channelID string, m *Message) *responseURL {
	id := r.id("R")
	u := &responseURL{url: r.URL() + "/response/" + id, ws: w, user: user, channel: channelID, message: m, at: r.opts.Now()}
	r.byID[id] = u
	return u
}

// post carries out what the bot posts to a URL.
func (r *responses) post(id string, p params) *apiError {
	r.mu.Lock()
	defer r.unlock()
	u := r.byID[id]
	switch {
	case u == nil:
		return &apiError{code: "invalid_url", status: http.StatusNotFound}
	case r.opts.Now().Sub(u.at) > r.opts.ResponseURLLifetime:
		return &apiError{code: "expired_url", status: http.StatusNotFound}
	case u.uses >= maxResponses:
		return &apiError{code: "used_url", status: http.StatusNotFound}
	}
	refused := u.reply(p)
	if refused == nil {
		u.uses++
	}
	return refused
}

func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	p, refused := parseParams(r)
	call := Call{Method: ResponseURL, Params: p.values, At: s.opts.Now()}
	s.answer(w, r, call, func() (map[string]any, *apiError, []string) { //nolint:contextcheck // what the call makes Slack deliver outlives it
		if refused == nil {
			refused = s.responses.post(r.PathValue("id"), p)
		}
		return nil, refused, nil
	}, params{})
}

// reply carries out a post to a response URL, or the body of an acknowledgement.
// The lock must be held.
func (u *responseURL) reply(p params) *apiError {
	c := u.ws.open(u.channel)
	if p.bool("delete_original") && u.message != nil {
		if m := c.byTS[u.message.TS]; m != nil {
			c.remove(m)
			c.ws.server.change(ChangeDeleted, m)
		}
		return nil
	}
	body, refused := readContent(p, false)
	if refused != nil {
		return &apiError{code: refused.code, status: http.StatusBadRequest, messages: refused.messages}
	}
	if body.empty() {
		return &apiError{code: "no_text", status: http.StatusBadRequest}
	}
	if p.bool("replace_original") && u.message != nil {
		if old := c.byTS[u.message.TS]; old != nil {
			m := *old
			body.put(&m)
			c.supersede(old, &m)
		}
		return nil
	}
	m := u.ws.botMessage()
	body.put(m)
	root := p.get("thread_ts")
	if p.get("response_type") == "in_channel" {
		if c.byTS[root] != nil {
			m.ThreadTS = root
		}
		c.post(m)
		return nil
	}
	c.whisper(m, u.user, root)
	return nil
}

// acknowledged shows the body with which a command was acknowledged. The lock
// must be held.
func (u *responseURL) acknowledged(answer []byte) {
	if len(strings.TrimSpace(string(answer))) == 0 || string(answer) == "null" {
		return
	}
	p := params{values: map[string]string{}}
	if platformapi.AddJSON(p.values, answer) != nil {
		p.values = map[string]string{"text": string(answer)}
	}
	_ = u.reply(p)
}
