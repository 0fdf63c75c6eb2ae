package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/export"
	"remote-agent/internal/fault"
	"remote-agent/internal/files"
	"remote-agent/internal/messages"
	"remote-agent/internal/redact"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/transcript"
	"remote-agent/internal/wording"
	"remote-agent/internal/work"
)

const (
	pruneEvery = time.Hour
	pruneBatch = 200                    // rows of a transaction: a turn waits for no longer one
	prunePause = 200 * time.Millisecond // between batches
	pruneLease = "care/retention"       // whoever has it removes, of several replicas
)

// caretaker does now and then what nobody waits for.
type caretaker struct {
	store     *store.Store
	files     *files.Store
	work      *work.Service // nil without git
	tools     *toolSets
	leases    leases
	retention config.Retention
	log       *slog.Logger
}

// sweepRetention removes what is older than RETENTION_* allows, now and then. Of
// several replicas one does it at a time: what it leaves is soon done for the others.
func (c caretaker) sweepRetention(ctx context.Context) {
	for wait := time.Minute; sleep(ctx, wait); wait = pruneEvery { // not while everybody starts
		c.pruneAlone(ctx)
	}
}

// pruneAlone removes what is past its retention, unless another replica does.
func (c caretaker) pruneAlone(ctx context.Context) {
	if held, _ := c.leases.acquire(ctx, pruneLease); !held { // it has said why
		return
	}
	defer c.leases.release(ctx, pruneLease)
	var done pruned
	err := c.leases.whileHeld(ctx, pruneLease, func(ctx context.Context) (err error) {
		done, err = prune(ctx, c.store, c.files, c.retention, "system")
		return err
	})
	if err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "could not remove all data that is past its retention", "err", err)
	}
	if done != (pruned{}) {
		c.log.InfoContext(ctx, "removed data that is past its retention",
			"bodies", done.expired[store.ExpiringBodies], "deliveries", done.expired[store.ExpiringDeliveries],
			"checkpoints", done.expired[store.ExpiringCheckpoints], "buttons", done.expired[store.ExpiringButtons],
			"sessions", done.Sessions, "messages", done.Messages, "files", done.files)
	}
}

// pruned is what is past its retention.
type pruned struct {
	store.Removed                            // by RETENTION_SESSIONS
	expired       [store.ExpiringKinds]int64 // by RETENTION_RAW
	files         int64                      // by RETENTION_FILES
}

// prune removes what is past its retention, in small transactions; by is who had it done.
func prune(ctx context.Context, s *store.Store, kept *files.Store, keep config.Retention, by string) (done pruned, err error) {
	before := time.Now().Add(-keep.Raw)
	for kind := range done.expired {
		for after := (store.PrunePlace{}); keep.Raw > 0; {
			n, next, err := s.Prune(ctx, store.Expiring(kind), before, after, pruneBatch)
			done.expired[kind] += n
			if err != nil {
				return done, err
			}
			if after = next; next == (store.PrunePlace{}) || !sleep(ctx, prunePause) {
				break
			}
		}
	}
	for keep.Sessions > 0 {
		r, err := s.SweepSessions(ctx, time.Now().Add(-keep.Sessions), pruneBatch, by)
		done.Add(r)
		if err != nil {
			return done, err
		}
		if r.Sessions < pruneBatch || !sleep(ctx, prunePause) {
			break
		}
	}
	if keep.Files > 0 {
		n, err := kept.Expire(ctx, time.Now().Add(-keep.Files))
		done.files = int64(n)
		return done, err
	}
	return done, nil
}

// Retention removes what is past its retention once, or with dry says what would
// go and changes nothing.
func Retention(ctx context.Context, cfg config.Config, env Env, dry bool) error {
	if !dry {
		if done, err := inDaemon(ctx, cfg, env, callRetention, retentionCall{cfg.Retention}); done {
			return err
		}
	}
	return withExisting(ctx, cfg, env, !dry, func(s *store.Store) error {
		keep := cfg.Retention
		verb := "removed"
		sweep := func() (pruned, error) { return prune(ctx, s, newFiles(cfg, s, env.Log), keep, "cli") }
		if dry {
			verb = "would remove"
			sweep = func() (pruned, error) { return measureRetention(ctx, s, keep) }
		}
		done, err := sweep()
		if err != nil {
			return err
		}
		if keep.Raw == 0 && keep.Sessions == 0 && done.files == 0 {
			say(env.Stdout, "Everything is kept: RETENTION_RAW is off, RETENTION_SESSIONS is not set, and no file is past RETENTION_FILES.\n")
			return nil
		}
		say(env.Stdout, "%s %s\n", verb, done.aged())
		if done.files > 0 {
			say(env.Stdout, "%s %s that people attached\n", verb, wording.Count(int(done.files), "file", "files"))
		}
		if keep.Sessions > 0 {
			say(env.Stdout, "%s %s\n", verb, counted(done.Removed))
		} else {
			say(env.Stdout, "sessions are kept: RETENTION_SESSIONS is not set\n")
		}
		if dry || done == (pruned{}) {
			return nil
		}
		return finishErasing(ctx, cfg, env, s)
	})
}

