package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"remote-agent/internal/audit"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

// Audit appends to the audit log: the row is there if the transaction commits. It is
// written at the end of the transaction, when nothing else is locked any more, so that
// the chain is held for as short as can be. An entry with an effect that has a row
// already changes nothing. The database refuses every change of a row.
func (t *Tx) Audit(_ context.Context, e sessions.AuditEntry) error {
	if e.Actor == "" || e.Action == "" {
		return fault.New(fault.Internal, "An entry of the audit log needs an actor and an action.")
	}
	t.audits = append(t.audits, e)
	return nil
}

// seal appends what Audit collected to the chain. It is the last thing that a
// transaction does.
func (t *Tx) seal(ctx context.Context) error {
	if len(t.audits) == 0 {
		return nil
	}
	head, err := t.AuditLog().lockHead(ctx)
	if err != nil {
		return err
	}
	begin := head
	for _, e := range t.audits {
		r := audit.Row{
			At: time.Now(), Actor: storable(e.Actor), Action: storable(e.Action), ConversationID: storable(e.ConversationID),
			Target: storable(e.Target), Detail: storable(e.Detail), Effect: storable(e.Effect),
		}
		r.Seq = head.Seq + 1
		r.Hash = audit.Sum(head.Hash, r)
		fresh, err := t.AuditLog().insert(ctx, r)
		if err != nil {
			return err
		}
		if fresh {
			head = audit.Head{Seq: r.Seq, Hash: r.Hash}
		}
	}
	t.audits = nil
	if head == begin {
		return nil
	}
	return t.AuditLog().moveHead(ctx, head)
}

func (t *AuditLog) lockHead(ctx context.Context) (head audit.Head, err error) {
	ok, err := t.tx.one(ctx, []any{&head.Seq, &head.Hash}, `SELECT seq, hash FROM audit_head WHERE id = 1 {lock}`)
	head, err = found(head, ok, err, "end of the audit log")
	return head, wrap(err, "append to audit log")
}

func (t *AuditLog) moveHead(ctx context.Context, head audit.Head) error {
	err := t.tx.later(ctx, `UPDATE audit_head SET seq = $1, hash = $2 WHERE id = 1`, head.Seq, head.Hash)
	return wrap(err, "append to audit log")
}

// insert stores a row, unless there is one of its effect.
func (t *AuditLog) insert(ctx context.Context, r audit.Row) (fresh bool, err error) {
	const query = `
		INSERT INTO audit_log (at_ms, actor, action, conversation_id, target, detail, seq, hash, effect)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (effect) DO NOTHING`
	args := []any{r.At.UnixMilli(), r.Actor, r.Action, r.ConversationID, r.Target, r.Detail, r.Seq, r.Hash, orNull(r.Effect)}
	if r.Effect == "" {
		return true, wrap(t.tx.later(ctx, query, args...), "append to audit log")
	}
	n, err := t.tx.exec(ctx, query, args...)
	return n > 0, wrap(err, "append to audit log")
}

const auditColumns = `id, COALESCE(seq, 0), at_ms, actor, action, conversation_id, target, detail, COALESCE(effect, ''), hash`

func scanAudit(r *audit.Row) []any {
	return []any{&r.ID, &r.Seq, msTime{&r.At}, &r.Actor, &r.Action, &r.ConversationID, &r.Target, &r.Detail, &r.Effect, &r.Hash}
}

// Head returns the end of the audit log.
func (t *AuditLog) Head(ctx context.Context) (head audit.Head, err error) {
	ok, err := t.tx.one(ctx, []any{&head.Seq, &head.Hash}, `SELECT seq, hash FROM audit_head WHERE id = 1`)
	return found(head, ok, err, "end of the audit log")
}

// AuditFilter chooses rows of the audit log; empty members choose all.
type AuditFilter struct {
	Since          time.Time
	Actor          string
	Action         string // or what it begins with, up to a dot: "tool"
	ConversationID string
	Limit          int
}

// Rows returns the newest rows that f chooses, the oldest of them first, in the order of the
// chain, which no id can change. Those without a place in it are older.
func (t *AuditLog) Rows(ctx context.Context, f AuditFilter) (list []audit.Row, err error) {
	if f.ConversationID != "" {
		if err := checkID(f.ConversationID, "conversation"); err != nil {
			return nil, err
		}
	}
	const chosen = `FROM audit_log
			WHERE at_ms >= $1 AND (actor = $2 OR $2 = '') AND (action = $3 OR $3 = '' OR substr(action, 1, length($3) + 1) = $3 || '.')
				AND (conversation_id = $4 OR $4 = '')`
	list, err = rowsOf(ctx, t.tx, "list audit log", scanAudit, `SELECT * FROM (
			SELECT * FROM (SELECT `+auditColumns+` `+chosen+` AND seq IS NOT NULL ORDER BY seq DESC LIMIT $5) AS chain
			UNION ALL
			SELECT * FROM (SELECT `+auditColumns+` `+chosen+` AND seq IS NULL ORDER BY id DESC LIMIT $5) AS older
		) AS both_parts ORDER BY 2 DESC, 1 DESC LIMIT $5`,
		millis(f.Since), f.Actor, f.Action, f.ConversationID, f.Limit)
	slices.Reverse(list)
	return list, err
}

