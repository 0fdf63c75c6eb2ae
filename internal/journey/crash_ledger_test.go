//go:build unix

package journey_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// A stray placeholder is sent at most strayBefore before the kill that explains
// it: recording its id takes a transaction, and a longer gap needs another
// explanation. What was in flight then is carried out at most strayAfter later.
const (
	strayBefore = 3 * time.Second
	strayAfter  = 300 * time.Millisecond
)

// checkLedger compares what people see with what they said, and both with the
// database. It returns the number of stray placeholders.
func (w *crashWorld) checkLedger() (strays int) {
	w.t.Helper()
	rec, err := w.records()
	if err != nil {
		w.t.Errorf("read the database: %v", err)
		return 0
	}
	for _, problem := range rec.open {
		w.t.Errorf("%s: %s", w.name, problem)
	}
	marks := 0
	w.people.mu.Lock()
	defer w.people.mu.Unlock()
	for _, c := range w.people.chats {
		view := w.tg.ChatView(c.id)
		strays += w.checkStrays(c, view, rec)
		w.checkAnswers(c, view)
		w.checkCommands(c, view, rec)
		for _, id := range c.updates {
			if !rec.events[strconv.FormatInt(id, 10)] {
				w.t.Errorf("%s: update %d of chat %d was acknowledged and is not in the database", w.name, id, c.id)
			}
		}
		for _, problem := range c.bad {
			w.t.Errorf("%s: the model, chat %d: %s", w.name, c.id, problem)
		}
		for _, m := range view.Messages {
			marks += len(m.Reactions)
		}
	}
	if refused := w.ai.Refusals(); len(refused) > 0 {
		w.t.Errorf("%s: the model API refused %d requests, the first: %+v", w.name, len(refused), refused[0].Error)
	}
	if broken := w.tg.Violations(); len(broken) > 0 {
		w.t.Errorf("%s: %d violations, the first: %+v", w.name, len(broken), broken[0])
	}
	if forgotten := w.tg.Forgotten(); len(forgotten) > 0 {
		w.t.Errorf("%s: the bot made Telegram forget updates %v", w.name, forgotten)
	}
	if marks > 0 {
		w.t.Logf("%s: %d messages are still marked as waiting", w.name, marks)
	}
	return strays
}

// checkStrays looks at the messages that the database does not know. Each must
// be a placeholder, the beginning of an answer or the reply to a command that was never
// touched again, sent when a process was killed before it could record the send. In one chat a kill explains one, and another
// if a command could run beside the turn; in all chats it can be more.
func (w *crashWorld) checkStrays(c *chatLog, view telegram.View, rec records) (strays int) {
	left := make([]int, len(w.kills)) // how many strays each kill can explain
	for i := range left {
		left[i] = 1
		if c.private() && len(c.commands) > 0 {
			left[i] = 2
		}
	}
	for _, m := range view.FromBot() {
		if rec.sent[messageOf{strconv.FormatInt(c.id, 10), strconv.Itoa(m.ID)}] {
			continue
		}
		strays++
		if !isPartial(m.Text) && !whoamiMark.MatchString(m.Text) && !helpMark.MatchString(m.Text) || m.Edits != 0 {
			w.t.Errorf("%s: message %d of chat %d is not on record and was used: %.80q, %d edits",
				w.name, m.ID, c.id, m.Text, m.Edits)
		}
		// Kills and messages are in the order of time, so the first that fits
		// leaves the others for later strays.
		by := slices.IndexFunc(w.kills, func(k kill) bool {
			gap := k.process.ended.Sub(m.CreatedAt)
			return gap >= -strayAfter && gap <= strayBefore && left[slices.Index(w.kills, k)] > 0
		})
		if by < 0 {
			w.t.Errorf("%s: message %d of chat %d, %q of %s, is a stray placeholder that no kill explains; processes ended %s",
				w.name, m.ID, c.id, m.Text, m.CreatedAt.Format(clockTime), w.endsAround(m.CreatedAt))
			continue
		}
		left[by]--
	}
	return strays
}

const clockTime = "15:04:05.000"

// endsAround tells when the processes ended that ended within a minute of a moment, and how.
func (w *crashWorld) endsAround(at time.Time) string {
	var ends []string
	for _, p := range w.procs {
		if gap := p.ended.Sub(at); gap.Abs() < time.Minute {
			ends = append(ends, fmt.Sprintf("at %s (%s: %v)", p.ended.Format(clockTime), p.name, p.err))
		}
	}
	return strings.Join(ends, ", ")
}

