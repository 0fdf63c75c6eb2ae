package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter of system calls closes what namespaces and Landlock leave open on
// this system: sockets, kernel keys, what processes share by System V, and ways
// around the filter itself. It sees numbers only, never what a pointer points to.

const (
	seccompNumber = 0  // offsets in struct seccomp_data
	seccompArch   = 4  // the architecture of the call
	seccompArg0   = 16 // the lower half of the first argument, little endian

	seccompRetAllow = 0x7fff0000
	seccompRetErrno = 0x00050000
	seccompRetKill  = 0x80000000
	x32Bit          = 0x40000000
)

// namespaceFlags are the flags of clone and unshare that make namespaces.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// auditArch is the architecture's number, or 0 if there is no filter for it.
func auditArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// filter is a program for the kernel, built from the front.
type filter []unix.SockFilter

func (f *filter) op(code uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
}

func (f *filter) load(offset uint32)  { f.op(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
func (f *filter) answer(value uint32) { f.op(unix.BPF_RET|unix.BPF_K, value, 0, 0) }

func (f *filter) refuse(errno unix.Errno) {
	f.answer(seccompRetErrno | uint32(errno)) //nolint:gosec // numbers are small
}

// unlessEqual skips the next n instructions unless what was loaded is k.
func (f *filter) unlessEqual(k uint32, n int) {
	f.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 0, uint8(n)) //nolint:gosec // a few
}

// refuseCall refuses a system call.
func (f *filter) refuseCall(number uintptr, errno unix.Errno) {
	f.unlessEqual(uint32(number), 1) //nolint:gosec // numbers are small
	f.refuse(errno)
}

// onCall decides about one system call: as body does, and to allow it where body
// decides nothing. The number is still loaded for all others.
func (f *filter) onCall(number uintptr, body func(*filter)) {
	var inner filter
	body(&inner)
	inner.answer(seccompRetAllow)
	f.unlessEqual(uint32(number), len(inner)) //nolint:gosec // numbers are small
	*f = append(*f, inner...)
}

// socketFamilies are those that a program may open.
func socketFamilies(o order) []uint32 {
	out := []uint32{unix.AF_NETLINK} // lists interfaces; what it could change needs a privilege
	if o.Network || o.Have.Net {
		out = append(out, unix.AF_INET, unix.AF_INET6)
	}
	abi := o.Have.Landlock
	paths := o.Have.Namespaces || abi >= landlockUnixABI
	abstract := o.Have.Net || o.Network || abi >= landlockScopeABI
	if paths && abstract {
		out = append(out, unix.AF_UNIX)
	}
	return out
}

// build makes the filter for an order.
func build(o order, arch uint32) filter {
	var f filter
	f.load(seccompArch)
	f.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, arch, 1, 0)
	f.answer(seccompRetKill) // calls of another architecture have other numbers
	f.load(seccompNumber)
	if arch == unix.AUDIT_ARCH_X86_64 {
		f.op(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, x32Bit, 0, 1)
		f.refuse(unix.ENOSYS)
	}
	// The kernel's keys belong to the user, not to the process. io_uring makes
	// sockets without a call that is seen here. The flags of clone3 are behind a
	// pointer; without it the C libraries use clone.
	for _, number := range []uintptr{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3} {
		f.refuseCall(number, unix.ENOSYS)
	}
	for _, number := range []uintptr{
		unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT,
		unix.SYS_FSMOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, unix.SYS_CHROOT,
	} {
		f.refuseCall(number, unix.EPERM)
	}
	for _, number := range []uintptr{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		f.onCall(number, func(b *filter) {
			b.load(seccompArg0)
			b.op(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, namespaceFlags, 0, 1)
			b.refuse(unix.EPERM)
		})
	}
	f.onCall(unix.SYS_SOCKET, func(b *filter) {
		b.load(seccompArg0)
		for _, family := range socketFamilies(o) {
			b.unlessEqual(family, 1)
			b.answer(seccompRetAllow)
		}
		b.refuse(unix.EACCES)
	})
	if !o.Have.Namespaces {
		// They are the whole system's then, reach what other programs share, and stay when
		// the tree has ended.
		for _, number := range []uintptr{
			unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
			unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
		} {
			f.refuseCall(number, unix.ENOSYS)
		}
	}
	if !o.Have.PIDs {
		f.protect(o.Daemon)
	}
	f.answer(seccompRetAllow)
	return f
}

// protect refuses signals to everybody at once and to the daemon, where no PID
// namespace does it.
func (f *filter) protect(daemon int) {
	const everybody = 1<<32 - 1 // -1
	for _, number := range []uintptr{unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN, unix.SYS_PRLIMIT64} {
		f.onCall(number, func(b *filter) {
			b.load(seccompArg0)
			for _, pid := range []uint32{everybody, uint32(daemon), uint32(-daemon)} { //nolint:gosec // as the kernel sees it
				b.unlessEqual(pid, 1)
				b.refuse(unix.EPERM)
			}
		})
	}
}

// seccomp sets the filter for the calling thread and what it will execute.
func seccomp(o order) error {
	arch := auditArch()
	if arch == 0 {
		return errors.New("no filter of system calls for " + runtime.GOARCH)
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return errors.New("no filter of system calls for big endian systems")
	}
	return build(o, arch).install()
}

// install sets the filter for the calling thread.
func (f filter) install() error {
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}                                             //nolint:gosec // about a hundred
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0) //nolint:gosec // as the system call wants it
	runtime.KeepAlive(f)
	return os.NewSyscallError("prctl(PR_SET_SECCOMP)", err)
}
