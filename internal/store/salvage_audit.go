package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"remote-agent/internal/audit"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

// ActionSalvage is the action of the row that a salvage appends to the audit log.
const ActionSalvage = "database.salvage"

// SalvageNote is that row, and what it says.
type SalvageNote struct {
	Row  audit.Row   `json:"-"`
	End  audit.Head  `json:"end"`            // of the damaged database, as far as it could be read
	Head audit.Head  `json:"head"`           // the last row that was saved
	Gaps []audit.Gap `json:"gaps,omitempty"` // where the chain of the saved rows does not hold

	// Older is what is left of rows from before the chain where they are not as the row says
	// that vouches for them, by its number.
	Older map[int64]audit.Older `json:"older,omitempty"`
}

// noteSalvage appends a row that says where the chain of the rows that were saved does
// not hold, unless an earlier one says it, and lets the log go on behind the last of them.
func (t *AuditLog) noteSalvage(ctx context.Context) error {
	gaps, earlier, err := t.salvages(ctx)
	if err != nil {
		return err
	}
	s := SalvageNote{Older: make(map[int64]audit.Older)}
	v := audit.Verifier{Gaps: gaps}
	err = t.each(ctx, 0, func(r audit.Row) error {
		if v.Next(r) != nil {
			s.Gaps = append(s.Gaps, v.Skip(r))
		}
		if r.Action != audit.Begin {
			return nil
		}
		_, is, err := t.checkOlder(ctx, r, earlier)
		if _, broken := errors.AsType[*audit.Break](err); broken {
			s.Older[r.Seq], err = is, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if s.End, err = t.Head(ctx); err != nil {
		return err
	}
	if s.Head = v.Head(); s.End.Seq < s.Head.Seq {
		s.End = s.Head
	}
	if err := t.moveHead(ctx, s.Head); err != nil {
		return err
	}
	detail, err := json.Marshal(s)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "encode the audit entry")
	}
	return t.tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: ActionSalvage, Detail: string(detail)})
}

// salvages returns the rows of salvages, and the gaps that they have on record.
func (t *AuditLog) salvages(ctx context.Context) (gaps map[int64]string, list []SalvageNote, err error) {
	gaps = make(map[int64]string)
	rows, err := rowsOf(ctx, t.tx, "read what was salvaged", scanAudit,
		`SELECT `+auditColumns+` FROM audit_log WHERE action = $1 AND seq > 0 ORDER BY seq`, ActionSalvage)
	for _, r := range rows {
		s := SalvageNote{Row: r}
		if json.Unmarshal([]byte(r.Detail), &s) != nil {
			continue // the chain breaks there
		}
		for _, g := range s.Gaps {
			gaps[g.Next] = g.Sum
		}
		list = append(list, s)
	}
	return gaps, list, err
}

// Lost says which rows of the audit log a salvage did not find as they were.
func (s SalvageNote) Lost() (text string) {
	for _, g := range append(s.Gaps, audit.Gap{From: s.Head.Seq + 1, Next: s.End.Seq + 1}) {
		switch {
		case g.From < g.Next:
			text += fmt.Sprintf(", %d to %d are lost", g.From, g.Next-1)
		case g.Sum != "":
			text += fmt.Sprintf(", %d was changed", g.Next)
		}
	}
	if len(s.Older) > 0 {
		text += ", rows from before the chain are lost or were changed"
	}
	return text
}

// salvagedSince reports whether a salvage found a row no more after that was noted.
func salvagedSince(a AuditAnchor, salvages []SalvageNote) bool {
	for _, s := range salvages {
		gone := a.Head.Seq > s.Head.Seq
		for _, g := range s.Gaps {
			gone = gone || a.Head.Seq >= g.From && a.Head.Seq < g.Next
		}
		if gone && !a.At.IsZero() && s.Row.At.After(a.At) {
			return true
		}
	}
	return false
}
