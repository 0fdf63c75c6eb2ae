package acp

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

// loginUpdate is what Claude Code and Codex say by themselves after initialize, and say in
// its answer that they do: by whom they are paid. It is an extension of the protocol.
const loginUpdate = "_auth/status_update"

// loginLate is how long after the opening of a session it is waited for again.
const loginLate = 2 * time.Second

// Login is how an agent authenticates to its provider, as it says.
type Login struct {
	Known bool   // it has said so
	None  bool   // it is not logged in
	By    string // foreign text in one short line, such as "Anthropic API key (ANTHROPIC_API_KEY)"
}

// Seen is what an agent showed of itself.
type Seen struct {
	Version string // its name and version, as it says; may be empty
	Login   Login

	// Refused is why it opened no session: fault.Unauthorized if it is not logged in. It
	// is nil if it did, and if it was not asked to.
	Refused error
}

// Examine starts the agent as a turn would, and ends it. One that does not say that it is
// logged in is asked for a session if open is set, which those refuse that look for their
// login first; no model is asked.
func (a *Assistant) Examine(ctx context.Context, open bool) (seen Seen, err error) {
	const alone = "examination"
	p, err := a.enter(ctx, alone)
	if err != nil {
		return seen, err
	}
	defer a.leave(p)
	defer a.Release(alone)
	g, err := a.start(ctx, p, assistant.Turn{Conversation: alone, Run: alone})
	if err != nil {
		return seen, err
	}
	seen.Version = g.version
	if g.tellsLogin {
		seen.Login = g.awaitLogin(ctx, g.a.config.InitTimeout)
	}
	if seen.Login.Known && !seen.Login.None || !open {
		return seen, nil
	}
	_, seen.Refused = g.create(ctx)
	none := fault.Is(seen.Refused, fault.Unauthorized)
	switch {
	case !g.tellsLogin || none:
		seen.Login = Login{Known: none || seen.Refused == nil, None: none}
	case seen.Refused == nil: // a session may have logged it in, with a key that it was given
		if later := g.awaitLogin(ctx, loginLate); later.Known {
			seen.Login = later
		}
	}
	return seen, nil
}

// versionOf reads what an agent says it is. Whatever is there, no turn fails over it.
func versionOf(info json.RawMessage) string {
	var w struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	_ = json.Unmarshal(info, &w)
	return oneLine(strings.TrimSpace(w.Name+" "+w.Version), 80)
}

// tellsLogin reports whether the _meta of an agent's capabilities has the mark of
// loginUpdate.
func tellsLogin(meta json.RawMessage) bool {
	var w struct {
		AuthStatus json.RawMessage `json:"authStatus"`
	}
	return json.Unmarshal(meta, &w) == nil && w.AuthStatus != nil
}

// awaitLogin waits until the agent says how it is logged in, or has ended, or was silent
// about it for too long: Claude Code starts itself once more to find out.
func (g *agent) awaitLogin(ctx context.Context, patience time.Duration) Login {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case l := <-g.logins:
		return l
	case <-g.conn.done:
	case <-ctx.Done():
	}
	return Login{}
}

// told takes what an agent says of its login. Whose account it is is nobody's business.
func (g *agent) told(params json.RawMessage) {
	var w struct {
		AuthStatus struct {
			Kind   string `json:"kind"`
			Label  string `json:"label"`
			Detail string `json:"detail"`
		} `json:"authStatus"`
	}
	if json.Unmarshal(params, &w) != nil || w.AuthStatus.Kind == "" {
		return
	}
	by := w.AuthStatus.Label
	if w.AuthStatus.Detail != "" {
		by += " (" + w.AuthStatus.Detail + ")"
	}
	select {
	case g.logins <- Login{Known: true, None: w.AuthStatus.Kind == "none", By: oneLine(by, 120)}:
	default: // of later changes nobody wants to know
	}
}
