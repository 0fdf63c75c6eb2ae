package github

import (
	"cmp"
	"net/http"
	"slices"
)

// LineComment is a comment on a line of a diff.
type LineComment struct {
	Path string
	Line int
	Left bool // of the old file
	Body string
}

// states are those that a review's event leads to.
var states = map[string]string{"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}

// reviewCalls are the operations on reviews, and those that make comments of lines.
type reviewCalls struct{ show renderer }

func (c reviewCalls) list(r *request) (*reply, *apiError) {
	return paged(r, r.issue.pull.reviews, func(v *review) obj { return c.show.review(v, false) })
}

func (i *issue) review(id int64) *review {
	for _, v := range i.pull.reviews {
		if v.id == id {
			return v
		}
	}
	return nil
}

func (c reviewCalls) get(r *request) (*reply, *apiError) {
	v := r.issue.review(r.id("review"))
	if v == nil {
		return nil, notFound()
	}
	return ok(c.show.review(v, false))
}

func (c reviewCalls) create(r *request) (*reply, *apiError) {
	body, _ := r.in.text("body")
	event, _ := r.in.text("event")
	list, _ := read[[]map[string]any](r.in, "comments", "an array of objects")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	state, known := states[event]
	switch {
	case !known:
		return nil, invalid("PullRequestReview", "event", "invalid", "the emulator knows no pending reviews")
	case state != "APPROVED" && body == "" && len(list) == 0:
		return nil, refuse(http.StatusUnprocessableEntity, "Unprocessable Entity: a body is required for this event")
	case state != "COMMENTED" && r.who.user == r.issue.author:
		return nil, refuse(http.StatusUnprocessableEntity, "Unprocessable Entity: Can not approve or request changes on your own pull request")
	}
	if refused := checkBody("PullRequestReview", body); refused != nil && body != "" {
		return nil, refused
	}
	var lines []LineComment
	for _, fields := range list {
		l := LineComment{Left: fields["side"] == "LEFT"}
		l.Path, _ = fields["path"].(string)
		l.Body, _ = fields["body"].(string)
		line, _ := fields["line"].(float64)
		l.Line = int(line)
		if refused := l.check(r.issue); refused != nil {
			return nil, refused
		}
		lines = append(lines, l)
	}
	v, _ := r.by.review(r.issue, state, body, lines)
	return ok(c.show.review(v, false))
}

// check refuses a comment on what is not in the diff.
func (l LineComment) check(i *issue) *apiError {
	if refused := checkBody("PullRequestReviewComment", l.Body); refused != nil {
		return refused
	}
	files := i.files()
	at := slices.IndexFunc(files, func(f File) bool { return f.Path == l.Path })
	if at < 0 {
		return invalid("PullRequestReviewComment", "pull_request_review_thread.path", "invalid", "path could not be resolved")
	}
	if _, inside := hunkOf(files[at].Patch, l.Line, l.Left); !inside {
		return invalid("PullRequestReviewComment", "pull_request_review_thread.line", "invalid", "line must be part of the diff")
	}
	return nil
}

func (c reviewCalls) comment(r *request) (*reply, *apiError) {
	body := r.in.need("body")
	if replyTo, given := r.in.int("in_reply_to"); given {
		to := r.by.world.comments[replyTo]
		if to != nil && (to.issue != r.issue || to.review == nil) {
			to = nil
		}
		return c.answer(r, to, body)
	}
	commit, path := r.in.need("commit_id"), r.in.need("path")
	line, _ := r.in.int("line")
	kind, _ := r.in.text("subject_type")
	left, _ := r.in.text("side")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	p := r.issue.pull
	p.refresh()
	if commit != p.head.sha {
		return nil, invalid("PullRequestReviewComment", "commit_id", "invalid", "commit_id is not part of the pull request")
	}
	l := LineComment{Path: path, Line: int(line), Left: left == "LEFT", Body: body}
	refused := checkBody("PullRequestReviewComment", body)
	if kind != "file" {
		refused = l.check(r.issue)
	}
	if refused != nil {
		return nil, refused
	}
	r.by.review(r.issue, "COMMENTED", "", []LineComment{l})
	return created(c.show.comment(p.comments[len(p.comments)-1]))
}

func (c reviewCalls) reply(r *request) (*reply, *apiError) {
	return c.answer(r, r.comment, r.in.need("body"))
}

// answer replies to a comment of a line.
func (c reviewCalls) answer(r *request, to *comment, body string) (*reply, *apiError) {
	var missing *apiError
	if to == nil {
		missing = notFound()
	}
	if refused := cmp.Or(r.in.refused(), missing, checkBody("PullRequestReviewComment", body)); refused != nil {
		return nil, refused
	}
	made, _ := r.by.reply(to, body)
	return created(c.show.comment(made))
}
