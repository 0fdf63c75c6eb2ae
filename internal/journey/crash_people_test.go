//go:build unix

package journey_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

// The kinds of messages that people send. The model answers each kind in its way.
const (
	shortKind = "short"
	slowKind  = "slow" // streamed with pauses
	longKind  = "long" // several Telegram messages
)

// paragraphs returns the answer to message n of chat c, which nobody could
// confuse with another: every paragraph names its message, its number and how
// many there are.
func paragraphs(c, n int, kind string) []string {
	count, filler := 1, "A short answer, with nothing but this"
	switch kind {
	case slowKind:
		count, filler = 3, "Words that come one after the other"
	case longKind:
		count, filler = 12, strings.TrimSpace(strings.Repeat("Much is to be said about this, and more about that. ", 15))
	}
	out := make([]string, count)
	for i := range out {
		out[i] = fmt.Sprintf("c%dn%d:%d/%d; %s; end.", c, n, i+1, count, filler)
	}
	return out
}

var (
	askMark    = regexp.MustCompile(`\bc(\d+)n(\d+) (short|slow|long)\b`)
	answerMark = regexp.MustCompile(`^c(\d+)n(\d+):(\d+)/(\d+);`)
	whoamiMark = regexp.MustCompile(`^You are \d+ on telegram, role \w+\.$`)
	helpMark   = regexp.MustCompile(`^There is no command /x(\d+)\. /help all lists them\.$`)
)

// ask is a numbered message that has to be answered by the model once.
type ask struct {
	kind   string
	sent   telegram.Sent // zero until the emulator has returned
	at     time.Time
	answer time.Time // when its last words were first seen, perhaps in a partial text; zero before
}

// chatLog is what was said in one chat.
type chatLog struct {
	index    int // in people.chats, from 0
	id       int64
	members  []int64
	asks     []*ask       // message n is asks[n-1]
	commands []string     // their texts
	updates  []int64      // of all messages
	heard    map[int]bool // messages of the bot that answer a command
	begun    map[int]int  // message n -> how often the model was asked about it
	bad      []string     // what was wrong with requests to the model
}

func (c *chatLog) private() bool { return c.id > 0 }

// people talk to the bot all the time, and remember what they said and saw.
type people struct {
	tg      *telegram.Server
	changed emulator.Signal

	mu     sync.Mutex // guards all below and the logs of the chats
	chats  []*chatLog
	open   int // questions a chat may have without an answer
	events int // calls of the bot to any of the emulators
}

// newPeople has four people talk in private and in two groups: so many chats
// that hardly ever all of them fall to one of two replicas.
func newPeople(open int) *people {
	p := &people{open: open}
	for i, members := range [][]int64{{42}, {77}, {1001}, {1002}, {42, 77}, {77, 1001, 1002}} {
		id := members[0]
		if len(members) > 1 {
			id = -500 - int64(i)
		}
		p.chats = append(p.chats, &chatLog{
			index: i, id: id, members: members, heard: map[int]bool{}, begun: map[int]int{},
		})
	}
	return p
}

// talk lets one person after the other say something in a chat until ctx ends:
// there is always an open question, and never more than a few.
func (p *people) talk(ctx context.Context, c *chatLog, rnd *rand.Rand, withCommands bool) {
	for ctx.Err() == nil {
		if err := p.changed.Wait(ctx, func() bool { return p.mayAsk(c) }); err != nil {
			return
		}
		if emulator.Sleep(ctx, time.Duration(rnd.IntN(20))*time.Millisecond) != nil {
			return
		}
		member := c.members[rnd.IntN(len(c.members))]
		if withCommands && c.private() && rnd.IntN(8) == 0 && p.mayCommand(c) {
			p.command(c, member, rnd.IntN(2) == 0)
		}
		kind := shortKind
		switch n := rnd.IntN(10); {
		case n < 2:
			kind = slowKind
		case n < 4:
			kind = longKind
		}
		p.ask(c, member, kind)
	}
}

func (p *people) mayAsk(c *chatLog) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for i := len(c.asks) - 1; i >= 0 && c.asks[i].answer.IsZero(); i-- {
		n++
	}
	return n < p.open
}

// mayCommand reports whether all commands of a chat have been answered.
func (p *people) mayCommand(c *chatLog) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(c.heard) >= len(c.commands)
}

func (p *people) ask(c *chatLog, member int64, kind string) {
	a := &ask{kind: kind, at: time.Now()}
	p.mu.Lock()
	c.asks = append(c.asks, a)
	text := fmt.Sprintf("c%dn%d %s", c.index, len(c.asks), kind)
	p.mu.Unlock()
	if !c.private() {
		text = "@acme_bot " + text
	}
	sent := p.tg.Person(member).In(c.id).Says(text)
	p.mu.Lock()
	a.sent = sent
	c.updates = append(c.updates, sent.UpdateID)
	p.mu.Unlock()
}

func (p *people) command(c *chatLog, member int64, unique bool) {
	p.mu.Lock()
	text := "/whoami"
	if unique {
		text = fmt.Sprintf("/help x%d", len(c.commands))
	}
	c.commands = append(c.commands, text)
	p.mu.Unlock()
	sent := p.tg.Person(member).In(c.id).Says(text)
	p.mu.Lock()
	c.updates = append(c.updates, sent.UpdateID)
	p.mu.Unlock()
}

