package chat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/transcript"
	"remote-agent/internal/wording"
)

func (hi *history) sessionsCommand() *command.Command {
	return &command.Command{
		Name:    "sessions",
		Usage:   "sessions [show <n>|<words>]",
		Summary: "list, show or search earlier sessions",
		Example: "sessions show 2",
		Rank:    12,
		Reading: command.ReadingAnywhere,
		Details: "`sessions before <n>` lists older ones, `sessions show <n> before <message>` shows earlier messages of one.",
		Menu:    true,
		Run:     hi.runSessions,
	}
}

const (
	sessionsListed = 10      // sessions of a list, and hits of a search
	messagesShown  = 12      // messages of a short transcript
	promptLen      = 80      // letters of what began a session
	lineLen        = 240     // letters of a message in a short transcript
	maxFile        = 1 << 20 // bytes of a transcript that goes out as a file
)

// place is what one may look up in a conversation: its sessions, the oldest
// first, so that the first one is number 1.
type place struct {
	conversations []string
	sessions      []string
}

func placeOf(ctx context.Context, tx *store.Tx, r command.Request) (p place, err error) {
	if p.conversations, err = tx.Lists().ConversationsAt(ctx, r.Conv.Key); err != nil {
		return p, err
	}
	p.sessions, err = tx.Lists().SessionIDs(ctx, p.conversations)
	return p, err
}

// number returns what people call a session by.
func (p place) number(id string) int { return slices.Index(p.sessions, id) + 1 }

// find returns the session that somebody named: by its number, its id, or the end
// of its id, as /status shows it.
func (p place) find(named string) (string, error) {
	if n, err := strconv.Atoi(strings.TrimPrefix(named, "#")); err == nil && n > 0 && n <= len(p.sessions) {
		return p.sessions[n-1], nil
	}
	if len(named) >= 8 {
		for _, id := range p.sessions {
			if strings.HasSuffix(id, strings.ToLower(named)) {
				return id, nil
			}
		}
	}
	return "", fault.Newf(fault.NotFound, "There is no session %q here. `/sessions` lists them.", transcript.Line(named, 40))
}

func (hi *history) runSessions(ctx context.Context, r command.Request) (command.Reply, error) {
	args := r.Call.Args
	first := ""
	if len(args) > 0 {
		first = strings.ToLower(args[0])
	}
	switch {
	case len(args) == 0:
		return hi.listSessions(ctx, r, "")
	case first == "show" && len(args) == 2:
		return hi.showSession(ctx, r, args[1], 0)
	case first == "show" && len(args) == 4 && strings.EqualFold(args[2], "before"):
		before, err := strconv.ParseInt(strings.TrimPrefix(args[3], "#"), 10, 64)
		if err != nil || before <= 0 {
			return command.Reply{}, fault.New(fault.Invalid, "Specify a message number: `/sessions show 3 before 41`.")
		}
		return hi.showSession(ctx, r, args[1], before)
	case first == "show" && len(args) == 1:
		return command.Reply{}, fault.New(fault.Invalid, "Specify a session: `/sessions show 3`. `/sessions` lists them.")
	case first == "before" && len(args) == 2:
		return hi.listSessions(ctx, r, args[1])
	}
	if _, err := strconv.Atoi(strings.TrimPrefix(first, "#")); err == nil && len(args) == 1 {
		return hi.showSession(ctx, r, args[0], 0)
	}
	return hi.searchSessions(ctx, r, r.Call.Rest)
}

