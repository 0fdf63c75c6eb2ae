package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The program cannot be told to die at a failpoint: what would do that is called by
// tests alone, so the linker leaves it out. This test's own binary has everything
// that the program has, and the names of all functions.
func TestTheProgramHasNoWayToArmAFailpoint(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	has := func(pkg, function string) bool { // in parts, so as not to find itself
		return bytes.Contains(binary, []byte("remote-agent/internal/"+pkg+"."+function))
	}
	if !has("failpoint", "Hit") || !has("app", "Run") {
		t.Fatal("the binary has no names of functions, so nothing can be said")
	}
	if has("failpoint", "Arm") {
		t.Error("the binary has failpoint.Arm: something besides the crash tests calls it")
	}
	if bytes.Contains(binary, []byte(strings.Join([]string{"BOT", "FAILPOINT"}, "_"))) {
		t.Error("the binary knows a variable for failpoints")
	}
}
