// Package demo is an assistant without a model: a script that answers offline,
// so that somebody who has configured nothing can try everything else.
//
// It drives the real machinery (streaming, stopping, long answers, tool calls,
// errors) and labels every line that it produces. It is never a fallback for a
// model that fails.
package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// Name is what conversations of this assistant are stored under.
const Name assistant.Name = "demo"

// Label is in every line that the assistant produces, except blank ones and the
// ends of code blocks.
const Label = "🧪 demo"

const (
	model = "scripted"

	defaultPace = 20 * time.Millisecond
	defaultSlow = 20 * time.Second
	maxSlow     = time.Hour
	slowStep    = time.Second
	toolTime    = 300 * time.Millisecond
	quoteLength = 160 // characters of a message that are repeated
)

// Config changes how the demo plays.
type Config struct {
	// Pace is the time between two pieces of an answer. Zero means 20 ms;
	// negative means none, except in "demo slow".
	Pace time.Duration
}

// Assistant plays the scripts. It keeps no state and is safe for concurrent
// use.
type Assistant struct{ pace time.Duration }

var _ assistant.Assistant = (*Assistant)(nil)

// New returns the demo assistant. It needs nothing.
func New(c Config) *Assistant {
	c.Pace = cmp.Or(c.Pace, defaultPace)
	return &Assistant{pace: max(c.Pace, 0)}
}

// Name implements assistant.Assistant.
func (a *Assistant) Name() assistant.Name { return Name }

// Model implements assistant.Assistant.
func (a *Assistant) Model() string { return model }

// Run implements assistant.Assistant. What it plays depends on the last message
// of the user: see help.
func (a *Assistant) Run(ctx context.Context, turn assistant.Turn) iter.Seq2[assistant.Event, error] {
	return assistant.Events(func(emit assistant.Emit) error {
		p := player{ctx: ctx, pace: a.pace, array: turn.Array, said: turn.Said, emit: emit}
		if err := p.play(); err != nil {
			return err
		}
		return p.finish()
	})
}

// player plays one turn.
type player struct {
	ctx   context.Context //nolint:containedctx // a player lives as long as one call of Run
	pace  time.Duration
	array []messages.Message
	said  string // by the person
	emit  assistant.Emit
	text  strings.Builder // of the message being said
	spent int             // tokens of the whole turn
}

func (p *player) play() error {
	if err := p.wait(0); err != nil {
		return err
	}
	text := p.said
	if last := p.users(); text == "" && len(last) > 0 {
		text = last[len(last)-1].PlainText()
	}
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return p.reply(text)
	}
	switch intent, goal, _ := strings.Cut(strings.TrimSpace(text), " "); {
	case plans(intent):
		return p.plan(strings.TrimSpace(goal))
	case strings.HasPrefix(intent, "/execute"):
		return p.say("I would carry the plan out now: change the files, run the tests, and show you /diff.", notAnAI)
	case words[0] != "demo":
		return p.reply(text)
	}
	words = append(words[1:], "", "")
	switch words[0] {
	case "slow":
		return p.slow(words[1])
	case "long":
		return p.long()
	case "tools", "tool":
		return p.tools()
	case "error", "fail", "ratelimit", "overflow", "quota", "unauthorized", "cut":
		return p.fail(words[0], words[1])
	default:
		return p.help(words[0])
	}
}

// notAnAI ends what could be taken for a model's answer.
const notAnAI = "I am a script, not an AI. For a real model, run `bot setup model` on my machine."

// plans reports whether a command asks for a plan.
func plans(command string) bool {
	return command == "/plan" || strings.HasPrefix(command, "/plan_feature") || strings.HasPrefix(command, "/plan-feature")
}

// plan shows what a plan looks like.
func (p *player) plan(goal string) error {
	goal = cmp.Or(goal, "what you want")
	return p.say(
		fmt.Sprintf("Goal: %s.", strings.TrimSuffix(quote(goal), ".")),
		"1. Find the code that this concerns, and its tests.",
		"2. Write a test that fails.",
		"3. Change the code until it passes.",
		"4. Run all tests and update the documentation.",
		notAnAI)
}

func (p *player) users() []messages.Message {
	var users []messages.Message
	for _, m := range p.array {
		if m.Role == messages.RoleUser {
			users = append(users, m)
		}
	}
	return users
}

