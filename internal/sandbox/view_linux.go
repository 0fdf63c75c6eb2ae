package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// view is the file system as the program sees it: an empty one, into which what
// was granted is mounted at its own place. It is built in a mount namespace.
type view struct {
	root   string
	links  map[string]string // symbolic links on the way to what is mounted
	mounts []mount
}

// mount is one thing to mount. Those with shorter paths go first, so that a
// hidden directory covers a granted one, and a granted one lies in a hidden one.
type mount struct {
	at   string
	tree int // a detached copy of the mount; -1: hide what is there
	dir  bool
}

// buildView makes the view and moves this process into it.
func buildView(o *order) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount private /", err)
	}
	v := &view{root: o.Root, links: map[string]string{}}
	if err := v.collect(o); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", o.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return os.NewSyscallError("mount tmpfs", err)
	}
	if err := v.mountAll(); err != nil {
		return err
	}
	if err := v.proc(o); err != nil {
		return err
	}
	v.terminals()
	return v.enter()
}

// collect opens all that will be mounted, before anything is covered.
func (v *view) collect(o *order) error {
	for _, p := range o.System {
		if err := v.add(p, true); err != nil && !absent(err) {
			return err
		}
	}
	for _, p := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		if err := v.add(p, false); err != nil && !absent(err) {
			return err
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		v.links["/dev/"+name] = target
	}
	for _, p := range o.ReadOnly {
		if err := v.add(p, true); err != nil {
			return err
		}
	}
	for _, p := range o.Writable {
		if err := v.add(p, false); err != nil {
			return err
		}
	}
	for _, p := range o.Sealed {
		if err := v.seal(p); err != nil {
			return err
		}
	}
	for at, p := range map[string]string{"/tmp": o.Tmp, "/dev/shm": o.Shm} {
		if err := v.addAt(at, p, false); err != nil {
			return err
		}
	}
	if !o.Have.PIDs {
		if err := v.addAt("/proc", "/proc", true); err != nil {
			return err
		}
	}
	for _, p := range o.Hidden {
		real, err := filepath.EvalSymlinks(p)
		if err != nil {
			continue // nothing to hide
		}
		info, err := os.Lstat(real)
		if err != nil {
			continue
		}
		v.mounts = append(v.mounts, mount{at: real, tree: -1, dir: info.IsDir()})
	}
	return nil
}

// add mounts a path at its place, with the symbolic links that lead there.
func (v *view) add(p string, readOnly bool) error {
	real, err := v.follow(p)
	if err != nil {
		return err
	}
	return v.addAt(real, real, readOnly)
}

// follow resolves a path and notes the links on the way.
func (v *view) follow(p string) (string, error) {
	const most = 40 // links, as in the kernel
	done, rest := "/", strings.Split(strings.Trim(filepath.Clean(p), "/"), "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(done, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if links++; links > most {
			return "", &fs.PathError{Op: "follow", Path: p, Err: unix.ELOOP}
		}
		v.links[next] = target
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = slices.Concat(strings.FieldsFunc(target, func(r rune) bool { return r == '/' }), rest)
	}
	return done, nil
}

// addAt mounts source at another place.
func (v *view) addAt(at, source string, readOnly bool) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	return v.mount(at, source, info, readOnly, 0)
}

// seal mounts a path that lies in a granted directory once more, for reading. What
// is mounted on can be neither removed nor replaced. It is no link: a link would
// show here what nobody granted.
func (v *view) seal(p string) error {
	dir, err := v.follow(filepath.Dir(p))
	if err != nil {
		return err
	}
	at := filepath.Join(dir, filepath.Base(p))
	info, err := os.Lstat(at)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "seal", Path: at, Err: unix.ELOOP}
	}
	if err != nil {
		return err
	}
	return v.mount(at, at, info, true, unix.AT_SYMLINK_NOFOLLOW)
}

// mount opens what will be mounted. A link that was put there meanwhile is mounted
// on nothing, which fails.
func (v *view) mount(at, source string, info fs.FileInfo, readOnly bool, flags uint) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|flags)
	if err != nil {
		return &fs.PathError{Op: "open_tree", Path: source, Err: err}
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if info.Mode()&fs.ModeDevice == 0 {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return &fs.PathError{Op: "mount_setattr", Path: source, Err: err}
	}
	// The last one wins: a system directory can also be granted for writing.
	v.mounts = slices.DeleteFunc(v.mounts, func(m mount) bool { return m.at == at })
	v.mounts = append(v.mounts, mount{at: at, tree: tree, dir: info.IsDir()})
	return nil
}

