package github

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/platform"
)

// payload is what a webhook brings, and what a sweep finds in its place. The library's
// types for events leave out which App wrote something, and a time that is none ends
// their decoding; a new field or one of another type must not cost an event.
type payload struct {
	Action       string                    `json:"action"`
	Issue        *issue                    `json:"issue,omitempty"`
	Comment      *comment                  `json:"comment,omitempty"`
	Pull         *github.PullRequest       `json:"pull_request,omitempty"`
	Review       *github.PullRequestReview `json:"review,omitempty"`
	Repository   *github.Repository        `json:"repository,omitempty"`
	Installation *github.Installation      `json:"installation,omitempty"`
	Sender       *github.User              `json:"sender,omitempty"`
	Changes      *changes                  `json:"changes,omitempty"`
	Removed      []*github.Repository      `json:"repositories_removed,omitempty"`
}

// issue is the library's with the App that wrote it, which the library leaves out.
type issue struct {
	github.Issue
	Via *app `json:"performed_via_github_app,omitempty"`
}

// changes are the library's with the issue that one was transferred from, which the
// library leaves out.
type changes struct {
	github.EditChange
	OldIssue *struct{} `json:"old_issue,omitempty"`
}

// comment is one on an issue or on lines of a diff: the library has a type for each,
// and both leave out the App that wrote it.
type comment struct {
	github.PullRequestComment
	IssueURL string `json:"issue_url,omitempty"`
	Via      *app   `json:"performed_via_github_app,omitempty"`
}

// app is an App with its client id, which the library leaves out.
type app struct {
	ID       int64  `json:"id"`
	ClientID string `json:"client_id"`
}

// asComments makes comments of those on an issue.
func asComments(all []*github.IssueComment, resp *github.Response, err error) ([]*comment, *github.Response, error) {
	out := make([]*comment, 0, len(all))
	for _, c := range slices.DeleteFunc(all, func(c *github.IssueComment) bool { return c == nil }) {
		out = append(out, &comment{IssueURL: c.GetIssueURL(), PullRequestComment: github.PullRequestComment{
			ID: c.ID, NodeID: c.NodeID, Body: c.Body, User: c.User, HTMLURL: c.HTMLURL, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, AuthorAssociation: c.AuthorAssociation,
		}})
	}
	return out, resp, err
}

// asLines makes comments of those on lines of a diff.
func asLines(all []*github.PullRequestComment, resp *github.Response, err error) ([]*comment, *github.Response, error) {
	out := make([]*comment, 0, len(all))
	for _, c := range slices.DeleteFunc(all, func(c *github.PullRequestComment) bool { return c == nil }) {
		out = append(out, &comment{PullRequestComment: *c})
	}
	return out, resp, err
}

// member reports whether the author of something is shown as one of those who may
// have the right to write.
func member(association string) bool {
	switch association {
	case "OWNER", "MEMBER", "COLLABORATOR":
		return true
	}
	return false
}

// lenient is platform.Lenient that also overlooks times that are none.
func lenient(body []byte, out any) error {
	err := platform.Lenient(body, out)
	if _, badTime := errors.AsType[*time.ParseError](err); badTime {
		// The library's type for times ends the decoding.
		if body, err = withoutBadTimes(body); err == nil {
			err = platform.Lenient(body, out)
		}
	}
	return err
}

// withoutBadTimes returns a JSON text without the fields that should be times, by
// their names, and are none.
func withoutBadTimes(body []byte) ([]byte, error) {
	var all any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	dropBadTimes(all)
	return json.Marshal(all)
}

func dropBadTimes(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			if text, _ := field.(string); strings.HasSuffix(name, "_at") {
				if _, err := time.Parse(time.RFC3339, text); err != nil {
					delete(v, name)
				}
				continue
			}
			dropBadTimes(field)
		}
	case []any:
		for _, e := range v {
			dropBadTimes(e)
		}
	}
}
