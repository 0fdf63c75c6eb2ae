package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/audit"
	"remote-agent/internal/backup"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/transcript"
)

// AuditQuery says which rows of the audit log to list.
type AuditQuery struct {
	Since        string // see spend.ParseSince
	Actor        string
	Action       string // or what it begins with
	Conversation string // an id, or the platform's name and its id as "telegram/123"
	Limit        int
	JSON         bool
}

// maxAuditRows bounds a list of the audit log.
const maxAuditRows = 100_000

// ListAudit prints rows of the audit log, the oldest first.
func ListAudit(ctx context.Context, cfg config.Config, env Env, q AuditQuery) error {
	if q.Limit < 1 || q.Limit > maxAuditRows {
		return fault.Newf(fault.Invalid, "--limit is from 1 to %d.", maxAuditRows)
	}
	f := store.AuditFilter{Actor: q.Actor, Action: strings.TrimSuffix(q.Action, "."), Limit: q.Limit}
	var err error
	if f.Since, err = spend.ParseSince(q.Since, time.Now()); err != nil {
		return &fault.Error{Kind: fault.KindOf(err), Public: "--since: " + fault.Public(err), Err: err}
	}
	rows, err := readStored(ctx, cfg, env, func(tx *store.Tx) (_ []audit.Row, err error) {
		if f.ConversationID, err = conversationID(ctx, tx, q.Conversation); err != nil {
			return nil, err
		}
		return tx.AuditLog().Rows(ctx, f)
	})
	if err != nil {
		return err
	}
	if len(rows) == 0 && !q.JSON {
		say(env.Stderr, "nothing found\n")
	}
	for _, r := range rows {
		if err := sayAudit(env, r, q.JSON); err != nil {
			return err
		}
	}
	if len(rows) == q.Limit {
		say(env.Stderr, "there may be more, older entries: use --limit or --since\n")
	}
	return nil
}

func sayAudit(env Env, r audit.Row, asJSON bool) error {
	if asJSON {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode a row: %w", err)
		}
		say(env.Stdout, "%s\n", line)
		return nil
	}
	seq := "-"
	if r.Seq > 0 {
		seq = strconv.FormatInt(r.Seq, 10)
	}
	words := []string{seq, r.At.Format("2006-01-02T15:04:05Z"), r.Actor, r.Action}
	for _, word := range []string{r.Target, r.ConversationID, r.Detail} {
		if word != "" {
			words = append(words, word)
		}
	}
	for i, word := range words {
		words[i] = transcript.Line(word, 500)
	}
	say(env.Stdout, "%s\n", strings.Join(words, "  "))
	return nil
}

// headForm is an end of the chain as people noted it down.
var headForm = pattern.Lazy(`^([1-9][0-9]{0,17}):([0-9a-f]{64})$`)

// VerifyAudit checks the whole audit log, also against the ends of it that the
// backups in BACKUP_DIR have noted, and the one that is expected. Where it does not
// hold the error names the row.
func VerifyAudit(ctx context.Context, cfg config.Config, env Env, expect string) error {
	var anchors []store.AuditAnchor
	if expect != "" {
		m := headForm.FindStringSubmatch(expect)
		if m == nil {
			return fault.Newf(fault.Invalid, "--expect %q: use a row and its hash as printed by verify, such as 17:9f86d081...", expect)
		}
		seq, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return fault.Newf(fault.Invalid, "--expect: %q is not a row number.", m[1])
		}
		anchors = append(anchors, store.AuditAnchor{Name: "--expect", Head: audit.Head{Seq: seq, Hash: m[2]}})
	}
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		said, err := auditSound(ctx, s, cfg.BackupDir, anchors...)
		for _, line := range said {
			say(env.Stdout, "%s\n", line)
		}
		return err
	})
}

// auditSound verifies the whole audit log, also against the ends of it that the backups in
// a folder have noted, and says what it found. Where the log does not hold the error names
// the row, also to people.
func auditSound(ctx context.Context, s *store.Store, backups string, anchors ...store.AuditAnchor) (said []string, err error) {
	list, err := backup.List(backups)
	if err != nil {
		return nil, err
	}
	for _, b := range list {
		if b.Err == nil && b.Manifest.Audit != nil {
			anchors = append(anchors, store.AuditAnchor{Name: b.Dir, Head: *b.Manifest.Audit, At: b.Manifest.CreatedAt})
		}
	}
	report, lost, err := s.VerifyAudit(ctx, anchors)
	if broken, is := errors.AsType[*audit.Break](err); is {
		return nil, fault.New(fault.Internal, broken.Error())
	}
	if err != nil {
		return nil, err
	}
	sound := "sound: " + count(report.Head.Seq, "row")
	if report.Older > 0 {
		sound += fmt.Sprintf(", plus %d from before the chain", report.Older)
	}
	said = append(said, sound+"; the end is "+report.Head.String())
	for _, r := range report.Restores {
		said = append(said, fmt.Sprintf("row %d: a backup was restored at %s: %s", r.Seq, r.At.Format(time.RFC3339), r.Detail))
	}
	for _, n := range report.Salvages {
		said = append(said, fmt.Sprintf("row %d: the database was damaged and salvaged at %s%s", n.Row.Seq, n.Row.At.Format(time.RFC3339), n.Lost()))
	}
	for _, a := range lost {
		said = append(said, fmt.Sprintf("lost in a restore or salvage: rows up to %d, which %s contains", a.Head.Seq, a.Name))
	}
	return said, nil
}
