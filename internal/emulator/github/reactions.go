package github

import (
	"net/http"
	"slices"
)

// target returns what a call about reactions is about.
func (r *request) target() *post {
	if r.comment != nil {
		return &r.comment.post
	}
	return &r.issue.post
}

func (s *Server) listReactions(r *request) (*reply, *apiError) {
	content := r.query.Get("content")
	list := slices.DeleteFunc(slices.Clone(r.target().reactions), func(x *reaction) bool { return content != "" && x.content != content })
	return paged(r, list, func(x *reaction) any { return s.renderReaction(x) })
}

func (s *Server) createReaction(r *request) (*reply, *apiError) {
	content := r.in.need("content")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	if !slices.Contains(kinds, content) {
		return nil, invalid("Reaction", "content", "invalid", "")
	}
	added, isNew := s.react(r.target(), r.who.user, content)
	if !isNew {
		return ok(s.renderReaction(added))
	}
	s.change(ChangeReacted, r.issue, r.comment, r.who.user)
	return created(s.renderReaction(added))
}

// react adds a reaction unless the user gave it before. Nobody is told: there
// are no events for reactions.
func (s *Server) react(p *post, by *user, content string) (added *reaction, isNew bool) {
	for _, x := range p.reactions {
		if x.user == by && x.content == content {
			return x, false
		}
	}
	x := &reaction{id: s.id(), user: by, content: content, created: s.opts.Now()}
	p.reactions = append(p.reactions, x)
	return x, true
}

func (s *Server) deleteReaction(r *request) (*reply, *apiError) {
	p := r.target()
	at := slices.IndexFunc(p.reactions, func(x *reaction) bool { return x.id == r.id("reaction") })
	switch {
	case at < 0:
		return nil, notFound()
	case p.reactions[at].user != r.who.user:
		return nil, refuse(http.StatusForbidden, "You may only delete your own reactions.")
	}
	p.reactions = slices.Delete(p.reactions, at, at+1)
	s.change(ChangeReacted, r.issue, r.comment, r.who.user)
	return noContent()
}
