//go:build linux

// Command helper is the supervisor of programs in the tests, and one of those
// programs: it tries one thing, and prints "done" or why it could not. The test
// program itself could do both, but is slow to start with the race detector.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"remote-agent/internal/sandbox"
)

func main() {
	sandbox.RunIfHelper()
	probes := map[string]func(args []string) error{
		"dial":     dial,
		"loopback": loopback,
		"memory":   fillMemory,
		"memfd":    fillDescriptor,
		"segments": fillSegments,
		"segment": func([]string) error {
			_, err := unix.SysvShmGet(unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o600)
			return err
		},
		"open":    openFile,
		"mount":   func([]string) error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") },
		"unshare": func([]string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"keys": func([]string) error {
			_, err := unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, unix.KEY_SPEC_USER_KEYRING, 1, 0, 0)
			return err
		},
		"signal":     func(args []string) error { return unix.Kill(pid(args[0]), 0) },
		"signal all": func([]string) error { return unix.Kill(-1, unix.SIGCONT) },
		"attach":     func(args []string) error { return unix.PtraceAttach(pid(args[0])) },
	}
	if err := probes[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func pid(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// dial connects and writes a byte: args are network and address.
func dial(args []string) error {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial(args[0], args[1])
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("x"))
	return err
}

// loopback talks to a server in the same process.
func loopback([]string) error {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	conn, err := net.DialTimeout("tcp", server.Addr().String(), 5*time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

// fillMemory makes 10 GiB resident.
func fillMemory([]string) error {
	var all [][]byte
	for range 10 << 30 / (4 << 20) {
		block := make([]byte, 4<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		all = append(all, block)
	}
	return fmt.Errorf("kept %d blocks", len(all))
}

// fillDescriptor writes 4 GiB into memory that only a descriptor holds.
func fillDescriptor([]string) error {
	fd, err := unix.MemfdCreate("held", 0)
	if err != nil {
		return err
	}
	block := make([]byte, 4<<20)
	for range 4 << 30 / len(block) {
		if _, err := unix.Write(fd, block); err != nil {
			return err
		}
	}
	return fmt.Errorf("kept %d bytes", 4<<30)
}

// fillSegments fills 4 GiB of System V shared memory that no process keeps in view.
func fillSegments([]string) error {
	const size = 64 << 20
	for range 4 << 30 / size {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, size, unix.IPC_CREAT|0o600)
		if err != nil {
			return err
		}
		segment, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return err
		}
		for i := 0; i < len(segment); i += 4096 {
			segment[i] = 1
		}
		if err := unix.SysvShmDetach(segment); err != nil {
			return err
		}
	}
	return fmt.Errorf("kept %d bytes", 4<<30)
}

func openFile(args []string) error {
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	_, err = f.Read(make([]byte, 1))
	return err
}
