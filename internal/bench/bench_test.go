package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/sandbox"
	"remote-agent/internal/store/storetest"
)

// botEnv turns the test binary into the bot.
const botEnv = "BENCH_TEST_BOT"

// envFileEnv names its empty .env file.
const envFileEnv = "BENCH_TEST_ENV_FILE"

func TestMain(m *testing.M) {
	sandbox.RunIfHelper() // the bot runs programs confined, with this very test as the helper
	switch os.Getenv(botEnv) {
	case "":
		os.Exit(storetest.Main(m))
	case "run":
		os.Exit(measured())
	default:
		os.Exit(3) // a bot that does not start
	}
}

// relayArg as the first argument makes the measured process a relay.
const relayArg = "relay"

func measured() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	run := bot
	if len(os.Args) > 1 && os.Args[1] == relayArg {
		run = func(ctx context.Context) error { return Relay(ctx, os.LookupEnv) }
	}
	if err := run(ctx); err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
		return 1
	}
	return 0
}

func bot(ctx context.Context) error {
	cfg, err := app.LoadConfig(config.Source{Environ: os.Environ(), EnvFile: os.Getenv(envFileEnv)})
	if err != nil {
		return err
	}
	return app.Run(ctx, cfg, app.Env{
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: os.Stderr, Version: "test",
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.Log.Level})),
	})
}

func TestRunMeasuresTheRealProgram(t *testing.T) {
	t.Parallel()
	dir, none := t.TempDir(), filepath.Join(t.TempDir(), "none.env")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), Options{
		Command: []string{os.Args[0]}, Relay: []string{os.Args[0], relayArg},
		Environ: []string{botEnv + "=run", envFileEnv + "=" + none}, Dir: dir,
		Turns: 60, Chats: 6, Samples: 5, Histories: []int{0, 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]time.Duration{
		"start": report.Start.Empty, "start again": report.Start.Again,
		"in": report.OneAtATime.InP50, "added": report.OneAtATime.AddedP95,
		"at once": report.AtOnce.P95, "history": report.Histories[1].Latency.AddedP50,
		"floor": report.Floors.KeepsNothing.OneAtATime.AddedP50, "durable floor": report.Floors.Durable.OneAtATime.AddedP95,
	} {
		if d <= 0 {
			t.Errorf("%s = %s", name, d)
		}
	}
	if report.AtOnce.Turns != 60 || report.AtOnce.TurnsPerSecond <= 0 || report.AtOnce.CallsPerTurn < 1 || report.Machine.FsyncsPerSecond <= 0 {
		t.Errorf("report = %+v", report)
	}
	one, floor := report.OneAtATime, report.Floors.Durable
	if got, want := report.Ratios.Durable.AddedP50, float64(one.AddedP50)/float64(floor.OneAtATime.AddedP50); got != want {
		t.Errorf("ratio of p50 = %v, want %v", got, want)
	}
	if got, want := report.Ratios.Durable.TurnsPerSecond, report.AtOnce.TurnsPerSecond/floor.AtOnce.TurnsPerSecond; got != want || floor.AtOnce.Turns != 60 {
		t.Errorf("ratio of turns = %v, want %v of %d turns", got, want, floor.AtOnce.Turns)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}

	var text, object bytes.Buffer
	if err := report.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"turns per second", "added in all", "history of 3 turns", "< 45 MB", "durable appends", "synchronous=FULL",
		"bot / durable", "<= 1.8 of durable", ">= 0.45 of durable"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	if err := report.WriteJSON(&object); err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(object.Bytes(), &again); err != nil || again.AtOnce != report.AtOnce || *again.Ratios != *report.Ratios {
		t.Errorf("JSON = %s (%v)", &object, err)
	}
}

func TestReplicasShareADatabase(t *testing.T) {
	t.Parallel()
	url, none := storetest.PostgresURL(t), filepath.Join(t.TempDir(), "none.env")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), Options{
		Command: []string{os.Args[0]}, Environ: []string{botEnv + "=run", envFileEnv + "=" + none}, Dir: t.TempDir(), DatabaseURL: url,
		Replicas: 2, Turns: 60, Chats: 6, Samples: 5, Histories: []int{0},
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.AtOnce.Turns != 60 || report.Setup.Replicas != 2 || report.Floors != nil {
		t.Errorf("report = %+v", report)
	}
	var text bytes.Buffer
	if err := report.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	if want := `PostgreSQL, 2 replicas from "at once" on; emulated`; !strings.Contains(text.String(), want) {
		t.Errorf("no %q in\n%s", want, &text)
	}
}

func TestABotThatDoesNotStartIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Run(t.Context(), Options{Command: []string{os.Args[0]}, Environ: []string{botEnv + "=broken"}, Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "did not start: exit status 3") {
		t.Errorf("error = %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestABadOptionIsAnError(t *testing.T) {
	t.Parallel()
	command := []string{"/nonexistent"}
	for name, opts := range map[string]Options{
		"no command":       {},
		"no such program":  {Command: command, Dir: t.TempDir()},
		"no such folder":   {Command: command, Dir: filepath.Join(t.TempDir(), "none")},
		"negative history": {Command: command, Histories: []int{-1}},
		"too many chats":   {Command: command, Chats: 100_000},
		"replicas alone":   {Command: command, Replicas: 3},
		"no PostgreSQL":    {Command: command, DatabaseURL: "mysql://127.0.0.1/none"},
		"no replica":       {Command: command, Replicas: -1, DatabaseURL: "postgres://127.0.0.1/none"},
	} {
		_, err := Run(t.Context(), opts)
		if ours := name == "no command" || name == "no such program"; err == nil || IsUsage(err) == ours {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for _, tc := range []struct {
		of   []time.Duration
		p    float64
		want time.Duration
	}{
		{nil, 0.5, 0},
		{[]time.Duration{7}, 0.5, 7},
		{[]time.Duration{7}, 0.95, 7},
		{[]time.Duration{3, 1, 2}, 0.5, 2},
		{[]time.Duration{1, 2, 3, 4}, 0.5, 2},
		{hundred, 0.5, 50},
		{hundred, 0.95, 95},
		{hundred, 1, 100},
	} {
		if got := percentile(tc.of, tc.p); got != tc.want {
			t.Errorf("percentile(%d values, %v) = %d, want %d", len(tc.of), tc.p, got, tc.want)
		}
	}
}

func TestProcessFigures(t *testing.T) {
	t.Parallel()
	status := []byte("Name:\tbot\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n")
	if got := statusBytes(status, "VmHWM:"); got != 2<<20 {
		t.Errorf("peak = %d", got)
	}
	if got := statusBytes(status, "VmSwap:"); got != 0 {
		t.Errorf("swap = %d", got)
	}
	got := parseStat("42 (a (odd) name) S 1 1 1 0 -1 4194304 10 0 0 0 150 25 0 0 20 0 1 0 100 1 1")
	if want := (processTime{used: 1750 * time.Millisecond, known: true}); got != want {
		t.Errorf("time = %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S 1", "42 (x) S 1 1 1 0 -1 1 1 0 0 0 a b 0"} {
		if got := parseStat(bad); got.known {
			t.Errorf("parseStat(%q) = %+v", bad, got)
		}
	}
}

func TestWhatIsNotKnownIsSaid(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := (Report{}).WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "not available"); n != 5 {
		t.Errorf("%d figures are not available, want 5:\n%s", n, &text)
	}
}
