package chat

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/memory"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (me *memories) memoryCommand() *command.Command {
	return &command.Command{
		Name:    "memory",
		Usage:   "memory [on|off|edit <n> <text>|<words>]",
		Summary: "show or edit memories about you",
		Example: "memory deploy",
		Rank:    14,
		Reading: command.ReadingAside,
		Details: "`memory here` shows them even where others can read.",
		Menu:    true,
		Needs:   command.Memory,
		Run:     me.runMemory,
	}
}

// memoriesListed is how many memories one list shows.
const memoriesListed = 20

func (me *memories) runMemory(ctx context.Context, r command.Request) (command.Reply, error) {
	args := r.Call.Args
	first := ""
	if len(args) > 0 {
		first = strings.ToLower(args[0])
	}
	switch {
	case len(args) == 1 && (first == "on" || first == "off"):
		return me.switchMemory(ctx, r, first == "on")
	case first == "edit":
		return me.editMemory(ctx, r)
	}
	if first == "here" {
		args = args[1:]
	} else if !private(r.Entry.In) {
		return reply("Your memories are private. Use a private chat, or `/memory here` to show them here anyway.")
	}
	if len(args) == 1 {
		if before, err := strconv.ParseInt(args[0], 10, 64); err == nil && before > 0 {
			return me.listMemories(ctx, r, before)
		}
	}
	if len(args) > 0 {
		return me.searchMemories(ctx, r, strings.Join(args, " "))
	}
	return me.listMemories(ctx, r, 0)
}

func (me *memories) switchMemory(ctx context.Context, r command.Request, on bool) (command.Reply, error) {
	action := "memory.off"
	if on {
		action = "memory.on"
	}
	err := me.store.InTx(ctx, func(tx *store.Tx) error {
		if err := tx.Memories().SetMemoryOn(ctx, r.Actor(), on); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: action})
	})
	switch {
	case err != nil:
		return command.Reply{}, err
	case on:
		return reply("Memory is on for you.")
	}
	return reply("Memory is off for you: nothing is used or saved. Existing memories are kept until you `/forget` them.")
}

// editMemory gives a memory another text.
func (me *memories) editMemory(ctx context.Context, r command.Request) (command.Reply, error) {
	usage := fault.New(fault.Invalid, "Specify the number and the new text: `/memory edit 3 I prefer spaces`.")
	_, rest, _ := strings.Cut(r.Call.Rest, " ")
	name, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	number, err := strconv.ParseInt(strings.TrimPrefix(name, "#"), 10, 64)
	if err != nil || number <= 0 || strings.TrimSpace(text) == "" {
		return command.Reply{}, usage
	}
	f := memory.Fact{Scope: memory.Scope{Person: r.Actor()}, Text: text, Origin: memory.ByPerson}
	if _, err := me.memory.Correct(ctx, r.Entry, number, f); err != nil {
		return command.Reply{}, err
	}
	return reply("Updated memory %d.", number)
}

func (me *memories) listMemories(ctx context.Context, r command.Request, before int64) (command.Reply, error) {
	var list []memory.Memory
	var n int64
	on := false
	now := me.now()
	var sources map[string]string
	err := me.store.InRead(ctx, func(tx *store.Tx) (err error) {
		if on, err = tx.Memories().MemoryOn(ctx, r.Actor()); err != nil {
			return err
		}
		if n, err = tx.Memories().Count(ctx, r.Actor(), now); err != nil {
			return err
		}
		if list, err = tx.Memories().List(ctx, r.Actor(), before, memoriesListed+1, now); err != nil {
			return err
		}
		sources, err = learnedFrom(ctx, tx, list)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	state := "on"
	if !on {
		state = "off: none of this is used"
	}
	if len(list) == 0 && n > 0 {
		return reply("No matching memories. `/memory` lists all.")
	}
	if len(list) == 0 {
		return reply("No memories about you yet (memory is %s). Add one with `/remember <text>`.", state)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Memories about you: %d (memory is %s)\n\n", n, state)
	for _, m := range list[:min(memoriesListed, len(list))] {
		b.WriteString(forPeople(m, now, sources) + "\n")
	}
	if len(list) > memoriesListed {
		fmt.Fprintf(&b, "\nOlder ones: `/memory %d`", list[memoriesListed-1].Number)
	}
	return command.Reply{Text: b.String()}, nil
}

func (me *memories) searchMemories(ctx context.Context, r command.Request, words string) (command.Reply, error) {
	q := memory.Query{
		Scope: memory.Scope{Person: r.Actor(), Codebase: r.Conv.CodebaseID}, Text: words,
		Embedding: me.memory.Embed(ctx, words), Limit: memoriesListed, Now: me.now(),
	}
	var found []memory.Match
	var sources map[string]string
	err := me.store.InRead(ctx, func(tx *store.Tx) (err error) {
		if found, err = tx.Memories().Recall(ctx, q); err != nil {
			return err
		}
		list := lists.Map(found, func(m memory.Match) memory.Memory { return m.Memory })
		sources, err = learnedFrom(ctx, tx, list)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	if len(found) == 0 {
		return reply("No matching memories. `/memory` lists all.")
	}
	var b strings.Builder
	for _, m := range found {
		b.WriteString(forPeople(m.Memory, q.Now, sources) + "\n")
	}
	return command.Reply{Text: b.String()}, nil
}

// learnedFrom says where and when the person said what was learned, by the id of
// the message. A message that is gone has no entry.
func learnedFrom(ctx context.Context, tx *store.Tx, list []memory.Memory) (map[string]string, error) {
	from := make(map[string]string)
	for _, m := range list {
		if m.Origin != memory.Learned || from[m.RunID] != "" {
			continue
		}
		e, err := tx.Inbox().Entry(ctx, m.RunID)
		where := e.In.Conversation
		if err == nil && where.Platform == "" { // its text is past RETENTION_RAW
			var conv sessions.Conversation
			conv, err = tx.Conversations().Conversation(ctx, e.ConversationID)
			where = conv.Key
		}
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		at := "`" + where.String() + "`"
		if e.In.Private {
			at = "your private chat on " + string(e.In.Conversation.Platform)
		}
		from[m.RunID] = fmt.Sprintf(" from what you wrote in %s on %s", at, e.AcceptedAt.UTC().Format(time.DateOnly))
	}
	return from, nil
}

// forPeople is a memory as an item of a list. Sources are those of what was
// learned.
func forPeople(m memory.Memory, now time.Time, sources map[string]string) string {
	parts := make([]string, 0, 5)
	switch {
	case m.Kind == memory.Episodic:
		parts = append(parts, "event")
	case m.Category != "":
		parts = append(parts, string(m.Category))
	}
	parts = append(parts, map[memory.Origin]string{
		memory.ByPerson: "from you", memory.ByAssistant: "noted by the assistant", memory.Learned: "learned" + sources[m.RunID],
	}[m.Origin])
	if m.Codebase != "" {
		parts = append(parts, "only in one repository")
	}
	parts = append(parts, wording.Ago(m.UpdatedAt, now))
	if m.Origin != memory.ByPerson { // what they said themselves is not a guess
		parts = append(parts, fmt.Sprintf("confidence %.0f%%", 100*m.Certainty()))
	}
	line := fmt.Sprintf("- `%d` %s (%s)", m.Number, literal(m.Text), strings.Join(parts, ", "))
	if n := len(m.History); n > 0 {
		line += "; before: " + literal(wording.Cut(m.History[n-1].Text, 100))
	}
	return line
}

// literal keeps CommonMark from reading a text as anything else.
func literal(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\\`*_{}[]()<>#!|~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
