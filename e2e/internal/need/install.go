package need

import (
	"os"
	"os/exec"
	"testing"
)

const install = "E2E_INSTALL"

// Disposable ends the test unless packages may be installed on this machine: it was
// said so, this is root, and there is dpkg.
func Disposable(t testing.TB) {
	t.Helper()
	if os.Getenv(install) == "" {
		skip(t, "leave to install packages on this machine: "+install+"=1")
	}
	if os.Getuid() != 0 {
		skip(t, "root, to install a package")
	}
	for _, program := range []string{"dpkg", "setpriv", "useradd"} {
		if _, err := exec.LookPath(program); err != nil {
			skip(t, program)
		}
	}
}
