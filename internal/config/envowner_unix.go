//go:build unix

package config

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// OwnedByUs reports whether a file is this user's, and whose it is.
func OwnedByUs(path string) (owner string, ours bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", true // reading it has told
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return "", true
	}
	return fmt.Sprintf("another user (id %d)", stat.Uid), false
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
