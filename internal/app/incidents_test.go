package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// heard is a platform that answers, or not, and from which something comes in, or not.
type heard struct {
	platform.Adapter

	check, receiving error
}

func (h heard) Check(context.Context) (platform.Account, error) { return platform.Account{}, h.check }
func (h heard) Receiving() error                                { return h.receiving }
func (heard) Platform() messages.Platform                       { return "chat" }

// TestAPlatformIsReachable if it answers and what people say there comes in.
func TestAPlatformIsReachable(t *testing.T) {
	t.Parallel()
	away, deaf := errors.New("away"), errors.New("deaf")
	for _, tc := range []struct {
		of   heard
		want error
	}{{heard{}, nil}, {heard{check: away}, away}, {heard{receiving: deaf}, deaf}, {heard{check: away, receiving: deaf}, away}} {
		pl := platforms{accounts: make(map[messages.Platform]platform.Account), troubles: make(map[messages.Platform]error)}
		if err := pl.reachable(t.Context(), tc.of); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.of, err, tc.want)
		}
	}
}

// TestReplicasKnowTogetherWhatIsDisconnected has two replicas look at a platform once a
// minute each, of which the first one receives unless it is said otherwise.
func TestReplicasKnowTogetherWhatIsDisconnected(t *testing.T) {
	t.Parallel()
	type look struct {
		replica  string
		found    string // why it is not connected; empty: it is
		receives bool
	}
	for name, tt := range map[string]struct {
		minutes [][]look
		want    string
	}{
		"Nobody has looked":                       {nil, ""},
		"Both are connected":                      {[][]look{{{"a", "", true}, {"b", "", false}}}, ""},
		"Who receives does not hear":              {[][]look{{{"a", "", true}, {"b", "", false}}, {{"a", "deaf", true}, {"b", "", false}}}, "deaf"},
		"Only who does not receive is cut off":    {[][]look{{{"a", "", true}, {"b", "away", false}}, {{"a", "", true}, {"b", "away", false}}}, ""},
		"One of two that receive is cut off":      {[][]look{{{"a", "away", true}, {"b", "", true}}, {{"a", "away", true}, {"b", "", true}}}, ""},
		"Both are cut off":                        {[][]look{{{"a", "", true}, {"b", "", true}}, {{"a", "away", true}, {"b", "away", true}}}, "away"},
		"It is over":                              {[][]look{{{"a", "deaf", true}, {"b", "", false}}, {{"a", "", true}, {"b", "", false}}}, ""},
		"Who was connected is gone":               {[][]look{{{"a", "", true}, {"b", "away", false}}, {{"b", "away", false}}, {{"b", "away", false}}}, "away"},
		"Who was not connected is gone":           {[][]look{{{"a", "deaf", true}}, {}, {}}, ""},
		"Another one receives what the first did": {[][]look{{{"a", "deaf", true}, {"b", "", false}}, {{"a", "", false}, {"b", "", true}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, now := storetest.SQLite(t)(t), time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC)
			for _, minute := range tt.minutes {
				now = now.Add(platformsEvery)
				for _, l := range minute {
					var found error
					if l.found != "" {
						found = fault.New(fault.Unavailable, l.found)
					}
					if err := (reach{s, l.replica}).note(t.Context(), "chat", found, l.receives, now); err != nil {
						t.Fatal(err)
					}
				}
			}
			got, err := reach{s, "b"}.trouble(t.Context(), "chat", now.Add(lookEvery))
			if err != nil || got != tt.want {
				t.Errorf("trouble is %q (%v), want %q", got, err, tt.want)
			}
			if got, _ := (reach{s, "b"}).trouble(t.Context(), "other", now); got != "" {
				t.Errorf("of another platform: %q", got)
			}
		})
	}
}

// A file that was removed is written all the same, so people do get answers.
func TestWhatIsNotKeptIsTrue(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"⚠ Messages cannot be stored, so nobody gets an answer. It is full.": fault.New(fault.Disk, "It is full."),
		"⚠ Messages and answers will be lost. It is gone.":                   &fault.Error{Kind: fault.Unavailable, Public: "It is gone.", Err: store.ErrGone},
	} {
		if got := notKept(err); got != want {
			t.Errorf("owners are told %q, want %q", got, want)
		}
	}
}

// A disk that is full takes the small write by which it is tried, and refuses messages.
func TestAFullDiskIsAnIncidentAlthoughASmallWriteIsStored(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t)(t)
	full := fault.New(fault.Disk, "The disk is full.")
	var room error = full
	i := &incidents{store: s, room: func() error { return room }, log: slog.New(slog.DiscardHandler), read: time.Now()}
	i.leads.Store(true)
	if !i.storeWorks(t.Context()) || i.told {
		t.Error("owners are told although every write was stored")
	}
	if err := s.InTx(t.Context(), func(*store.Tx) error { return full }); err == nil {
		t.Fatal("a write was to fail")
	}
	for range 2 {
		if i.storeWorks(t.Context()) || !i.told {
			t.Error("owners are not told although a write failed on a full disk")
		}
	}
	room = nil
	if !i.storeWorks(t.Context()) || i.told {
		t.Error("it does not end although there is room")
	}
}
