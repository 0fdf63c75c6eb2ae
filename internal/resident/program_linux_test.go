package resident

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestProgramPages(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"00400000-0161a000 r-xp 00001000 fe:00 1234    /usr/bin/bot\n": true,
		"00400000-0161a000 r--p 00001000 fe:00 1234    /usr/bin/bot":   true,
		"00400000-0161a000 rw-p 00001000 fe:00 1234    /usr/bin/bot\n": false, // data
		"00400000-0161a000 rw-s 00001000 fe:00 1234    /usr/bin/bot\n": false,
		"00400000-0161a000 r-xp 00001000 fe:00 1234    /usr/lib/x.so":  false,
		"00400000-0161a000 r-xp 00000000 00:00 0\n":                    false,
		"0161a000-00400000 r-xp 00001000 fe:00 1234    /usr/bin/bot\n": false,
		"what-ever r-xp 00001000 fe:00 1234    /usr/bin/bot\n":         false,
		"": false,
	} {
		m, ok := programPages(line, "/usr/bin/bot")
		if ok != want || ok && m != (mapping{0x400000, 0x161a000}) {
			t.Errorf("%q: %x, %v", line, m, ok)
		}
	}
}

func TestReleaseMakesTheProcessSmaller(t *testing.T) {
	before := residentFile(t)
	ReleaseProgram()
	if after := residentFile(t); after >= before {
		t.Errorf("%d kB of files are resident, before %d", after, before)
	}
	Release() // and the program goes on
}

func TestPartsAreAllOfAMapping(t *testing.T) {
	t.Parallel()
	for _, size := range []uintptr{1, 4 << 10, around, around + 1, 7 * around, 60 * around, 61*around + 4096, 38e6} {
		whole := mapping{0x400000, 0x400000 + size}
		next := whole.begin
		for i := range trimSteps {
			p := whole.part(i, trimSteps)
			if p.begin != next || p.end < p.begin || p.end != whole.end && (p.end-p.begin)%around != 0 {
				t.Errorf("of %d bytes, part %d is %x, and the one before ended at %x", size, i, p, next)
			}
			next = p.end
		}
		if next != whole.end {
			t.Errorf("%d bytes: the last part ends at %x, want %x", size, next, whole.end)
		}
	}
}

// residentFile returns how many kB of files are resident.
func residentFile(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("there is no /proc here")
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssFile:"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Skip("the system does not tell")
	return 0
}
