package github

import (
	"cmp"

	"remote-agent/internal/lists"
)

// LineComment is a comment on a line of a diff.
type LineComment struct {
	Path string
	Line int
	Body string
}

// states are those that a review's event leads to.
var states = map[string]string{"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}

// reviewCalls are the operations on reviews, and the one that answers a comment of a line.
type reviewCalls struct{ show renderer }

func (c reviewCalls) list(r *request) (*reply, *apiError) {
	return paged(r, r.issue.pull.reviews, func(v *review) obj { return c.show.review(v, false) })
}

func (i *issue) review(id int64) *review {
	return lists.First(i.pull.reviews, func(v *review) bool { return v.id == id })
}

func (c reviewCalls) get(r *request) (*reply, *apiError) {
	v := r.issue.review(r.id("review"))
	if v == nil {
		return nil, notFound()
	}
	return ok(c.show.review(v, false))
}

// comment answers a comment of a line: the bot begins no threads.
func (c reviewCalls) comment(r *request) (*reply, *apiError) {
	body := r.in.need("body")
	replyTo, _ := r.in.int("in_reply_to")
	to := r.by.world.comments[replyTo]
	var missing *apiError
	if to == nil || to.issue != r.issue || to.review == nil {
		missing = notFound()
	}
	if refused := cmp.Or(r.in.refused(), missing, r.mayComment(), checkBody("PullRequestReviewComment", body)); refused != nil {
		return nil, refused
	}
	made, _ := r.by.reply(to, body)
	return created(c.show.comment(made))
}
