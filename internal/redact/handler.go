package redact

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"remote-agent/internal/lists"
)

// Handler returns a slog.Handler that takes credentials out of messages and
// attributes and passes the rest to next.
func Handler(next slog.Handler, r *Redactor) slog.Handler {
	return &handler{next: next, redactor: r}
}

type handler struct {
	next     slog.Handler
	redactor *Redactor
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	clean := slog.NewRecord(record.Time, record.Level, h.redactor.String(record.Message), record.PC)
	record.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{next: h.next.WithAttrs(h.attrs(attrs)), redactor: h.redactor}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{next: h.next.WithGroup(name), redactor: h.redactor}
}

func (h *handler) attrs(in []slog.Attr) []slog.Attr {
	return lists.Map(in, h.attr)
}

func (h *handler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(h.redactor.String(v.String()))
	case slog.KindGroup:
		v = slog.GroupValue(h.attrs(v.Group())...)
	case slog.KindAny:
		v = h.any(v)
	default: // numbers, booleans and times hold no credentials
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// any looks at a value the way handlers print it, as text and as JSON. A clean
// value stays what it is; any other becomes redacted text.
func (h *handler) any(v slog.Value) slog.Value {
	switch x := v.Any().(type) {
	case error:
		return slog.StringValue(h.redactor.String(safeText(func() string { return x.Error() })))
	case []byte:
		return slog.StringValue(h.redactor.String(string(x)))
	case fmt.Stringer:
		return slog.StringValue(h.redactor.String(safeText(x.String)))
	default:
		text := fmt.Sprintf("%+v", x)
		clean := h.redactor.String(text)
		if clean != text {
			return slog.StringValue(clean)
		}
		if data, err := json.Marshal(x); err == nil {
			if clean := h.redactor.String(string(data)); clean != string(data) {
				return slog.StringValue(clean)
			}
		}
		return v
	}
}

// safeText calls text, which belongs to a value somebody logged: a nil pointer
// in an interface must not end the program from inside the logger.
func safeText(text func() string) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprintf("!PANIC: %v", p)
		}
	}()
	return text()
}
