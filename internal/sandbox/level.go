package sandbox

import (
	"fmt"
	"strings"
)

// Level is what holds for the programs of a Runner: first the promises, which
// Full is about, then what keeps them. A promise about the network holds for
// programs that were not given the network.
type Level struct {
	Mode Mode

	Files    bool // nothing but what was granted can be read, written or executed; without View, modes and times can be changed
	TCP      bool // no TCP connection to the outside
	UDP      bool // no UDP packet, and so no DNS query
	Sockets  bool // no Unix socket of other programs, with a path or abstract
	Secrets  bool // no memory or environment of other processes
	Signals  bool // no signal to other processes
	Tree     bool // not one process of the tree can get away from its end
	Limits   bool // on processor time, memory, file size, open files and processes
	Loopback bool // servers and clients inside can talk to each other; not a promise

	View       bool // the program has its own view of the file system (mount namespace)
	Landlock   int  // ABI of Landlock that is used; 0: none
	Network    bool // network namespace
	Processes  bool // PID namespace
	Seccomp    bool // system call filter
	HardNumber bool // the kernel refuses processes beyond the limit; else the tree is ended

	// Reasons say in words for people why something is missing.
	Reasons []string
}

// Full reports whether every promise holds.
func (l Level) Full() bool { return len(l.missing()) == 0 }

// promise is one promise in words for people.
type promise struct {
	kept bool
	name string
}

func (l Level) promises() []promise {
	return []promise{
		{l.Files, "files"}, {l.TCP, "TCP"}, {l.UDP, "UDP"}, {l.Sockets, "sockets"}, {l.Secrets, "secrets of other processes"},
		{l.Signals, "signals"}, {l.Tree, "process tree"}, {l.Limits, "limits"},
	}
}

// missing lists what Full lacks.
func (l Level) missing() []string {
	var out []string
	for _, p := range l.promises() {
		if !p.kept {
			out = append(out, "no protection of "+p.name)
		}
	}
	if len(out) > 0 {
		out = append(out, l.Reasons...)
	}
	return out
}

// String says exactly what holds and by what, on one line, for people.
func (l Level) String() string {
	var held, open []string
	for _, p := range l.promises() {
		if p.kept {
			held = append(held, p.name)
		} else {
			open = append(open, p.name)
		}
	}
	var b strings.Builder
	switch {
	case len(open) == 0:
		b.WriteString("full: ")
	case !l.confines():
		b.WriteString("none: ")
	default:
		b.WriteString("partial: ")
	}
	b.WriteString(strings.Join(held, ", "))
	if len(open) > 0 {
		b.WriteString("; NOT " + strings.Join(open, ", "))
	}
	if by := l.by(); len(by) > 0 {
		b.WriteString(" (by " + strings.Join(by, ", ") + ")")
	}
	for _, reason := range l.Reasons {
		b.WriteString("; " + reason)
	}
	return b.String()
}

// confines reports whether anything besides limits holds.
func (l Level) confines() bool { return l.View || l.Landlock > 0 || l.Seccomp }

func (l Level) by() []string {
	var by []string
	if l.Landlock > 0 {
		by = append(by, fmt.Sprintf("Landlock %d", l.Landlock))
	}
	var spaces []string
	for _, s := range []promise{{l.View, "mount"}, {l.Processes, "PID"}, {l.Network, "network"}} {
		if s.kept {
			spaces = append(spaces, s.name)
		}
	}
	if len(spaces) > 0 {
		by = append(by, strings.Join(spaces, "+")+" namespaces")
	}
	if l.Seccomp {
		by = append(by, "seccomp")
	}
	return by
}
