package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// RunIfHelper is called first thing in main, and in TestMain of packages whose
// tests run programs. In an ordinary process it returns at once. In a process that
// a Runner started it does the helper's work and never returns.
func RunIfHelper() {
	if len(os.Args) != 2 || len(os.Args[1]) == 0 || os.Args[1][0] != argSupervise[0] {
		return
	}
	// What is set per thread has to be on the one that executes the program.
	runtime.LockOSThread()
	switch os.Args[1] {
	case argSupervise:
		unix.Exit(superviseMain())
	case argEnter:
		unix.Exit(enterMain())
	}
}

// superviseMain is the first stage: it sets up what the whole tree shares, starts
// the second stage, and stays until the tree has ended.
func superviseMain() int {
	out := os.NewFile(fdReport, "report")
	control := os.NewFile(fdControl, "control")
	o, err := readOrder()
	if err != nil || out == nil || control == nil {
		fmt.Fprintln(os.Stderr, "this is an internal helper that starts programs for the bot:", err)
		return exitHelper
	}
	s := &supervisor{order: o, control: control, reports: json.NewEncoder(out)}
	if err := s.run(); err != nil {
		s.report(failure(err))
		return exitHelper
	}
	return 0
}

// enterMain is the second stage: it confines itself and becomes the program.
func enterMain() int {
	ready := os.NewFile(fdReady, "ready")
	o, err := readOrder()
	if err == nil {
		err = enter(o) // returns only errors
	}
	_ = json.NewEncoder(ready).Encode(failure(err))
	return exitHelper
}

// exitHelper is the exit code of a helper that failed. Nobody looks at it, since
// the reason is in the report.
const exitHelper = 125
