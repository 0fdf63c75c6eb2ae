package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheMeasuredProcessGetsNoConfigurationFromOutside(t *testing.T) {
	t.Parallel()
	got := systemEnviron([]string{
		"PATH=/bin", "OPENAI_API_KEY=hunter2", "TELEGRAM_BOT_TOKEN=1:x", "DATA_DIR=/srv", "GOMAXPROCS=1", "LOG_LEVEL=debug", "strange",
	})
	if diff := cmp.Diff([]string{"PATH=/bin", "GOMAXPROCS=1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestProfilesAreWrittenWhereTheCommandWasStarted(t *testing.T) {
	t.Chdir(t.TempDir())
	flags, err := benchCommand{Cpuprofile: "cpu.out"}.profile()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"--cpuprofile=" + filepath.Join(dir, "cpu.out")}, flags); diff != "" {
		t.Error(diff)
	}
}

// What cannot be measured or tried is said at once, and is a wrong call.
func TestWhatCannotBeTried(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"bench", "--replicas", "2"}, "add --database-url"},
		{[]string{"bench", "--replicas", "0"}, "must be at least 1"},
		{[]string{"bench", "--chats", "0"}, "must be at least 1"},
		{[]string{"bench", "--histories", "-5"}, "a history"},
		{[]string{"bench", "--dir", "/nonexistent"}, "/nonexistent"},
		{[]string{"bench", "--database-url", "mysql://x"}, "postgres://"},
		{[]string{"bench", "--database-url", "sqlite:x.db"}, "postgres://"},
		{[]string{"bench", "--database-url", "postgres://127.0.0.1:1/x"}, "PostgreSQL at 127.0.0.1 does not accept the connection"},
		{[]string{"bench", "--cpuprofile", "nosuch/cpu.out"}, "--cpuprofile nosuch/cpu.out cannot be written"},
		{[]string{"bench", "--memprofile", "."}, "--memprofile . cannot be written"},
		{[]string{"chaos", "--with", "x"}, `NAME=VALUE with an option of bot serve, not "x"`},
		{[]string{"chaos", "--with", "LOG_LEVELS=debug"}, "LOG_LEVELS"},
	} {
		r := bot(t, nil, tc.args...)
		if r.code != exitUsage || !strings.Contains(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%v: code %d, stderr %q", tc.args, r.code, r.stderr)
		}
	}
}
