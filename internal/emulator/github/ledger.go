package github

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/lists"
	"remote-agent/internal/order"
	"remote-agent/internal/pattern"
)

// Reaction is an emoji and who gave it.
type Reaction struct {
	Content string
	Login   string
}

// Comment is a comment as people see it.
type Comment struct {
	ID      int64
	Number  int
	FromBot bool // of the bot under test
	ViaApp  bool // shows the App's name

	Body      string   // as stored, with what is hidden
	History   []string // the texts before the edits
	Reactions []Reaction

	// Of a line of a diff:
	Path      string
	Line      int
	DiffHunk  string
	InReplyTo int64
}

// Text returns what people read: the body without HTML comments and space
// around it.
func (c Comment) Text() string { return Visible(c.Body) }

// HasReaction reports whether somebody gave the comment a reaction.
func (c Comment) HasReaction(content, login string) bool {
	return slices.Contains(c.Reactions, Reaction{Content: content, Login: login})
}

// ReactionsOf returns the reactions that somebody gave, in order.
func (c Comment) ReactionsOf(login string) []string { return reactionsOf(c.Reactions, login) }

func reactionsOf(list []Reaction, login string) []string {
	var out []string
	for _, r := range list {
		if sameName(r.Login, login) {
			out = append(out, r.Content)
		}
	}
	return out
}

// PullView is what a pull request has besides an issue.
type PullView struct {
	Head, Base     string // "owner:branch"
	HeadSHA        string
	Draft          bool
	ReviewComments []Comment // oldest first
}

// IssueView is what people see of an issue or pull request.
type IssueView struct {
	Number    int
	Title     string
	Body      string
	FromBot   bool
	State     string
	Labels    []string
	Reactions []Reaction
	Comments  []Comment // of the conversation, oldest first
	Deleted   []Comment // what was there before
	Pull      *PullView // nil for an issue
}

func (v IssueView) all() []Comment {
	if v.Pull == nil {
		return slices.Clone(v.Comments)
	}
	return slices.Concat(v.Comments, v.Pull.ReviewComments)
}

// FromBotComments returns the visible comments of the bot, in the conversation
// and on lines, oldest first.
func (v IssueView) FromBotComments() []Comment {
	all := v.all()
	order.By(all, func(a, b Comment) int { return int(a.ID - b.ID) })
	return slices.DeleteFunc(all, func(c Comment) bool { return !c.FromBot })
}

// Texts returns what people read of the bot, in order.
func (v IssueView) Texts() []string {
	return lists.Map(v.FromBotComments(), Comment.Text)
}

// Comment returns a visible comment by its id, also one of a line, or the zero
// Comment.
func (v IssueView) Comment(id int64) Comment {
	return lists.First(v.all(), func(c Comment) bool { return c.ID == id })
}

// ReactionsOf returns the reactions that somebody gave to the issue itself.
func (v IssueView) ReactionsOf(login string) []string { return reactionsOf(v.Reactions, login) }

func viewReactions(list []*reaction) []Reaction {
	return lists.Map(list, func(r *reaction) Reaction { return Reaction{Content: r.content, Login: r.user.login} })
}

func (w *world) viewComment(c *comment) Comment {
	return Comment{
		ID: c.id, Number: c.issue.number, FromBot: w.isBot(c.author), ViaApp: c.viaApp,
		Body: c.body, History: slices.Clone(c.history), Reactions: viewReactions(c.reactions),
		Path: c.path, Line: c.line, DiffHunk: c.hunk, InReplyTo: c.replyTo,
	}
}

func (w *world) viewComments(list []*comment) []Comment {
	return lists.Map(list, w.viewComment)
}

// Issue returns what people see now of an issue or pull request; the zero
// IssueView if there is none.
func (s *Server) Issue(repoName string, number int) IssueView {
	w := s.world
	defer w.reading()()
	if r := w.findRepo(repoName); r != nil {
		if i := r.issue(int64(number)); i != nil {
			return w.viewIssue(i)
		}
	}
	return IssueView{}
}

func (w *world) viewIssue(i *issue) IssueView {
	v := IssueView{
		Number: i.number, Title: i.title, Body: i.body,
		FromBot: w.isBot(i.author), State: i.state(), Labels: slices.Clone(i.labels), Reactions: viewReactions(i.reactions),
		Comments: w.viewComments(i.comments), Deleted: w.viewComments(i.gone),
	}
	if i.pull == nil {
		return v
	}
	i.pull.refresh()
	v.Pull = &PullView{
		Head: i.pull.head.label(), Base: i.pull.base.label(), HeadSHA: i.pull.head.sha, Draft: i.pull.draft,
		ReviewComments: w.viewComments(i.pull.comments),
	}
	return v
}

// Issues returns all issues and pull requests of a repository, oldest first.
func (s *Server) Issues(repoName string) []IssueView {
	w := s.world
	defer w.reading()()
	var out []IssueView
	if r := w.findRepo(repoName); r != nil {
		for _, i := range r.issues {
			out = append(out, w.viewIssue(i))
		}
	}
	return out
}

// WaitComment returns the first visible comment of the bot in an issue or pull
// request that passes check, waiting for it. Comments on lines count too.
func (s *Server) WaitComment(ctx context.Context, repoName string, number int, check func(Comment) bool) (Comment, error) {
	var found Comment
	err := s.WaitFor(ctx, func() bool {
		list := s.Issue(repoName, number).FromBotComments()
		n := slices.IndexFunc(list, check)
		if n >= 0 {
			found = list[n]
		}
		return n >= 0
	})
	return found, err
}

var (
	htmlComment = pattern.Lazy(`(?s)<!--.*?-->`)
	codeSpan    = pattern.Lazy("`[^`\n]*`")
	mention     = pattern.Lazy(`(?:^|[^A-Za-z0-9_/.@-])@([A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?(?:/[A-Za-z0-9_.-]+)?)`)
	closing     = pattern.Lazy(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?[ \t]+#(\d{1,9})\b`)
)

// Visible returns a text without HTML comments and space around it.
func Visible(body string) string {
	return strings.TrimSpace(htmlComment.ReplaceAllString(body, ""))
}

// prose returns what GitHub looks for mentions and keywords in: no code, no
// HTML comments.
func prose(body string) string {
	body = htmlComment.ReplaceAllString(body, " ")
	var out strings.Builder
	var f fence
	for line := range strings.Lines(body) {
		if !f.step(line) {
			out.WriteString(codeSpan.ReplaceAllString(line, " "))
		}
	}
	return out.String()
}

// Mentions returns the accounts and teams that a text notifies.
func Mentions(body string) []string {
	return lists.Map(mention.FindAllStringSubmatch(prose(body), -1), func(m []string) string { return m[1] })
}

// Closes returns the issues of the same repository that a pull request with this
// text closes when it is merged.
func Closes(body string) []int {
	var out []int
	for _, m := range closing.FindAllStringSubmatch(prose(body), -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			out = append(out, n)
		}
	}
	return out
}
