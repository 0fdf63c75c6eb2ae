package recollect

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/lists"
	"remote-agent/internal/memory"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/tool"
	"remote-agent/internal/tool/memo"
)

// Tools returns the tools of a turn, for the memory of the person who asks. What
// a tool returns stays in the session, where others may read it later; so there
// is no tool to recall where they write as well.
func (s *Service) Tools(t orchestrator.ToolTurn) []tool.Tool {
	in := t.Entry.In
	if in.Sender.Bot || in.Sender.ID == "" {
		return nil
	}
	who := person(in)
	ports := memo.Ports{
		Remember: func(ctx context.Context, n memo.Note) (string, error) { return s.note(ctx, t, n) },
		Forget: func(ctx context.Context, number int64) (string, error) {
			err := s.Forget(ctx, who, number)
			return fmt.Sprintf("Deleted memory %d.", number), err
		},
	}
	if in.Private {
		ports.Recall = func(ctx context.Context, query string) (string, error) {
			return s.find(ctx, memory.Scope{Person: who, Codebase: t.Conversation.CodebaseID}, query, orchestrator.LimitsOf(t.Profile))
		}
	}
	return memo.New(ports)
}

// note remembers what the model chose to.
func (s *Service) note(ctx context.Context, t orchestrator.ToolTurn, n memo.Note) (string, error) {
	category, err := memory.ParseCategory(n.Category)
	if err != nil {
		return "", err
	}
	f := memory.Fact{Scope: memory.Scope{Person: person(t.Entry.In)}, Text: n.Text, Category: category, Origin: memory.ByAssistant}
	if n.Replaces != 0 {
		_, err := s.Correct(ctx, t.Entry, n.Replaces, f)
		return fmt.Sprintf("Updated memory %d.", n.Replaces), err
	}
	// What is said of a person holds wherever they are; a plain fact is likely to
	// be about the code at hand.
	if n.Where == "repository" || n.Where == "" && (category == memory.General || category == "") {
		f.Codebase = t.Conversation.CodebaseID
	}
	out, err := s.Remember(ctx, t.Entry, f)
	if err != nil {
		return "", err
	}
	told := fmt.Sprintf("%s: it is memory %d.", out.Operation, out.Memory.Number)
	if out.Contradicted {
		told += " It replaces what that memory said, which is kept in its history."
	}
	return told, nil
}

// find lists memories that have to do with a question, for the model.
func (s *Service) find(ctx context.Context, scope memory.Scope, query string, limits orchestrator.RecallLimits) (string, error) {
	if any, err := s.any(ctx, scope.Person); !any {
		return "", err
	}
	q := memory.Query{Scope: scope, Text: query, Embedding: s.embedWithin(ctx, query, storePatience, limits), Limit: limits.Max, Now: s.config.Now()}
	var found []memory.Match
	err := s.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		found, err = tx.Recall(ctx, q)
		return err
	})
	if err != nil {
		return "", err
	}
	return strings.Join(lists.Map(found, func(m memory.Match) string { return forModel(m.Memory, q.Now) }), "\n"), nil
}
