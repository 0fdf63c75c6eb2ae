package tour

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/cgi" //nolint:gosec // the header that it was known for is not passed on by this Go
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/emulator/github"
)

// repoName is the repository that Ann works on.
const repoName = "acme/greeter"

//go:embed repository
var repository embed.FS

//go:embed screenshot.png
var screenshot []byte

// hub is the emulated GitHub with one real repository, which git serves over HTTP.
type hub struct {
	*github.Server
	http *http.Server
	addr string
	root string // of the bare repositories
}

// openHub makes the repository in a folder and serves it on loopback.
func openHub(ctx context.Context, dir string, environ []string) (*hub, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("the demo needs git: install it and try again")
	}
	h := &hub{root: filepath.Join(dir, "git")}
	if err := h.fill(ctx, git, filepath.Join(dir, "source"), environ); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.addr = listener.Addr().String()
	h.Server = github.New(github.Options{WebURL: h.web(), Limits: github.NoLimits()})
	h.http = &http.Server{Handler: h.guard(&cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Dir: h.root,
		Env: []string{"GIT_PROJECT_ROOT=" + h.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bot", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull},
	}), ReadHeaderTimeout: time.Minute}
	go h.http.Serve(listener) //nolint:errcheck // it ends when it is closed
	if err := h.Start(); err != nil {
		h.close()
		return nil, err
	}
	h.AddRepo(github.Repo{Name: repoName})
	h.AttachGit(repoName, github.Git{CloneURL: h.cloneURL(), Dir: h.dir()})
	return h, nil
}

func (h *hub) web() string      { return "http://" + h.addr }
func (h *hub) cloneURL() string { return h.web() + "/" + repoName + ".git" }
func (h *hub) dir() string      { return filepath.Join(h.root, filepath.FromSlash(repoName)+".git") }

// fill commits the bundled files to a bare repository.
func (h *hub) fill(ctx context.Context, git, source string, environ []string) error {
	files, err := fs.Sub(repository, "repository")
	if err != nil {
		return err
	}
	if err := os.CopyFS(source, files); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q", "--template=", "-b", "main", source},
		{"-C", source, "add", "."},
		{"-C", source, "-c", "user.name=Gina", "-c", "user.email=gina@example.com", "commit", "-q", "-m", "A greeter"},
		{"clone", "-q", "--bare", "--template=", source, h.dir()},
		{"-C", h.dir(), "config", "http.receivepack", "true"},
	} {
		cmd := exec.CommandContext(ctx, git, args...) //nolint:gosec // our own words
		cmd.Env = append(slices.Clone(environ), "HOME="+source, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "LC_ALL=C")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// guard lets in who has a token of the emulated GitHub.
func (h *hub) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		push := strings.HasSuffix(r.URL.Path, "/git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack"
		if _, token, _ := r.BasicAuth(); !h.Allows(token, repoName, push) {
			w.Header().Set("WWW-Authenticate", `Basic realm="the demo"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *hub) close() {
	_ = h.http.Close() // the demo is over
	h.Close()
}

// pull returns the only pull request; ok is false if there is none.
func (h *hub) pull() (view github.IssueView, ok bool) {
	for number := range 20 {
		if view = h.Issue(repoName, number+1); view.Pull != nil {
			return view, true
		}
	}
	return view, false
}
