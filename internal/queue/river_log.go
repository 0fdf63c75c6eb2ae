package queue

import (
	"context"
	"log/slog"
)

// quiet returns a logger that writes everything below error at debug level:
// River reports its housekeeping as news.
func quiet(log *slog.Logger) *slog.Logger {
	return slog.New(quietHandler{log.Handler()}).With("component", "river")
}

type quietHandler struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, lowered(level))
}

// Handle implements slog.Handler.
func (h quietHandler) Handle(ctx context.Context, record slog.Record) error {
	record.Level = lowered(record.Level)
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}

func lowered(level slog.Level) slog.Level {
	if level >= slog.LevelError {
		return level
	}
	return slog.LevelDebug
}