// mountAll puts everything into its place.
func (v *view) mountAll() error {
	sort.SliceStable(v.mounts, func(i, j int) bool { return v.mounts[i].at+"/" < v.mounts[j].at+"/" })
	var covers []string
	for _, m := range v.mounts {
		if m.tree < 0 {
			covered, err := v.hide(m)
			if err != nil {
				return err
			}
			if covered && m.dir {
				covers = append(covers, v.root+m.at)
			}
			continue
		}
		if err := v.place(m); err != nil {
			return err
		}
		err := unix.MoveMount(m.tree, "", unix.AT_FDCWD, v.root+m.at, unix.MOVE_MOUNT_F_EMPTY_PATH)
		if err != nil {
			return &fs.PathError{Op: "move_mount", Path: m.at, Err: err}
		}
		_ = unix.Close(m.tree)
	}
	for at, target := range v.links {
		if err := v.link(at, target); err != nil {
			return err
		}
	}
	for _, c := range covers {
		if err := setReadOnly(c); err != nil {
			return err
		}
	}
	return nil
}

// place makes sure that there is something to mount on.
func (v *view) place(m mount) error {
	at := v.root + m.at
	if _, err := os.Lstat(at); err == nil {
		return nil
	}
	if m.dir {
		return os.MkdirAll(at, 0o755) //nolint:gosec // as in every file system
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600) //nolint:gosec // in a file system of its own
	if err != nil {
		return err
	}
	return f.Close()
}

// link makes a symbolic link unless something granted has one there already.
func (v *view) link(at, target string) error {
	path := v.root + at
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as in every file system
		return err
	}
	return os.Symlink(target, path)
}

// hide covers what the view would show at a place, if it would show anything.
func (v *view) hide(m mount) (bool, error) {
	at := v.root + m.at
	if _, err := os.Lstat(at); err != nil {
		return false, nil //nolint:nilerr // it is not in the view
	}
	if m.dir {
		err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=64k")
		return true, os.NewSyscallError("mount tmpfs", err)
	}
	empty := filepath.Join(v.root, ".hidden")
	if err := os.WriteFile(empty, nil, 0o400); err != nil && !errors.Is(err, fs.ErrPermission) {
		return false, err
	}
	if err := unix.Mount(empty, at, "", unix.MS_BIND, ""); err != nil {
		return false, &fs.PathError{Op: "mount", Path: m.at, Err: err}
	}
	return true, setReadOnly(at)
}

// proc shows the processes of the PID namespace, and bounds their number where
// the kernel can do that per namespace: before 6.14 the limit is the whole
// system's, and must not be touched.
func (v *view) proc(o *order) error {
	if !o.Have.PIDs {
		return nil // the system's own was mounted
	}
	at := v.root + "/proc"
	if err := os.MkdirAll(at, 0o755); err != nil { //nolint:gosec // as in every file system
		return err
	}
	if err := unix.Mount("proc", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return os.NewSyscallError("mount proc", err)
	}
	o.Have.PIDMax = false
	if n := o.Limits.Processes; n > 0 && os.Getpid() == 1 && kernelAtLeast(6, 14) {
		// The first 300 numbers are given out only once.
		err := os.WriteFile(at+"/sys/kernel/pid_max", []byte(strconv.Itoa(300+n)), 0o600)
		o.Have.PIDMax = err == nil
	}
	return setReadOnly(at)
}

// terminals gives the program pseudo terminals of its own. They are a nicety.
func (v *view) terminals() {
	at := v.root + "/dev/pts"
	if os.MkdirAll(at, 0o755) != nil { //nolint:gosec // as in every file system
		return
	}
	if unix.Mount("devpts", at, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620") == nil {
		_ = os.Symlink("pts/ptmx", v.root+"/dev/ptmx")
	}
}

// enter makes the view the root, and the old root unreachable.
func (v *view) enter() error {
	if err := os.Chdir(v.root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return setReadOnly("/")
}

func setReadOnly(path string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return &fs.PathError{Op: "mount_setattr", Path: path, Err: err}
	}
	return nil
}

// kernelAtLeast compares the version of the running kernel.
func kernelAtLeast(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}