// checkAnswers reads a chat as a person does: every answer is there once, whole,
// in the order of the questions, and there is nothing else.
func (w *crashWorld) checkAnswers(c *chatLog, view telegram.View) {
	type part struct{ n, i int }
	var want, got []part
	for n, a := range c.asks {
		for i := range paragraphs(c.index, n+1, a.kind) {
			want = append(want, part{n + 1, i + 1})
		}
	}
	for _, m := range view.FromBot() {
		if isPartial(m.Text) || overMark.MatchString(m.Text) || whoamiMark.MatchString(m.Text) || helpMark.MatchString(m.Text) {
			continue
		}
		for text := range strings.SplitSeq(m.Text, "\n\n") {
			mark := answerMark.FindStringSubmatch(text)
			if mark == nil {
				w.t.Errorf("%s: message %d of chat %d is no answer: %.120q", w.name, m.ID, c.id, m.Text)
				break
			}
			n, _ := strconv.Atoi(mark[2])
			i, _ := strconv.Atoi(mark[3])
			got = append(got, part{n, i})
			if n < 1 || n > len(c.asks) {
				continue // reported below
			}
			whole := paragraphs(c.index, n, c.asks[n-1].kind)
			if i > len(whole) || text != whole[i-1] {
				w.t.Errorf("%s: message %d of chat %d has %.120q", w.name, m.ID, c.id, text)
			}
			if a := c.asks[n-1]; !c.private() && m.ReplyTo != a.sent.MessageID {
				w.t.Errorf("%s: message %d of chat %d replies to %d and not to %d", w.name, m.ID, c.id, m.ReplyTo, a.sent.MessageID)
			}
		}
	}
	if slices.Equal(got, want) {
		return
	}
	count := map[part]int{}
	for _, p := range got {
		count[p]++
	}
	lost, twice := map[int]int{}, map[int]int{} // paragraphs by message
	for _, p := range want {
		switch n := count[p]; {
		case n == 0:
			lost[p.n]++
		case n > 1:
			twice[p.n]++
		}
	}
	w.t.Errorf("%s: chat %d does not show %d paragraphs in order but %d; by message, %v are lost and %v are there more than once",
		w.name, c.id, len(want), len(got), lost, twice)
}

// isPartial reports whether a message shows nothing of an answer, or its beginning.
func isPartial(text string) bool { return strings.HasSuffix(text, "…") }

// checkCommands counts the replies to commands that are on record. One that is not is
// left behind by a kill (see checkStrays).
func (w *crashWorld) checkCommands(c *chatLog, view telegram.View, rec records) {
	whoami, help := 0, map[string]int{}
	for _, m := range view.FromBot() {
		if !rec.sent[messageOf{strconv.FormatInt(c.id, 10), strconv.Itoa(m.ID)}] {
			continue
		}
		if whoamiMark.MatchString(m.Text) {
			whoami++
		}
		if mark := helpMark.FindStringSubmatch(m.Text); mark != nil {
			help["/help x"+mark[1]]++
		}
	}
	for _, text := range c.commands {
		if text == "/whoami" {
			whoami--
			continue
		}
		if n := help[text]; n != 1 {
			w.t.Errorf("%s: %q in chat %d has %d answers", w.name, text, c.id, n)
		}
	}
	if whoami != 0 {
		w.t.Errorf("%s: chat %d has %+d answers to /whoami", w.name, c.id, whoami)
	}
}

// messageOf is a platform message in a conversation.
type messageOf struct{ conversation, message string }

// records is what the database knows.
type records struct {
	events map[string]bool    // ids of all inbound events
	sent   map[messageOf]bool // messages of all deliveries
	open   []string           // what is not over
}

