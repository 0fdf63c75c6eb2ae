//go:build !linux

package tour

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
