// Package gittest serves git repositories over HTTP on the loopback interface,
// for tests that clone, fetch and push.
//
// Repositories are written with git fast-import, so that they can hold what no
// honest checkout makes: links, submodules, thousands of files.
package gittest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/lists"
)

// The modes of entries in a tree.
const (
	Regular    = "100644"
	Executable = "100755"
	Symlink    = "120000"
	Submodule  = "160000" // Data is the object name
)

// Entry is a file of a commit. Empty Mode means Regular.
type Entry struct{ Path, Mode, Data string }

// Request is what the server saw of one request.
type Request struct{ Method, Path, Query, Authorization string }

// Server serves the repositories below a temporary directory. It ends with the
// test. It is safe for concurrent use.
type Server struct {
	t    testing.TB
	http *httptest.Server
	root string
	git  string

	mu        sync.Mutex // guards what follows
	user      string
	password  string
	redirects map[string]string
	requests  []Request
	hold      chan struct{}
	authorize Authorizer
	drops     []Drop
	watch     func(Request)
	limited   bool
}

// Authorizer decides about a request; repo is owner/repo. Without a user and a
// password they are empty.
type Authorizer func(user, password, repo string, push bool) bool

// Drop is a connection that breaks during a push.
type Drop int

// When the connection breaks.
const (
	BeforePush Drop = iota + 1 // the repository stays as it was
	AfterPush                  // the push is taken, but nobody is told
)

// NewServer starts a server. The test is skipped if git is not installed.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{t: tb, root: tb.TempDir(), git: Git(tb), redirects: map[string]string{}}
	s.http = httptest.NewServer(s)
	tb.Cleanup(s.http.Close)
	return s
}

// Git returns the path of git, or skips the test if it is not installed.
func Git(tb testing.TB) string {
	tb.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		tb.Skip("git is not installed")
	}
	return git
}

// Host returns host:port, as GIT_ALLOWED_HOSTS takes it.
func (s *Server) Host() string { return strings.TrimPrefix(s.http.URL, "http://") }

// URL returns the address of a repository, without .git.
func (s *Server) URL(name string) string { return s.http.URL + "/" + name }

// Dir returns the bare repository on disk.
func (s *Server) Dir(name string) string {
	return filepath.Join(s.root, filepath.FromSlash(name)+".git")
}

// Repo makes a repository, such as "acme/web", with one commit on the branch
// main, and returns its address. Without files it stays empty.
func (s *Server) Repo(name string, files map[string]string) string {
	s.t.Helper()
	s.Run("", nil, "init", "-q", "--bare", "--template=", "-b", "main", s.Dir(name))
	s.allowPushes(name)
	if len(files) > 0 {
		s.write(name, "refs/heads/main", "", regular(files))
	}
	return s.URL(name)
}

// allowPushes writes what "git config" would take a process for.
func (s *Server) allowPushes(name string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.Dir(name), "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = f.WriteString("[http]\n\treceivepack = true\n")
	if err := errors.Join(err, f.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// Commit adds a commit with these files changed to main and returns its object
// name. Files that are not named stay as they are.
func (s *Server) Commit(name string, files map[string]string) string {
	s.t.Helper()
	return s.CommitTo(name, "main", regular(files))
}

func regular(files map[string]string) []Entry {
	return lists.Map(slices.Sorted(maps.Keys(files)), func(path string) Entry { return Entry{Path: path, Data: files[path]} })
}

// CommitTo adds a commit to a branch, which is made if there is none, and returns
// its object name.
func (s *Server) CommitTo(name, branch string, entries []Entry) string {
	s.t.Helper()
	ref := "refs/heads/" + branch
	return s.write(name, ref, s.Ref(name, ref), entries)
}

// write adds a commit to a ref that has this one, or none, and returns its object
// name.
func (s *Server) write(name, ref, parent string, entries []Entry) string {
	s.t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "commit %s\nmark :1\ncommitter Tester <tester@example.com> 1700000000 +0000\ndata 6\nchange\n", ref)
	if parent != "" {
		fmt.Fprintf(&b, "from %s\n", parent)
	}
	for _, e := range entries {
		switch mode := e.Mode; mode {
		case Submodule:
			fmt.Fprintf(&b, "M %s %s %s\n", mode, e.Data, e.Path)
		case "":
			mode = Regular
			fallthrough
		default:
			fmt.Fprintf(&b, "M %s inline %s\ndata %d\n%s\n", mode, e.Path, len(e.Data), e.Data)
		}
	}
	b.WriteString("get-mark :1\n")
	return strings.TrimSpace(s.Run(name, &b, "fast-import", "--quiet"))
}

// Run runs git in a repository of the server, or nowhere, and returns its output.
func (s *Server) Run(name string, stdin io.Reader, args ...string) string {
	s.t.Helper()
	var stderr bytes.Buffer
	cmd := s.command(name, args...)
	cmd.Stdin, cmd.Stderr = stdin, &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(s.git, args...)
	cmd.Dir = s.root
	cmd.Env = []string{
		"PATH=" + filepath.Dir(s.git) + ":/usr/bin:/bin", "HOME=" + s.root,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
	}
	if name != "" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+s.Dir(name))
	}
	return cmd
}

// RequireAuth makes the server demand this user and password from the next
// request on. Empty ones end it.
func (s *Server) RequireAuth(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.password = user, password
}

// Authorize makes the server ask about each request, from the next one on: who
// is refused gets 401 without a password, and 403 with one. Nil ends it.
func (s *Server) Authorize(a Authorizer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.authorize = a
}

// LimitPushes makes the server refuse pushes as GitHub does those of whoever asks too
// often, or ends that.
func (s *Server) LimitPushes(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limited = on
}

