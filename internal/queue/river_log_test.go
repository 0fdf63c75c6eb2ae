package queue_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/queue"
)

// TestRiverSaysOnceAMinuteThatTheDatabaseIsAway: its parts ask several times a second.
func TestRiverSaysOnceAMinuteThatTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := queue.Quiet(slog.New(slog.NewTextHandler(&out, nil)))
		for range 121 { // two minutes
			log.Error("Error fetching jobs", "err", "connection refused")
			log.With("queue", "default").Error("Error fetching jobs", "err", "connection refused")
			log.Error("Error scheduling jobs", "err", "connection refused")
			log.Error("Error fetching jobs of a stop", "error", "context canceled")
			log.Info("Job cleaner: Starting")
			time.Sleep(time.Second)
		}
		if n, m := strings.Count(out.String(), "Error fetching jobs"), strings.Count(out.String(), "\n"); n != 3 || m != 6 {
			t.Errorf("it says %d times that it cannot fetch jobs, in %d lines:\n%s", n, m, &out)
		}
	})
}
