package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

const (
	maxAttachments = 100
	maxDownload    = 20 << 20
	maxForwards    = 3 // redirects of a download
)

// addresses finds what may be a file that was dropped into a comment; hidden is what no
// reader of the page sees.
var (
	addresses = pattern.Lazy(`https?://[^\s<>()"'\x60\]]+`)
	hidden    = pattern.Lazy(`(?s)<!--.*?(?:-->|$)`)
)

// attachments returns the files that were dropped into a text: those that GitHub
// itself keeps, and nothing of other hosts.
func (a *Adapter) attachments(repo, body string) (list []messages.Attachment) {
	seen := map[string]bool{}
	body = hidden.Regexp().ReplaceAllString(platform.Cut(body, 4*maxText), "")
	for _, found := range addresses.Regexp().FindAllString(body, -1) {
		u, err := url.Parse(strings.TrimRight(found, ".,;:!?"))
		if err != nil || !a.keepsFiles(u) || seen[u.Path] || len(list) == maxAttachments {
			continue
		}
		seen[u.Path] = true
		name := path.Base(u.Path)
		if path.Ext(name) == "" { // the usual form of pictures says nothing of their kind
			name = fmt.Sprintf("image-%d.png", len(list)+1)
		}
		list = append(list, messages.Attachment{Name: platform.Cut(name, 200), Source: repo + " " + u.String()})
	}
	return list
}

// keepsFiles reports whether an address is one of GitHub's own for files of comments.
func (a *Adapter) keepsFiles(u *url.URL) bool {
	switch {
	case u.User != nil:
		return false
	case a.isGitHub(u):
		return strings.HasPrefix(u.Path, "/user-attachments/assets/") || strings.HasPrefix(u.Path, "/user-attachments/files/")
	case u.Scheme == "https" && a.onGitHubCom():
		return u.Host == "user-images.githubusercontent.com" || u.Host == "private-user-images.githubusercontent.com"
	}
	return false
}

// isGitHub reports whether an address is of the adapter's GitHub, which gets its
// credentials anyway.
func (a *Adapter) isGitHub(u *url.URL) bool {
	return u.Scheme == a.web.Scheme && u.Host == a.web.Host || u.Scheme == a.base.Scheme && u.Host == a.base.Host
}

func (a *Adapter) onGitHubCom() bool { return a.web.Host == "github.com" }

// mayForward reports whether a download may go on at an address: where GitHub keeps the
// bytes, and never with the token.
func (a *Adapter) mayForward(u *url.URL) bool {
	if a.isGitHub(u) {
		return true
	}
	bucket, s3 := strings.CutSuffix(u.Host, ".s3.amazonaws.com")
	return u.Scheme == "https" && a.onGitHubCom() &&
		(strings.HasSuffix(u.Host, ".githubusercontent.com") || s3 && strings.HasPrefix(bucket, "github-production-"))
}

var errForeign = errors.New("the file is not on GitHub's servers")

// Fetch implements platform.Fetcher. The token goes to GitHub itself and to nobody that
// it redirects to.
func (a *Adapter) Fetch(ctx context.Context, att messages.Attachment) (io.ReadCloser, error) {
	repo, address, _ := strings.Cut(att.Source, " ")
	u, err := url.Parse(address)
	if err != nil || !a.keepsFiles(u) {
		return nil, fault.Wrap(errForeign, fault.Unsupported, "downloading a file")
	}
	who, err := a.callerFor(ctx, repo)
	if err != nil {
		return nil, err
	}
	token, _, err := a.credential(ctx, who)
	if err != nil {
		return nil, err
	}
	client := *a.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for range maxForwards + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
		if err != nil {
			return nil, fault.Wrap(a.scrub.Error(err), fault.Invalid, "downloading a file")
		}
		req.Header.Set("User-Agent", "remote-agent")
		if a.isGitHub(u) && strings.HasPrefix(u.Path, "/user-attachments/") {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, (&exchange.Call{Idempotent: true, Scrub: a.scrub}).Failure(ctx, "downloading a file", err)
		}
		if resp.StatusCode == http.StatusOK {
			return struct {
				io.Reader
				io.Closer
			}{io.LimitReader(resp.Body, maxDownload+1), resp.Body}, nil
		}
		next, err := resp.Location()
		_ = resp.Body.Close()
		switch {
		case resp.StatusCode < http.StatusMultipleChoices || resp.StatusCode >= http.StatusBadRequest || err != nil:
			return nil, downloadRefused(resp.StatusCode)
		case !a.mayForward(next):
			return nil, fault.Wrap(errForeign, fault.Unsupported, "downloading a file")
		}
		u = next
	}
	return nil, fault.New(fault.Unsupported, "GitHub redirects endlessly for this file.")
}

func downloadRefused(status int) error {
	f := &fault.Error{Kind: fault.NotFound, Public: "GitHub does not let the bot download this file.", Err: fmt.Errorf("downloading a file: status %d", status)}
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		f.Kind, f.Public = fault.Unavailable, "GitHub cannot provide the file right now."
	}
	return f
}
