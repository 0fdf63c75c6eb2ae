package github

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// The wire types hold what is read of GitHub's payloads and answers and no more;
// the same objects come in both. They are decoded with lenient: a field of
// another type than expected is empty, and what is essential is checked after
// that.

type user struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"` // User, Bot, Organization
}

type app struct {
	ID          int64             `json:"id"`
	ClientID    string            `json:"client_id"`
	Slug        string            `json:"slug"`
	Name        string            `json:"name"`
	Permissions map[string]string `json:"permissions"`
	Events      []string          `json:"events"`
}

type repository struct {
	ID            int64  `json:"id"`
	FullName      string `json:"full_name"`
	CloneURL      string `json:"clone_url"`
	DefaultBranch string `json:"default_branch"`
	Archived      bool   `json:"archived"`
}

type label struct {
	Name string `json:"name"`
}

type issue struct {
	association
	ID       int64     `json:"id"`
	Number   int       `json:"number"`
	Title    string    `json:"title"`
	Body     string    `json:"body"`
	State    string    `json:"state"`
	URL      string    `json:"html_url"`
	User     user      `json:"user"`
	Labels   []label   `json:"labels"`
	Comments int       `json:"comments"`
	Created  stamp     `json:"created_at"`
	Updated  stamp     `json:"updated_at"`
	Closed   stamp     `json:"closed_at"`
	ViaApp   *app      `json:"performed_via_github_app"`
	Pull     *struct{} `json:"pull_request"` // set if it is a pull request
}

type branch struct {
	Ref  string      `json:"ref"`
	SHA  string      `json:"sha"`
	Repo *repository `json:"repo"` // none if it was deleted
}

type pull struct {
	association
	Number    int     `json:"number"`
	Title     string  `json:"title"`
	Body      string  `json:"body"`
	State     string  `json:"state"`
	Draft     bool    `json:"draft"`
	Merged    bool    `json:"merged"`
	URL       string  `json:"html_url"`
	User      user    `json:"user"`
	Labels    []label `json:"labels"`
	Head      branch  `json:"head"`
	Base      branch  `json:"base"`
	Created   stamp   `json:"created_at"`
	Closed    stamp   `json:"closed_at"`
	Additions int     `json:"additions"`
	Deletions int     `json:"deletions"`
	Files     int     `json:"changed_files"`
	Commits   int     `json:"commits"`
}

// comment is one on an issue or pull request, or on lines of its diff.
// association is how GitHub shows the author of something.
type association struct {
	Association string `json:"author_association"`
}

// member reports whether the author is shown as one of those who may have the right
// to write.
func (a association) member() bool {
	switch a.Association {
	case "OWNER", "MEMBER", "COLLABORATOR":
		return true
	}
	return false
}

type comment struct {
	association
	ID      int64  `json:"id"`
	Body    string `json:"body"`
	User    user   `json:"user"`
	URL     string `json:"html_url"`
	Issue   string `json:"issue_url"`
	PullURL string `json:"pull_request_url"`
	Created stamp  `json:"created_at"`
	Updated stamp  `json:"updated_at"`
	ViaApp  *app   `json:"performed_via_github_app"`

	// On lines of a diff:
	Path    string `json:"path"`
	Line    int    `json:"line"`
	OldLine int    `json:"original_line"`
	Hunk    string `json:"diff_hunk"`
	ReplyTo int64  `json:"in_reply_to_id"`
}

type review struct {
	association
	ID        int64  `json:"id"`
	Body      string `json:"body"`
	State     string `json:"state"`
	User      user   `json:"user"`
	URL       string `json:"html_url"`
	Submitted stamp  `json:"submitted_at"`
	Updated   stamp  `json:"updated_at"`
}

type changedFile struct {
	Name      string `json:"filename"`
	Status    string `json:"status"`
	Previous  string `json:"previous_filename"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Patch     string `json:"patch"`
}

type reaction struct {
	ID      int64  `json:"id"`
	Content string `json:"content"`
	User    user   `json:"user"`
}

type installation struct {
	ID      int64 `json:"id"`
	Account user  `json:"account"`
}

// payload is what a webhook brings.
type payload struct {
	Action       string       `json:"action"`
	Issue        *issue       `json:"issue"`
	Comment      *comment     `json:"comment"`
	Pull         *pull        `json:"pull_request"`
	Review       *review      `json:"review"`
	Repository   repository   `json:"repository"`
	Installation installation `json:"installation"`
	Sender       user         `json:"sender"`
	Changes      struct {
		Body *struct {
			From string `json:"from"`
		} `json:"body"`
	} `json:"changes"`
	Removed []repository `json:"repositories_removed"`
}

// list decodes a JSON array whose elements may be malformed: those are left out.
func list[T any](raw []byte) []T {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return nil
	}
	out := make([]T, 0, len(elements))
	for _, e := range elements {
		var v T
		if lenient(e, &v) == nil {
			out = append(out, v)
		}
	}
	return out
}

// lenient decodes a JSON object and overlooks fields of another type than
// expected.
func lenient(body []byte, out any) error {
	err := json.Unmarshal(body, out)
	if err == nil {
		return nil
	}
	if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); wrongType {
		if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
			return nil
		}
	}
	return err
}

// stamp is a time that is zero if it cannot be read.
type stamp struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (s *stamp) UnmarshalJSON(raw []byte) error {
	if s.Time.UnmarshalJSON(raw) != nil {
		s.Time = time.Time{}
	}
	return nil
}

func jsonValid(raw []byte) bool { return json.Valid(raw) }
