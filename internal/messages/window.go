package messages

import (
	"math/bits"
	"slices"
)

// Window returns the newest messages of msgs that fit budgetTokens by
// EstimateTokens, cut only where a turn begins: at a message of a user with no
// tool call open, so that no call is split from its result. The last turn is
// kept even if it alone is over the budget, because without it there is nothing
// to answer; what stands before the first user message is dropped.
//
// Where something has to be cut of messages that are numbered (Message.Seq), a
// good part is: up to half of the budget, to a beginning that the next windows
// of the session share until they have grown by a quarter of the budget or more, so
// that what a provider has cached of it goes on being of use. Which beginning depends on the
// messages alone, not on earlier calls, so that other processes mostly find the
// same one.
//
// The result is the tail of msgs and shares its memory. Of a repaired array it
// is valid as it is; of any other it is after Repair. Window reads only as many
// messages as it returns and two turns more, so its cost does not grow with the
// history; only an array in which a result stands in a later turn than its
// call, or without one, is read as a whole.
func Window(msgs []Message, budgetTokens int) []Message {
	return window(msgs, budgetTokens, budgetTokens/2, EstimateTokens)
}

// Newest returns the newest messages of msgs, at most limit of them, cut as by
// Window, but as few as possible: the last turn is kept even if it alone has more.
func Newest(msgs []Message, limit int) []Message {
	return window(msgs, limit, 0, func(Message) int { return 1 })
}

// window cuts at most slack more than the budget asks for.
func window(msgs []Message, budget, slack int, cost func(Message) int) []Message {
	turns, whole, blocked := beginnings(msgs, budget, cost, nil)
	if blocked {
		// Every call that is waited for now has a turn before it, so that there
		// is a beginning.
		turns, whole, _ = beginnings(msgs, budget, cost, firstCalls(msgs))
	}
	if len(turns) == 0 {
		return nil
	}
	first := len(turns) - 1
	if !whole {
		first = shared(msgs, turns, budget-slack)
	}
	return msgs[turns[first].at:]
}

// beginning is where a window may begin.
type beginning struct {
	at   int // index
	cost int // of the window that begins here
}

// beginnings returns where a window within the budget may begin, the newest first
// and at least one if there is a user message. whole reports that nothing is left
// out but what stands before the first of them. blocked reports that a turn could
// not be a beginning because a result of it, or after it, had no call yet. With
// calls, the first position of each call id, results that no call comes before are
// not waited for.
func beginnings(msgs []Message, budget int, cost func(Message) int, calls map[string]int) (turns []beginning, whole, blocked bool) {
	used := 0
	open := map[string]bool{} // results whose call was not met yet, going backward
	for i, m := range slices.Backward(msgs) {
		used += cost(m)
		if len(turns) > 0 && used > budget {
			return turns, false, blocked
		}
		for _, b := range m.Blocks {
			if r, ok := b.(ToolResult); ok && mayHaveCall(calls, r.CallID, i) {
				open[r.CallID] = true
			}
		}
		for _, b := range m.Blocks {
			if c, ok := b.(ToolCall); ok {
				delete(open, c.ID)
			}
		}
		if !beginsTurn(m) {
			continue
		}
		if len(open) > 0 {
			blocked = true
			continue
		}
		turns = append(turns, beginning{at: i, cost: used})
	}
	return turns, true, blocked
}

// shared returns which of the turns, the newest first, a window begins with that
// had to be cut and should cost at least floor: the first one at a number of
// message that is divided by a power of two. The power is the largest that is
// surely met in what may be cut, so that the windows after this one find the same
// turn until it does not fit any more.
func shared(msgs []Message, turns []beginning, floor int) int {
	oldest := len(turns) - 1
	newest := oldest
	for newest > 0 && turns[newest-1].cost >= floor {
		newest--
	}
	number := func(turn int) int64 { return msgs[turns[turn].at].Seq }
	room := number(newest) - number(oldest)
	if room <= 0 {
		return oldest // they are not numbered, or there is no choice
	}
	grid := int64(1) << (bits.Len64(uint64(room+1)) - 1)
	before := number(oldest) - 1
	for i := turns[oldest].at - 1; i >= 0; i-- {
		if beginsTurn(msgs[i]) {
			before = msgs[i].Seq
			break
		}
	}
	for turn := oldest; turn > newest; turn-- {
		if number(turn)/grid > before/grid {
			return turn
		}
		before = number(turn)
	}
	return newest
}

func mayHaveCall(calls map[string]int, id string, at int) bool {
	if calls == nil {
		return true
	}
	first, ok := calls[id]
	return ok && first < at
}

// firstCalls leaves out calls before the first turn: no window holds them.
func firstCalls(msgs []Message) map[string]int {
	calls := make(map[string]int)
	begun := false
	for i, m := range msgs {
		if begun = begun || beginsTurn(m); !begun {
			continue
		}
		for _, b := range m.Blocks {
			c, ok := b.(ToolCall)
			if !ok {
				continue
			}
			if _, seen := calls[c.ID]; !seen {
				calls[c.ID] = i
			}
		}
	}
	return calls
}

// beginsTurn reports whether m is a user message of which Repair leaves
// something.
func beginsTurn(m Message) bool {
	if m.Role != RoleUser {
		return false
	}
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case Text:
			if !blank(b.Text) {
				return true
			}
		case Attachment:
			return true
		case ToolCall, ToolResult, Thinking:
		}
	}
	return false
}
