package confine_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"remote-agent/internal/codebase/confine"
	"remote-agent/internal/fault"
)

func setup(tb testing.TB) (root *os.Root, dir string) {
	tb.Helper()
	top := tb.TempDir()
	dir = filepath.Join(top, "ws")
	for path, text := range map[string]string{"ws/a/file": "inside", "ws-evil/file": "outside", "ws/big": strings.Repeat("x", 5000)} {
		full := filepath.Join(top, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"abs": "/etc/passwd", "absdir": "/etc", "prefix": top + "/ws-evil", "rel": "../ws-evil", "deep": "a/../../ws-evil",
		"loop": "loop", "inside": "a/file", "insidedir": "a", "zero": "/dev/zero", "tty": "/dev/tty",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		tb.Fatal(err)
	}
	listen, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err == nil {
		tb.Cleanup(func() { listen.Close() })
	}
	root, err = os.OpenRoot(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { root.Close() })
	return root, dir
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	root, dir := setup(t)
	for _, path := range []string{"a/file", "./a/file", "a//file", "inside", "insidedir/file"} {
		if data, err := confine.ReadFile(root, path, 100); err != nil || string(data) != "inside" {
			t.Errorf("ReadFile(%q) = %q, %v", path, data, err)
		}
	}
	// S20, S19.
	for path, reason := range map[string]string{
		"..": "“..”", "../ws-evil/file": "“..”", "a/../a/file": "“..”", "/etc/passwd": "absolute", dir + "/a/file": "absolute", "~": "“~”", "~root/x": "“~”",
		"a\x00b": "control", "a\nb": "control", "a/\xff": "control", ".git/config": ".git", "a/.GiT/x": ".git", strings.Repeat("a/", 600): "longer",
		"abs": "leads out", "absdir/passwd": "leads out", "prefix/file": "leads out", "rel/file": "leads out", "deep/file": "leads out", "zero": "leads out", "tty": "leads out",
		"loop": "", "pipe": "pipe", "sock": "socket", "a": "a folder", ".": "a folder", "": "a folder", "none": "no none", "a/file/x": "is a file", "big": "larger",
	} {
		data, err := confine.ReadFile(root, path, 4096)
		k := fault.KindOf(err)
		if (k != fault.Invalid && k != fault.NotFound) || data != nil {
			t.Errorf("ReadFile(%q) = %q, %v", path, data, err)
		}
		if text := fault.Public(err); !strings.Contains(text, reason) || len(text) < 15 {
			t.Errorf("ReadFile(%q) says %q, want %q in it", path, text, reason)
		}
	}
}

func TestDir(t *testing.T) {
	t.Parallel()
	root, _ := setup(t)
	for path, want := range map[string]string{"": ".", ".": ".", "a/": "a", "insidedir": "insidedir"} {
		if got, err := confine.Dir(root, path); err != nil || got != want {
			t.Errorf("Dir(%q) = %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"a/file", "pipe", "sock", "none", "absdir", "prefix", "rel", "deep", "..", "/", "~", "loop"} {
		if got, err := confine.Dir(root, path); err == nil || got != "" {
			t.Errorf("Dir(%q) = %q, %v", path, got, err)
		}
	}
}

// TestSwappedDirectory is the race of S19: a directory that becomes a link out
// while it is used.
func TestSwappedDirectory(t *testing.T) {
	t.Parallel()
	root, dir := setup(t)
	target := filepath.Join(dir, "a")
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(target, target+"-away")
			_ = os.Symlink("../ws-evil", target)
			_ = os.Remove(target)
			_ = os.Rename(target+"-away", target)
		}
	})
	// On a busy machine the swapper may stand still, with the folder there or
	// away, for longer than many reads take: they go on until both were met.
	inside, refused := 0, 0
	for n := 0; n < 10_000 || (inside == 0 || refused == 0) && n < 10_000_000; n++ {
		data, err := confine.ReadFile(root, "a/file", 100)
		if err != nil {
			refused++
			continue
		}
		if inside++; string(data) != "inside" {
			t.Fatalf("read %q", data)
		}
	}
	close(stop)
	swapper.Wait()
	if inside == 0 || refused == 0 {
		t.Errorf("%d reads worked and %d were refused; without both, the test shows nothing", inside, refused)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a", "a/b", "..", "a/../..", "/x", "~", "a\x00", ".git", "", "./.", "a//b/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if rel, err := confine.Clean(p); err == nil && (!filepath.IsLocal(rel) || strings.HasPrefix(rel, "~")) {
			t.Errorf("Clean(%q) = %q", p, rel)
		}
	})
}
