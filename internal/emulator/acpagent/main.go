package acpagent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Hijack plays the script that Command wrote if args are of such a program, and
// then ends the process. Otherwise it returns.
func Hijack(args []string) {
	if len(args) == 3 && args[1] == hijackArg {
		os.Exit(Main(args[2], os.Stdin, os.Stdout, os.Stderr))
	}
}

// Main plays the script in a file and returns the exit code.
func Main(path string, stdin io.Reader, stdout, stderr io.Writer) int {
	text, err := os.ReadFile(path) //nolint:gosec // the test names the file
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 2
	}
	var s Script
	if err := json.Unmarshal(text, &s); err != nil {
		_, _ = fmt.Fprintf(stderr, "%s is not a script: %v\n", path, err)
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go endWithParent(cancel)
	return Run(ctx, s, stdin, stdout, stderr)
}

// endWithParent calls end when the process that started this one is gone. An agent
// that hangs must not outlive a test that died. It ends with the process.
func endWithParent(end func()) {
	for parent := os.Getppid(); os.Getppid() == parent; {
		time.Sleep(200 * time.Millisecond)
	}
	end()
}
