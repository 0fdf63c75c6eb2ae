package pages

import "remote-agent/internal/html"

// PatchHTML is what a page shows of a patch, and how many lines of it were added and
// removed.
func PatchHTML(patch string) (page string, added, removed int) {
	for _, f := range filesOf(patch) {
		page += html.String(f.node(true))
		added, removed = added+f.added, removed+f.removed
	}
	return page, added, removed
}
