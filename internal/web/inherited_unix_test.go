//go:build unix

package web_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/web"
)

func TestInheritedSocketsAreForThisProcess(t *testing.T) {
	t.Parallel()
	mine := strconv.Itoa(os.Getpid())
	for _, tc := range []struct{ pid, count, want string }{
		{"", "1", ""}, {"1", "1", ""}, {"nobody", "1", ""}, {mine, "0", ""},
		{mine, "", "LISTEN_FDS"}, {mine, "-1", "LISTEN_FDS"}, {mine, "x", "LISTEN_FDS"}, {mine, "17", "LISTEN_FDS"},
	} {
		vars := map[string]string{"LISTEN_PID": tc.pid, "LISTEN_FDS": tc.count}
		got, err := web.Inherited(func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
		if len(got) != 0 || (err != nil) != (tc.want != "") || err != nil && (!fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), tc.want)) {
			t.Errorf("LISTEN_PID=%s LISTEN_FDS=%s: %d sockets, %v", tc.pid, tc.count, len(got), err)
		}
	}
}