// reply answers an ordinary message and shows that the history arrived.
func (p *player) reply(text string) error {
	lines := []string{"You sent nothing that I can read."}
	if strings.TrimSpace(text) != "" {
		lines[0] = fmt.Sprintf("You wrote %q (%s).", quote(text), plural(len(strings.Fields(text)), "word"))
	}
	users := p.users()
	if len(users) > 0 {
		for _, b := range users[len(users)-1].Blocks {
			if file, ok := b.(messages.Attachment); ok {
				lines = append(lines, fmt.Sprintf("You attached %q (%d bytes).", quote(file.Name), file.Size))
			}
		}
	}
	if n := len(users) - 1; n > 0 {
		line := fmt.Sprintf("I have %s of yours from before", plural(n, "message"))
		if before := users[n-1].PlainText(); !strings.Contains(before, "\n") { // others have more in them than was typed
			line += fmt.Sprintf("; the last one was %q", quote(before))
		}
		lines = append(lines, line+".")
	} else {
		lines = append(lines, "It is the first message of this session.")
	}
	lines = append(lines,
		notAnAI,
		"Write \"demo help\" to see what else I can show.")
	return p.say(lines...)
}

func (p *player) help(unknown string) error {
	var lines []string
	if unknown != "" && unknown != "help" {
		lines = append(lines, fmt.Sprintf("I have no script %q.", quote(unknown)))
	}
	return p.say(append(lines,
		"I can show:",
		"- `demo slow 20`: an answer that takes 20 seconds; /stop ends it",
		"- `demo long`: an answer of several messages with code",
		"- `demo tools`: a tool call and its result",
		"- `demo error`: an error in the middle of an answer",
		"- `demo fail provider`: a model that is down",
		"- `demo ratelimit 40`: a model that asks to wait 40 seconds",
		"- `demo overflow`: a conversation too long for the model",
		"- `demo quota`, `demo unauthorized`, `demo cut`: a used-up quota, a refused key, a broken stream",
		"- `/plan` and a goal: a plan that you can edit and approve",
		"- anything else: an answer that repeats what you wrote",
		notAnAI,
	)...)
}

func (p *player) slow(arg string) error {
	total := duration(arg, defaultSlow)
	steps := max(1, int(total/slowStep))
	if err := p.say(fmt.Sprintf("This takes %s. /stop ends it.", total)); err != nil {
		return err
	}
	for i := range steps {
		if err := p.wait(total / time.Duration(steps)); err != nil {
			return err
		}
		if err := p.delta(fmt.Sprintf("%s  step %d of %d\n", Label, i+1, steps)); err != nil {
			return err
		}
	}
	return p.say("Done. Nobody stopped me.")
}

// long says more than two messages of any platform hold.
func (p *player) long() error {
	if err := p.say("A long answer with code. It becomes several messages."); err != nil {
		return err
	}
	for part := range 8 {
		err := p.say("", fmt.Sprintf("**Part %d.** %s", part+1,
			strings.Repeat("This sentence only takes up room, so that the answer has to be split. ", 8)), "")
		if err != nil {
			return err
		}
		if err := p.delta("```go " + Label + "\n"); err != nil {
			return err
		}
		for line := range 24 {
			if err := p.delta(fmt.Sprintf("func part%dLine%02d() int { return %d } // %s\n", part+1, line+1, line*line, Label)); err != nil {
				return err
			}
		}
		if err := p.delta("```\n"); err != nil {
			return err
		}
	}
	return p.say("", "That was all of it.")
}

// tools calls a tool that only counts characters, and shows the result.
func (p *player) tools() error {
	if err := p.say("I count the characters of this conversation with a tool."); err != nil {
		return err
	}
	const name = "demo_count"
	id := "demo_" + rand.Text()
	call := messages.ToolCall{ID: id, Name: name, Arguments: `{"what":"characters"}`}
	if err := p.done(call); err != nil {
		return err
	}
	if err := p.emit(assistant.ToolStarted{ID: id, Name: name, Summary: Label + "  counting characters"}); err != nil {
		return err
	}
	if err := p.wait(min(toolTime, 15*p.pace)); err != nil {
		return err
	}
	characters := 0
	for _, m := range p.array {
		characters += utf8.RuneCountInString(m.PlainText())
	}
	if err := p.emit(assistant.ToolFinished{ID: id, OK: true}); err != nil {
		return err
	}
	result := messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{
		messages.ToolResult{CallID: id, Name: name, Content: strconv.Itoa(characters)},
	}}
	if err := p.emit(assistant.MessageDone{Message: result}); err != nil {
		return err
	}
	return p.say(fmt.Sprintf("The tool says: %s.", plural(characters, "character")))
}

