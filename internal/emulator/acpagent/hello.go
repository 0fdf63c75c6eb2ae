package acpagent

import (
	"encoding/json"
	"slices"
)

// hello is the answer to initialize.
func (a *agent) hello() any {
	version := a.script.Protocol
	if version == 0 {
		version = 1
	}
	offers := map[string]any{}
	if a.script.Resume {
		offers["resume"] = struct{}{}
	}
	meta := map[string]any{}
	if len(a.script.Login) > 0 {
		meta["authStatus"] = struct{}{}
	}
	return map[string]any{
		"protocolVersion": version,
		"agentInfo":       map[string]any{"name": "scripted", "version": "1"},
		"agentCapabilities": map[string]any{
			"_meta": meta, "loadSession": a.script.Load, "sessionCapabilities": offers,
			"mcpCapabilities":    map[string]any{"http": a.script.HTTP, "sse": false},
			"promptCapabilities": map[string]any{"embeddedContext": true, "image": a.script.Images},
		},
		"authMethods": append([]Way{}, a.script.Ways...),
	}
}

// authenticate takes any way that was named.
func (a *agent) authenticate(r request, params json.RawMessage) error {
	var p struct {
		MethodID string `json:"methodId"`
	}
	_ = json.Unmarshal(params, &p)
	if !slices.ContainsFunc(a.script.Ways, func(w Way) bool { return w.ID == p.MethodID }) {
		a.fail(r, Error{Code: -32602, Message: "no such way to authenticate"})
		return nil
	}
	if err := a.steps(r, a.script.Auth); err != nil {
		return err
	}
	a.mu.Lock()
	a.unlocked = true
	a.mu.Unlock()
	a.answer(r, struct{}{})
	return nil
}

// locked reports whether nothing goes before authenticate.
func (a *agent) locked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.script.Locked && !a.unlocked
}
