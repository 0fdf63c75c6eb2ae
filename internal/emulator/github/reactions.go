package github

import (
	"net/http"
	"slices"
)

// reactionCalls are the operations on reactions to issues and comments.
type reactionCalls struct{ show renderer }

// postOf returns what a reaction is about: the comment, or without one the issue.
func postOf(i *issue, c *comment) *post {
	if c != nil {
		return &c.post
	}
	return &i.post
}

func (c reactionCalls) list(r *request) (*reply, *apiError) {
	content := r.query.Get("content")
	all := slices.Clone(postOf(r.issue, r.comment).reactions)
	return paged(r, slices.DeleteFunc(all, func(x *reaction) bool { return content != "" && x.content != content }), c.show.reaction)
}

func (c reactionCalls) create(r *request) (*reply, *apiError) {
	content := r.in.need("content")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	if !slices.Contains(kinds, content) {
		return nil, invalid("Reaction", "content", "invalid", "")
	}
	added, isNew := r.by.react(r.issue, r.comment, content)
	if !isNew {
		return ok(c.show.reaction(added))
	}
	return created(c.show.reaction(added))
}

func (c reactionCalls) remove(r *request) (*reply, *apiError) {
	p := postOf(r.issue, r.comment)
	at := slices.IndexFunc(p.reactions, func(x *reaction) bool { return x.id == r.id("reaction") })
	switch {
	case at < 0:
		return nil, notFound()
	case p.reactions[at].user != r.who.user:
		return nil, refuse(http.StatusForbidden, "You may only delete your own reactions.")
	}
	p.reactions = slices.Delete(p.reactions, at, at+1)
	r.by.note(ChangeReacted, r.issue, r.comment)
	return noContent()
}
