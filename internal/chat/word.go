package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/plan"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// openQuestions returns the questions that waited in a conversation when somebody
// said something there, oldest first: what was asked later they have not seen. With
// them are those that the same person has decided since, so that a second run after a
// crash finds them. planned is the plan that waits for a decision, empty for none.
func (de *decisions) openQuestions(ctx context.Context, r command.Request) (asked []approval.Approval, planned string, err error) {
	err = de.store.InRead(ctx, func(tx *store.Tx) error {
		asked, planned = nil, ""
		all, err := tx.Questions().OpenApprovals(ctx, r.Conv.ID, r.Entry.AcceptedAt, 20)
		if err != nil {
			return err
		}
		for _, a := range all {
			if !a.CreatedAt.After(r.Entry.AcceptedAt) && (a.State == approval.Waiting || a.DecidedBy == r.Actor()) {
				asked = append(asked, a)
			}
		}
		p, ok, err := tx.Proposals().LatestPlan(ctx, r.Conv.ID)
		if ok && p.State == plan.Proposed {
			planned = p.Name()
		}
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("look for open questions: %w", err)
	}
	return asked, planned, nil
}

// which asks on which of several questions somebody wants to decide.
func (de *decisions) which(r command.Request, verb string, asked []approval.Approval, planned string) (command.Reply, error) {
	var b strings.Builder
	b.WriteString("Which one? These are waiting for a decision:\n\n")
	for _, a := range asked {
		fmt.Fprintf(&b, "- **%s** %s\n", a.Name(), a.Question())
	}
	if planned != "" {
		fmt.Fprintf(&b, "- **%s** the plan\n", planned)
	}
	fmt.Fprintf(&b, "\nName it: `%s%s %s`.", de.prefix(r.Conv.Key), verb, asked[0].Name())
	return command.Reply{Text: b.String()}, nil
}

// Plain answers what somebody wrote without a command: "stop", or a word while a
// question waited. No is no; a yes is not taken from free text, because what runs has to be named or pressed.
// If nothing waits any more, it is a message like any other.
func (h *Handler) Plain(ctx context.Context, r command.Request) (command.Reply, error) {
	if command.IsStop(r.Entry.In.Text) {
		return h.turns.stop(ctx, r, r.Entry.Seq)
	}
	word, rest, ok := command.ParseWord(r.Entry.In.Text)
	asked, _, err := h.decisions.openQuestions(ctx, r)
	if err != nil {
		return command.Reply{}, err
	}
	if !ok || len(asked) == 0 {
		return command.Reply{Again: &r.Entry.In}, nil
	}
	prefix := h.prefix(r.Conv.Key)
	switch word {
	case command.WordStop:
		return h.turns.stop(ctx, r, r.Entry.Seq)
	case command.WordNo:
		return h.decisions.denyAll(ctx, r, asked, rest)
	case command.WordWhy:
	case command.WordYes:
		how := fmt.Sprintf("send `%sapprove %s`", prefix, asked[0].Name())
		if h.caps(r.Conv.Key.Platform).Buttons {
			how = "use its button, or " + how
		}
		return reply("To allow %s (%s), %s. A plain yes does not count, so that nothing runs unseen.", asked[0].Name(), trimQuestion(asked[0]), how)
	}
	return h.decisions.explain(ctx, r, asked[0])
}

func trimQuestion(a approval.Approval) string { return strings.TrimSuffix(a.Question(), "?") }

// denyAll says no to questions.
func (de *decisions) denyAll(ctx context.Context, r command.Request, asked []approval.Approval, note string) (command.Reply, error) {
	var lines []string
	for _, a := range asked {
		a, err := de.settle(ctx, r, orchestrator.Decision{Number: a.Number, Decision: approval.Deny, Note: note})
		if err != nil {
			lines = append(lines, fault.Public(err))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s.", a.Name(), a.Outcome()))
	}
	return command.Reply{Text: strings.Join(lines, "\n\n")}, nil
}

// explain says why a question waits.
func (de *decisions) explain(ctx context.Context, r command.Request, a approval.Approval) (command.Reply, error) {
	var entry, said string
	err := de.store.InRead(ctx, func(tx *store.Tx) error {
		entry, said = "", ""
		if a.EntryID == "" {
			return nil
		}
		of, err := tx.Inbox().Entry(ctx, a.EntryID)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		stored, err := tx.Messages().RunMessages(ctx, a.EntryID)
		entry, said = of.In.Text, lastSaid(stored)
		return err
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("read what was asked: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** is waiting for a decision: %s\n\n", a.Name(), a.Question())
	if entry = strings.TrimSpace(entry); entry != "" {
		fmt.Fprintf(&b, "- It is for this message: %q\n", wording.Head(strings.Join(strings.Fields(entry), " "), 200))
	}
	if said != "" {
		fmt.Fprintf(&b, "- What the assistant said before: %q\n", wording.Head(strings.Join(strings.Fields(said), " "), 400))
	}
	switch a.Tool {
	case approval.ToolClone, approval.ToolContinue, approval.ToolBudget:
		fmt.Fprintf(&b, "- %s\n", wording.Head(strings.Join(strings.Fields(a.Detail), " "), 400))
	default:
		fmt.Fprintf(&b, "- Approval is needed because the mode here is %s: %s.\n", modeOf(r.Conv, de.mode), modeText(modeOf(r.Conv, de.mode)))
	}
	prefix := de.prefix(r.Conv.Key)
	fmt.Fprintf(&b, "\n`%[1]sapprove %[2]s` runs it once, `%[1]sdeny %[2]s` refuses it; the assistant continues either way. `%[1]sstop` ends the turn.", prefix, a.Name())
	return command.Reply{Text: b.String()}, nil
}

// lastSaid returns what the assistant said last.
func lastSaid(stored []messages.Message) string {
	for _, m := range slices.Backward(stored) {
		if text := strings.TrimSpace(m.PlainText()); m.Role == messages.RoleAssistant && text != "" {
			return text
		}
	}
	return ""
}
