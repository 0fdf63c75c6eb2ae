package acp

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// stderrTail is how much of an agent's stderr is kept, in bytes.
const stderrTail = 4 << 10

// StartSpec says which program to start.
type StartSpec struct {
	Command []string // the program as an absolute path, and its arguments
	Env     []string // the whole environment; nothing is inherited
	Dir     string   // the working directory, which the agent may change

	// Tree and GitData are those of assistant.Turn. Without a Tree the agent has
	// Dir alone.
	Tree, GitData string

	// ReadOnly is set if the agent must not change Tree.
	ReadOnly bool

	// Serve takes the connections of a listener at an address that the process, and
	// what it starts, can reach, until that is closed; see Process.Address. It is nil
	// if there is nothing for the process.
	Serve func(net.Listener)
}

// Process is a running program in a process group of its own.
type Process interface {
	Stdin() io.WriteCloser // Close unblocks a Write
	Stdout() io.ReadCloser // Close unblocks a Read

	// Address is where the process reaches what StartSpec.Serve serves, as host:port.
	// It is empty if nothing is served.
	Address() string

	// StderrTail returns the last few kilobytes of what it wrote to stderr. It
	// is for the log only.
	StderrTail() string

	// Wait waits until the program itself has ended, ends what is left of its
	// group, and returns nil for exit status 0. Of any other status the error
	// tells by a method ExitCode() int, as *exec.ExitError does. It is called
	// once. It does not wait for Stdout to be read.
	Wait() error

	// Terminate asks the whole group to end and Kill ends it. They may be
	// called at any time from any goroutine, and after Wait they do nothing.
	Terminate()
	Kill()
}

// Tail keeps the end of what is written to it, as StderrTail wants it. It is safe for
// concurrent use.
type Tail struct {
	mu   sync.Mutex
	kept []byte
	full bool
}

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if len(p) > stderrTail {
		p, t.full = p[len(p)-stderrTail:], true
	}
	if over := len(t.kept) + len(p) - stderrTail; over > 0 {
		t.full = true
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

// String returns what was kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.ToValidUTF8(string(t.kept), "\uFFFD")
	if t.full {
		// The line that was cut may begin with half a credential, which nobody
		// would recognize.
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// find returns the absolute path of a program as a child with the environment
// env would find it, or false. The program's own environment is not looked at.
func find(name string, env []string) (string, bool) {
	if strings.ContainsRune(name, filepath.Separator) {
		path, err := filepath.Abs(name)
		return path, err == nil && executable(path)
	}
	for _, dir := range filepath.SplitList(lookup(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue // a relative entry would mean the worktree
		}
		if path := filepath.Join(dir, name); executable(path) {
			return path, true
		}
	}
	return "", false
}

// Installed reports whether the program of an agent is there, in the PATH of
// c.Env.
func Installed(c Config) bool {
	_, ok := find(c.Command[0], c.Env)
	return ok
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// lookup returns the last value of a variable.
func lookup(env []string, name string) string {
	value := ""
	for _, entry := range env {
		if k, v, ok := strings.Cut(entry, "="); ok && k == name {
			value = v
		}
	}
	return value
}
