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
		begin, end, ok := programPages(line, "/usr/bin/bot")
		if ok != want || ok && (begin != 0x400000 || end != 0x161a000) {
			t.Errorf("%q: %x-%x, %v", line, begin, end, ok)
		}
	}
}

func TestReleaseMakesTheProcessSmaller(t *testing.T) {
	before := residentFile(t)
	releaseProgram()
	if after := residentFile(t); after >= before {
		t.Errorf("%d kB of files are resident, before %d", after, before)
	}
	Release() // and the program goes on
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
