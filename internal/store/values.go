package store

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
)

// newID mints an id: UUIDv7, so that rows of one time lie together in an index.
func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, "mint id")
	}
	return id.String(), nil
}

// orNull stores the empty string as NULL.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// bytesOrNull stores no bytes as NULL.
func bytesOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// millis is t as Unix milliseconds; the zero time is 0.
//
//go:noinline // it would be copied into many callers
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// encodeJSON makes the text of a JSON column. PostgreSQL refuses the escape of a
// NUL in it, so that becomes what storable makes of a NUL, on both databases.
func encodeJSON(value any, kind fault.Kind, what string) (string, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", fault.Wrap(err, kind, "encode "+what)
	}
	for i := 0; i < len(encoded); i++ {
		if encoded[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(encoded[i:], []byte(`\u0000`)) {
			copy(encoded[i:], `\ufffd`)
		}
		i++ // what is escaped begins no escape
	}
	return string(encoded), nil
}

// text scans a column that may be NULL; NULL is the empty string.
type text struct{ to *string }

var _ sql.Scanner = text{}

// Scan implements sql.Scanner.
func (t text) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*t.to = ""
	case string:
		*t.to = v
	case []byte:
		*t.to = string(v)
	default:
		return fmt.Errorf("cannot read %T as text", value)
	}
	return nil
}

// jsonText scans a column of JSON into what to points to.
type jsonText struct {
	to   any
	what string // for operators
}

// Scan implements sql.Scanner.
func (j jsonText) Scan(value any) error {
	var encoded string
	if err := (text{&encoded}).Scan(value); err != nil {
		return err
	}
	return fault.Wrap(json.Unmarshal([]byte(encoded), j.to), fault.Internal, "decode "+j.what)
}

// jsonList is jsonText for a list, which stays nil where the column has nothing or an empty one.
type jsonList jsonText

// Scan implements sql.Scanner.
func (j jsonList) Scan(value any) error {
	var encoded string
	if err := (text{&encoded}).Scan(value); err != nil || encoded == "" || encoded == "[]" {
		return err
	}
	return jsonText(j).Scan(encoded)
}

// buttonList scans buttons. Those that are damaged are none: they are no reason to hold up
// the message that they are under.
type buttonList struct{ to *[]messages.Button }

// Scan implements sql.Scanner.
func (l buttonList) Scan(value any) error {
	if (jsonList{l.to, "buttons"}).Scan(value) != nil {
		*l.to = nil
	}
	return nil
}

// rawJSON scans a column of JSON as it is; NULL and the empty string are nil.
type rawJSON struct{ to *json.RawMessage }

// Scan implements sql.Scanner.
func (r rawJSON) Scan(value any) error {
	var encoded string
	err := (text{&encoded}).Scan(value)
	if *r.to = nil; encoded != "" {
		*r.to = json.RawMessage(encoded)
	}
	return err
}

// wordList scans words with spaces between them.
type wordList[T ~string] struct{ to *[]T }

// Scan implements sql.Scanner.
func (l wordList[T]) Scan(value any) error {
	var words string
	err := (text{&words}).Scan(value)
	*l.to = nil
	for word := range strings.FieldsSeq(words) {
		*l.to = append(*l.to, T(word))
	}
	return err
}

// joinWords makes what wordList scans.
func joinWords[T ~string](list []T) string {
	return strings.Join(lists.Map(list, func(word T) string { return string(word) }), " ")
}

// secTime scans Unix seconds; 0 is the zero time.
type secTime struct{ to *time.Time }

// Scan implements sql.Scanner.
func (t secTime) Scan(value any) error {
	seconds, ok := value.(int64)
	if !ok {
		return fmt.Errorf("cannot read %T as seconds", value)
	}
	if *t.to = (time.Time{}); seconds != 0 {
		*t.to = time.Unix(seconds, 0).UTC()
	}
	return nil
}

// milliseconds scans a duration.
type milliseconds struct{ to *time.Duration }

// Scan implements sql.Scanner.
func (m milliseconds) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("cannot read %T as milliseconds", value)
	}
	*m.to = time.Duration(n) * time.Millisecond
	return nil
}

// msTime scans Unix milliseconds; NULL and 0 are the zero time.
type msTime struct{ to *time.Time }

// Scan implements sql.Scanner.
func (t msTime) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*t.to = time.Time{}
	case int64:
		*t.to = time.Time{}
		if v != 0 {
			*t.to = time.UnixMilli(v).UTC()
		}
	default:
		return fmt.Errorf("cannot read %T as milliseconds", value)
	}
	return nil
}

// stamp scans one of the seeds' timestamp columns: a timestamp on PostgreSQL,
// RFC 3339 on SQLite, where a person may also have written SQLite's own form.
type stamp struct{ to *time.Time }

// Scan implements sql.Scanner.
func (t stamp) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*t.to = time.Time{}
	case time.Time:
		*t.to = v.UTC()
	case string:
		parsed, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			if parsed, err = time.Parse(time.DateTime, v); err != nil {
				return fmt.Errorf("cannot read %q as a time", v)
			}
		}
		*t.to = parsed.UTC()
	default:
		return fmt.Errorf("cannot read %T as a time", value)
	}
	return nil
}

// noted scans a timestamp column that says when something was and decides nothing. What
// another program wrote there and is no time, or one that no year of four digits has, is
// no time, so that the row is not lost to it.
type noted struct{ to *time.Time }

// Scan implements sql.Scanner.
func (n noted) Scan(value any) error {
	if err := stamp(n).Scan(value); err != nil || n.to.Year() < 1 || n.to.Year() > 9999 {
		*n.to = time.Time{}
	}
	return nil
}
