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
		"open":     openFile,
		"mount":    func([]string) error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") },
		"unshare":  func([]string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
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

func openFile(args []string) error {
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	_, err = f.Read(make([]byte, 1))
	return err
}
