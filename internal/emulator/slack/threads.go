package slack

import (
	"slices"
	"unicode/utf8"
)

// existing returns the thread that a call about threads names. It must have a
// root.
func (r *request) existing(code string) (*channel, *thread, *apiError) {
	c, refused := r.writable(r.p.get("channel_id"))
	if refused != nil {
		return nil, nil, refused
	}
	ts := r.p.get("thread_ts")
	m := c.byTS[ts]
	if m == nil || m.ThreadTS != "" {
		return nil, nil, refuse(code)
	}
	return c, c.thread(ts), nil
}

func setStatus(r *request) (map[string]any, *apiError) {
	_, t, refused := r.existing("invalid_thread_ts")
	if refused != nil {
		return nil, refused
	}
	loading := r.p.list("loading_messages")
	if !r.p.has("status") || len(loading) > 10 {
		return nil, refuse("invalid_arguments")
	}
	t.status = Status{Text: r.p.get("status"), LoadingMessages: loading, At: r.ws.server.opts.Now()}
	return nil, nil
}

const maxSessionTitle = 200

func sessionStatus(r *request) (map[string]any, *apiError) {
	_, t, refused := r.existing("thread_not_found")
	if refused != nil {
		return nil, refused
	}
	status, title := r.p.get("status"), r.p.get("title")
	if !slices.Contains([]string{"active", "processing", "suspended", "closed"}, status) || utf8.RuneCountInString(title) > maxSessionTitle {
		return nil, refuse("invalid_arguments")
	}
	if t.session.Status == "" {
		t.session.Title = title
	}
	t.session.Status = status
	out := map[string]any{"status": status, "agent_status": status, "title": t.session.Title}
	if !r.ws.server.opts.subscribed("agent_session_stopped") {
		out = withWarning(out, "missing_agent_session_stopped_event_subscription")
	}
	return out, nil
}
