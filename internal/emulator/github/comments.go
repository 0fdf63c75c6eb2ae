package github

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"remote-agent/internal/order"
)

// lag makes lists of comments late.
type lag struct {
	age   time.Duration
	lists int
}

// SetListLag makes new comments missing in lists until they are of an age and as
// many lists have not shown them. Reading one by its id is not late. Zeros end
// it.
func (s *Server) SetListLag(age time.Duration, lists int) {
	defer s.world.writing()()
	s.lag = lag{age: age, lists: lists}
}

// shown filters the comments that a list shows now.
func (l *lag) shown(list []*comment, now time.Time) []*comment {
	var out []*comment
	for _, c := range list {
		if c.unseen < l.lists {
			c.unseen++
			continue
		}
		if l.age == 0 || now.Sub(c.created) >= l.age { // also if the clock was set back since
			out = append(out, c)
		}
	}
	return out
}

// commentCalls are the operations on comments, of conversations and of lines.
type commentCalls struct {
	show renderer
	lag  *lag
}

func (c commentCalls) list(r *request) (*reply, *apiError) {
	return c.page(r, func(i *issue) []*comment { return i.comments })
}

func (c commentCalls) listOfLines(r *request) (*reply, *apiError) {
	return c.page(r, func(i *issue) []*comment {
		if i.pull == nil {
			return nil
		}
		return i.pull.comments
	})
}

// page answers with the comments of the issue that the path names, or of all of the
// repository.
func (c commentCalls) page(r *request, of func(*issue) []*comment) (*reply, *apiError) {
	since, refused := r.since()
	if refused != nil {
		return nil, refused
	}
	issues := r.repo.issues
	if r.issue != nil {
		issues = []*issue{r.issue}
	}
	var list []*comment
	for _, i := range issues {
		list = append(list, of(i)...)
	}
	order.By(list, func(a, b *comment) int { return int(a.id - b.id) })
	list = slices.DeleteFunc(c.lag.shown(list, c.show.world.now()), func(x *comment) bool { return x.updated.Truncate(time.Second).Before(since) })
	if by := r.query.Get("sort"); by != "" && (r.issue == nil || r.route.name == ListReviewComments) {
		order.By(list, func(a, b *comment) int {
			if by == "updated" {
				return a.updated.Compare(b.updated)
			}
			return a.created.Compare(b.created)
		})
		// The default depends on the list; the stricter reading is the less handy.
		if r.query.Get("direction") == "desc" {
			slices.Reverse(list)
		}
	}
	return paged(r, list, c.show.comment)
}

func (c commentCalls) create(r *request) (*reply, *apiError) {
	body := r.in.need("body")
	if refused := cmp.Or(r.in.refused(), r.mayComment(), checkBody("IssueComment", body)); refused != nil {
		return nil, refused
	}
	made, _ := r.by.comment(r.issue, body)
	return created(c.show.comment(made))
}

func (c commentCalls) get(r *request) (*reply, *apiError) { return ok(c.show.comment(r.comment)) }

// mayComment refuses a comment in a locked conversation to those who may not write in the
// repository, and to every App.
func (r *request) mayComment() *apiError {
	if !r.issue.locked || r.who.kind == personal && r.repo.role(r.who.user).atLeast(Write) {
		return nil
	}
	return refuse(http.StatusForbidden, "Unable to create comment because issue is locked.")
}

// mayChange refuses to edit or delete a comment to those who may not: its author may,
// and who has write access.
func (r *request) mayChange() *apiError {
	if r.who.user == r.comment.author || r.who.kind == asInstallation || r.repo.role(r.who.user).atLeast(Write) {
		return nil
	}
	return refuse(http.StatusForbidden, "Must have admin rights to Repository.")
}

func (c commentCalls) update(r *request) (*reply, *apiError) {
	body, resource := r.in.need("body"), "IssueComment"
	if r.comment.review != nil {
		resource = "PullRequestReviewComment"
	}
	if refused := cmp.Or(r.in.refused(), r.mayChange(), checkBody(resource, body)); refused != nil {
		return nil, refused
	}
	r.by.edit(r.comment, body)
	return ok(c.show.comment(r.comment))
}

func (c commentCalls) remove(r *request) (*reply, *apiError) {
	if refused := r.mayChange(); refused != nil {
		return nil, refused
	}
	r.by.remove(r.comment)
	return noContent()
}
