// Package audit is the chain of the audit log: what a row is, what its hash is made
// of, and how a chain is verified. It does no I/O.
//
// The hash of a row is the SHA-256, in hex, of these fields as netstrings (the
// length in bytes, a colon, the bytes, a comma), one after another: the hash of the
// row before, empty for the first; the sequence number; the time in Unix
// milliseconds; actor; action; conversation id; target; detail; effect. Whoever
// changes, takes out or puts in a row has to change all hashes behind it, and the
// last one is known elsewhere: in the manifests of backups, and to whoever wrote
// down what `bot audit verify` said.
package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strconv"
	"time"
)

// Row is a row of the audit log.
type Row struct {
	ID             int64     `json:"-"`   // the database's own number
	Seq            int64     `json:"seq"` // place in the chain, from 1; 0 for rows from before there was one
	At             time.Time `json:"at"`
	Actor          string    `json:"actor"`
	Action         string    `json:"action"`
	ConversationID string    `json:"conversation_id,omitempty"`
	Target         string    `json:"target,omitempty"`
	Detail         string    `json:"detail,omitempty"` // JSON
	Effect         string    `json:"effect,omitempty"` // names what happens once; no two rows have the same
	Hash           string    `json:"hash,omitempty"`
}

// Head is the end of a chain; the zero value is that of an empty one.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// String writes a head as people note it down: "17:9f86...".
func (h Head) String() string { return strconv.FormatInt(h.Seq, 10) + ":" + h.Hash }

// Sum returns the hash of a row behind another one, by its hash.
func Sum(before string, r Row) string {
	h := sha256.New()
	field(h, before)
	field(h, strconv.FormatInt(r.Seq, 10))
	content(h, r)
	return hex.EncodeToString(h.Sum(nil))
}

func content(h hash.Hash, r Row) {
	field(h, strconv.FormatInt(r.At.UnixMilli(), 10))
	for _, text := range []string{r.Actor, r.Action, r.ConversationID, r.Target, r.Detail, r.Effect} {
		field(h, text)
	}
}

func field(w io.Writer, text string) { fmt.Fprintf(w, "%d:%s,", len(text), text) } //nolint:errcheck // a hash takes all

// Begin is the action of the row that vouches for rows from before the chain.
const Begin = "audit.begin"

// Older is what a row of Begin says of the rows that it vouches for.
type Older struct {
	From   int64  `json:"from_id"` // the database's own numbers
	To     int64  `json:"to_id"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// Digest sums up rows from before the chain, in the order of their numbers. The
// fields of each are written as for Sum, with its number for the sequence number and
// no hash before.
type Digest struct {
	hash  hash.Hash
	older Older
}

// NewDigest returns a Digest of no rows.
func NewDigest() *Digest { return &Digest{hash: sha256.New()} }

// Add adds a row.
func (d *Digest) Add(r Row) {
	if d.older.Rows++; d.older.Rows == 1 {
		d.older.From = r.ID
	}
	d.older.To = r.ID
	field(d.hash, strconv.FormatInt(r.ID, 10))
	content(d.hash, r)
}

// Older returns what was added.
func (d *Digest) Older() Older {
	d.older.SHA256 = hex.EncodeToString(d.hash.Sum(nil))
	return d.older
}

// Break is where a chain does not hold.
type Break struct {
	Seq    int64 // of the row; for one from before the chain it is that of the row which vouches for it; 0 for one without a place
	Reason string
}

// Error implements error.
func (b *Break) Error() string {
	if b.Seq == 0 {
		return fmt.Sprintf("The audit log was altered: %s.", b.Reason)
	}
	return fmt.Sprintf("The audit log breaks at row %d: %s.", b.Seq, b.Reason)
}

// Gap is a place where a chain does not hold, for a reason that is on record in it.
type Gap struct {
	From int64 `json:"from"` // the first row that is missing; Next if none is, but that one was changed
	Next int64 `json:"next"` // the row with which the chain goes on

	// Sum is what the hash of that row would be if it followed the last one before the gap.
	Sum string `json:"sum"`
}

// Verifier checks a chain, row by row in its order.
type Verifier struct {
	// Gaps has the Sum of each gap that is accepted, by its Next.
	Gaps map[int64]string

	head Head
}

// Head returns the last row that was taken.
func (v *Verifier) Head() Head { return v.head }

// Skip goes on with a row that does not follow, and returns the gap before it.
func (v *Verifier) Skip(r Row) Gap {
	gap := Gap{From: v.head.Seq + 1, Next: r.Seq, Sum: Sum(v.head.Hash, r)}
	v.head = Head{r.Seq, r.Hash}
	return gap
}

// Next checks the next row. The error is a *Break.
func (v *Verifier) Next(r Row) error {
	want := v.head.Seq + 1
	sum := Sum(v.head.Hash, r)
	if v.Gaps[r.Seq] == sum {
		v.head = Head{r.Seq, r.Hash}
		return nil
	}
	switch {
	case r.Seq > want && r.Seq == want+1:
		return &Break{want, "it is missing"}
	case r.Seq > want:
		return &Break{want, fmt.Sprintf("it is missing, as are all up to %d", r.Seq-1)}
	case r.Seq < want:
		return &Break{r.Seq, "it appears twice"}
	}
	if sum != r.Hash {
		return &Break{r.Seq, fmt.Sprintf("%s by %s at %s does not match its hash, so it or an earlier hash was changed",
			r.Action, r.Actor, r.At.UTC().Format(time.RFC3339))}
	}
	v.head = Head{r.Seq, r.Hash}
	return nil
}

// End checks that the rows end where the database says that they end.
func (v *Verifier) End(head Head) error {
	switch {
	case head == v.head:
		return nil
	case head.Seq > v.head.Seq+1:
		return &Break{v.head.Seq + 1, fmt.Sprintf("it is missing, as are all up to %d, the last one written", head.Seq)}
	case head.Seq > v.head.Seq:
		return &Break{head.Seq, "it is missing; it was the last one written"}
	case head.Seq == v.head.Seq:
		return &Break{head.Seq, "its hash differs from the one recorded when it was written"}
	default:
		return &Break{head.Seq + 1, "it was not written by the bot, whose last entry is the one before"}
	}
}
