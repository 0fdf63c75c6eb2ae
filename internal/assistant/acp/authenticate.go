package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"remote-agent/internal/pattern"
)

// maxWays is how many ways to log in are named.
const maxWays = 5

// authWait is how long an agent may take to authenticate. One that waits for a person, as
// Cursor does that is not logged in, would wait for ever.
const authWait = 15 * time.Second

// way is a way to authenticate that an agent names.
type way struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"` // empty: the agent does it by itself
	Vars        []struct {
		Name     string `json:"name"`
		Optional bool   `json:"optional"`
	} `json:"vars"` // of the type "env_var"
}

// waysOf reads the ways that an agent names. What it says in another form than we know is left
// out.
func waysOf(methods json.RawMessage) (ways []way) {
	_ = json.Unmarshal(methods, &ways)
	return slices.DeleteFunc(ways, func(w way) bool { return w.Name == "" })
}

// waysIn says how an agent can be logged in, as it says: often it names a variable.
func waysIn(ways []way) string {
	var named []string
	for _, w := range ways[:min(len(ways), maxWays)] {
		how := w.Description
		if how == "" {
			var names []string
			for _, v := range w.Vars {
				names = append(names, v.Name)
			}
			how = strings.Join(names, ", ")
		}
		named = append(named, strings.TrimSuffix(oneLine(strings.TrimSuffix(w.Name+": "+how, ": "), 160), "."))
	}
	if len(named) == 0 {
		return ""
	}
	return "It names these ways: " + strings.Join(named, "; ") + ". "
}

// aVariable is what a description names as a variable of the environment.
var aVariable = pattern.Lazy(`\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b`)

// ready returns the id of the way to authenticate that takes no person: one whose variables the
// agent has, or the only one that it does by itself, because it may have been logged in. It is
// empty if there is none.
func ready(ways []way, env []string) string {
	set := func(name string) bool { return lookup(env, name) != "" }
	for _, w := range ways {
		named := len(w.Vars) > 0
		for _, v := range w.Vars {
			named = named && (v.Optional || set(v.Name))
		}
		byItself := w.Type == "" || w.Type == "agent"
		if w.Type == "env_var" && named || byItself && slices.ContainsFunc(aVariable.FindAllString(w.Description, -1), set) {
			return w.ID
		}
	}
	if len(ways) == 1 && (ways[0].Type == "" || ways[0].Type == "agent") {
		return ways[0].ID
	}
	return ""
}

// openSession calls a method that opens a session. An agent that refuses it before it was
// authenticated is, if that takes no person, and asked once more.
func (g *agent) openSession(ctx context.Context, method, id string, answer *sessionAnswer) error {
	err := g.conn.call(ctx, g.a.config.InitTimeout, method, g.asked(id), answer)
	refusal, refused := errors.AsType[*sdk.RequestError](err)
	if !refused || refusal.Code != codeAuthRequired || g.wayIn == "" {
		return err
	}
	wayIn := g.wayIn
	g.wayIn = "" // once
	failed := g.conn.call(ctx, min(authWait, g.a.config.InitTimeout), sdk.AgentMethodAuthenticate, map[string]string{"methodId": wayIn}, nil)
	if failed != nil {
		g.log.InfoContext(ctx, "the agent could not be authenticated", "way", oneLine(wayIn, 60), "err", g.a.scrub(failed))
		return err
	}
	return g.conn.call(ctx, g.a.config.InitTimeout, method, g.asked(id), answer)
}
