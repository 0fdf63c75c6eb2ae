package audit_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"remote-agent/internal/audit"
)

// chain returns rows as they are written, and their head.
func chain(n int) ([]audit.Row, audit.Head) {
	var rows []audit.Row
	var head audit.Head
	for i := range n {
		r := audit.Row{
			Seq: head.Seq + 1, At: time.UnixMilli(int64(1000 + i)), Actor: "telegram/42", Action: "tool.run",
			Target: "bash", Detail: `{"sha256":"x"}`, ConversationID: "c",
		}
		r.Hash = audit.Sum(head.Hash, r)
		head = audit.Head{Seq: r.Seq, Hash: r.Hash}
		rows = append(rows, r)
	}
	return rows, head
}

func verify(rows []audit.Row, head audit.Head) error {
	var v audit.Verifier
	for _, r := range rows {
		if err := v.Next(r); err != nil {
			return err
		}
	}
	return v.End(head)
}

// TestTheHashIsWhatTheDocumentationSays computes one by hand: another program has to
// get the same.
func TestTheHashIsWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	r := audit.Row{Seq: 2, At: time.UnixMilli(1700000000123), Actor: "cli", Action: "owner.add", Target: "telegram/42", Detail: "{}"}
	// printf '2:ab,1:2,13:1700000000123,3:cli,9:owner.add,0:,11:telegram/42,2:{},0:,' | sha256sum
	const want = "a12b094f96a2e474d99d26befc87f4b789b75086e68410fb39350d6bd4bfde2b"
	if got := audit.Sum("ab", r); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

func TestAnySingleChangeIsFoundWhereItWasMade(t *testing.T) {
	t.Parallel()
	if rows, head := chain(5); verify(rows, head) != nil || verify(nil, audit.Head{}) != nil {
		t.Fatal("a sound chain is refused")
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "rows")
		rows, head := chain(n)
		at := rapid.IntRange(0, n-1).Draw(t, "at")
		breaksAt := int64(at + 1)
		switch rapid.SampledFrom([]string{"actor", "action", "target", "detail", "conversation", "effect", "time", "hash", "remove", "insert", "swap", "rewrite", "head"}).Draw(t, "change") {
		case "actor":
			rows[at].Actor = "telegram/4"
		case "action":
			rows[at].Action += "s"
		case "target":
			rows[at].Target = ""
		case "detail":
			rows[at].Target, rows[at].Detail = rows[at].Target+rows[at].Detail, "" // the same bytes, in another place
		case "conversation":
			rows[at].ConversationID = "d"
		case "effect":
			rows[at].Effect = "push:1"
		case "time":
			rows[at].At = rows[at].At.Add(time.Millisecond)
		case "hash":
			rows[at].Hash = strings.Repeat("0", 64)
		case "remove":
			rows = slices.Delete(rows, at, at+1)
		case "insert":
			rows = slices.Insert(rows, at, rows[at])
			breaksAt = rows[at].Seq
		case "swap":
			other := (at + 1) % n
			rows[at], rows[other] = rows[other], rows[at]
			breaksAt = int64(min(at, other) + 1)
		case "rewrite": // with a hash that fits what it says
			rows[at].Actor = "nobody"
			before := ""
			if at > 0 {
				before = rows[at-1].Hash
			}
			rows[at].Hash = audit.Sum(before, rows[at])
			if breaksAt = int64(at + 2); at == n-1 {
				breaksAt = int64(n)
			}
		case "head":
			head.Seq--
			breaksAt = int64(n)
		}
		broken, ok := errors.AsType[*audit.Break](verify(rows, head))
		if !ok || broken.Seq != breaksAt {
			t.Fatalf("the chain breaks at %+v, want row %d", broken, breaksAt)
		}
	})
}