// listSessions shows the newest sessions, or those before one.
func (hi *history) listSessions(ctx context.Context, r command.Request, before string) (command.Reply, error) {
	var b strings.Builder
	var p place
	err := hi.store.InRead(ctx, func(tx *store.Tx) (err error) {
		b.Reset()
		if p, err = placeOf(ctx, tx, r); err != nil {
			return err
		}
		f := store.SessionFilter{Within: p.conversations, Limit: sessionsListed}
		if before != "" {
			if f.Before, err = p.find(before); err != nil {
				return err
			}
		}
		rows, err := tx.Lists().Sessions(ctx, f)
		if err != nil {
			return err
		}
		for _, row := range rows {
			sum, err := tx.Spending().SumUsage(ctx, spend.Filter{SessionID: row.ID})
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "- `%d` %s", p.number(row.ID), sessionMoment(row.StartedAt))
			if row.Active {
				b.WriteString(", active")
			}
			if row.Status != sessions.Completed {
				b.WriteString(", " + string(row.Status))
			}
			if prompt := hi.quoted(row.UserPrompt, promptLen); prompt != "" {
				b.WriteString(": " + prompt)
			}
			fmt.Fprintf(&b, " · %s\n", facts(row, sum))
		}
		if len(rows) > 0 && p.number(rows[len(rows)-1].ID) > 1 {
			fmt.Fprintf(&b, "\nOlder ones: `/sessions before %d`.\n", p.number(rows[len(rows)-1].ID))
		}
		return nil
	})
	switch {
	case err != nil:
		return command.Reply{}, err
	case len(p.sessions) == 0:
		return reply("There are no sessions here yet; your first message starts one.")
	case b.Len() == 0:
		return reply("No earlier entries.")
	}
	return reply("**%s here**, newest first:\n\n%s\n`/sessions show %d` shows one; `/sessions <words>` searches all of them.",
		wording.Count(len(p.sessions), "session", "sessions"), b.String(), len(p.sessions))
}

// searchSessions shows the newest messages of this place that have all the words.
func (hi *history) searchSessions(ctx context.Context, r command.Request, words string) (command.Reply, error) {
	var b strings.Builder
	var hits []store.Hit
	err := hi.store.InRead(ctx, func(tx *store.Tx) error {
		b.Reset()
		p, err := placeOf(ctx, tx, r)
		if err != nil {
			return err
		}
		hits, err = tx.Search().Messages(ctx, store.SearchFilter{Words: words, Within: p.conversations, Limit: sessionsListed + 1})
		if err != nil {
			return err
		}
		for _, hit := range hits[:min(sessionsListed, len(hits))] {
			said := hi.redact.String(hit.Content)
			part := transcript.Around(said, store.Place(said, words), 2*promptLen)
			fmt.Fprintf(&b, "- in `%d`, %s, %s: %s\n", p.number(hit.SessionID), sessionMoment(hit.CreatedAt), hit.Role, code(part))
		}
		return nil
	})
	switch {
	case err != nil:
		return command.Reply{}, err
	case len(hits) == 0:
		return reply("No messages here contain all of these words. `*` matches any ending: `/sessions dep*`.")
	case len(hits) > sessionsListed:
		fmt.Fprintf(&b, "\nThese are the newest %d. Add a word to narrow the search.", sessionsListed)
	}
	return reply("Messages, newest first:\n\n%s\n`/sessions show <number>` shows the session.", b.String())
}

// facts are the figures of a session.
func facts(row store.SessionRow, sum spend.Sum) string {
	parts := []string{wording.Count(row.Messages, "message", "messages")}
	if row.ToolCalls > 0 {
		parts = append(parts, wording.Count(row.ToolCalls, "tool call", "tool calls"))
	}
	if sum.InputTokens+sum.OutputTokens > 0 || sum.Micros > 0 {
		parts = append(parts, sum.String())
	}
	return strings.Join(parts, " · ")
}

// quoted is the beginning of what somebody wrote, without credentials.
func (hi *history) quoted(text string, width int) string {
	return code(transcript.Line(hi.redact.String(text), width))
}

// code shows a text as it is: nothing in it is Markdown, a mention or a link.
func code(line string) string {
	if line == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(line, "`", "'") + "`"
}

func sessionMoment(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04 UTC") }
