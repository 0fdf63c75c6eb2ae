package main

import (
	"path/filepath"
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
