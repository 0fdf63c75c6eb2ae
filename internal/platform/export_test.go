package platform

// SplitAdded is Split that shows what was added to each part: the tests check
// with it that nothing else was, and that nothing was lost.
func SplitAdded(markdown string, limit int, measure func(string) int) (open, body, end []string) {
	for _, p := range splitPieces(markdown, limit, measure) {
		open, body, end = append(open, p.open), append(body, p.body), append(end, p.close)
	}
	return open, body, end
}

// Small is what a body has room for whatever else is read.
const Small = small

// Taken is how much of the room for larger ones is taken.
func Taken() int64 {
	large.mu.Lock()
	defer large.mu.Unlock()
	return largeRoom - large.left
}