// auditPage is how many rows are read at once to verify them.
const auditPage = 1000

// each visits the rows of the chain behind a sequence number, in order.
func (t *AuditLog) each(ctx context.Context, after int64, visit func(r audit.Row) error) error {
	for {
		page, err := rowsOf(ctx, t.tx, "read audit log", scanAudit,
			`SELECT `+auditColumns+` FROM audit_log WHERE seq > $1 ORDER BY seq LIMIT $2`, after, auditPage)
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := visit(r); err != nil {
				return err
			}
			after = r.Seq
		}
		if len(page) < auditPage {
			return nil
		}
	}
}

// older sums up the rows without a place in the chain from one number to another;
// with zero for the last one all from there on.
func (t *AuditLog) older(ctx context.Context, from, to int64) (audit.Older, error) {
	d := audit.NewDigest()
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var r audit.Row
		err := scan(scanAudit(&r)...)
		d.Add(r)
		return err
	}, `SELECT `+auditColumns+` FROM audit_log WHERE seq IS NULL AND id >= $1 AND (id <= $2 OR $2 = 0) ORDER BY id`, from, to)
	return d.Older(), wrap(err, "read audit log")
}

// adoptAudit has the chain vouch for rows that have no place in it: those from
// before there was one, and those of a replica of an earlier version that still ran. On
// SQLite there is none, so that a row that turns up beside a chain was put in by somebody,
// unless a salvage lost what vouched for it.
func (s *Store) adoptAudit(ctx context.Context) error {
	return s.InTx(ctx, func(t *Tx) error {
		there, err := t.exists(ctx, `SELECT 1 FROM audit_log WHERE seq IS NULL LIMIT 1`)
		if err != nil || !there {
			return wrap(err, "look for rows from before the chain")
		}
		covered, err := t.AuditLog().covered(ctx)
		if err != nil || t.AuditLog().noStrays(ctx, covered) == nil {
			return err
		}
		head, err := t.AuditLog().lockHead(ctx) // of several replicas one does it
		if err == nil && t.pg == nil && head.Seq > 0 {
			there, err = t.exists(ctx, `SELECT 1 FROM audit_log WHERE action = $1 AND seq > COALESCE((SELECT max(b.seq) FROM audit_log b WHERE b.action = $2), 0)`,
				ActionSalvage, audit.Begin)
		}
		if err != nil || !there {
			return wrap(err, "look for a salvage")
		}
		if covered, err = t.AuditLog().covered(ctx); err != nil {
			return err
		}
		o, err := t.AuditLog().older(ctx, covered+1, 0)
		if err != nil || o.Rows == 0 {
			return err
		}
		detail, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("encode the digest of earlier rows: %w", err)
		}
		return t.Audit(ctx, sessions.AuditEntry{Actor: "system", Action: audit.Begin, Detail: string(detail)})
	})
}

// covered returns up to which number the chain vouches for rows that have no place
// in it.
func (t *AuditLog) covered(ctx context.Context) (to int64, err error) {
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var detail string
		if err := scan(&detail); err != nil {
			return err
		}
		var o audit.Older
		if json.Unmarshal([]byte(detail), &o) == nil { // else it vouches for nothing any more
			to = max(to, o.To)
		}
		return nil
	}, `SELECT detail FROM audit_log WHERE action = $1 AND seq > 0`, audit.Begin)
	return to, wrap(err, "read what the chain vouches for")
}

// AuditReport is what VerifyAudit found.
type AuditReport struct {
	Head     audit.Head
	Older    int64         // rows from before the chain that it vouches for
	Restores []audit.Row   // where a backup took the place of the database
	Salvages []SalvageNote // where what could be read of a damaged one did
}

