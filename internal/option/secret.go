package option

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a text that does not print itself, whatever verb or encoder it
// meets. The zero value is an unset secret.
type Secret struct {
	// A pointer, because fmt prints unexported fields of other structs without
	// calling their methods: it finds an address, not the text.
	text *string
}

// NewSecret returns a Secret that holds text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text; empty if the secret is not set.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsSet reports whether there is a text.
func (s Secret) IsSet() bool { return s.text != nil }

// Equal reports whether both hold the same text.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

// String returns a mask, or the empty string for an unset secret.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return fmt.Sprintf("option.Secret(%q)", s.String()) }

// Format implements fmt.Formatter for every verb: with String alone, fmt would
// print the fields for verbs such as %d.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	switch {
	case verb == 'v' && f.Flag('#'):
		text = s.GoString()
	case verb == 'q':
		text = fmt.Sprintf("%q", text)
	}
	_, _ = io.WriteString(f, text) // nobody to tell, as in fmt itself
}

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler, and so JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON implements json.Marshaler.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }
