// Package ledger holds a chat service to its promises: it words messages and answers
// that nobody could confuse, keeps what people said and when it was accepted, and
// judges what they see in the end. It knows nothing of the program under test nor of
// how anything gets there.
package ledger

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Kind is how a message wants to be answered.
type Kind string

// The kinds.
const (
	Short Kind = "short"
	Slow  Kind = "slow" // in three paragraphs, which the model takes its time for
	Long  Kind = "long" // in several messages, where a platform cuts long ones
)

// Answer returns the paragraphs of the answer to message n of a conversation. Each
// names its message, its number and how many there are.
func Answer(conversation, n int, kind Kind) []string {
	count, filler := 1, "A short answer with nothing but this"
	switch kind {
	case Short:
	case Slow:
		count, filler = 3, "Words that come one after the other"
	case Long:
		count, filler = 7, strings.TrimSpace(strings.Repeat("Much is to be said about this and more about that. ", 15))
	}
	paragraphs := make([]string, count)
	for i := range paragraphs {
		paragraphs[i] = fmt.Sprintf("c%dn%d:%d/%d; %s; end.", conversation, n, i+1, count, filler)
	}
	return paragraphs
}

var (
	askMark    = regexp.MustCompile(`\bc(\d+)n(\d+) (short|slow|long)\b`)
	answerMark = regexp.MustCompile(`c(\d+)n(\d+):(\d+)/(\d+); [^;]*; end\.`)

	answerBegins = regexp.MustCompile(`\bc\d+n\d+:`)
)

// Ask is a message that somebody said, as its text tells.
type Ask struct {
	Conversation, N int
	Kind            Kind
}

// Asks returns the messages that a text contains, in order.
func Asks(text string) (asks []Ask) {
	for _, m := range askMark.FindAllStringSubmatch(text, -1) {
		c, _ := strconv.Atoi(m[1])
		n, _ := strconv.Atoi(m[2])
		asks = append(asks, Ask{Conversation: c, N: n, Kind: Kind(m[3])})
	}
	return asks
}

// message is what is known of something that was said.
type message struct {
	kind                     Kind
	said, accepted, answered time.Time // the last two zero until it is
}

// Book is what was said and accepted, and what was seen of it so far. The zero value
// is ready. It is safe for concurrent use.
type Book struct {
	mu            sync.Mutex // guards all below
	conversations [][]*message
	crowd         map[int]bool // conversations
	deaths        []time.Time
}

// Open begins a conversation and returns its number.
func (b *Book) Open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conversations = append(b.conversations, nil)
	return len(b.conversations) - 1
}

// OpenInCrowd is Open for one of many people who come at once.
func (b *Book) OpenInCrowd() int {
	n := b.Open()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.crowd == nil {
		b.crowd = map[int]bool{}
	}
	b.crowd[n] = true
	return n
}

// Die notes that a process was killed.
func (b *Book) Die(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaths = append(b.deaths, at)
}

// Say notes that somebody says something at a moment, and returns its number in the
// conversation, from 1, and its text.
func (b *Book) Say(conversation int, kind Kind, at time.Time) (n int, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &b.conversations[conversation]
	*c = append(*c, &message{kind: kind, said: at})
	return len(*c), fmt.Sprintf("c%dn%d %s", conversation, len(*c), kind)
}

// Accept notes that the service acknowledged a message; only the first time counts.
func (b *Book) Accept(conversation, n int, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.conversations[conversation][n-1]; m.accepted.IsZero() {
		m.accepted = at
	}
}

// See notes which messages a visible text answers to the end, perhaps while it grows.
func (b *Book) See(text string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range parse(text) {
		if m := b.find(p.ask); m != nil && p.i == p.of && m.answered.IsZero() {
			m.answered = at
		}
	}
}

// find returns a message, or nil if nobody said it. The lock must be held.
func (b *Book) find(a Ask) *message {
	if a.Conversation >= len(b.conversations) || a.N < 1 || a.N > len(b.conversations[a.Conversation]) {
		return nil
	}
	return b.conversations[a.Conversation][a.N-1]
}

// Waiting counts the messages of a conversation that have no answer, and those that are
// not even accepted.
func (b *Book) Waiting(conversation int) (unanswered, unaccepted int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.conversations[conversation] {
		if m.answered.IsZero() {
			unanswered++
		}
		if m.accepted.IsZero() {
			unaccepted++
		}
	}
	return unanswered, unaccepted
}

// Totals returns how much was said, accepted and answered so far.
func (b *Book) Totals() (said, accepted, answered int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conversations {
		for _, m := range c {
			said++
			if !m.accepted.IsZero() {
				accepted++
			}
			if !m.answered.IsZero() {
				answered++
			}
		}
	}
	return said, accepted, answered
}

// Unanswered lists the messages that were said before a moment and have no complete
// answer.
func (b *Book) Unanswered(before time.Time) (asks []Ask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, c := range b.conversations {
		for n, m := range c {
			if m.answered.IsZero() && m.said.Before(before) {
				asks = append(asks, Ask{Conversation: i, N: n + 1, Kind: m.kind})
			}
		}
	}
	return asks
}

// part is a paragraph of an answer in a text.
type part struct {
	ask   Ask // without its kind
	i, of int
	text  string
}

func parse(text string) (parts []part) {
	for _, m := range answerMark.FindAllStringSubmatch(text, -1) {
		var f [4]int
		for k := range f {
			f[k], _ = strconv.Atoi(m[k+1])
		}
		parts = append(parts, part{ask: Ask{Conversation: f[0], N: f[1]}, i: f[2], of: f[3], text: m[0]})
	}
	return parts
}
