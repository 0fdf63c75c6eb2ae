package github

import (
	"cmp"
	"strconv"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

var (
	ownerForm  = pattern.Lazy(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?$`)
	nameForm   = pattern.Lazy(`^[A-Za-z0-9._-]{1,100}$`)
	loginForm  = pattern.Lazy(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?$`)
	shaForm    = pattern.Lazy(`^[0-9a-f]{40}(?:[0-9a-f]{24})?$`)
	branchForm = pattern.Lazy(`^[^\x00-\x20\x7f~^:?*\[\\]{1,240}$`)
)

// place is an issue or pull request.
type place struct {
	repo   string // owner/repo in lower case
	number int
}

// repoName returns the name of a repository as it stands in keys: in lower case,
// because GitHub does not tell upper case from it. It reports false for what is
// none.
func repoName(full string) (string, bool) {
	owner, name, ok := strings.Cut(full, "/")
	ok = ok && ownerForm.MatchString(owner) && nameForm.MatchString(name) && name != "." && name != ".."
	return strings.ToLower(full), ok
}

// key returns the conversation. It is made of the repository's name of the day:
// an issue of a repository that was renamed begins a new conversation under the
// new name, and what still goes out under the old one follows GitHub's redirect.
func (p place) key() messages.ConversationKey {
	return messages.ConversationKey{Platform: Name, ID: p.repo + "#" + strconv.Itoa(p.number)}
}

func parseKey(key messages.ConversationKey) (place, error) {
	full, digits, _ := strings.Cut(key.ID, "#")
	repo, ok := repoName(full)
	number, err := strconv.ParseInt(digits, 10, 32)
	if key.Platform != Name || !ok || err != nil || number < 1 {
		return place{}, fault.Newf(fault.Invalid, "%q is not an issue of GitHub like owner/repo#42.", platform.Cut(key.String(), 100))
	}
	return place{repo: repo, number: int(number)}, nil
}

// post is something that was written in a conversation. Ids of comments and
// reviews are GitHub's, unique in all of it.
type post struct {
	kind postKind
	id   int64
	root int64 // of a review comment that answers another: the first of its thread
}

type postKind string

const (
	postBody    postKind = "is" // the text of the issue or pull request; id is its number
	postComment postKind = "ic"
	postLine    postKind = "rc" // a review's comment on lines
	postReview  postKind = "rv" // what a review says as a whole
)

// message returns the id as it is stored: "ic:12", or "rc:12/7" for an answer in
// the thread that comment 7 began. Only a thread's first comment can be answered.
func (p post) message() messages.MessageID {
	id := string(p.kind) + ":" + strconv.FormatInt(p.id, 10)
	if p.root != 0 && p.root != p.id {
		id += "/" + strconv.FormatInt(p.root, 10)
	}
	return messages.MessageID(id)
}

// thread returns the comment that begins the thread of a review comment.
func (p post) thread() int64 {
	return cmp.Or(p.root, p.id)
}

func parsePost(id messages.MessageID) (post, bool) {
	kind, rest, _ := strings.Cut(string(id), ":")
	digits, root, threaded := strings.Cut(rest, "/")
	p := post{kind: postKind(kind)}
	var err error
	if p.id, err = strconv.ParseInt(digits, 10, 64); err != nil || p.id < 1 {
		return p, false
	}
	if threaded {
		if p.root, err = strconv.ParseInt(root, 10, 64); err != nil || p.root < 1 || p.kind != postLine {
			return p, false
		}
	}
	switch p.kind {
	case postBody, postComment, postLine, postReview:
		return p, true
	default:
		return p, false
	}
}

// parseRef returns where a post is and which it is.
func parseRef(ref messages.Ref) (place, post, error) {
	at, err := parseKey(ref.Conversation)
	if err != nil {
		return at, post{}, err
	}
	p, ok := parsePost(ref.Message)
	if !ok {
		return at, p, fault.Newf(fault.NotFound, "%q is not a comment on GitHub.", platform.Cut(string(ref.Message), 60))
	}
	return at, p, nil
}

// parseOwn is parseRef for what the bot may have posted.
func parseOwn(ref messages.Ref) (place, post, error) {
	at, p, err := parseRef(ref)
	if err == nil && p.kind != postComment && p.kind != postLine {
		err = fault.Newf(fault.NotFound, "%q is not a comment of the bot.", ref.Message)
	}
	return at, p, err
}

// isBranch reports whether a name from an event can be the name of a branch
// (contract C14, and git-check-ref-format).
func isBranch(name string) bool {
	if !branchForm.MatchString(name) || strings.ContainsAny(name[:1], "-/.") || strings.ContainsAny(name[len(name)-1:], "/.") {
		return false
	}
	for _, bad := range []string{"..", "@{", "//", "/.", ".lock/"} {
		if strings.Contains(name, bad) {
			return false
		}
	}
	return !strings.HasSuffix(name, ".lock") && name != "@"
}