// stuck logs what the database says about work that is not done.
func (w *crashWorld) stuck() {
	queries := map[string]string{
		"entry": `
			SELECT c.platform_conversation_id, e.state, e.lane || ' ' || e.event_id || ' attempts ' || e.attempts || ' next ' || e.next_ms,
				COALESCE(c.lease_owner, '') || ' until ' || c.lease_until || ' epoch ' || c.lease_epoch
			FROM inbound_events e JOIN remote_agent_conversations c ON c.id = e.conversation_id
			WHERE e.state IN ('waiting', 'running') ORDER BY e.seq`,
		"delivery": `
			SELECT c.platform_conversation_id, d.state, d.message_id || ' next ' || d.next_ms, d.error
			FROM deliveries d JOIN remote_agent_conversations c ON c.id = d.conversation_id
			WHERE d.state NOT IN ('sent', 'failed') ORDER BY d.seq`,
	}
	if strings.HasPrefix(w.env["DATABASE_URL"], "postgres") {
		queries["job"] = `SELECT kind, CAST(state AS TEXT), CAST(args AS TEXT), CAST(COUNT(*) AS TEXT) FROM river_job GROUP BY 1, 2, 3`
		queries["leader"] = `SELECT leader_id, CAST(elected_at AS TEXT), CAST(expires_at AS TEXT), '' FROM river_leader`
	}
	w.t.Logf("%s: at %d; updates not acknowledged: %v", w.name, time.Now().UnixMilli(), w.tg.Pending())
	for what, query := range queries {
		err := w.read(func(ctx context.Context, tx *store.Tx) error {
			return rows(ctx, tx, query, func(a, b, c, d string) { w.t.Logf("%s: %s %s %s; %s; %s", w.name, what, a, b, c, d) })
		})
		if err != nil {
			w.t.Logf("%s: read open work: %v", w.name, err)
		}
	}
}

// records reads the database beside the bots.
func (w *crashWorld) records() (records, error) {
	rec := records{events: map[string]bool{}, sent: map[messageOf]bool{}}
	err := w.read(func(ctx context.Context, tx *store.Tx) error {
		err := rows(ctx, tx, `SELECT event_id, lane, state, '' FROM inbound_events`, func(event, lane, state, _ string) {
			rec.events[event] = true
			if state != "done" {
				rec.open = append(rec.open, fmt.Sprintf("event %s of lane %s is %s", event, lane, state))
			}
		})
		if err != nil {
			return err
		}
		// Whoever was killed has left an interrupted run, and somebody went on to one that is completed.
		err = rows(ctx, tx, `
			SELECT CAST(r.entry_id AS TEXT), CAST(count(*) AS TEXT), max(s.status), CAST(sum(CASE r.status WHEN 'completed' THEN 1 ELSE 0 END) AS TEXT)
			FROM agent_runs r JOIN remote_agent_sessions s ON s.id = r.session_id GROUP BY r.entry_id
			HAVING sum(CASE r.status WHEN 'completed' THEN 1 ELSE 0 END) <> 1
				OR sum(CASE WHEN r.status IN ('completed', 'interrupted') THEN 0 ELSE 1 END) > 0 OR max(s.status) <> 'completed'`,
			func(entry, runs, status, completed string) {
				rec.open = append(rec.open, fmt.Sprintf("event %s has %s runs, of which %s are completed, in a session that is %s", entry, runs, completed, status))
			})
		if err != nil {
			return err
		}
		return rows(ctx, tx, `
			SELECT c.platform_conversation_id, d.message_id, d.state, d.error
			FROM deliveries d JOIN remote_agent_conversations c ON c.id = d.conversation_id`,
			func(conversation, message, state, problem string) {
				if message != "" {
					rec.sent[messageOf{conversation, message}] = true
				}
				if state != "sent" {
					rec.open = append(rec.open, fmt.Sprintf("a delivery to %s is %s: %s", conversation, state, problem))
				}
			})
	})
	return rec, err
}

// read runs fn on the database while the bots use it too.
func (w *crashWorld) read(fn func(ctx context.Context, tx *store.Tx) error) error {
	ctx := w.t.Context()
	s, err := store.Open(ctx, store.Options{
		URL: w.env["DATABASE_URL"], DataDir: filepath.Join(w.dir, "data"), Log: storetest.Log(w.t), MaxConns: 2,
	})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // only read
	return s.InRead(ctx, func(tx *store.Tx) error { return fn(ctx, tx) })
}

// rows reads four texts of each row.
func rows(ctx context.Context, tx *store.Tx, query string, visit func(a, b, c, d string)) error {
	type cursor interface {
		Next() bool
		Scan(dest ...any) error
		Err() error
	}
	var found cursor
	switch handle := tx.Handle().(type) {
	case *sql.Tx:
		r, err := handle.QueryContext(ctx, query) //nolint:rowserrcheck // found.Err is r.Err
		if err != nil {
			return err
		}
		defer r.Close() //nolint:errcheck // only read
		found = r
	case pgx.Tx:
		r, err := handle.Query(ctx, query)
		if err != nil {
			return err
		}
		defer r.Close()
		found = r
	}
	for found.Next() {
		var a, b, c, d string
		if err := found.Scan(&a, &b, &c, &d); err != nil {
			return err
		}
		visit(a, b, c, d)
	}
	return found.Err()
}