func measureRetention(ctx context.Context, s *store.Store, keep config.Retention) (total pruned, err error) {
	err = s.InRead(ctx, func(tx *store.Tx) error {
		for kind := range total.expired {
			if keep.Raw == 0 {
				break
			}
			if total.expired[kind], err = tx.Care().CountExpired(ctx, store.Expiring(kind), time.Now().Add(-keep.Raw)); err != nil {
				return err
			}
		}
		if keep.Files > 0 {
			if total.files, err = tx.Files().CountBefore(ctx, time.Now().Add(-keep.Files)); err != nil {
				return err
			}
		}
		for after := ""; keep.Sessions > 0; {
			ids, err := tx.Care().OldSessions(ctx, time.Now().Add(-keep.Sessions), after, pruneBatch)
			if err != nil || len(ids) == 0 {
				return err
			}
			for _, id := range ids {
				r, err := tx.Care().MeasureSession(ctx, id)
				if err != nil {
					return err
				}
				total.Add(r)
			}
			after = ids[len(ids)-1]
		}
		return nil
	})
	return total, err
}

// aged says how much was past RETENTION_RAW.
func (p pruned) aged() string {
	n := func(kind store.Expiring, one, more string) string {
		return wording.Count(int(p.expired[kind]), one, more)
	}
	return strings.Join([]string{
		n(store.ExpiringBodies, "body of an event", "bodies of events"), n(store.ExpiringDeliveries, "delivery", "deliveries"),
		n(store.ExpiringCheckpoints, "checkpoint", "checkpoints"), n(store.ExpiringButtons, "button", "buttons"),
	}, ", ")
}

func counted(r store.Removed) string {
	n := count[int64]
	return n(r.Sessions, "session") + ": " + strings.Join([]string{
		n(r.Messages, "message"), n(r.ToolCalls, "tool call"), n(r.Deliveries, "answer"), n(r.Inbox, "inbox text"), n(r.Plans, "plan"), n(r.Approvals, "approval"),
	}, ", ")
}

// count writes "1 thing" or "3 things".
func count[N int | int64](n N, one string) string { return wording.Count(int(n), one, one+"s") }

// sayClosed says what of a copy was open and is ended.
func sayClosed(out io.Writer, entries, deliveries int64, then string) {
	say(out, "nothing is sent again: closed %s and %s in transit; %s\n", count(entries, "queued message"), count(deliveries, "answer"), then)
}

// say writes for a person at a terminal, who may have closed it. Whoever has to know of an
// error notes it in out.
//
//go:noinline // it would be copied into many callers
func say(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, format, args...) //nolint:errcheck // see above
}

// SessionQuery says which sessions, or messages, to list.
type SessionQuery struct {
	Conversation string // an id, or the platform's name and its id as "telegram/123"
	Status       string // running, completed or failed; empty for all
	Before       string // the cursor that the last page ended with
	Limit        int
	Words        string // of a search
}

// conversationID returns the id of the conversation that a person named.
func conversationID(ctx context.Context, tx *store.Tx, named string) (string, error) {
	platform, id, ok := strings.Cut(named, "/")
	if named == "" || !ok {
		return named, nil
	}
	if platform == "" || id == "" {
		return "", fault.New(fault.Invalid, "Specify a conversation by its ID, or as platform/id, such as telegram/123.")
	}
	c, err := tx.Conversations().FindConversation(ctx, messages.ConversationKey{Platform: messages.Platform(platform), ID: id})
	return c.ID, err
}

