package sandbox

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
)

// DefaultGrace is how long a program may take to end after it was asked to.
const DefaultGrace = time.Second

// Spec is one program to run. Argv is required. All paths are absolute.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked up
	// in the program's own PATH; one with a slash is relative to Dir.
	Argv []string

	// Dir is the working directory; empty: the home. It lies in what is granted.
	Dir string

	// Writable are directories that the program may change and execute from;
	// ReadOnly are files and directories that it may read and execute. They exist.
	// The worktree of a repository needs the repository's own .git directory too.
	Writable []string
	ReadOnly []string

	// Sealed are files and directories in Writable ones that the program may read,
	// but neither change nor replace, such as the file .git of a worktree. They
	// exist and are no links. Where Level.View is false this has no effect.
	Sealed []string

	// Home is a directory to keep as HOME, which is writable; empty: a private one
	// that is removed when the program has ended.
	Home string

	// Network lets the program use the network of this process: TCP, and UDP for
	// names. The mode Strict refuses that.
	Network bool

	// Outlets are ports of the loopback interface of the program's own network
	// namespace, which this process serves: the only ways out of it. They need
	// Level.Network and go without Network.
	Outlets []Outlet

	// Ports, if any, are the only TCP ports that it may connect to then. It has an
	// effect from Landlock 4 on.
	Ports []uint16

	// Env are further variables, "NAME=value"; they win over all others.
	Env []string

	// Stdin is empty if it is nil. Stdout and Stderr are discarded if they are
	// nil; if both are the same writer, it is never written to by two at once.
	// See also Process.StdinPipe and its neighbors.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	Timeout time.Duration // zero: none besides the context's
	Grace   time.Duration // zero: DefaultGrace

	Limits Limits // what is zero is taken from the Config
}

// Outlet is a port of 127.0.0.1 as a program sees it. Serve takes its connections,
// and returns when the listener is closed, which is at the end of the program.
type Outlet struct {
	Port  uint16
	Serve func(net.Listener)
}

// checkNetwork refuses a Spec whose network cannot be confined as it is to be.
func (s Spec) checkNetwork(mode Mode, l Level) error {
	switch {
	case len(s.Outlets) > 0 && s.Network:
		return fault.New(fault.Invalid, "A program has either the network or outlets.")
	case len(s.Outlets) > maxOutlets:
		return fault.Newf(fault.Invalid, "A program has at most %d outlets.", maxOutlets)
	case len(s.Outlets) > 0 && !l.Network:
		return fault.New(fault.Unsupported, "There are no network namespaces here, so a program cannot have outlets.")
	case s.Network && mode == Strict:
		return fault.Newf(fault.Unsupported,
			"SANDBOX=strict refuses to start this program: it needs the network, which cannot be limited to a list of hosts here%s. Allow network namespaces to this service, or use SANDBOX=best.", because(l.Reasons))
	}
	return nil
}

// maxOutlets is how many listeners are passed in one message.
const maxOutlets = 32

func because(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

// check refuses a Spec that cannot be meant.
func (s Spec) check(cfg Config) error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return fault.New(fault.Invalid, "There is no program to run.")
	}
	for _, text := range slices.Concat(s.Argv, s.Env) {
		if strings.ContainsRune(text, 0) {
			return fault.New(fault.Invalid, "A command and its environment cannot contain a NUL character.")
		}
	}
	for _, e := range s.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return fault.Newf(fault.Invalid, "The variable %q of a command is not of the form NAME=value.", name)
		}
	}
	writable := slices.Clone(s.Writable)
	if s.Home != "" {
		writable = append(writable, s.Home)
	}
	for _, p := range writable {
		if err := checkGrant(p, true, cfg); err != nil {
			return err
		}
	}
	for _, p := range s.ReadOnly {
		if err := checkGrant(p, false, cfg); err != nil {
			return err
		}
	}
	for _, p := range s.Sealed {
		if err := checkSealed(p, s.Writable); err != nil {
			return err
		}
	}
	paths := slices.Concat(writable, s.ReadOnly)
	if s.Dir == "" {
		return nil
	}
	if !filepath.IsAbs(s.Dir) {
		return fault.Newf(fault.Invalid, "The working directory %q is not absolute.", s.Dir)
	}
	if !slices.ContainsFunc(paths, func(p string) bool { return within(p, s.Dir) }) {
		return fault.Newf(fault.Invalid, "The working directory %q is outside of what the command may use.", s.Dir)
	}
	return nil
}

// within reports whether p is dir or below it; both are clean or get so.
func within(dir, p string) bool {
	dir, p = filepath.Clean(dir), filepath.Clean(p)
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// inherited are the variables that are always passed on.
var inherited = []string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment returns the whole environment of a program.
func (r *Runner) environment(s Spec, home, tmp string) []string {
	env := map[string]string{
		"PATH": defaultPath, "LANG": "C.UTF-8",
		// git fails over a system configuration that it may not read.
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1",
	}
	for _, name := range slices.Concat(inherited, r.cfg.AllowedEnv) {
		if value, ok := r.cfg.Env(name); ok && !strings.ContainsRune(value, 0) && !strings.ContainsAny(name, "=\x00") {
			env[name] = value
		}
	}
	env["GIT_CEILING_DIRECTORIES"] = ceilings(slices.Concat(s.Writable, s.ReadOnly, []string{home}))
	env["HOME"], env["TMPDIR"], env["TERM"], env["PWD"] = home, tmp, "dumb", home
	if s.Dir != "" {
		env["PWD"] = s.Dir
	}
	for _, e := range s.Env {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// ceilings are the directories into which git does not climb when it looks for the
// repository that it is in: what is around a grant is none of the program's.
func ceilings(granted []string) string {
	var out []string
	for _, p := range granted {
		dirs := []string{filepath.Dir(p)}
		if real, err := filepath.EvalSymlinks(p); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
		for _, dir := range dirs {
			if !strings.ContainsRune(dir, filepath.ListSeparator) && !slices.Contains(out, dir) {
				out = append(out, dir)
			}
		}
	}
	return strings.Join(out, string(filepath.ListSeparator))
}

// hidden are the paths that no program may see: those of the Config, and the
// private directories of the others.
func (r *Runner) hidden() []string {
	return append(slices.Clone(r.cfg.Hidden), r.dir)
}

// existing leaves out what is not there.
func existing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		_, err := os.Stat(p)
		return err != nil
	})
}
