package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (ov *overview) statusCommand() *command.Command {
	return &command.Command{
		Name:    "status",
		Usage:   "status [verbose]",
		Summary: "show what is running and queued; verbose adds the system prompt",
		Example: "status",
		Rank:    2,
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Run:     ov.runStatus,
	}
}

// standing is what the database says of a conversation, for its status.
type standing struct {
	session sessions.Session
	active  bool      // there is a session
	waiting int       // messages
	again   time.Time // when the first of them is tried again; zero if it does not wait for that
	used    *profile.Profile
	halt    sessions.ServiceState
	asked   []approval.Approval
	loops   int // messages of a loop, of the last day
	looped  time.Time
}

func (ov *overview) standing(ctx context.Context, conv sessions.Conversation) (s standing, err error) {
	err = ov.store.InRead(ctx, func(tx *store.Tx) (err error) {
		if s.session, s.active, err = tx.Sessions().ActiveSession(ctx, conv.ID); err != nil {
			return err
		}
		if s.used, err = profileOf(ctx, tx, conv); err != nil {
			return err
		}
		if s.halt, err = tx.People().ServiceState(ctx); err != nil {
			return err
		}
		if s.halt.HaltedBy, err = sessions.NameOf(ctx, tx.People(), s.halt.HaltedBy); err != nil {
			return err
		}
		if s.asked, err = tx.Questions().WaitingApprovals(ctx, conv.ID, maxNamed); err != nil {
			return err
		}
		if s.loops, s.looped, err = tx.Inbox().Unanswered(ctx, conv.ID, time.Now().Add(-24*time.Hour)); err != nil {
			return err
		}
		if s.waiting, err = tx.Inbox().CountWaiting(ctx, conv.ID); err != nil || s.halt.Halted() {
			return err
		}
		if head, ok, err := tx.Inbox().NextEntry(ctx, conv.ID); err != nil {
			return err
		} else if ok && head.Error != "" {
			s.again = head.NextAt
		}
		return nil
	})
	return s, err
}