// ListSessions prints sessions, the newest first.
func ListSessions(ctx context.Context, cfg config.Config, env Env, q SessionQuery) error {
	if err := pageSize(q.Limit); err != nil {
		return err
	}
	rows, err := readStored(ctx, cfg, env, func(tx *store.Tx) ([]store.SessionRow, error) {
		conversation, err := conversationID(ctx, tx, q.Conversation)
		if err != nil {
			return nil, err
		}
		return tx.Lists().Sessions(ctx, store.SessionFilter{ConversationID: conversation, Status: sessions.Status(q.Status), Before: q.Before, Limit: q.Limit})
	})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		say(env.Stderr, "nothing found\n")
	}
	for _, r := range rows {
		life := "ended"
		if r.Active {
			life = "active"
		}
		say(env.Stdout, "%s  %s  %-9s  %-6s  %s/%s  %s  %s, %s  %s\n", r.ID, r.StartedAt.Format("2006-01-02 15:04Z"), r.Status, life,
			r.Key.Platform, r.Key.ID, r.Assistant, count(r.Messages, "message"), count(r.ToolCalls, "call"), transcript.Line(r.UserPrompt, 60))
	}
	if len(rows) == q.Limit {
		say(env.Stdout, "more: --before %s\n", rows[len(rows)-1].ID)
	}
	return nil
}

// ListRuns prints the runs of a session in order.
func ListRuns(ctx context.Context, cfg config.Config, env Env, session string) error {
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		const page = 500
		for after := int64(0); ; {
			var rows []sessions.Run
			err := s.InRead(ctx, func(tx *store.Tx) error {
				if _, err := tx.Lists().SessionRow(ctx, session); err != nil {
					return err
				}
				var err error
				rows, err = tx.Sessions().Runs(ctx, session, "", after, page)
				return err
			})
			if err != nil {
				return err
			}
			for _, r := range rows {
				say(env.Stdout, "%s\n", runLine(r))
				after = r.Number
			}
			if len(rows) < page {
				return nil
			}
		}
	})
}

func runLine(r sessions.Run) string {
	state := string(r.Status)
	if r.Waiting {
		state = "waiting"
	}
	took, cost := "?", "?"
	if r.Duration != nil {
		took = r.Duration.Round(time.Millisecond).String()
	}
	if r.CostMicros != nil {
		cost = spend.Dollars(*r.CostMicros)
	}
	line := fmt.Sprintf("%4d  %s  %-11s  %8s  %s  %d in, %d out  %s  %s", r.Number, r.StartedAt.Format("2006-01-02 15:04:05Z"), state, took, r.Model,
		r.InputTokens, r.OutputTokens, cost, r.EntryID)
	if r.Error != "" {
		line += "  " + transcript.Line(r.Error, 120)
	}
	return line
}

// SearchSessions prints messages that have all the words, the newest first.
func SearchSessions(ctx context.Context, cfg config.Config, env Env, q SessionQuery) error {
	before := int64(0)
	if q.Before != "" {
		var err error
		if before, err = strconv.ParseInt(q.Before, 10, 64); err != nil || before <= 0 {
			return fault.Newf(fault.Invalid, "--before %q is not a number printed by a search.", q.Before)
		}
	}
	if err := pageSize(q.Limit); err != nil {
		return err
	}
	hits, err := readStored(ctx, cfg, env, func(tx *store.Tx) ([]store.Hit, error) {
		conversation, err := conversationID(ctx, tx, q.Conversation)
		if err != nil {
			return nil, err
		}
		return tx.Search().Messages(ctx, store.SearchFilter{Words: q.Words, ConversationID: conversation, Before: before, Limit: q.Limit})
	})
	if err != nil {
		return err
	}
	if len(hits) == 0 {
		say(env.Stdout, "nothing found\n")
	}
	for _, h := range hits {
		say(env.Stdout, "%s  %s  %s/%s  %s: %s\n", h.SessionID, h.CreatedAt.Format("2006-01-02 15:04Z"), h.Key.Platform, h.Key.ID, h.Role,
			transcript.Around(h.Content, store.Place(h.Content, q.Words), 100))
	}
	if len(hits) == q.Limit {
		say(env.Stdout, "more: --before %d\n", hits[len(hits)-1].ID)
	}
	return nil
}

// ShowOptions says what ShowSession prints besides what was said.
type ShowOptions struct {
	Whole  bool // outputs of tools in full
	System bool // the system prompt and the configuration
	Redact bool // credentials are taken out
}

