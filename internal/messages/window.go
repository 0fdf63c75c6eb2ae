package messages

// Window returns the newest messages of msgs that fit budgetTokens by
// EstimateTokens, cut only where a turn begins: at a message of a user with no
// tool call open. The last turn is kept even if it alone is over the budget,
// because without it there is nothing to answer; what stands before the first
// user message is dropped.
//
// msgs should be the result of Repair; then the result is valid too. It is the
// tail of msgs and shares its memory. Window reads only as many messages as it
// returns and one turn more, so its cost does not grow with the history.
func Window(msgs []Message, budgetTokens int) []Message {
	var (
		start  = -1 // where the result begins
		newest = -1 // the newest user message, if no turn has a clean beginning
		tokens = 0
		open   = map[string]int{} // results whose call was not met yet, going backward
	)
	for i := len(msgs) - 1; i >= 0; i-- {
		m := msgs[i]
		tokens += EstimateTokens(m)
		if start >= 0 && tokens > budgetTokens {
			break
		}
		trackOpen(open, m)
		if !beginsTurn(m) {
			continue
		}
		if newest < 0 {
			newest = i
		}
		if len(open) == 0 {
			start = i
		}
	}
	if start < 0 {
		start = newest
	}
	if start < 0 {
		return nil
	}
	return msgs[start:]
}

func trackOpen(open map[string]int, m Message) {
	for _, b := range m.Blocks {
		if r, ok := b.(ToolResult); ok {
			open[r.CallID]++
		}
	}
	for _, b := range m.Blocks {
		c, ok := b.(ToolCall)
		if !ok {
			continue
		}
		if open[c.ID]--; open[c.ID] <= 0 {
			delete(open, c.ID)
		}
	}
}

func beginsTurn(m Message) bool {
	if m.Role != RoleUser {
		return false
	}
	for _, b := range m.Blocks {
		if _, result := b.(ToolResult); !result {
			return true
		}
	}
	return false
}
