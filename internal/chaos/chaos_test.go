package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/chaos"
)

// deaf, as an argument, makes this test binary a bot that acknowledges everything and
// answers nobody: see TestADeafBotIsFoundGuilty.
const deaf = "run-as-a-deaf-bot"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == deaf {
		runDeaf()
	}
	goleak.VerifyTestMain(m)
}

// run tries a program.
func run(t *testing.T, opts chaos.Options) chaos.Report {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	opts.Command = []string{self, deaf}
	report, err := chaos.Run(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if report.Kept != "" {
		if err := os.RemoveAll(report.Kept); err != nil {
			t.Error(err)
		}
	}
	return report
}

// TestADeafBotIsFoundGuilty tries a program that breaks its promises.
func TestADeafBotIsFoundGuilty(t *testing.T) {
	t.Parallel()
	report := run(t, chaos.Options{Platform: "telegram", For: 2 * time.Second, Kills: 2, Seed: 1, Rate: 20, Faults: -1, Patience: time.Second})
	v := report.Verdict
	if v.Said == 0 || v.Accepted == 0 || v.Once != 0 || v.Lost != v.Accepted || !report.Broken() {
		t.Errorf("the verdict is %+v", v)
	}
	if report.Kept == "" {
		t.Error("nothing is kept to be looked at")
	}
	var table strings.Builder
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A promise was broken", fmt.Sprintf("  lost %20d\n", v.Lost), "BROKEN  c", "was accepted and is not answered"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, &table)
		}
	}
}

// TestJustKillsNothingElseGoesWrong has a run in which processes are only killed.
func TestJustKillsNothingElseGoesWrong(t *testing.T) {
	t.Parallel()
	report := run(t, chaos.Options{Platform: "telegram", For: 20 * time.Second, Kills: 4, JustKill: true, Seed: 1, Faults: -1, Patience: time.Second})
	if n := report.Done["kill: 50 to 1,800 ms of life"]; n != 4 || report.Kills != 4 {
		t.Errorf("%d of %d kills were at 50 to 1,800 ms of life, want all 4", n, report.Kills)
	}
	for what := range report.Done {
		if !strings.HasPrefix(what, "kill: ") && what != "an event comes again" {
			t.Errorf("%q went wrong, too", what)
		}
	}
}

// TestWhatCannotBeDone gives options that cannot be carried out.
func TestWhatCannotBeDone(t *testing.T) {
	t.Parallel()
	command := []string{"/nonexistent"}
	for want, opts := range map[string]chaos.Options{
		"no platform":          {Command: command, Platform: "icq", For: time.Second},
		"replicas need":        {Command: command, Platform: "telegram", For: time.Second, Replicas: 2},
		"say for how long":     {Command: command, Platform: "telegram"},
		"a database is sqlite": {Command: command, Platform: "telegram", For: time.Second, Database: "mysql://x"},
		"before each kill":     {Command: command, Platform: "telegram", For: time.Second, OnKill: "/bin/true"},
		"add --soak":           {Command: command, Platform: "telegram", For: time.Second, Profiles: "/nonexistent"},
		"at most 1,000":        {Command: command, Platform: "telegram", For: time.Second, Rate: 1e6},
	} {
		_, err := chaos.Run(t.Context(), opts)
		if !chaos.IsUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	report, err := chaos.Run(t.Context(), chaos.Options{Command: command, Platform: "telegram", For: time.Second})
	if err == nil || chaos.IsUsage(err) || report.Kept == "" {
		t.Errorf("a program that is not there: %v, kept in %q", err, report.Kept)
	}
	if err := os.RemoveAll(report.Kept); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	if report, err := chaos.Run(ctx, chaos.Options{Command: command, Platform: "telegram", For: time.Second}); err == nil || report.Kept != "" {
		t.Errorf("a run that is called off: %v, kept in %q", err, report.Kept)
	}
}

// runDeaf takes every update, shows that it is ready and does nothing else.
func runDeaf() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := beDeaf(ctx)
	over := ctx.Err() != nil
	stop()
	if err != nil && !over {
		fmt.Fprintln(os.Stderr, err) //nolint:errcheck // there is nowhere else to say it
		os.Exit(1)
	}
	os.Exit(0)
}
