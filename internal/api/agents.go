package api

import (
	"context"
	"maps"
	"slices"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/order"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// agentBody is an agent profile. Of MCP servers there are the names only: their
// environment and headers hold credentials.
type agentBody struct {
	ID             string         `json:"id"`
	Name           string         `json:"name"`
	Group          string         `json:"group"`
	Description    string         `json:"description"`
	Lore           []string       `json:"lore"`
	Objectives     []string       `json:"objectives"`
	Knowledge      []string       `json:"knowledge"`
	SystemPrompt   string         `json:"system_prompt"`
	Interval       int64          `json:"interval"`
	Plugins        []string       `json:"plugins"`
	Memory         profile.Memory `json:"memory"`
	RAG            profile.RAG    `json:"rag"`
	Mode           string         `json:"mode"`
	MaxIterations  int            `json:"max_iterations"`
	MCPServers     []string       `json:"mcp_servers"`
	AvatarMIMEType *string        `json:"avatar_mime_type"`
	ModelTier      *string        `json:"model_tier"`
	Model          *string        `json:"model"`
	Version        int64          `json:"version"`
	CreatedAt      time.Time      `json:"created_at"`
	UpdatedAt      time.Time      `json:"updated_at"`
}

func showAgent(p profile.Profile) agentBody {
	return agentBody{
		ID: p.ID, Name: p.Name, Group: p.Group, Description: p.Description,
		Lore: never(p.Lore), Objectives: never(p.Objectives), Knowledge: never(p.Knowledge), SystemPrompt: p.SystemPrompt,
		Interval: p.Interval, Plugins: never(p.Plugins), Memory: p.Memory, RAG: p.RAG, Mode: string(p.Mode),
		MaxIterations: p.MaxIterations, MCPServers: never(slices.Sorted(maps.Keys(p.MCPServers))), AvatarMIMEType: maybe(p.AvatarType),
		ModelTier: maybe(p.ModelTier), Model: maybe(p.Model), Version: p.Version, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}
}

// never is a list that is never null.
func never(list []string) []string { return append([]string{}, list...) }

const agentList = "a"

// listAgents lists profiles by group and name. There are as many as people have
// written, so all of them are read for a page.
func (a *API) listAgents(ctx context.Context, c call) (any, error) {
	after, err := readCursor(agentList, c.args.text("cursor"), 2)
	if err != nil {
		return nil, err
	}
	rows, err := store.Within(ctx, a.config.Store.InRead, func(tx *store.Tx) ([]profile.Profile, error) { return tx.Profiles().List(ctx, c.args.text("group")) })
	order.By(rows, func(p, q profile.Profile) int {
		return slices.Compare([]string{p.Group, p.Name}, []string{q.Group, q.Name})
	})
	rows = slices.DeleteFunc(rows, func(p profile.Profile) bool {
		return after != nil && slices.Compare([]string{p.Group, p.Name}, after) <= 0
	})
	return cut(len(rows), int(c.args.number("limit")), func(i int) any { return showAgent(rows[i]) }, func(i int) *string { return newCursor(agentList, rows[i].Group, rows[i].Name) }), err
}

func (a *API) getAgent(ctx context.Context, c call) (any, error) {
	p, err := store.Within(ctx, a.config.Store.InRead, func(tx *store.Tx) (profile.Profile, error) { return tx.Profiles().Agent(ctx, c.args.text("agent_id")) })
	return showAgent(p), err
}

// agentRemovedCounts is store.AgentsRemoved.
type agentRemovedCounts struct {
	Agents        int64 `json:"agents"`
	Conversations int64 `json:"conversations"`
	Schedules     int64 `json:"schedules"`
	Memories      int64 `json:"memories"`
}

// deleteAgent deletes a profile that no conversation works with at this moment.
// Those that use it go on with the default.
func (a *API) deleteAgent(ctx context.Context, c call) (any, error) {
	id := c.args.text("agent_id")
	var r store.AgentsRemoved
	err := a.config.Store.InTx(ctx, func(tx *store.Tx) error {
		p, err := tx.Profiles().Agent(ctx, id)
		if err != nil {
			return err
		}
		busy, err := tx.Pages().AgentAtWork(ctx, id)
		if err != nil {
			return err
		}
		if busy {
			return fault.New(fault.Conflict, "A conversation is using this profile. Stop it first, or wait for its answer.")
		}
		if r, err = tx.Profiles().Delete(ctx, id); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: c.actor(), Action: "agent.remove", Target: p.Title(), Detail: c.detail()})
	})
	return deleted[agentRemovedCounts]{agentRemovedCounts(r)}, err
}
