package recollect

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/sessions"
)

// listed is how many memories one list shows.
const listed = 20

// storePatience is how long a command waits for an embedding. Without one the
// memory is embedded later.
const storePatience = 500 * time.Millisecond

// Commands returns the commands, in the order in which people read them.
func (s *Service) Commands() []command.Command {
	return []command.Command{
		{Name: "memory", Usage: "memory [on|off|edit <n> <text>|<words>]", Summary: "what I remember about you", Menu: true, Run: s.runMemory},
		{Name: "remember", Usage: "remember <text>", Summary: "have me remember something about you", Run: s.runRemember},
		{Name: "forget", Usage: "forget <n|all>", Summary: "delete what I remember about you", Run: s.runForget},
		{Name: "link", Usage: "link [code]", Summary: "one memory for your accounts on several platforms", Run: s.runLink},
		{Name: "unlink", Usage: "unlink <account>", Summary: "take an account out of that again", Run: s.runUnlink},
	}
}

func reply(format string, args ...any) (command.Reply, error) {
	return command.Reply{Text: fmt.Sprintf(format, args...)}, nil
}

// learnable checks a text that somebody wants to have remembered.
func (s *Service) learnable(text string) (string, error) {
	text, err := memory.CleanText(text)
	if err != nil {
		return "", err
	}
	if s.config.Redact(text) != text {
		return "", fault.New(fault.Invalid, "That has a password, key or token in it, and I do not remember those. Nothing was kept.")
	}
	return text, nil
}

func (s *Service) runRemember(ctx context.Context, r command.Request) (command.Reply, error) {
	if strings.TrimSpace(r.Call.Rest) == "" {
		return command.Reply{}, fault.New(fault.Invalid, "Say what: `/remember I prefer short answers`.")
	}
	text, err := s.learnable(r.Call.Rest)
	if err != nil {
		return command.Reply{}, err
	}
	f := memory.Fact{
		Scope: memory.Scope{Person: r.Actor()}, RunID: r.Entry.ID, Text: text, Origin: memory.ByPerson,
		Embedding: s.embed(ctx, text, storePatience), Key: r.Entry.ID, Now: s.config.Now(),
	}
	f.Judged = s.config.Judge(ctx, r.Entry, f)
	var out memory.Outcome
	err = s.config.Storage.InTx(ctx, func(tx Tx) error {
		var err error
		out, err = tx.UpsertFact(ctx, f)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	if f.Embedding.IsZero() {
		s.later()
	}
	switch {
	case out.Operation == memory.InsertNew:
		return reply("I remember that, as number %d. `/forget %d` deletes it.", out.Memory.Number, out.Memory.Number)
	case memory.Hash(out.Memory.Text) == memory.Hash(out.Matched):
		return reply("I knew that already: it is number %d.", out.Memory.Number)
	case out.Contradicted:
		return reply("I remember that in place of what number %d said before, which was different. `/forget %d` deletes it.", out.Memory.Number, out.Memory.Number)
	}
	return reply("I knew nearly that: number %d says so in your new words now.", out.Memory.Number)
}

func (s *Service) runForget(ctx context.Context, r command.Request) (command.Reply, error) {
	what := strings.ToLower(strings.Join(r.Call.Args, " "))
	if what == "all" || what == "all yes" {
		return s.forgetAll(ctx, r, what == "all yes")
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(what, "#"), 10, 64)
	if err != nil || number <= 0 {
		return command.Reply{}, fault.New(fault.Invalid, "Give the number of a memory, as `/memory` shows it: `/forget 3`. `/forget all` deletes all.")
	}
	if _, err := s.forget(ctx, r.Actor(), number); err != nil {
		return command.Reply{}, err
	}
	return reply("I have forgotten number %d.", number)
}

func (s *Service) forget(ctx context.Context, person string, number int64) (gone memory.Memory, err error) {
	err = s.config.Storage.InTx(ctx, func(tx Tx) error {
		var err error
		if gone, err = tx.ForgetMemory(ctx, person, number); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: person, Action: "memory.forget", Target: strconv.FormatInt(number, 10)})
	})
	return gone, err
}

