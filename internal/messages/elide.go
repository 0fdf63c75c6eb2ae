package messages

import "fmt"

// elideKeep is how many of the newest tool results Elide leaves alone.
const elideKeep = 4

// Elide shortens old tool results until an array fits a budget in tokens: their
// contents are replaced by a note, the oldest first and never the newest four.
// Calls keep their results, so that the array stays valid. It changes nothing of
// an array that fits, and copies what it changes.
func Elide(array []Message, budget int) []Message {
	total := 0
	for _, m := range array {
		total += EstimateTokens(m)
	}
	if total <= budget {
		return array
	}
	results := 0
	for _, m := range array {
		for _, b := range m.Blocks {
			if _, ok := b.(ToolResult); ok {
				results++
			}
		}
	}
	out := append([]Message(nil), array...)
	for i := range out {
		before := EstimateTokens(out[i])
		for j, b := range out[i].Blocks {
			r, ok := b.(ToolResult)
			if !ok {
				continue
			}
			if results--; results < elideKeep || total <= budget {
				return out
			}
			if len(r.Content) <= 200 {
				continue
			}
			r.Content = fmt.Sprintf("(%d bytes left out here to save room; run the tool again if you need them)", len(r.Content))
			out[i].Blocks = append([]Block(nil), out[i].Blocks...)
			out[i].Blocks[j] = r
			after := EstimateTokens(out[i])
			total, before = total-before+after, after
		}
	}
	return out
}
