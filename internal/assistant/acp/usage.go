package acp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	sdk "github.com/coder/acp-go-sdk"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

// meter remembers what a session cost. Agents report the sum over the session,
// also over restarts of their process; Claude Code begins at zero again when
// its process was killed.
type meter struct {
	total   float64
	unknown bool // an earlier process worked on the session, and its sum is not known
}

func (m *meter) set(total float64) { *m = meter{total: total} }

// since returns what was added since the last reading, or zero if that is not
// known.
func (m meter) since(total float64) float64 {
	switch {
	case m.unknown:
		return 0
	case total < m.total:
		return total // it began again
	}
	return total - m.total
}

// usage returns what the turn cost. The tokens of the answer to session/prompt
// are this turn's: so do both known front ends, whatever the protocol's text
// says.
func (r *run) usage(u *sdk.Usage) assistant.Usage {
	usage := r.t.usage // context only
	if u != nil {
		cached, written := value(u.CachedReadTokens), value(u.CachedWriteTokens)
		usage.CachedTokens, usage.WrittenTokens = cached, written
		usage.InputTokens, usage.OutputTokens = value(&u.InputTokens), value(&u.OutputTokens)
		// Our InputTokens include what was cached, our OutputTokens what was thought. The sum says
		// whether the agent's do.
		switch total, thought := int64(u.TotalTokens), value(u.ThoughtTokens); {
		case total == usage.InputTokens+usage.OutputTokens+thought:
			usage.OutputTokens += thought
		case total >= usage.InputTokens+usage.OutputTokens+cached+written:
			usage.InputTokens += cached + written
		}
	}
	if r.t.cost != nil {
		m := r.cost
		if m.unknown {
			if total := recorded(r.turn.Array, r.turn.Resume).CostUSD; r.turn.ResumeCostUSD > 0 {
				m.set(r.turn.ResumeCostUSD)
			} else if total != nil {
				m.set(*total)
			}
		}
		usage.CostUSD = m.since(*r.t.cost)
	}
	return usage
}

// settleCost says what the session has cost by now, for the process after this one:
// of a turn that failed no message says so, and what was said once for such a turn
// has to be said of the turns after it, too.
func (r *run) settleCost(failed bool) error {
	if r.t.cost == nil || !failed && r.turn.ResumeCostUSD == 0 {
		return nil
	}
	return r.t.emit(assistant.Resumable{Session: r.agent.session, CostUSD: *r.t.cost})
}

func value(n *int) int64 {
	if n == nil {
		return 0
	}
	return assistant.Count(int64(*n))
}

// metadata is stored with the last message of a turn, so that the next process
// knows what the session had cost and which instructions it was told.
type metadata struct {
	Session    string   `json:"session_id"`
	StopReason string   `json:"stop_reason,omitempty"`
	Model      string   `json:"model,omitempty"`
	CostUSD    *float64 `json:"session_cost_usd,omitempty"`
	System     string   `json:"system_sha256,omitempty"`
}

func (r *run) metadata(stopReason string) json.RawMessage {
	text, err := json.Marshal(metadata{
		Session: r.agent.session, StopReason: stopReason, Model: r.t.model, CostUSD: r.t.cost, System: digest(r.agent.system),
	})
	if err != nil {
		return nil
	}
	return text
}

// digest stands for a text in names and records.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// recorded returns what was stored of a session last.
func recorded(array []messages.Message, session string) (last metadata) {
	for _, m := range slices.Backward(array) {
		var kept metadata
		if m.Role != messages.RoleAssistant || json.Unmarshal(m.ProviderMetadata, &kept) != nil || kept.Session != session {
			continue
		}
		last.System = cmp.Or(last.System, kept.System)
		if last.CostUSD = kept.CostUSD; last.CostUSD != nil {
			break
		}
	}
	return last
}
