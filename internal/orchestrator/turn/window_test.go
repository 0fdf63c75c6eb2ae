package turn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/messages"
)

// said returns messages with the numbers from first to last.
func said(first, last int64) []messages.Message {
	var msgs []messages.Message
	for seq := first; seq <= last; seq++ {
		msgs = append(msgs, messages.Message{Role: messages.RoleUser, Seq: seq})
	}
	return msgs
}

func numbers(msgs []messages.Message) []int64 {
	var seqs []int64
	for _, m := range msgs {
		seqs = append(seqs, m.Seq)
	}
	return seqs
}

func TestAWindowGrowsBehindWhatTurnsRead(t *testing.T) {
	c := newWindowCache(2, windowsMost)
	c.put("s", said(1, 2))
	for last := int64(3); last < 20; last++ {
		before := c.get("s")
		after := c.follow("s", last-1, said(last, last))
		mine := before
		mine = append(mine, messages.Message{Seq: 99}) // as an assistant does that asks again
		if want := append(numbers(said(1, last-1)), 99); !slices.Equal(numbers(mine), want) {
			t.Fatalf("a turn that went on has %v, want %v", numbers(mine), want)
		}
		if want := numbers(said(1, last-1)); !slices.Equal(numbers(before), want) {
			t.Fatalf("a turn that read %v has %v", want, numbers(before))
		}
		if want := numbers(said(1, last)); !slices.Equal(numbers(after), want) {
			t.Fatalf("extended to %v, want %v", numbers(after), want)
		}
	}
}

func TestAWindowThatWasCutGoesOnGrowing(t *testing.T) {
	c := newWindowCache(2, windowsMost)
	c.put("s", said(1, 10))
	whole := c.follow("s", 10, said(11, 11))
	c.put("s", whole[5:]) // what still fits the budget
	c.extend("s", said(0, 0), 12)
	if got := numbers(c.get("s")); !slices.Equal(got, numbers(said(6, 12))) {
		t.Errorf("the window is %v", got)
	}
	if got := numbers(whole); !slices.Equal(got, numbers(said(1, 11))) {
		t.Errorf("a turn that read it has %v", got)
	}
	c.put("s", said(3, 4))
	if got := numbers(c.get("s")); !slices.Equal(got, []int64{3, 4}) {
		t.Errorf("replaced, the window is %v", got)
	}
}

func TestAWindowWithAGapIsForgotten(t *testing.T) {
	c := newWindowCache(1, windowsMost)
	c.put("s", said(1, 3))
	if got := c.follow("s", 4, said(5, 5)); got != nil {
		t.Errorf("a request behind 4 was put behind 3: %v", numbers(got))
	}
	c.extend("s", said(0, 1), 6)
	if got := c.get("s"); len(got) != 0 {
		t.Errorf("the window is still %v", numbers(got))
	}
	c.put("s", said(1, 3))
	c.put("other", said(1, 1))
	if got := c.get("s"); got != nil {
		t.Errorf("one of two windows is remembered, but both are: %v", numbers(got))
	}
	c.extend("s", said(0, 0), 4)
	if got := c.get("s"); got != nil {
		t.Errorf("an unknown window became %v", numbers(got))
	}
	if got := c.follow("s", 3, said(4, 4)); got != nil {
		t.Errorf("a request in an unknown window is in %v", numbers(got))
	}
	if got := c.follow("s", 0, said(1, 1)); !slices.Equal(numbers(got), []int64{1}) {
		t.Errorf("the first request of a session is in %v", numbers(got))
	}
}

// TestWindowsTakeNoMoreThanTheyMay counts what is held against what is there, and sees
// to it that the window in use stays, however long it is.
func TestWindowsTakeNoMoreThanTheyMay(t *testing.T) {
	const most = 100_000
	long := messages.Message{Role: messages.RoleUser, Blocks: []messages.Block{messages.Text{Text: strings.Repeat("words ", 2000)}}}
	numbered := func(seq int64) []messages.Message {
		m := long
		m.Seq = seq
		return []messages.Message{m}
	}
	c := newWindowCache(100, most)
	check := func() {
		t.Helper()
		held := 0
		for e := c.order.Front(); e != nil; e = e.Next() {
			held += weight(e.Value.(*window).msgs)
		}
		if c.held != held || len(c.byID) != c.order.Len() {
			t.Fatalf("%d windows of %d bytes are counted as %d of %d", c.order.Len(), held, len(c.byID), c.held)
		}
		if held > most && c.order.Len() > 1 {
			t.Fatalf("%d windows have %d bytes, and %d is the most", c.order.Len(), held, most)
		}
	}
	for i := range 40 {
		session := fmt.Sprint(i % 12)
		c.put(session, numbered(1))
		check()
		c.follow(session, 1, numbered(2))
		check()
		c.extend(session, numbered(0), 3)
		check()
		if got := numbers(c.get(session)); !slices.Equal(got, []int64{1, 2, 3}) {
			t.Fatalf("the window in use is %v", got)
		}
		if i%5 == 0 {
			c.put(session, c.get(session)[1:])
			check()
		}
		if i%7 == 0 {
			c.forget(session)
			check()
		}
	}
	if n := c.order.Len(); n < 2 || n > 4 {
		t.Errorf("%d windows of about %d bytes are remembered", n, 3*weight([]messages.Message{long}))
	}
	for seq := range int64(20) {
		c.extend("9", numbered(0), seq+4)
		check()
	}
}