func (p *player) fail(what, arg string) error {
	switch what {
	case "fail":
		return fault.New(fault.Unavailable, Label+"  the model is down (on purpose).")
	case "ratelimit":
		return &fault.Error{
			Kind: fault.RateLimited, RetryAfter: duration(arg, 40*time.Second),
			Public: Label + "  the model's rate limit is reached (on purpose).",
		}
	case "overflow":
		return &fault.Error{
			Kind: fault.Exhausted, Public: Label + "  this conversation is too long for the model (on purpose).",
			Err: &assistant.OverflowError{Err: errors.New("scripted overflow")},
		}
	case "quota":
		return fault.New(fault.Exhausted, Label+"  the quota of the model account is used up (on purpose).")
	case "unauthorized":
		return fault.New(fault.Unauthorized, Label+"  the model refused the key (on purpose).")
	}
	if err := p.say("I begin an answer, and then it breaks off."); err != nil {
		return err
	}
	if what == "cut" {
		return fault.New(fault.Unavailable, Label+"  the answer was cut off (on purpose).")
	}
	return fault.New(fault.Internal, Label+"  something broke on my side (on purpose).")
}

// finish ends a turn that was played to its end.
func (p *player) finish() error {
	if err := p.done(); err != nil {
		return err
	}
	return p.emit(assistant.Finished{
		Usage: assistant.Usage{InputTokens: int64(messages.EstimateAll(p.array)), OutputTokens: int64(p.spent)},
		Model: model,
	})
}

// say streams labeled lines, a few words at a time. An empty line stays empty.
func (p *player) say(lines ...string) error {
	for _, line := range lines {
		if line == "" {
			if err := p.delta("\n"); err != nil {
				return err
			}
			continue
		}
		rest := Label + "  " + line + "\n"
		for rest != "" {
			piece := rest
			if cut := nthSpace(rest, 4); cut > 0 {
				piece = rest[:cut]
			}
			if err := p.delta(piece); err != nil {
				return err
			}
			rest = rest[len(piece):]
		}
	}
	return nil
}

// nthSpace returns the position behind the nth space of s, or 0.
func nthSpace(s string, n int) int {
	for i := range len(s) {
		if s[i] != ' ' {
			continue
		}
		if n--; n == 0 {
			return i + 1
		}
	}
	return 0
}

func (p *player) delta(text string) error {
	if err := p.wait(p.pace); err != nil {
		return err
	}
	p.text.WriteString(text)
	return p.emit(assistant.TextDelta{Text: text})
}

// done hands over the message said so far, with the calls that it makes.
func (p *player) done(calls ...messages.Block) error {
	m := messages.NewText(messages.RoleAssistant, p.text.String())
	m.Blocks = append(m.Blocks, calls...)
	p.text.Reset()
	p.spent += messages.EstimateTokens(m)
	return p.emit(assistant.MessageDone{Message: m})
}

// wait waits for d, or fails as soon as the turn is stopped.
func (p *player) wait(d time.Duration) error {
	if d > 0 && p.ctx.Err() == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.ctx.Done():
		}
	}
	switch err := p.ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &fault.Error{Kind: fault.Unavailable, Public: Label + "  the demo took too long.", Err: err}
	default:
		return &fault.Error{Kind: fault.Canceled, Err: err}
	}
}

// duration reads seconds ("40") or a Go duration ("15m"), at most an hour.
func duration(arg string, usual time.Duration) time.Duration {
	d, err := time.ParseDuration(arg)
	if seconds, convErr := strconv.Atoi(arg); convErr == nil {
		d, err = time.Duration(min(max(seconds, 0), int(maxSlow/time.Second)))*time.Second, nil
	}
	if err != nil || d <= 0 {
		return usual
	}
	return min(d, maxSlow)
}

// quote shortens a foreign text to one line.
func quote(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= quoteLength {
		return text
	}
	return string([]rune(text)[:quoteLength]) + "…"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