// ShowSession prints the transcript of a session as Markdown.
func ShowSession(ctx context.Context, cfg config.Config, env Env, out io.Writer, id string, o ShowOptions) error {
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		return transcript.Write(ctx, s, out, id, transcript.Options{Whole: o.Whole, System: o.System, Redact: redactor(cfg, env, o.Redact)})
	})
}

func redactor(cfg config.Config, env Env, clean bool) *redact.Redactor {
	if !clean {
		return nil
	}
	return newRedactor(cfg, env)
}

// RemoveSession deletes a session, or says what that would delete.
func RemoveSession(ctx context.Context, cfg config.Config, env Env, id string, really bool) error {
	if really {
		if done, err := inDaemon(ctx, cfg, env, callRemoveSession, nameCall{id}); done {
			return err
		}
	}
	return withExisting(ctx, cfg, env, really, func(s *store.Store) error {
		if !really {
			r, err := store.Within(ctx, s.InRead, func(tx *store.Tx) (store.Removed, error) { return tx.Care().MeasureSession(ctx, id) })
			if err == nil {
				say(env.Stdout, "would remove %s\nnothing was removed; run again with --yes to remove it\n", counted(r))
			}
			return err
		}
		r, err := store.Within(ctx, s.InTx, func(tx *store.Tx) (store.Removed, error) {
			r, err := tx.Care().RemoveSession(ctx, id)
			if err != nil {
				return r, err
			}
			return r, tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: "session.remove", Target: id})
		})
		if err != nil {
			return err
		}
		say(env.Stdout, "removed %s\n", counted(r))
		return finishErasing(ctx, cfg, env, s)
	})
}

// ExportQuery says what to export, and how.
type ExportQuery struct {
	Format       string // jsonl, csv, markdown or sql
	Conversation string
	Session      string // for markdown
	Redact       bool
}

// Export writes data to out.
func Export(ctx context.Context, cfg config.Config, env Env, out io.Writer, q ExportQuery) error {
	if q.Format == "markdown" {
		if q.Session == "" {
			return fault.New(fault.Invalid, "Markdown exports one session: specify it with --session.")
		}
		return ShowSession(ctx, cfg, env, out, q.Session, ShowOptions{Whole: true, Redact: q.Redact})
	}
	if q.Session != "" {
		return fault.New(fault.Invalid, "--session requires --format markdown.")
	}
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		if q.Format == "sql" {
			if q.Redact || q.Conversation != "" {
				return fault.New(fault.Invalid, "SQL dumps the whole database as it is; --redact and --conversation need another format.")
			}
			return s.Dump(ctx, out)
		}
		o := export.Options{Redact: redactor(cfg, env, q.Redact), At: time.Now()}
		err := s.InRead(ctx, func(tx *store.Tx) (err error) {
			o.ConversationID, err = conversationID(ctx, tx, q.Conversation)
			return err
		})
		if err != nil {
			return err
		}
		if q.Format == "csv" {
			_, err = export.Sessions(ctx, s, out, o)
			return err
		}
		done, err := export.JSONL(ctx, s, out, o)
		for _, what := range done.Damaged {
			say(env.Stderr, "left empty, because it is damaged in the database: %s\n", what)
		}
		return err
	})
}

// Import stores what Export wrote as jsonl into a file.
func Import(ctx context.Context, cfg config.Config, env Env, in *os.File) error {
	if done, err := inDaemon(ctx, cfg, env, callImport, importCall{absolute(in.Name())}); done {
		return err
	}
	return withStore(ctx, cfg, env, true, func(s *store.Store) error {
		done, err := export.Import(ctx, s, in)
		if err != nil && done.Conversations > 0 {
			say(env.Stdout, "before the error: ")
		}
		if err == nil || done.Conversations > 0 {
			say(env.Stdout, "imported %s with %s and %s; %s already existed\n", count(done.Conversations, "conversation"),
				count(done.Rows, "row"), wording.Count(int(done.Memories), "memory", "memories"), count(done.Skipped, "conversation"))
		}
		if done.Entries+done.Deliveries > 0 {
			sayClosed(env.Stdout, done.Entries, done.Deliveries, "nobody is told")
		}
		return err
	})
}

// openForeign opens a database that is only read: a PostgreSQL address, or an SQLite
// file.
func openForeign(ctx context.Context, env Env, source string) (*store.Store, error) {
	if !strings.Contains(source, "://") && !strings.HasPrefix(source, "sqlite:") {
		source = "sqlite:" + source
	}
	return store.Open(ctx, store.Options{URL: source, Log: env.Log, Foreign: true})
}
