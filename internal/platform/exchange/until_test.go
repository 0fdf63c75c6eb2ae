package exchange_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform/exchange"
)

func TestUntilDone(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unavailable, "")
	refused := fault.New(fault.Unauthorized, "")
	for name, tt := range map[string]struct {
		answers []error
		lasts   time.Duration // of the context; zero: long enough
		want    error
		tries   int
		least   time.Duration // how long it takes
		most    time.Duration
	}{
		"at once":                  {answers: []error{nil}, tries: 1},
		"in the end":               {answers: []error{away, away, nil}, tries: 3, least: 300 * time.Millisecond, most: 600 * time.Millisecond},
		"as late as it is asked":   {answers: []error{exchange.Limited(time.Minute), nil}, tries: 2, least: time.Minute, most: time.Minute},
		"an operator has to help":  {answers: []error{away, refused}, want: refused, tries: 2, least: 100 * time.Millisecond, most: 200 * time.Millisecond},
		"the program ends instead": {answers: []error{exchange.Limited(time.Hour)}, lasts: time.Minute, tries: 1, least: time.Minute, most: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.lasts > 0 {
					time.AfterFunc(tt.lasts, cancel)
				}
				tries, begin := 0, time.Now()
				err := exchange.UntilDone(ctx, slog.New(slog.DiscardHandler), "", func(context.Context) error {
					tries++
					return tt.answers[tries-1]
				}, fault.Unauthorized)
				if took := time.Since(begin); !errors.Is(err, tt.want) || tries != tt.tries || took < tt.least || took > tt.most {
					t.Errorf("%v after %d tries and %v", err, tries, took)
				}
			})
		})
	}
}

// TestUntilDoneIsSilentAtTheEnd: that a call is cut off is no failure where ctx ended it.
func TestUntilDoneIsSilentAtTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := exchange.UntilDone(ctx, slog.New(slog.DiscardHandler), "", func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}
