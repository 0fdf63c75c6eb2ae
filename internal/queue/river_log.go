package queue

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// errorsAgain is how long River's errors with the same message stay at debug level: while
// the database is away, each of its parts has one whenever it asks.
const errorsAgain = time.Minute

// quiet returns a logger that writes everything below error at debug level:
// River reports its housekeeping as news.
func quiet(log *slog.Logger) *slog.Logger {
	return slog.New(quietHandler{log.Handler(), new(sync.Map)}).With("component", "river")
}

type quietHandler struct {
	slog.Handler
	told *sync.Map // when an error was written last, by its message
}

// Enabled implements slog.Handler.
func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, lowered(level))
}

// Handle implements slog.Handler.
func (h quietHandler) Handle(ctx context.Context, record slog.Record) error {
	record.Level = lowered(record.Level)
	if isStop(record) || h.repeats(record) {
		record.Level = slog.LevelDebug
	}
	if !h.Handler.Enabled(ctx, record.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, record)
}

// repeats reports whether an error was written a moment ago, and remembers it if not.
func (h quietHandler) repeats(record slog.Record) bool {
	if record.Level < slog.LevelError {
		return false
	}
	last, _ := h.told.Load(record.Message)
	if at, ok := last.(time.Time); ok && record.Time.Sub(at) < errorsAgain {
		return true
	}
	h.told.Store(record.Message, record.Time)
	return false
}

// isStop reports whether an error only says that River was told to stop. River
// logs that at every stop, as text, so the text is all there is to look at.
func isStop(record slog.Record) (stop bool) {
	record.Attrs(func(a slog.Attr) bool {
		stop = a.Key == "error" && strings.Contains(a.Value.String(), context.Canceled.Error())
		return !stop
	})
	return stop
}

// WithAttrs implements slog.Handler.
func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs), h.told}
}

// WithGroup implements slog.Handler.
func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name), h.told}
}

func lowered(level slog.Level) slog.Level {
	if level >= slog.LevelError {
		return level
	}
	return slog.LevelDebug
}