// VerifyAudit checks the whole chain, in one snapshot, and that it has the rows that
// are noted in anchors. Where it does not hold the error is an *audit.Break. Gaps that
// a salvage found are no break, and neither are rows of anchors that are gone because
// of one, or because an older copy was restored since: lost names them.
func (s *Store) VerifyAudit(ctx context.Context, anchors []AuditAnchor) (report AuditReport, lost []AuditAnchor, err error) {
	err = s.InRead(ctx, func(t *Tx) error {
		gaps, salvages, err := t.AuditLog().salvages(ctx)
		if err != nil {
			return err
		}
		report, lost = AuditReport{Salvages: salvages}, nil
		v := audit.Verifier{Gaps: gaps}
		have := make(map[int64]string)
		for _, a := range anchors {
			have[a.Head.Seq] = ""
		}
		if err := t.AuditLog().numbered(ctx); err != nil {
			return err
		}
		covered := int64(0)
		err = t.AuditLog().each(ctx, 0, func(r audit.Row) error {
			if err := v.Next(r); err != nil {
				return err
			}
			if _, wanted := have[r.Seq]; wanted {
				have[r.Seq] = r.Hash
			}
			switch r.Action {
			case ActionRestore:
				report.Restores = append(report.Restores, r)
			case audit.Begin:
				says, is, err := t.AuditLog().checkOlder(ctx, r, salvages)
				report.Older, covered = report.Older+is.Rows, max(covered, says.To)
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
		head, err := t.AuditLog().Head(ctx)
		if err != nil {
			return err
		}
		if err := v.End(head); err != nil {
			return err
		}
		if err := t.AuditLog().noStrays(ctx, covered); err != nil {
			return err
		}
		report.Head = head
		lost, err = checkAnchors(anchors, have, report)
		return err
	})
	return report, lost, err
}

// checkOlder checks what a row says of rows from before the chain, unless that is what a
// salvage has on record of them.
func (t *AuditLog) checkOlder(ctx context.Context, r audit.Row, salvages []SalvageNote) (says, is audit.Older, err error) {
	reason := "what it says of earlier rows cannot be read"
	if json.Unmarshal([]byte(r.Detail), &says) != nil {
		says = audit.Older{}
	} else if is, err = t.older(ctx, says.From, says.To); err != nil || is == says {
		return says, is, err
	} else {
		reason = fmt.Sprintf("the %d rows from before the chain that it vouches for (numbers %d to %d) are not as they were", says.Rows, says.From, says.To)
	}
	for _, s := range salvages {
		if noted, ok := s.Older[r.Seq]; ok && noted == is {
			return says, is, nil
		}
	}
	return says, is, &audit.Break{Seq: r.Seq, Reason: reason}
}

// numbered looks for a place in the chain that is no whole number, which SQLite takes.
func (t *AuditLog) numbered(ctx context.Context) error {
	if t.tx.pg != nil {
		return nil
	}
	var id int64
	found, err := t.tx.one(ctx, []any{&id}, `SELECT id FROM audit_log WHERE typeof(seq) NOT IN ('integer', 'null') ORDER BY id LIMIT 1`)
	if err != nil || !found {
		return wrap(err, "look for rows outside of the chain")
	}
	return &audit.Break{Reason: fmt.Sprintf("the place in the chain of the row with the number %d is no number: the bot did not write it", id)}
}

// noStrays looks for rows that have no place in the chain and that nothing vouches
// for.
func (t *AuditLog) noStrays(ctx context.Context, covered int64) error {
	var id int64
	forged, err := t.tx.one(ctx, []any{&id}, `SELECT id FROM audit_log WHERE seq < 1 OR seq IS NULL AND id < 1 ORDER BY id LIMIT 1`)
	if forged {
		return &audit.Break{Reason: fmt.Sprintf("the row with the number %d has no place in the chain: the bot did not write it", id)}
	}
	ok := false
	if err == nil {
		ok, err = t.tx.one(ctx, []any{&id}, `SELECT id FROM audit_log WHERE seq IS NULL AND id > $1 ORDER BY id LIMIT 1`, covered)
	}
	if err != nil || !ok {
		return wrap(err, "look for rows outside of the chain")
	}
	reason := "the row with the number %d has no place in the chain: the bot did not write it"
	if t.tx.pg != nil {
		reason += ", or a replica of an earlier version did; the next start of the bot adopts it"
	}
	return &audit.Break{Reason: fmt.Sprintf(reason, id)}
}

// AuditAnchor is an end of the chain that was noted somewhere else.
type AuditAnchor struct {
	Name string // where
	Head audit.Head
	At   time.Time // when; zero if nobody knows
}

// checkAnchors compares what was noted with the rows that are there.
func checkAnchors(anchors []AuditAnchor, have map[int64]string, report AuditReport) (lost []AuditAnchor, err error) {
	for _, a := range anchors {
		if a.Head.Seq == 0 || have[a.Head.Seq] == a.Head.Hash {
			continue
		}
		if restoredSince(a, report.Restores) || salvagedSince(a, report.Salvages) {
			lost = append(lost, a)
			continue
		}
		reason := fmt.Sprintf("it is not the one that was noted in %s: %s", a.Name, a.Head)
		if a.Head.Seq > report.Head.Seq {
			reason = fmt.Sprintf("it is missing, and it was there when it was noted in %s", a.Name)
		}
		return lost, &audit.Break{Seq: a.Head.Seq, Reason: reason}
	}
	return lost, nil
}

// restoredSince reports whether a copy from before a row was noted took the place of
// the database after that.
func restoredSince(a AuditAnchor, restores []audit.Row) bool {
	for _, r := range restores {
		var d RestoreDetail
		if json.Unmarshal([]byte(r.Detail), &d) == nil && d.Head.Seq < a.Head.Seq && !a.At.IsZero() && r.At.After(a.At) {
			return true
		}
	}
	return false
}

// ActionRestore is the action of the row that a restore appends.
const ActionRestore = "backup.restore"

// RestoreDetail is what that row says.
type RestoreDetail struct {
	Backup time.Time  `json:"backup"` // when it was made
	Head   audit.Head `json:"head"`   // the end of the audit log in it, or the row behind which that of the replaced database went on
	Kept   int64      `json:"kept"`   // rows of the replaced database that were put behind it
}

var errOtherAudit = fault.New(fault.Conflict,
	"The audit log of the database that is replaced does not continue the one of the backup: it is another database, or one of them was changed.")

// KeepAudit puts the rows that another database has behind the end of this one's
// chain into it, as they are, and returns how many, and behind which row. That is the
// database which a restored copy of it replaces. Where that was salvaged and has lost the end
// of this chain, what came behind its last sound row is chained anew, to the end of this one.
// A chain that is broken, or no continuation of this one, is fault.Conflict and changes nothing.
func (s *Store) KeepAudit(ctx context.Context, from *Store) (kept int64, behind audit.Head, err error) {
	if _, _, err := from.VerifyAudit(ctx, nil); err != nil {
		return 0, behind, &fault.Error{Kind: fault.Conflict, Err: err, Public: "The audit log of the database that is replaced cannot be kept: " + err.Error()}
	}
	err = s.InTx(ctx, func(t *Tx) error {
		kept = 0
		head, err := t.AuditLog().lockHead(ctx)
		if err != nil {
			return err
		}
		return from.InRead(ctx, func(other *Tx) error {
			if behind, err = t.AuditLog().common(ctx, head, other.AuditLog()); err != nil {
				return err
			}
			end := head
			err := other.AuditLog().each(ctx, behind.Seq, func(r audit.Row) error {
				if behind.Seq < head.Seq {
					r.Seq = end.Seq + 1
					r.Hash = audit.Sum(end.Hash, r)
				}
				fresh, err := t.AuditLog().insert(ctx, r)
				if fresh {
					end = audit.Head{Seq: r.Seq, Hash: r.Hash}
					kept++
				}
				return err
			})
			if err != nil || kept == 0 {
				return err
			}
			return t.AuditLog().moveHead(ctx, end)
		})
	})
	return kept, behind, err
}

// common returns the row behind which the log of another database goes on from this one:
// its end, or the last one that both have before what a salvage did not find there any more.
func (t *AuditLog) common(ctx context.Context, end audit.Head, other *AuditLog) (audit.Head, error) {
	_, salvages, err := other.salvages(ctx)
	if err != nil {
		return end, err
	}
	places := []int64{end.Seq}
	for _, s := range salvages {
		places = append(places, s.Head.Seq)
		for _, g := range s.Gaps {
			places = append(places, g.From-1)
		}
	}
	slices.Sort(places)
	for _, seq := range slices.Backward(places) {
		if seq > end.Seq {
			continue
		}
		ours := end.Hash
		if seq < end.Seq {
			if ours, err = t.hashAt(ctx, seq); err != nil {
				return end, err
			}
		}
		theirs, err := other.hashAt(ctx, seq)
		if err != nil || ours == theirs && (ours != "" || seq == 0) {
			return audit.Head{Seq: seq, Hash: ours}, err
		}
	}
	return end, errOtherAudit
}

// hashAt returns the hash of a row; empty if there is none.
func (t *AuditLog) hashAt(ctx context.Context, seq int64) (hash string, err error) {
	_, err = t.tx.one(ctx, []any{&hash}, `SELECT hash FROM audit_log WHERE seq = $1`, seq)
	return hash, wrap(err, "read audit log")
}
