package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is what became of everything that was said. Each count is of messages that
// people said, but for those that say otherwise.
type Verdict struct {
	Said     int
	Accepted int // acknowledged; the promises are about these
	Once     int // answered completely, once
	Lost     int // accepted, and their answer is not there, or not all of it
	Twice    int // their answer, or a part of it, is there more than once
	Disorder int // answered before one that was said earlier in their conversation
	Garbled  int // paragraphs that nobody wrote like this, or wrote to others, and messages that break off
	Strays   int // messages of the service that are placeholders, or the beginning of an answer that says so
	Notices  int // messages of the service that are something else

	Ack, Wait Times // from being said to being accepted, and to the complete answer
	Takeover  Times // from the last kill at which a message waited, accepted, to its complete answer

	// Where a crowd came: its own times, and those to the answers to everybody else who
	// said something after the first of the crowd did and before the last of it was answered.
	Crowd, Crowded      int
	CrowdAck, CrowdWait Times
	OthersWaitMeanwhile Times

	Problems []string // each broken promise, in words
	Told     []string // what the first notices say
}

// Times are how long things took.
type Times struct{ P50, P95, Longest time.Duration }

// Broken reports whether a promise was broken: nothing accepted is lost, answered twice,
// out of order or garbled, and there are no more strays than failures after which
// nobody can know whether a message was sent.
func (v Verdict) Broken(ambiguous int) bool {
	return v.Lost+v.Twice+v.Disorder+v.Garbled > 0 || v.Strays > ambiguous
}

// most is how many problems are described, and notices quoted.
const most = 20

func (v *Verdict) problem(format string, args ...any) {
	if len(v.Problems) < most {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

// Judge compares what was said with what people see. shown returns the visible
// messages of the service in a conversation, in the order in which they stand there;
// stray reports whether a text says of itself that it is not the answer.
func (b *Book) Judge(shown func(conversation int) []string, stray func(text string) bool) Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	var v Verdict
	for i, c := range b.conversations {
		seen := v.read(i, len(c), shown(i), stray)
		for n, m := range c {
			v.Said++
			if !m.accepted.IsZero() {
				v.Accepted++
			}
			v.judge(Ask{Conversation: i, N: n + 1, Kind: m.kind}, !m.accepted.IsZero(), seen)
		}
		v.order(i, seen)
	}
	b.time(&v)
	return v
}

// time says how long everything took. The lock must be held.
func (b *Book) time(v *Verdict) {
	var acks, waits, takeovers, crowdAcks, crowdWaits, others []time.Duration
	var came, over time.Time // the crowd comes, and is served
	for i := range b.crowd {
		for _, m := range b.conversations[i] {
			if came.IsZero() || m.said.Before(came) {
				came = m.said
			}
			if m.answered.After(over) {
				over = m.answered
			}
		}
	}
	for i, c := range b.conversations {
		for _, m := range c {
			if !m.accepted.IsZero() {
				acks = append(acks, m.accepted.Sub(m.said))
				if b.crowd[i] {
					crowdAcks = append(crowdAcks, m.accepted.Sub(m.said))
				}
			}
			if m.answered.IsZero() {
				continue
			}
			wait := m.answered.Sub(m.said)
			waits = append(waits, wait)
			switch {
			case b.crowd[i]:
				crowdWaits = append(crowdWaits, wait)
			case m.said.Before(over) && !m.said.Before(came):
				others = append(others, wait)
			}
			if at := b.lastDeath(m); !at.IsZero() {
				takeovers = append(takeovers, m.answered.Sub(at))
			}
		}
	}
	v.Ack, v.Wait, v.Takeover = times(acks), times(waits), times(takeovers)
	v.Crowd, v.Crowded, v.CrowdAck, v.CrowdWait, v.OthersWaitMeanwhile = len(b.crowd), len(others), times(crowdAcks), times(crowdWaits), times(others)
}

// lastDeath returns when a process was killed last while a message was accepted and not
// answered, the zero time if none was.
func (b *Book) lastDeath(m *message) (last time.Time) {
	if m.accepted.IsZero() {
		return last
	}
	for _, at := range slices.Backward(b.deaths) {
		if at.Before(m.accepted) {
			return last
		}
		if at.Before(m.answered) {
			return at
		}
	}
	return last
}

// read takes the messages of a conversation apart.
func (v *Verdict) read(conversation, said int, shown []string, stray func(string) bool) (parts []part) {
	for _, text := range shown {
		if stray(text) {
			v.Strays++
			continue
		}
		found := parse(text)
		rest := text
		for _, p := range found {
			rest = strings.Replace(rest, p.text, "", 1)
			if p.ask.Conversation != conversation || p.ask.N < 1 || p.ask.N > said {
				v.Garbled++
				v.problem("conversation %d shows %q, which belongs elsewhere", conversation, p.text)
				continue
			}
			parts = append(parts, p)
		}
		switch rest = strings.TrimSpace(rest); {
		case rest == "" && len(found) > 0:
		case len(found) > 0 || answerBegins.MatchString(rest):
			v.Garbled++
			v.problem("a message of conversation %d also says or breaks off with %.80q", conversation, rest)
		default:
			v.Notices++
			if len(v.Told) < most {
				v.Told = append(v.Told, fmt.Sprintf("in conversation %d: %.300q", conversation, text))
			}
		}
	}
	return parts
}

// judge looks for the answer to one message among the parts that are shown.
func (v *Verdict) judge(a Ask, accepted bool, parts []part) {
	want := Answer(a.Conversation, a.N, a.Kind)
	count := make([]int, len(want))
	wrong := false
	for _, p := range parts {
		if p.ask.N != a.N {
			continue
		}
		if p.i < 1 || p.i > len(want) || p.text != want[p.i-1] {
			wrong = true
			v.Garbled++
			v.problem("c%dn%d is answered with %.80q", a.Conversation, a.N, p.text)
			continue
		}
		count[p.i-1]++
	}
	missing, double := slices.Contains(count, 0), slices.ContainsFunc(count, func(n int) bool { return n > 1 })
	switch {
	case double:
		v.Twice++
		v.problem("c%dn%d %s is answered more than once: its %d paragraphs are there %v times", a.Conversation, a.N, a.Kind, len(want), count)
	case missing && accepted:
		v.Lost++
		v.problem("c%dn%d %s was accepted and is not answered: its %d paragraphs are there %v times", a.Conversation, a.N, a.Kind, len(want), count)
	case !missing && !wrong:
		v.Once++
	}
}

// order counts the messages whose answer stands before that of an earlier one, and the
// answers whose paragraphs do.
func (v *Verdict) order(conversation int, parts []part) {
	late := map[int]bool{}
	for k := 1; k < len(parts); k++ {
		before, p := parts[k-1], parts[k]
		if p.ask.N < before.ask.N || p.ask.N == before.ask.N && p.i < before.i {
			late[p.ask.N] = true
		}
	}
	v.Disorder += len(late)
	for n := range late {
		v.problem("in conversation %d the answer to message %d stands behind a later one, or its paragraphs are mixed up", conversation, n)
	}
}

func times(all []time.Duration) Times {
	if len(all) == 0 {
		return Times{}
	}
	slices.Sort(all)
	at := func(share float64) time.Duration { return all[int(share*float64(len(all)-1))] }
	return Times{P50: at(.5), P95: at(.95), Longest: all[len(all)-1]}
}
