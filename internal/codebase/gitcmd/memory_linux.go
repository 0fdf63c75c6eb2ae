package gitcmd

import "golang.org/x/sys/unix"

// maxMemory is what git may allocate while it looks at a worktree, in bytes. It reads each
// .gitignore whole, and programs may write those of any size.
const maxMemory = 1 << 30

func limitMemory(pid int) {
	limit := unix.Rlimit{Cur: maxMemory, Max: maxMemory}
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil) // it has ended, or it goes without
}
