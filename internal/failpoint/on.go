//go:build failpoint

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var hits atomic.Int64

// Hit ends the process with SIGKILL if BOT_FAILPOINT is "<point>:<n>" and this
// is the n-th time that the point is passed (":n" may be left out for 1).
func Hit(p Point) {
	name, count, _ := strings.Cut(os.Getenv("BOT_FAILPOINT"), ":")
	if name != string(p) {
		return
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		n = 1
	}
	if hits.Add(1) != n {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is asynchronous: nothing after this point may run
}
