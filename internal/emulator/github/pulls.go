package github

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// pullCalls are the operations on pull requests.
type pullCalls struct{ show renderer }

func (c pullCalls) list(r *request) (*reply, *apiError) {
	head, base := r.query.Get("head"), r.query.Get("base")
	out := r.issues(func(i *issue) bool {
		// GitHub ignores a head without an owner, which then matches everything.
		return i.pull != nil && (base == "" || i.pull.base.ref == base) &&
			(!strings.Contains(head, ":") || sameName(i.pull.head.label(), head))
	})
	if direction := r.query.Get("direction"); direction == "desc" || direction == "" && r.query.Get("sort") != "updated" {
		slices.Reverse(out)
	}
	return paged(r, out, func(i *issue) obj { return c.show.pull(i, false) })
}

func (c pullCalls) create(r *request) (*reply, *apiError) {
	head, base := r.in.need("head"), r.in.need("base")
	var p Pull
	p.Title, _ = r.in.text("title")
	p.Body, _ = r.in.text("body")
	p.Draft, _ = r.in.flag("draft")
	if refused := cmp.Or(r.in.refused(), r.mayPropose(head)); refused != nil {
		return nil, refused
	}
	from, into, refused := c.sides(r.repo, head, base)
	if refused = cmp.Or(refused, checkText("PullRequest", p.Title, p.Body)); refused != nil {
		return nil, refused
	}
	i, _ := r.by.propose(from, into, p)
	return created(c.show.pull(i, true))
}

// mayPropose checks that the caller can read the head and, in the same
// repository, write to it.
func (r *request) mayPropose(head string) *apiError {
	switch {
	case r.in.has("issue"):
		return invalid("PullRequest", "issue", "custom", "the emulator does not convert issues")
	case r.who.kind == asInstallation && !r.who.granted("contents", "read"):
		return notAccessible(r.who)
	case r.who.kind == personal && !strings.Contains(head, ":") && !r.repo.role(r.who.user).atLeast(Write):
		return refuse(http.StatusForbidden, "Must have push access to repository")
	}
	return nil
}

// sides finds the branches of a pull request and refuses those that cannot be
// merged, or that have one already.
func (c pullCalls) sides(r *repo, head, base string) (from, into side, refused *apiError) {
	from, exists := c.show.world.headOf(r, head)
	if !exists {
		return from, into, invalid("PullRequest", "head", "invalid", "")
	}
	into = side{repo: r, ref: base}
	if into.sha, exists = r.find(base); !exists {
		return from, into, invalid("PullRequest", "base", "invalid", "")
	}
	for _, i := range r.issues {
		if i.pull != nil && !i.closed && i.pull.head.label() == from.label() && i.pull.base.ref == base {
			return from, into, invalid("PullRequest", "", "custom", "A pull request already exists for "+from.label()+".")
		}
	}
	if from.sha == into.sha {
		name := from.ref
		if from.repo != r {
			name = from.label()
		}
		return from, into, invalid("PullRequest", "", "custom", "No commits between "+base+" and "+name)
	}
	return from, into, nil
}

func (c pullCalls) get(r *request) (*reply, *apiError) {
	return ok(c.show.pull(r.issue, true))
}

func (c pullCalls) update(r *request) (*reply, *apiError) {
	base, hasBase := r.in.text("base")
	if refused := r.in.refused(); refused != nil {
		return nil, refused
	}
	if hasBase {
		sha, exists := r.repo.find(base)
		if !exists {
			return nil, invalid("PullRequest", "base", "invalid", "")
		}
		r.issue.pull.base = side{repo: r.repo, ref: base, sha: sha}
	}
	if refused := r.applyIssue("PullRequest"); refused != nil {
		return nil, refused
	}
	return ok(c.show.pull(r.issue, true))
}

func (c pullCalls) files(r *request) (*reply, *apiError) {
	web, sha := c.show.page(r.repo.fullName()), r.issue.pull.head.sha
	return paged(r, r.issue.files(), func(f File) obj {
		out := fields{
			{"sha", fakeSHA(sha + f.Path)}, {"filename", f.Path}, {"status", cmp.Or(f.Status, "modified")}, {"additions", f.Additions}, {"deletions", f.Deletions},
			{"changes", f.Additions + f.Deletions}, {"blob_url", web + "/blob/" + sha + "/" + f.Path}, {"raw_url", web + "/raw/" + sha + "/" + f.Path},
			{"contents_url", c.show.repoURL(r.repo) + "/contents/" + f.Path + "?ref=" + sha},
		}.Object()
		if f.Patch != "" {
			out["patch"] = f.Patch
		}
		if f.Previous != "" {
			out["previous_filename"] = f.Previous
		}
		return out
	})
}
