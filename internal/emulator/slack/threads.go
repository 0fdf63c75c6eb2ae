package slack

import (
	"encoding/json"
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
	t.statuses++
	return nil, nil
}

func setTitle(r *request) (map[string]any, *apiError) {
	_, t, refused := r.existing("invalid_thread_ts")
	if refused != nil {
		return nil, refused
	}
	if r.p.get("title") == "" {
		return nil, refuse("invalid_arguments")
	}
	t.title = r.p.get("title")
	return nil, nil
}

// setPrompts takes prompts without a thread only in direct conversations.
func setPrompts(r *request) (map[string]any, *apiError) {
	c, refused := r.writable(r.p.get("channel_id"))
	if refused != nil {
		return nil, refused
	}
	t := c.thread("")
	if r.p.get("thread_ts") != "" || c.info.Kind != Direct {
		if _, t, refused = r.existing("invalid_thread_ts"); refused != nil {
			return nil, refused
		}
	}
	var prompts []Prompt
	if json.Unmarshal([]byte(r.p.get("prompts")), &prompts) != nil || len(prompts) < 1 || len(prompts) > 4 {
		return nil, refuse("invalid_arguments")
	}
	if slices.ContainsFunc(prompts, func(p Prompt) bool { return p.Title == "" || p.Message == "" }) {
		return nil, refuse("invalid_arguments")
	}
	t.prompts = prompts
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

func sessionRename(r *request) (map[string]any, *apiError) {
	_, t, refused := r.existing("thread_not_found")
	if refused != nil {
		return nil, refused
	}
	title := r.p.get("title")
	switch n := utf8.RuneCountInString(title); {
	case t.session.Status == "":
		return nil, refuse("session_not_found")
	case n < 1 || n > maxSessionTitle:
		return nil, refuse("invalid_arguments")
	}
	t.session.Title = title
	return map[string]any{"title": title}, nil
}