func (ov *overview) runStatus(ctx context.Context, r command.Request) (command.Reply, error) {
	s, err := ov.standing(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n", ov.headline(r, &s))
	if s.loops > 0 {
		fmt.Fprintf(&b, "- %s, because each came right after an answer, as if two programs were answering each other. The last one was at %s. Send it again to have it answered.\n",
			wording.Count(s.loops, "message was not answered", "messages were not answered"), wording.Moment(s.looped))
	}
	if s.halt.Halted() {
		fmt.Fprintf(&b, "- %s\n", haltLine(s.halt))
	}
	model := ""
	if a := ov.assistants[assistant.Name(r.Conv.Assistant)]; a != nil && cmp.Or(r.Conv.Settings.Model, a.Model()) != "" {
		model = " (" + cmp.Or(r.Conv.Settings.Model, a.Model()) + ")"
	}
	fmt.Fprintf(&b, "- assistant: %s%s\n", r.Conv.Assistant, model)
	ov.writeSession(&b, s)
	if s.used != nil {
		fmt.Fprintf(&b, "- profile: %s, version %d\n", s.used.Title(), s.used.Version)
	}
	if ov.work != nil {
		for _, line := range ov.codebaseStatus(ctx, r.Conv) {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	if ov.tools != nil {
		mode := modeOf(r.Conv, ov.mode)
		fmt.Fprintf(&b, "- mode: %s, %s\n", mode, modeText(mode))
		for _, line := range ov.tools.Status() {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	fmt.Fprintf(&b, "- service: version %s, up %s, %s running\n", ov.version,
		wording.Clock(time.Since(ov.started)), wording.Count(ov.engine.RunningTurns(), "conversation", "conversations"))
	if len(r.Call.Args) > 0 && strings.EqualFold(r.Call.Args[0], "verbose") {
		b.WriteString(ov.promptStatus(r, s.session, s.used))
	}
	return command.Reply{Text: b.String()}, nil
}

// writeSession says which session is active, with a link to its page.
func (ov *overview) writeSession(b *strings.Builder, s standing) {
	if !s.active {
		b.WriteString("- session: none; your next message starts one\n")
		return
	}
	open := command.OpenLink(ov.pages, "/sessions/"+s.session.ID)
	if open != "" {
		open = "," + open
	}
	fmt.Fprintf(b, "- session: `%s`, %s, %s%s\n", s.session.ID[len(s.session.ID)-8:],
		wording.Count(int(s.session.LastSeq), "message", "messages"), wording.Clock(time.Since(s.session.StartedAt))+" old", open)
	if s.session.InputTokens+s.session.OutputTokens > 0 {
		fmt.Fprintf(b, "- tokens: %d in, %d out\n", s.session.InputTokens, s.session.OutputTokens)
	}
}

// maxNamed is how many open questions the status names.
const maxNamed = 5

// headline says in one line what happens here and what has to wait.
func (ov *overview) headline(r command.Request, s *standing) string {
	since, here := ov.engine.Running(r.Conv.ID)
	state, queued := "Idle", s.waiting
	switch {
	case len(s.asked) > 0:
		state = "Waiting for " + whose(r, s.asked) + " approval (" + names(s.asked) + ")"
		queued-- // the message that it is about
	case here:
		state = "Running for " + wording.Clock(time.Since(since))
		queued--
	case time.Now().Before(s.again):
		state = "Trying again in " + wording.Clock(time.Until(s.again))
		queued--
	case s.waiting > 0:
		state = "Waiting"
	}
	if queued > 0 {
		state += fmt.Sprintf("; %d queued", queued)
	}
	return state
}

// whose says for whose decision it waits, as the one who asks reads it.
func whose(r command.Request, asked []approval.Approval) string {
	if r.Role == sessions.Owner || slices.ContainsFunc(asked, func(a approval.Approval) bool { return a.Requester == r.Actor() }) {
		return "your"
	}
	return "an"
}

// names lists the names of open questions.
func names(asked []approval.Approval) string {
	return strings.Join(lists.Map(asked, approval.Approval.Name), ", ")
}

// promptStatus says with what the active session runs, or the next one would.
func (ov *overview) promptStatus(r command.Request, session sessions.Session, used *profile.Profile) string {
	of, text := "of the session", session.SystemPrompt
	if text == "" {
		of, text = "of the next session, without the repository's additions", ov.engine.SystemPrompt(r.Conv, r.Entry.In, used)
	}
	out := fmt.Sprintf("\n**System prompt** %s:\n\n%s\n", of, wording.Fenced("", ov.redact.String(text)))
	if len(session.Config) > 0 {
		out += fmt.Sprintf("\n**Configuration:**\n\n%s\n", wording.Fenced("json", ov.redact.String(string(session.Config))))
	}
	return out
}

// codebaseStatus is what /status says of the codebase. It makes no worktree.
func (ov *overview) codebaseStatus(ctx context.Context, conv sessions.Conversation) []string {
	if conv.CodebaseID == "" {
		return []string{"repository: none; `/clone <url>` or `/repo <name>`"}
	}
	c, err := ov.work.Codebase(ctx, conv)
	if err != nil {
		return []string{"repository: " + fault.Public(err)}
	}
	lines := []string{fmt.Sprintf("repository: %s, folder `%s`", c.Name, cmp.Or(conv.Cwd, "."))}
	if branch := ov.work.Branch(ctx, conv); branch != "" {
		lines = append(lines, fmt.Sprintf("branch: `%s`", branch))
	}
	return lines
}

// haltLine is what /status says of a halt.
func haltLine(s sessions.ServiceState) string {
	return fmt.Sprintf("**halted** by %s since %s%s: nothing runs until an owner resumes", s.HaltedBy, wording.Moment(s.HaltedAt), wording.Because(s.HaltReason))
}
