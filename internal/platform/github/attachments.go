package github

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/google/go-github/v62/github"

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
	picture   = pattern.Lazy(`<img [^>]*?src="([^"]+)"`)
)

// attachments returns the files that were dropped into a text: those that GitHub
// itself keeps, and nothing of other hosts.
func (gh *site) attachments(repo, body string) (list []messages.Attachment) {
	seen := map[string]bool{}
	body = hidden.Regexp().ReplaceAllString(platform.Cut(body, 4*maxText), "")
	for _, found := range addresses.Regexp().FindAllString(body, -1) {
		u, err := url.Parse(strings.TrimRight(found, ".,;:!?"))
		if err != nil || !gh.keepsFiles(repo, u) || seen[u.Path] || len(list) == maxAttachments {
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

// keepsFiles reports whether an address is one of GitHub's own for files of comments in a repository.
func (gh *site) keepsFiles(repo string, u *url.URL) bool {
	switch {
	case u.User != nil:
		return false
	case gh.isGitHub(u):
		return folderOf(repo, u) != ""
	case u.Scheme == "https" && gh.onGitHubCom():
		return u.Host == "user-images.githubusercontent.com" || u.Host == "private-user-images.githubusercontent.com"
	}
	return false
}

// folderOf returns in which of GitHub's folders for files of comments an address is: assets,
// where pictures are, files, or none. Until 2023 each repository had its own. A path that leads
// elsewhere, also to those of another repository, would be read with the bot's rights.
func folderOf(repo string, u *url.URL) string {
	rest, found := strings.CutPrefix(u.Path, "/user-attachments/")
	if own := "/" + repo + "/"; !found && len(u.Path) > len(own) && strings.EqualFold(u.Path[:len(own)], own) {
		rest, found = u.Path[len(own):], true
	}
	folder, _, inside := strings.Cut(rest, "/")
	if !found || !inside || path.Clean(u.Path) != u.Path || folder != "assets" && folder != "files" {
		return ""
	}
	return folder
}

// isGitHub reports whether an address is of the adapter's GitHub, which gets its
// credentials anyway.
func (gh *site) isGitHub(u *url.URL) bool {
	return u.Scheme == gh.web.Scheme && u.Host == gh.web.Host || u.Scheme == gh.base.Scheme && u.Host == gh.base.Host
}

func (gh *site) onGitHubCom() bool { return gh.web.Host == "github.com" }

// mayForward reports whether a download may go on at an address: where GitHub keeps the
// bytes, and never with the token.
func (gh *site) mayForward(u *url.URL) bool {
	if gh.isGitHub(u) {
		return true
	}
	bucket, s3 := strings.CutSuffix(u.Host, ".s3.amazonaws.com")
	return u.Scheme == "https" && gh.onGitHubCom() &&
		(strings.HasSuffix(u.Host, ".githubusercontent.com") || s3 && strings.HasPrefix(bucket, "github-production-"))
}

var errForeign = errors.New("the file is not on GitHub's servers")

// files reads what was dropped into a comment.
type files struct {
	client *client
	site   *site
}

// Fetch implements platform.Fetcher. The token goes to GitHub itself and to nobody that
// it redirects to.
func (fs *files) Fetch(ctx context.Context, att messages.Attachment) (io.ReadCloser, error) {
	repo, address, _ := strings.Cut(att.Source, " ")
	u, err := url.Parse(address)
	if err != nil || !fs.site.keepsFiles(repo, u) {
		return nil, fault.Wrap(errForeign, fault.Unsupported, "downloading a file")
	}
	who, err := fs.client.callerFor(ctx, repo)
	if err != nil {
		return nil, err
	}
	token, _, err := fs.client.credential(ctx, who)
	if err != nil {
		return nil, err
	}
	client := *fs.client.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for range maxForwards + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
		if err != nil {
			return nil, fault.Wrap(fs.client.scrub.Error(err), fault.Invalid, "downloading a file")
		}
		req.Header.Set("User-Agent", "remote-agent")
		if fs.site.isGitHub(u) && fs.site.keepsFiles(repo, u) {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, (&exchange.Call{Idempotent: true, Scrub: fs.client.scrub}).Failure(ctx, "downloading a file", err)
		}
		if resp.StatusCode == http.StatusOK {
			return struct {
				io.Reader
				io.Closer
			}{io.LimitReader(resp.Body, maxDownload+1), resp.Body}, nil
		}
		next, err := fs.onward(ctx, repo, u, resp)
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if !fs.site.mayForward(next) {
			return nil, fault.Wrap(errForeign, fault.Unsupported, "downloading a file")
		}
		u = next
	}
	return nil, fault.New(fault.Unsupported, "GitHub redirects endlessly for this file.")
}

// onward returns where a download goes on that u did not answer with the file. A picture of a
// private repository is there for browsers and some tokens only, which those of an App are not
// among. For the others GitHub has an address that is good for minutes, in the page that it makes
// of a text with the picture.
func (fs *files) onward(ctx context.Context, repo string, u *url.URL, resp *http.Response) (*url.URL, error) {
	if resp.StatusCode != http.StatusNotFound || !fs.site.isGitHub(u) || folderOf(repo, u) != "assets" {
		next, err := resp.Location()
		if resp.StatusCode < http.StatusMultipleChoices || resp.StatusCode >= http.StatusBadRequest || err != nil {
			return nil, downloadRefused(resp.StatusCode)
		}
		return next, nil
	}
	page, _, err := inRepo(ctx, fs.client, repo, op{name: "asking where a picture is"}, func(g api) (string, *github.Response, error) {
		return g.Markdown.Render(g.ctx, "![]("+u.String()+")", &github.MarkdownOptions{Mode: "gfm", Context: repo})
	})
	if err != nil {
		return nil, err
	}
	if m := picture.FindStringSubmatch(page); m != nil {
		if next, err := url.Parse(html.UnescapeString(m[1])); err == nil && next.Path != u.Path {
			return next, nil
		}
	}
	return nil, downloadRefused(resp.StatusCode)
}

func downloadRefused(status int) error {
	f := &fault.Error{Kind: fault.NotFound, Public: "GitHub does not let the bot download this file.", Err: fmt.Errorf("downloading a file: status %d", status)}
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		f.Kind, f.Public = fault.Unavailable, "GitHub cannot provide the file right now."
	}
	return f
}
