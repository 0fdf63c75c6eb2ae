package platform

// OneSlip reports whether two different words become the same when one letter is left
// out, put in or replaced, or two neighbors change places. It compares bytes.
func OneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if a == b || len(b)-len(a) > 1 {
		return false
	}
	at := 0
	for at < len(a) && a[at] == b[at] {
		at++
	}
	if len(a) < len(b) {
		return a[at:] == b[at+1:]
	}
	if a[at+1:] == b[at+1:] {
		return true
	}
	return at+1 < len(a) && a[at] == b[at+1] && a[at+1] == b[at] && a[at+2:] == b[at+2:]
}
