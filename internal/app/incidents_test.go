package app

import (
	"context"
	"errors"
	"testing"

	"remote-agent/internal/platform"
)

// heard is a platform that answers, or not, and from which something comes in, or not.
type heard struct {
	platform.Adapter

	check, receiving error
}

func (h heard) Check(context.Context) (platform.Account, error) { return platform.Account{}, h.check }
func (h heard) Receiving() error                                { return h.receiving }

// TestAPlatformIsReachable if it answers and what people say there comes in.
func TestAPlatformIsReachable(t *testing.T) {
	t.Parallel()
	away, deaf := errors.New("away"), errors.New("deaf")
	for _, tc := range []struct {
		of   heard
		want error
	}{{heard{}, nil}, {heard{check: away}, away}, {heard{receiving: deaf}, deaf}, {heard{check: away, receiving: deaf}, away}} {
		if err := reachable(t.Context(), tc.of); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.of, err, tc.want)
		}
	}
}