func (s *Service) forgetAll(ctx context.Context, r command.Request, sure bool) (command.Reply, error) {
	var n int64
	do := s.config.Storage.InTx
	if !sure {
		do = s.config.Storage.InRead
	}
	err := do(ctx, func(tx Tx) error {
		var err error
		if !sure {
			n, err = tx.CountMemories(ctx, r.Actor(), s.config.Now())
			return err
		}
		if n, err = tx.ForgetMemories(ctx, r.Actor()); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "memory.forget_all", Target: strconv.FormatInt(n, 10)})
	})
	switch {
	case err != nil:
		return command.Reply{}, err
	case sure && n == 0:
		return reply("I remember nothing about you.")
	case sure:
		return reply("I have forgotten all %d.", n)
	case n == 0:
		return reply("I remember nothing about you.")
	}
	return reply("This deletes everything I remember about you (%d), for good. If you want that: `/forget all yes`.", n)
}

func (s *Service) runMemory(ctx context.Context, r command.Request) (command.Reply, error) {
	args := r.Call.Args
	first := ""
	if len(args) > 0 {
		first = strings.ToLower(args[0])
	}
	switch {
	case len(args) == 1 && (first == "on" || first == "off"):
		return s.turn(ctx, r, first == "on")
	case first == "edit":
		return s.edit(ctx, r)
	}
	if first == "here" {
		args = args[1:]
	} else if !private(r.Entry.In) {
		return reply("What I remember about you is for you alone, and others read here. Ask me in a private chat, or `/memory here` to see it here all the same.")
	}
	if len(args) == 1 {
		if before, err := strconv.ParseInt(args[0], 10, 64); err == nil && before > 0 {
			return s.list(ctx, r, before)
		}
	}
	if len(args) > 0 {
		return s.search(ctx, r, strings.Join(args, " "))
	}
	return s.list(ctx, r, 0)
}

