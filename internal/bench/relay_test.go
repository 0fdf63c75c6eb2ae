package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// relayIn runs a relay in a world and returns how to end it.
func relayIn(t *testing.T, w *world, journal string) (end func() error) {
	t.Helper()
	values := map[string]string{
		envTelegramURL: w.telegramURL(), envTelegramToken: w.token, envModelURL: w.aiURL(), envModelKey: apiKey, envJournal: journal,
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Relay(ctx, func(name string) (string, bool) { v, ok := values[name]; return v, ok }) }()
	return func() error { cancel(); return <-done }
}

func TestTheDurableRelayHasEveryMessageAndReplyOnFile(t *testing.T) {
	t.Parallel()
	w, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	journal := filepath.Join(t.TempDir(), "journal")
	end := relayIn(t, w, journal)
	chats := w.newChats(3)
	if err := w.together(t.Context(), chats, 2); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(journal)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kept := make(map[int64][]string) // by chat, in order: where each text ends
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			Chat int64
			Text string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		kind := "asked"
		if strings.Contains(line.Text, endMark) {
			kind = "answered"
		}
		kept[line.Chat] = append(kept[line.Chat], kind)
	}
	for _, c := range chats {
		if diff := cmp.Diff([]string{"asked", "answered", "asked", "answered"}, kept[c.id]); diff != "" {
			t.Error(diff)
		}
	}
}

func TestARelayThatKeepsNothingAnswers(t *testing.T) {
	t.Parallel()
	w, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	end := relayIn(t, w, "")
	took, err := w.sequence(t.Context(), w.newChats(2), 2)
	if err != nil || len(took) != 4 {
		t.Fatalf("%d turns: %v", len(took), err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestTheFirstErrorEndsARelay(t *testing.T) {
	t.Parallel()
	err := Relay(t.Context(), func(string) (string, bool) { return "", false })
	if err == nil {
		t.Error("no error without an address")
	}
}

func TestQuotientOfWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	if got := quotient(3*time.Second, 2*time.Second); got != 1.5 {
		t.Errorf("quotient = %v", got)
	}
	if got := quotient(time.Second, 0); got != 0 {
		t.Errorf("quotient = %v", got)
	}
}
