package messages

import "slices"

// Window returns the newest messages of msgs that fit budgetTokens by
// EstimateTokens, cut only where a turn begins: at a message of a user with no
// tool call open, so that no call is split from its result. The last turn is
// kept even if it alone is over the budget, because without it there is nothing
// to answer; what stands before the first user message is dropped.
//
// The result is the tail of msgs and shares its memory. Of a repaired array it
// is valid as it is; of any other it is after Repair. Window reads only as many
// messages as it returns and one turn more, so its cost does not grow with the
// history; only an array in which a result stands in a later turn than its
// call, or without one, is read as a whole.
func Window(msgs []Message, budgetTokens int) []Message {
	return window(msgs, budgetTokens, EstimateTokens)
}

// Newest returns the newest messages of msgs, at most limit of them, cut as by
// Window: the last turn is kept even if it alone has more.
func Newest(msgs []Message, limit int) []Message {
	return window(msgs, limit, func(Message) int { return 1 })
}

func window(msgs []Message, budget int, cost func(Message) int) []Message {
	start, blocked := windowStart(msgs, budget, cost, nil)
	if blocked {
		// Every call that is waited for now has a turn before it, so that there
		// is a beginning.
		start, _ = windowStart(msgs, budget, cost, firstCalls(msgs))
	}
	if start < 0 {
		return nil
	}
	return msgs[start:]
}

// windowStart returns where the window begins, or -1 without a user message.
// blocked reports that a turn could not be its beginning because a result of
// it, or after it, had no call yet. With calls, the first position of each call
// id, results that no call comes before are not waited for.
func windowStart(msgs []Message, budget int, cost func(Message) int, calls map[string]int) (start int, blocked bool) {
	start = -1
	used := 0
	open := map[string]bool{} // results whose call was not met yet, going backward
	for i, m := range slices.Backward(msgs) {
		used += cost(m)
		if start >= 0 && used > budget {
			break
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
		start = i
	}
	return start, blocked
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
