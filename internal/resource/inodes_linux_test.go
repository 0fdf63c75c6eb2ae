package resource_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
	"remote-agent/internal/resource"
)

func TestDiskWithoutInodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m,nr_inodes=2"); err != nil { // the folder is one of them
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	if err := resource.CheckDisk(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "last"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := resource.CheckDisk(dir); !fault.Is(err, fault.Disk) || !strings.Contains(fault.Public(err), "inodes") {
		t.Errorf("no file can be made: %v", err)
	}
}
