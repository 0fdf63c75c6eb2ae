package sandbox

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
)

// systemPaths are what every program may read and execute: programs and libraries,
// and from /etc what they need to run, but no keys and no passwords.
func systemPaths() []string {
	paths := []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store",
		"/sys/fs/cgroup", "/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage",
	}
	for _, name := range []string{
		"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "debian_version", "gai.conf", "group", "host.conf", "hostname", "hosts",
		"inputrc", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "lsb-release", "magic", "mime.types",
		"networks", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust/extracted", "pki/tls/certs", "profile", "protocols", "resolv.conf", "services",
		"shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
	} {
		paths = append(paths, "/etc/"+name)
	}
	for _, pattern := range []string{"/etc/java-*", "/etc/ld-musl-*", "/etc/python3*"} {
		found, _ := filepath.Glob(pattern) // the pattern is right
		paths = append(paths, found...)
	}
	return paths
}

// attempt is one set of namespaces, and what is missing if it is the best one.
type attempt struct {
	have  features
	lacks string
}

// detect tries what the system offers, the strongest first. It fails if Self does
// not work as a helper at all.
func (r *Runner) detect() (Level, error) {
	r.system = systemPaths()
	if r.cfg.Mode == Off {
		if _, err := r.try(features{}); err != nil {
			return Level{}, brokenHelper(err)
		}
		return levelOf(Off, features{}, []string{"SANDBOX=off"}), nil
	}
	abi, filtered := landlockABI(), auditArch() != 0
	var reasons []string
	if abi == 0 {
		reasons = append(reasons, "the kernel has no Landlock, or it is not enabled")
	}
	var failed []error
	for _, a := range []attempt{
		{features{Namespaces: true, PIDs: true, Net: true}, ""},
		{features{Namespaces: true, PIDs: true}, "network namespaces"},
		{features{Namespaces: true, Net: true}, "PID namespaces with their own /proc"},
		{features{}, "user namespaces"},
	} {
		if r.avoids(a.have) {
			continue
		}
		a.have.Landlock, a.have.Seccomp = abi, filtered
		got, err := r.try(a.have)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		switch {
		case len(failed) > 0:
			reasons = append(reasons, a.lacks+" cannot be used here ("+cause(failed[0])+")")
		case a.lacks != "":
			reasons = append(reasons, a.lacks+" are not to be used")
		}
		return r.settle(got, reasons), nil
	}
	return Level{}, brokenHelper(failed[len(failed)-1])
}

// avoids reports whether something in f is not to be used.
func (r *Runner) avoids(f features) bool {
	for name, used := range map[string]bool{"namespaces": f.Namespaces, "pids": f.PIDs, "net": f.Net} {
		if used && slices.Contains(r.cfg.Without, name) {
			return true
		}
	}
	return false
}

// settle makes a Level of what worked.
func (r *Runner) settle(got features, reasons []string) Level {
	l := levelOf(r.cfg.Mode, got, reasons)
	if !got.Seccomp {
		l.Reasons = append(l.Reasons, "no filter of system calls")
	}
	if l.Files && !l.View {
		l.Reasons = append(l.Reasons, "the modes and times of files elsewhere can still be changed")
	}
	if !l.Secrets {
		// The last thing that keeps the daemon's memory and environment from a
		// program of the same user. Without namespaces it costs nothing.
		if unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) == nil {
			l.Reasons = append(l.Reasons, "of other processes only this one is protected")
		}
	}
	return l
}

func brokenHelper(err error) error {
	return &fault.Error{
		Kind: fault.Internal, Public: "Programs cannot be run: the bot could not start itself as their supervisor.",
		Err: errors.Join(errors.New("the helper does not work; does its main call sandbox.RunIfHelper first?"), err),
	}
}

// cause is the innermost text of an error, for people.
func cause(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Err != nil {
		text = e.Err.Error()
	}
	return strings.ReplaceAll(text, "\n", ", ")
}

// try asks the helper what it reaches of have. It fails if namespaces fail.
func (r *Runner) try(have features) (features, error) {
	ctx, stop := context.WithTimeout(context.Background(), startTimeout)
	defer stop()
	dir, err := r.runDir()
	if err != nil {
		return features{}, err
	}
	defer removeTree(dir) //nolint:errcheck // New of the next process tries again
	s := Spec{Limits: defaultLimits()}
	o := r.order(s, dir)
	o.Probe, o.Confine, o.Have = true, r.cfg.Mode != Off, have
	h, err := r.startHelper(ctx, o, s)
	if err != nil {
		return features{}, err
	}
	answer := report{}
	select {
	case answer = <-h.reports:
	case <-ctx.Done():
	}
	h.kill()
	_, _ = h.wait() // the answer says it all
	switch {
	case answer.Have != nil:
		if answer.Fail != "" {
			r.log.Warn("a part of the sandbox is not available", "err", answer.Fail)
		}
		return *answer.Have, nil
	case answer.Fail != "":
		return features{}, answer.err()
	}
	return features{}, errors.New("no answer")
}

// levelOf says what follows from what is used.
func levelOf(mode Mode, f features, reasons []string) Level {
	abi := f.Landlock
	return Level{
		Mode:     mode,
		Files:    f.Namespaces || abi >= landlockTruncateABI,
		TCP:      f.Net || abi >= landlockTCPABI || f.Seccomp,
		UDP:      f.Net || abi >= landlockUDPABI || f.Seccomp,
		Sockets:  (f.Namespaces || abi >= landlockUnixABI || f.Seccomp) && (f.Net || abi >= landlockScopeABI || f.Seccomp),
		Secrets:  f.Namespaces || abi > 0,
		Signals:  f.PIDs || abi >= landlockScopeABI,
		Tree:     f.PIDs || abi >= landlockScopeABI,
		Limits:   true,
		Loopback: f.Net,
		View:     f.Namespaces, Landlock: abi, Network: f.Net, Processes: f.PIDs, Seccomp: f.Seccomp,
		HardNumber: f.Namespaces && !globalRoot() || f.PIDMax,
		Reasons:    reasons,
	}
}

// features is the reverse of levelOf.
func (l Level) features() features {
	return features{Namespaces: l.View, PIDs: l.Processes, Net: l.Network, Landlock: l.Landlock, Seccomp: l.Seccomp}
}
