package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"remote-agent/internal/lists"
)

// Landlock is used by its system calls and not through go-landlock: that library
// confines all threads of a process, for which it replaces parts of the C library
// in builds with cgo, and its best effort drops all rules when one cannot be had.
// Here one thread confines itself and then executes the program, with exactly the
// rights that the ABI in use knows.

// Rights that x/sys does not name yet.
const (
	landlockResolveUnix  = 1 << 16
	landlockConnectUDP   = 1 << 3
	landlockBindUDP      = 1 << 2
	landlockRuleNetPort  = 2
	landlockKnown        = 10 // the newest ABI that is understood here
	landlockTruncateABI  = 3
	landlockTCPABI       = 4
	landlockIoctlABI     = 5
	landlockScopeABI     = 6
	landlockUnixABI      = 9
	landlockUDPABI       = 10
	landlockReferABI     = 2
	landlockFileVersion1 = 1<<13 - 1
)

const (
	rightsRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// Everything but to make devices, to control them, and to reach sockets of others.
	rightsWrite = rightsRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// What has a meaning for something that is not a directory.
	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// landlockABI returns the version that the kernel offers, as far as it is
// understood here, or 0.
func landlockABI() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return min(int(version), landlockKnown)
}

// handled is what a ruleset of an ABI decides about.
func handled(o order) unix.LandlockRulesetAttr {
	abi := o.Have.Landlock
	a := unix.LandlockRulesetAttr{Handled_access_fs: landlockFileVersion1}
	for _, right := range []struct {
		abi int
		bit uint64
	}{
		{landlockReferABI, unix.LANDLOCK_ACCESS_FS_REFER}, {landlockTruncateABI, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{landlockIoctlABI, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, {landlockUnixABI, landlockResolveUnix},
	} {
		if abi >= right.abi {
			a.Handled_access_fs |= right.bit
		}
	}
	if abi >= landlockScopeABI {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	isolated := o.Have.Net && !o.Network // there is nobody to talk to but oneself
	if abi >= landlockTCPABI {
		switch {
		case isolated:
		case !o.Network:
			a.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		case len(o.Ports) > 0:
			a.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if abi >= landlockUDPABI && !isolated && !o.Network {
		a.Handled_access_net |= landlockBindUDP | landlockConnectUDP
	}
	return a
}

// rule allows what is at and below a path.
type rule struct {
	path   string
	rights uint64
}

// rules lists what the program may use, by the paths that it sees.
func rules(o order) []rule {
	out := lists.Map(slices.Concat(o.System, o.ReadOnly), func(p string) rule { return rule{p, rightsRead} })
	out = append(out, rule{"/proc", rightsRead})
	devices := []string{"null", "zero", "full", "random", "urandom"}
	if o.Have.Namespaces {
		devices = append(devices, "pts", "ptmx") // its own; elsewhere they are everybody's terminals
	}
	for _, p := range devices {
		out = append(out, rule{"/dev/" + p, rightsDevice})
	}
	for _, p := range o.Writable {
		// Git outside of the sandbox would wait at a pipe that is called .gitignore.
		out = append(out, rule{p, rightsWrite &^ unix.LANDLOCK_ACCESS_FS_MAKE_FIFO})
	}
	if o.Have.Namespaces {
		// In a view there is nothing but what was granted, so all of it can be listed.
		return append(out, rule{"/tmp", rightsWrite}, rule{"/dev/shm", rightsWrite}, rule{"/", unix.LANDLOCK_ACCESS_FS_READ_DIR})
	}
	out = append(out, rule{o.Tmp, rightsWrite})
	return around(out, o.Hidden)
}

// around takes hidden paths out of rules. A rule cannot have an exception, so a
// directory with something hidden below is replaced by what else it contains; new
// entries cannot be made in it then. With a view this is not needed: what is
// hidden is covered there.
func around(in []rule, hidden []string) []rule {
	var secrets []string
	for _, h := range hidden {
		if real, err := filepath.EvalSymlinks(h); err == nil {
			secrets = append(secrets, real)
		}
	}
	var out []rule
	for _, r := range in {
		out = append(out, split(r, secrets)...)
	}
	return out
}

func split(r rule, secrets []string) []rule {
	real, err := filepath.EvalSymlinks(r.path)
	if err != nil {
		return nil // not there
	}
	for _, s := range secrets {
		if s == real {
			return nil
		}
		if !within(real, s) {
			continue
		}
		out := []rule{{real, r.rights & unix.LANDLOCK_ACCESS_FS_READ_DIR}}
		entries, err := os.ReadDir(real)
		if err != nil {
			return out
		}
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink == 0 { // a link has no rights, its target has
				out = append(out, split(rule{filepath.Join(real, e.Name()), r.rights}, secrets)...)
			}
		}
		return out
	}
	return []rule{r}
}

// landlock confines the calling thread and what it will execute. The thread has
// no_new_privs set.
func landlock(o order) error {
	attr := handled(o)
	// The size that the oldest kernels know about is enough: nothing is quiet.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), unsafe.Offsetof(attr.Quiet_access_fs), 0) //nolint:gosec // as the system call wants it
	if errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	ruleset := int(fd)
	defer unix.Close(ruleset) //nolint:errcheck // nothing was written
	for _, r := range rules(o) {
		if err := allow(ruleset, r, attr.Handled_access_fs); err != nil && !absent(err) {
			return err
		}
	}
	if o.Network && attr.Handled_access_net != 0 {
		for _, port := range o.Ports {
			if err := allowPort(ruleset, port); err != nil {
				return err
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}

// absent reports whether something is not there for this user. Then there is
// nothing to allow.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

func allow(ruleset int, r rule, known uint64) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: r.path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // a path only
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &fs.PathError{Op: "fstat", Path: r.path, Err: err}
	}
	rights := r.rights & known
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	if rights == 0 {
		return nil
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)} //nolint:gosec // a descriptor fits
	return addRule(ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&attr))    //nolint:gosec // as the system call wants it
}

func allowPort(ruleset int, port uint16) error {
	attr := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
	return addRule(ruleset, landlockRuleNetPort, unsafe.Pointer(&attr)) //nolint:gosec // as the system call wants it
}

func addRule(ruleset int, kind uintptr, attr unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), kind, uintptr(attr), 0, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_add_rule", errno)
	}
	return nil
}