// DropPushes breaks the connections of the next pushes.
func (s *Server) DropPushes(drops ...Drop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops = append(s.drops, drops...)
}

// RejectPushes makes a repository refuse every push with a reason, by a hook, as
// protected branches do. An empty reason ends it.
func (s *Server) RejectPushes(name, reason string) {
	s.t.Helper()
	hook := filepath.Join(s.Dir(name), "hooks", "update")
	if reason == "" {
		if err := os.Remove(hook); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		s.t.Fatal(err)
	}
	script := "#!/bin/sh\necho '" + strings.ReplaceAll(reason, "'", "") + "' >&2\nexit 1\n"
	if err := os.WriteFile(hook, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		s.t.Fatal(err)
	}
}

// Ref returns the object name of a ref, or nothing.
func (s *Server) Ref(name, ref string) string {
	out, err := s.command(name, "rev-parse", "--verify", "--quiet", "--end-of-options", ref).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Redirect makes the server answer requests for a repository with a redirect to
// the same path below target, which is the address of a repository.
func (s *Server) Redirect(name, target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redirects[name] = strings.TrimSuffix(target, ".git") + ".git"
}

// Hold makes the server let requests wait until the returned function is called
// or their client goes away.
func (s *Server) Hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hold := make(chan struct{})
	s.hold = hold
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.hold == hold {
			s.hold = nil
		}
		close(hold)
	})
}

// Watch has fn called with every request, before it is answered; nil: no more.
func (s *Server) Watch(fn func(Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = fn
}

// Requests returns what was asked for so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Close stops the server before the test ends, as if it were out of reach.
func (s *Server) Close() { s.http.Close() }

// ServeHTTP speaks git's smart protocol.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	asked := Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Authorization")}
	s.requests = append(s.requests, asked)
	user, password, hold, authorize, watch, limited := s.user, s.password, s.hold, s.authorize, s.watch, s.limited
	s.mu.Unlock()
	if watch != nil {
		watch(asked)
	}
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	name, rest := split(r.URL.Path)
	if limited && isPush(r, rest) {
		http.Error(w, "You have exceeded a secondary rate limit.", http.StatusForbidden)
		return
	}
	if u, p, _ := r.BasicAuth(); user != "" && (u != user || p != password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if authorize != nil && !allowed(w, r, authorize, name, rest) {
		return
	}
	s.mu.Lock()
	target := s.redirects[name]
	s.mu.Unlock()
	if target != "" {
		u, err := url.Parse(target + "/" + rest)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		u.RawQuery = r.URL.RawQuery
		http.Redirect(w, r, u.String(), http.StatusMovedPermanently)
		return
	}
	if info, err := os.Stat(s.Dir(name)); err != nil || !info.IsDir() {
		http.NotFound(w, r)
		return
	}
	s.serve(w, r, name, rest)
}

// allowed asks whether a request may be served and answers it if not.
func allowed(w http.ResponseWriter, r *http.Request, authorize Authorizer, name, rest string) bool {
	user, password, given := r.BasicAuth()
	switch {
	case authorize(user, password, name, isPush(r, rest)):
		return true
	case given:
		http.Error(w, "you may not", http.StatusForbidden)
	default:
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}
	return false
}

const receivePack = "git-receive-pack"

func isPush(r *http.Request, rest string) bool {
	return rest == receivePack || r.URL.Query().Get("service") == receivePack
}

// drop returns what happens to the connection of a push.
func (s *Server) drop(rest string) Drop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rest != receivePack || len(s.drops) == 0 {
		return 0
	}
	next := s.drops[0]
	s.drops = s.drops[1:]
	return next
}

// split cuts "/owner/repo.git/info/refs" into "owner/repo" and "info/refs".
func split(p string) (name, rest string) {
	parts := strings.SplitN(strings.TrimPrefix(p, "/"), "/", 3)
	if len(parts) < 3 || slices.Contains(parts[:2], "..") {
		return "?", ""
	}
	return parts[0] + "/" + strings.TrimSuffix(parts[1], ".git"), parts[2]
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, name, rest string) {
	service := r.URL.Query().Get("service")
	if rest != "info/refs" {
		service = rest
	}
	if service != "git-upload-pack" && service != receivePack {
		http.Error(w, "smart protocol only", http.StatusForbidden)
		return
	}
	dropped := s.drop(rest)
	if dropped == BeforePush {
		panic(http.ErrAbortHandler)
	}
	args := []string{strings.TrimPrefix(service, "git-"), "--stateless-rpc"}
	kind := "result"
	if rest == "info/refs" {
		args, kind = append(args, "--advertise-refs"), "advertisement"
	}
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	w.Header().Set("Content-Type", fmt.Sprintf("application/x-%s-%s", service, kind))
	w.Header().Set("Cache-Control", "no-cache")
	protocol := r.Header.Get("Git-Protocol")
	if kind == "advertisement" && (!strings.Contains(protocol, "version=2") || service != "git-upload-pack") {
		line := "# service=" + service + "\n"
		_, _ = fmt.Fprintf(w, "%04x%s0000", len(line)+4, line) // git notices a broken connection
	}
	cmd := s.command(name, append(args, s.Dir(name))...)
	cmd.Env = append(cmd.Env, "GIT_PROTOCOL="+protocol)
	cmd.Stdout = w
	if kind == "result" {
		cmd.Stdin = body
	}
	if dropped == AfterPush {
		cmd.Stdout = io.Discard
	}
	_ = cmd.Run() // git tells the other side what is wrong
	if dropped == AfterPush {
		panic(http.ErrAbortHandler)
	}
}