// sees is told of every change of what people see.
func (p *people) sees(change telegram.Change) {
	m := change.Message
	if !m.FromBot {
		return
	}
	p.mu.Lock()
	defer func() {
		p.mu.Unlock()
		p.changed.Notify()
	}()
	for _, c := range p.chats {
		if c.id != m.ChatID {
			continue
		}
		if whoamiMark.MatchString(m.Text) || helpMark.MatchString(m.Text) {
			c.heard[m.ID] = true
		}
		c.complete(m.Text, change.At)
	}
}

// complete notes which questions a text answers to the end.
func (c *chatLog) complete(text string, at time.Time) {
	for line := range strings.SplitSeq(text, "\n\n") {
		mark := answerMark.FindStringSubmatch(line)
		if mark == nil || mark[3] != mark[4] || !strings.HasSuffix(line, "; end.") {
			continue
		}
		if n, _ := strconv.Atoi(mark[2]); n >= 1 && n <= len(c.asks) && c.asks[n-1].answer.IsZero() {
			c.asks[n-1].answer = at
		}
	}
}

// event counts a call of the bot.
func (p *people) event() {
	p.mu.Lock()
	p.events++
	p.mu.Unlock()
	p.changed.Notify()
}

// calls returns how many calls there were.
func (p *people) calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events
}

// unanswered lists what was said before a moment and has no complete answer.
func (p *people) unanswered(before time.Time, commands bool) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, c := range p.chats {
		for i, a := range c.asks {
			if a.answer.IsZero() && a.at.Before(before) {
				out = append(out, fmt.Sprintf("c%dn%d %s (update %d, asked the model %d times)",
					c.index, i+1, a.kind, a.sent.UpdateID, c.begun[i+1]))
			}
		}
		if commands && len(c.heard) < len(c.commands) {
			out = append(out, fmt.Sprintf("%d of %d commands in chat %d", len(c.commands)-len(c.heard), len(c.commands), c.index))
		}
	}
	return out
}

// model is the script of the model: it answers the last message, and checks
// that it was asked with the history that people saw.
func (p *people) model(r openai.Request) openai.Response {
	p.event()
	index, n := -1, 0
	mark := askMark.FindStringSubmatch(r.LastUserText())
	if mark != nil {
		index, _ = strconv.Atoi(mark[1])
		n, _ = strconv.Atoi(mark[2])
	}
	if index < 0 || index >= len(p.chats) {
		p.note(p.chats[0], fmt.Sprintf("a request ends with %q", r.LastUserText()))
		return openai.Text("Nobody asked this.")
	}
	p.note(p.chats[index], p.history(p.chats[index], n, mark[3], r))
	whole := strings.Join(paragraphs(index, n, mark[3]), "\n\n")
	switch mark[3] {
	case slowKind:
		var steps []openai.Step
		for piece := range strings.SplitSeq(whole, ";") {
			steps = append(steps, openai.Delta(piece), openai.Pause(8*time.Millisecond), openai.Delta(";"))
		}
		return openai.Reply(steps[:len(steps)-1]...)
	case longKind:
		return openai.Pieces(whole, 1000)
	default:
		return openai.Pieces(whole, 20)
	}
}

// note keeps what is wrong with a request, if anything is.
func (p *people) note(c *chatLog, problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if problem != "" {
		c.bad = append(c.bad, problem)
	}
}

// history returns what is wrong with a request for message n.
func (p *people) history(c *chatLog, n int, kind string, r openai.Request) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n < 1 || n > len(c.asks) || c.asks[n-1].kind != kind {
		return fmt.Sprintf("message %d was never sent like this", n)
	}
	c.begun[n]++
	if c.begun[n+1] > 0 { // message n had been settled then; what people see may still be partial text
		return fmt.Sprintf("message %d was asked again after the one behind it", n)
	}
	array := r.Messages
	if len(array) > 0 && array[0].Role == "system" {
		array = array[1:]
	}
	if len(array)%2 == 0 {
		return fmt.Sprintf("the request for message %d has %d messages", n, len(array))
	}
	first := n - len(array)/2
	if first < 1 {
		return fmt.Sprintf("the request for message %d begins before the first", n)
	}
	for i, m := range array {
		k := first + i/2
		if role := []string{"user", "assistant"}[i%2]; m.Role != role {
			return fmt.Sprintf("the request for message %d has a %s where the %s of %d belongs", n, m.Role, role, k)
		}
		want := fmt.Sprintf("c%dn%d %s", c.index, k, c.asks[k-1].kind)
		if i%2 == 1 {
			want = strings.Join(paragraphs(c.index, k, c.asks[k-1].kind), "\n\n")
		}
		if got := m.Text(); got != want && (i%2 == 1 || !strings.HasSuffix(got, ": "+want)) {
			return fmt.Sprintf("in the request for message %d, the %s of %d is %.80q", n, m.Role, k, got)
		}
	}
	return ""
}
