package resource_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"remote-agent/internal/fault"
	"remote-agent/internal/resource"
)

func TestMemoryOfControlGroups(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tests := map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"none": {fstest.MapFS{}, 0},
		"version 2": {fstest.MapFS{
			"proc/self/cgroup": file("0::/system.slice/bot.service\n"), "sys/fs/cgroup/system.slice/bot.service/memory.max": file("536870912\n"),
		}, 512 << 20},
		"version 2, limited above": {fstest.MapFS{
			"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/memory.max": file("104857600\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"),
		}, 100 << 20},
		"version 2, in a container": {fstest.MapFS{
			"proc/self/cgroup": file("0::/../../docker/1\n"), "sys/fs/cgroup/memory.max": file("268435456\n"),
		}, 256 << 20},
		"version 2, no limit": {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 0},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup": file("12:cpu,cpuacct:/x\n5:memory:/docker/1\n1:name=systemd:/x\n"),
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": file("1073741824\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          file("9223372036854771712\n"),
		}, 1 << 30},
		"version 1, no limit": {fstest.MapFS{
			"proc/self/cgroup": file("5:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, 0},
		"nonsense": {fstest.MapFS{"proc/self/cgroup": file("x\n::\n0::/\n"), "sys/fs/cgroup/memory.max": file("-12\n")}, 0},
	}
	for name, tt := range tests {
		if got := resource.Read(tt.files).Memory; got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

func TestPlanLowersWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limits        resource.Limits
		want          resource.Want
		conversations int
		warns         string
	}{
		"nothing known":  {resource.Limits{}, resource.Want{Conversations: 10, Platforms: 3}, 10, ""},
		"plenty":         {resource.Limits{Descriptors: 1024, Memory: 2 << 30}, resource.Want{Conversations: 10, Platforms: 3}, 10, ""},
		"unlimited":      {resource.Limits{Descriptors: math.MaxInt32}, resource.Want{Conversations: 10_000, Platforms: 3}, 10_000, ""},
		"ulimit -n 64":   {resource.Limits{Descriptors: 64}, resource.Want{Conversations: 10, Platforms: 1}, 4, "64 file descriptors are only enough for 4"},
		"ulimit -n 32":   {resource.Limits{Descriptors: 32}, resource.Want{Conversations: 10, Platforms: 1}, 1, "are only enough for 1"},
		"many":           {resource.Limits{Descriptors: 1024}, resource.Want{Conversations: 1000, Platforms: 2}, 138, "file descriptors"},
		"agents":         {resource.Limits{Descriptors: 256}, resource.Want{Conversations: 40, Platforms: 1, Agents: true}, 11, "file descriptors"},
		"memory":         {resource.Limits{Memory: 128 << 20}, resource.Want{Conversations: 10}, 5, "128 MiB of memory are only enough for 5"},
		"agents' memory": {resource.Limits{Memory: 2 << 30}, resource.Want{Conversations: 10, Agents: true}, 6, "2048 MiB of memory are only enough for 6"},
		"no memory":      {resource.Limits{Memory: 32 << 20}, resource.Want{Conversations: 10}, 1, "memory"},
		"both":           {resource.Limits{Descriptors: 64, Memory: 100 << 20}, resource.Want{Conversations: 10, Platforms: 1}, 1, "memory"},
	}
	for name, tt := range tests {
		p := resource.Make(tt.limits, tt.want)
		warned := strings.Join(p.Warnings, " ")
		if p.Conversations != tt.conversations || !strings.Contains(warned, tt.warns) || (tt.warns == "") != (warned == "") {
			t.Errorf("%s: %d conversations, %q, want %d and %q", name, p.Conversations, warned, tt.conversations, tt.warns)
		}
		if (p.Web == 0) != (p.PerPlatform == 0) || tt.limits.Descriptors == 64 && (p.Web < 8 || p.PerPlatform < 3) {
			t.Errorf("%s: %d connections come in, %d go to each platform", name, p.Web, p.PerPlatform)
		}
		// What was planned is what fits.
		if again := resource.Make(tt.limits, resource.Want{Conversations: p.Conversations, Platforms: tt.want.Platforms, Agents: tt.want.Agents}); again.Conversations != p.Conversations {
			t.Errorf("%s: planned again it is %d", name, again.Conversations)
		}
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	open, limit, ok := resource.Descriptors()
	if !ok {
		t.Skip("not known here")
	}
	if open < 3 || open > limit {
		t.Errorf("%d of %d descriptors are open", open, limit)
	}
	if free, files, ok := resource.DiskFree(t.TempDir()); !ok || !files || free <= 0 {
		t.Errorf("%d bytes are free, files %v: %v", free, files, ok)
	}
	if err := resource.CheckDescriptors(); err != nil {
		t.Error(err)
	}
	if err := resource.CheckDisk(t.TempDir()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/dev/full"); err == nil && !fault.Is(fullDevice(), fault.Disk) {
		t.Errorf("a full device: %v", fullDevice())
	}
}

func fullDevice() error {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // a test
	_, err = f.Write([]byte("x"))
	return err
}
