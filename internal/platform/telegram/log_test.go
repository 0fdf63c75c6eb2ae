package telegram_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// logBuffer collects a log. It fails the test if a credential gets into it.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func testLog(t *testing.T) *slog.Logger {
	t.Helper()
	l := &logBuffer{}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if s := l.b.String(); strings.Contains(s, "AAHsecret") || strings.Contains(s, secret) {
			t.Errorf("the log contains a credential: %s", s)
		}
		if t.Failed() {
			t.Logf("log:\n%s", l.b.String())
		}
	})
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
