package need

import (
	"os/exec"
	"testing"
)

// Chromium returns the path of a browser that can be driven.
func Chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	skip(t, "chromium")
	return ""
}
