package messages

import "fmt"

// elideKeep is how many of the newest tool results Elide leaves alone.
const elideKeep = 4

// Elide shortens old tool results until an array fits a budget in tokens: their
// contents are replaced by a note, and so are the files that they came with, the oldest
// first and never the newest four. Calls keep their results, so that the array stays
// valid. It changes nothing of an array that fits, and copies what it changes.
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
			short := elided(out[i], j, r)
			if short == nil {
				continue
			}
			out[i].Blocks = append([]Block(nil), out[i].Blocks...)
			copy(out[i].Blocks[j:], short)
			after := EstimateTokens(out[i])
			total, before = total-before+after, after
		}
	}
	return out
}

// elided returns the result that is m.Blocks[at], and the files behind it, without what
// takes room; nil if nothing does.
func elided(m Message, at int, r ToolResult) []Block {
	files := FilesOf(m, at)
	if len(r.Content) <= 200 && len(files) == 0 {
		return nil
	}
	if len(r.Content) > 200 {
		r.Content = fmt.Sprintf("(%d bytes left out here to save room; run the tool again if you need them)", len(r.Content))
	}
	short := []Block{r}
	for _, a := range files {
		if a.File != "" {
			a.File, a.Data = "", ""
			a = a.Noted("left out here to save room; run the tool again if you need it")
		}
		short = append(short, a)
	}
	return short
}