func (s *Service) turn(ctx context.Context, r command.Request, on bool) (command.Reply, error) {
	action := "memory.off"
	if on {
		action = "memory.on"
	}
	err := s.config.Storage.InTx(ctx, func(tx Tx) error {
		if err := tx.SetMemoryOn(ctx, r.Actor(), on); err != nil {
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
	return reply("Memory is off for you: I use nothing of what I know and keep nothing new. What is there stays until you `/forget` it.")
}

// edit gives a memory another text.
func (s *Service) edit(ctx context.Context, r command.Request) (command.Reply, error) {
	usage := fault.New(fault.Invalid, "Give the number and the new text: `/memory edit 3 I prefer spaces`.")
	_, rest, _ := strings.Cut(r.Call.Rest, " ")
	name, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	number, err := strconv.ParseInt(strings.TrimPrefix(name, "#"), 10, 64)
	if err != nil || number <= 0 || strings.TrimSpace(text) == "" {
		return command.Reply{}, usage
	}
	f := memory.Fact{Scope: memory.Scope{Person: r.Actor()}, RunID: r.Entry.ID, Text: text, Origin: memory.ByPerson, Key: r.Entry.ID}
	if _, err := s.correct(ctx, number, f); err != nil {
		return command.Reply{}, err
	}
	return reply("Number %d says that now.", number)
}

func (s *Service) correct(ctx context.Context, number int64, f memory.Fact) (out memory.Outcome, err error) {
	if f.Text, err = s.learnable(f.Text); err != nil {
		return out, err
	}
	f.Embedding, f.Now = s.embed(ctx, f.Text, storePatience), s.config.Now()
	err = s.config.Storage.InTx(ctx, func(tx Tx) error {
		var err error
		out, err = tx.CorrectFact(ctx, number, f)
		return err
	})
	if f.Embedding.IsZero() {
		s.later()
	}
	return out, err
}

func (s *Service) list(ctx context.Context, r command.Request, before int64) (command.Reply, error) {
	var list []memory.Memory
	var n int64
	on := false
	now := s.config.Now()
	var sources map[string]string
	err := s.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		if on, err = tx.MemoryOn(ctx, r.Actor()); err != nil {
			return err
		}
		if n, err = tx.CountMemories(ctx, r.Actor(), now); err != nil {
			return err
		}
		if list, err = tx.Memories(ctx, r.Actor(), before, listed+1, now); err != nil {
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
		state = "off: nothing of this is used"
	}
	if len(list) == 0 {
		return reply("I remember nothing about you (memory is %s). `/remember <text>` changes that.", state)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "I remember %d about you (memory is %s):\n\n", n, state)
	for _, m := range list[:min(listed, len(list))] {
		b.WriteString(forPeople(m, now, sources) + "\n")
	}
	if len(list) > listed {
		fmt.Fprintf(&b, "\nOlder ones: `/memory %d`", list[listed-1].Number)
	}
	return command.Reply{Text: b.String()}, nil
}

func (s *Service) search(ctx context.Context, r command.Request, words string) (command.Reply, error) {
	q := memory.Query{
		Scope: memory.Scope{Person: r.Actor(), Codebase: r.Conv.CodebaseID}, Text: words,
		Embedding: s.embed(ctx, words, storePatience), Limit: listed, Now: s.config.Now(),
	}
	var found []memory.Match
	var sources map[string]string
	err := s.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		if found, err = tx.Recall(ctx, q); err != nil {
			return err
		}
		list := make([]memory.Memory, len(found))
		for i, m := range found {
			list[i] = m.Memory
		}
		sources, err = learnedFrom(ctx, tx, list)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	if len(found) == 0 {
		return reply("I remember nothing like that. `/memory` lists everything.")
	}
	var b strings.Builder
	for _, m := range found {
		b.WriteString(forPeople(m.Memory, q.Now, sources) + "\n")
	}
	return command.Reply{Text: b.String()}, nil
}

// learnedFrom says where and when the person said what was learned, by the id of
// the message. A message that is gone has no entry.
func learnedFrom(ctx context.Context, tx Tx, list []memory.Memory) (map[string]string, error) {
	from := make(map[string]string)
	for _, m := range list {
		if m.Origin != memory.Learned || from[m.RunID] != "" {
			continue
		}
		e, err := tx.Entry(ctx, m.RunID)
		if fault.Is(err, fault.NotFound) || err == nil && e.In.Conversation.Platform == "" {
			continue
		}
		if err != nil {
			return nil, err
		}
		at := "`" + e.In.Conversation.String() + "`"
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
		memory.ByPerson: "you said so", memory.ByAssistant: "noted by the assistant", memory.Learned: "learned" + sources[m.RunID],
	}[m.Origin])
	if m.Codebase != "" {
		parts = append(parts, "one repository only")
	}
	parts = append(parts, ago(m.UpdatedAt, now), fmt.Sprintf("%.2f sure", m.Certainty()))
	line := fmt.Sprintf("- `%d` %s (%s)", m.Number, literal(m.Text), strings.Join(parts, ", "))
	if n := len(m.History); n > 0 {
		line += "; before: " + literal(head(m.History[n-1].Text, 100))
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

// head returns at most limit runes of a text.
func head(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-1]) + "…"
}

// ago is how long something is past, roughly.
func ago(then, now time.Time) string {
	d := now.Sub(then)
	unit := func(n int, name string) string {
		if n == 1 {
			return "1 " + name + " ago"
		}
		return fmt.Sprintf("%d %ss ago", n, name)
	}
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return unit(int(d.Minutes()), "minute")
	case d < 24*time.Hour:
		return unit(int(d.Hours()), "hour")
	case d < 60*24*time.Hour:
		return unit(int(d.Hours()/24), "day")
	}
	return unit(int(d.Hours()/24/30), "month")
}
