//go:build !linux

package gitcmd

func limitMemory(int) {}
