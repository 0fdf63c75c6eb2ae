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

// TestAGapOnRecordIsAccepted: what lies behind it is checked, and so is what lies before it, as
// without the gap.
func TestAGapOnRecordIsAccepted(t *testing.T) {
	t.Parallel()
	rows, head := chain(9)
	rows[7].Target = "damaged"
	rows = slices.Delete(rows, 2, 5) // 3 to 5
	gaps := make(map[int64]string)
	var v audit.Verifier
	var found []audit.Gap
	for _, r := range rows {
		if v.Next(r) != nil {
			gap := v.Skip(r)
			found, gaps[gap.Next] = append(found, gap), gap.Sum
		}
	}
	if len(found) != 2 || found[0].From != 3 || found[0].Next != 6 || found[1].From != 8 || found[1].Next != 8 || v.Head() != head {
		t.Fatalf("found %+v, and the end %v", found, v.Head())
	}
	check := func(change func([]audit.Row) []audit.Row) error {
		v := audit.Verifier{Gaps: gaps}
		for _, r := range change(slices.Clone(rows)) {
			if err := v.Next(r); err != nil {
				return err
			}
		}
		return v.End(head)
	}
	if err := check(func(rows []audit.Row) []audit.Row { return rows }); err != nil {
		t.Fatalf("what is on record: %v", err)
	}
	for i := range rows {
		for name, change := range map[string]func([]audit.Row) []audit.Row{
			"changed": func(rows []audit.Row) []audit.Row { rows[i].Actor = "nobody"; return rows },
			"removed": func(rows []audit.Row) []audit.Row { return slices.Delete(rows, i, i+1) },
			"rewritten": func(rows []audit.Row) []audit.Row {
				before := ""
				if i > 0 {
					before = rows[i-1].Hash
				}
				rows[i].Actor = "nobody"
				rows[i].Hash = audit.Sum(before, rows[i])
				return rows
			},
		} {
			if check(change) == nil {
				t.Errorf("row %d was %s, and nobody sees it", rows[i].Seq, name)
			}
		}
	}
}
