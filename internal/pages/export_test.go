package pages

import (
	"context"

	"remote-agent/internal/html"
)

// PatchHTML is what a page shows of a patch, and how many lines of it were added and
// removed.
func PatchHTML(patch string) (page string, added, removed int) {
	for _, f := range filesOf(patch) {
		page += html.String(f.node(true))
		added, removed = added+f.added, removed+f.removed
	}
	return page, added, removed
}

// Shared is sharedPages.
type Shared struct{ sharedPages }

// NewShared returns a Shared without pages.
func NewShared() *Shared { return &Shared{} }

// Get is get.
func (s *Shared) Get(ctx context.Context, who string, page func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	return s.get(ctx, who, page)
}
