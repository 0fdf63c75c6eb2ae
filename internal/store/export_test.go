package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing/fstest"
	"time"

	"remote-agent/migrations"
)

// What tests do beside the methods: plain SQL, as a person with a shell would.

// Exec runs a statement.
func Exec(ctx context.Context, tx *Tx, query string, args ...any) error {
	_, err := tx.exec(ctx, query, args...)
	return err
}

// Synchronous returns when the connection that writes waits for the disk; 2 is FULL.
func Synchronous(ctx context.Context, s *Store) (level int, err error) {
	err = s.writerDB.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&level)
	return level, err
}

// Refusal is why a connection was not accepted.
var Refusal = refusal

// HoldVectors changes how many embeddings are held in memory, of those asked for next.
func HoldVectors(s *Store, n int) {
	s.vectors.mu.Lock()
	defer s.vectors.mu.Unlock()
	s.vectors.limit = n
	clear(s.vectors.sets)
	s.vectors.used, s.vectors.size = nil, 0
}

// HeldVectors returns how many embeddings are in memory.
func HeldVectors(s *Store) int {
	s.vectors.mu.Lock()
	defer s.vectors.mu.Unlock()
	n := 0
	for _, set := range s.vectors.sets {
		n += len(set.rows)
	}
	return n
}

// Count returns the single number of a query.
func Count(ctx context.Context, tx *Tx, query string, args ...any) (n int, err error) {
	_, err = tx.one(ctx, []any{&n}, query, args...)
	return n, err
}

// Each calls visit for every row of a query.
func Each(ctx context.Context, tx *Tx, visit func(scan func(...any) error) error, query string, args ...any) error {
	return tx.each(ctx, visit, query, args...)
}

// String returns the single text of a query.
func String(ctx context.Context, tx *Tx, query string, args ...any) (s string, err error) {
	_, err = tx.one(ctx, []any{text{&s}}, query, args...)
	return s, err
}

// Rows returns the rows of a query, whose columns are all text.
func Rows(ctx context.Context, tx *Tx, query string, columns int) (rows [][]string, err error) {
	err = tx.each(ctx, func(scan func(dest ...any) error) error {
		row, dest := make([]string, columns), make([]any, columns)
		for i := range row {
			dest[i] = text{&row[i]}
		}
		rows = append(rows, row)
		return scan(dest...)
	}, query)
	return rows, err
}

// ExecAlone runs a statement of PostgreSQL outside of a transaction.
func ExecAlone(ctx context.Context, s *Store, statement string) error {
	_, err := s.pg.Exec(ctx, statement)
	return err
}

// Settle does at once what the database does by itself after a minute with many
// changes.
func Settle(ctx context.Context, s *Store) error {
	if s.pg != nil {
		return ExecAlone(ctx, s, "VACUUM ANALYZE")
	}
	return s.InTx(ctx, func(tx *Tx) error { return Exec(ctx, tx, "ANALYZE") })
}

// KeepVectorsFrom is KeepVectors with indexes from so many vectors on.
func KeepVectorsFrom(ctx context.Context, s *Store, indexFrom int64) error {
	return s.keepVectors(ctx, indexFrom)
}

const someID = "01900000-0000-7000-8000-000000000000"

// HotQueries are the reads that every turn makes, with arguments.
func HotQueries() map[string]struct {
	SQL  string
	Args []any
} {
	type q = struct {
		SQL  string
		Args []any
	}
	sum := func(f UsageFilter) q {
		query, args := sumUsageSQL(f)
		return q{query, args}
	}
	browse := func(b BrowseSessionsQuery) q {
		b.Limit = 10
		query, args, err := newTx(Tx{}).Pages().browseSessionsSQL(b)
		if err != nil {
			panic(err)
		}
		return q{query, args}
	}
	place := SessionPlace{Started: "2026-11-21T12:00:00.000Z", ID: someID}
	uses := func(f UsageFilter) q {
		query, args := usesSQL(f)
		return q{query, args}
	}
	week := UsageFilter{Since: time.Unix(1, 0), Until: time.Unix(2, 0)}
	listedSessions := func(f MessageFilter, from string) q {
		query, args := listedSessionsSQL(f, from, true, f.Offset > 0)
		return q{query, args}
	}
	openEntries := func() q {
		query, args := openEntriesSQL(Viewer{}, 10)
		return q{query, args}
	}
	return map[string]q{
		"OpenEntries":           openEntries(),
		"FailedEntries":         {failedEntriesSQL, []any{someID, 10}},
		"WaitingDeliveries":     {waitingDeliveriesSQL, []any{10}},
		"FailedDeliveries":      {failedDeliveriesSQL, []any{someID, 10}},
		"CountQueue":            {queueCountsSQL, []any{1}},
		"BrowseSessions":        browse(BrowseSessionsQuery{}),
		"BrowseSessionsAfter":   browse(BrowseSessionsQuery{After: place, Since: time.Unix(1, 0)}),
		"BrowseSessionsOfChat":  browse(BrowseSessionsQuery{ConversationID: someID, After: place}),
		"BrowseSessionsOfAgent": browse(BrowseSessionsQuery{Agent: "a", After: place}),
		"BrowseFailedSessions":  browse(BrowseSessionsQuery{Status: "failed"}),
		"BrowseRunningSessions": browse(BrowseSessionsQuery{Status: "running"}),
		"Runs":                  {runsSQL, []any{someID, 0}},
		"BrowseToolCalls":       {browseCallsSQL, []any{someID, 7, 10}},
		"BrowseConversations":   {browseConversationsSQL + " WHERE id < $1 ORDER BY id DESC LIMIT $2", []any{someID, 10}},
		"AgentAtWork":           {agentAtWorkSQL, []any{someID}},
		"APIKey":                {apiKeySQL, []any{"k"}},
		"MessagesBefore":        {messagesBeforeSQL, []any{someID, 100, 10}},
		"NextEntry":             {nextEntrySQL, []any{someID}},
		"OpenDeliveries":        {openDeliveriesSQL, []any{someID, false}},
		"ConversationsWithWork": {conversationsWithWorkSQL, []any{10}},
		"ControlWork":           {controlWorkSQL, []any{1, 10}},
		"ControlBefore":         {controlBeforeSQL, []any{someID, 7}},
		"Forks":                 {forksSQL, []any{someID, someID}},
		"ActiveSession":         {activeSessionSQL, []any{someID}},
		"RunMessages":           {runMessagesSQL, []any{"r"}},
		"Plan":                  {planSQL, []any{7}},
		"PlanLock":              {lockPlanSQL, []any{7}},
		"LatestPlan":            {latestPlanSQL, []any{someID}},
		"ReplacedPlan":          {replacedPlanSQL, []any{someID, 7}},
		"Button":                {buttonSQL, []any{"b"}},
		"LastCheckpoint":        {lastCheckpointSQL, []any{someID}},
		"FindCodebase":          {findCodebaseSQL, []any{"u"}},
		"SumUsageOfTurn":        sum(UsageFilter{EntryID: someID}),
		"SumUsageOfPerson":      sum(UsageFilter{Actor: "a", Since: time.Unix(1, 0)}),
		"SumUsageOfDay":         sum(UsageFilter{Since: time.Unix(1, 0)}),
		"SumUsageOfChat":        sum(UsageFilter{ConversationID: someID}),
		"CallApproval":          {callApprovalSQL, []any{someID, "call_1"}},
		"UnheardApproval":       {unheardApprovalSQL, []any{someID, "s", "not run"}},
		"CountApprovals":        {countApprovalsSQL, []any{someID, "bash", "allowed"}},
		"EntryApprovals":        {entryApprovalsSQL, []any{someID}},
		"HasRule":               {hasRuleSQL, []any{someID, "bash", "ls"}},
		"WaitingEntries":        {waitingEntriesSQL, []any{someID, 1, 20}},
		"SumUsageOfSession":     sum(UsageFilter{SessionID: someID}),
		"Uses":                  uses(week),
		"UsesOfPerson":          uses(UsageFilter{Actor: "a", Since: time.Unix(1, 0)}),
		"UsesOfCodebase":        uses(UsageFilter{CodebaseID: someID, Since: time.Unix(1, 0)}),
		"UsesOfChat":            uses(UsageFilter{ConversationID: someID}),
		"UsageDays":             {usageDaysSQL, []any{1, 2, 3}},
		"UsageParts":            {usagePartsSQL, []any{1, 2, 3, "by day"}},
		"UsageBegins":           {usageBeginsSQL, nil},
		"UsageEnds":             {usageEndsSQL, nil},
		"ListSessionMessages":   {listSessionSQL(false), []any{someID, 1, 20, 0}},
		"ListNewestMessages":    {listSessionSQL(true), []any{someID, 1, 20, 0}},
		"CountListed":           listedSessions(MessageFilter{ConversationID: someID, Offset: 1}, ""),
		"ListChatSessions":      listedSessions(MessageFilter{ConversationID: someID}, ""),
		"ListAllSessions":       listedSessions(MessageFilter{Desc: true}, someID),
		"Recallable":            {recallableSQL, []any{"test/42", "2026-11-21T12:00:00.000Z"}},
		"MemoryOn":              {memoryOnSQL, []any{"test/42"}},
		"SweepMemories":         {sweepMemoriesSQL, []any{"2026-11-21T12:00:00.000Z", 10}},
	}
}

// Plan returns SQLite's plan of a query, one step a line.
func Plan(ctx context.Context, tx *Tx, query string, args ...any) (string, error) {
	var steps []string
	err := tx.each(ctx, func(scan func(...any) error) error {
		var id, parent, unused int
		var detail string
		err := scan(&id, &parent, &unused, &detail)
		steps = append(steps, detail)
		return err
	}, "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return "", fmt.Errorf("explain: %w", err)
	}
	return strings.Join(steps, "\n"), nil
}

// PostgresPlan returns PostgreSQL's plan of a query, one step a line. Only since the
// store says so (planning) it avoids reading the small tables of a test as a whole.
func PostgresPlan(ctx context.Context, tx *Tx, query string, args ...any) (string, error) {
	var steps []string
	err := tx.each(ctx, func(scan func(dest ...any) error) error {
		var detail string
		err := scan(&detail)
		steps = append(steps, detail)
		return err
	}, "EXPLAIN (COSTS OFF) "+query, args...)
	if err != nil {
		return "", fmt.Errorf("explain: %w", err)
	}
	return strings.Join(steps, "\n"), nil
}

// AwaitQueued waits until n callers wait for the SQLite writer.
func AwaitQueued(s *Store, n int) {
	for {
		s.writer.mu.Lock()
		queued := len(s.writer.waiting)
		s.writer.mu.Unlock()
		if queued >= n {
			return
		}
		runtime.Gosched()
	}
}

// Commits returns how many groups the SQLite writer has begun.
func Commits(s *Store) int64 { return s.writer.groups.Load() }

// Prepared returns how many statements the writer's connection has parsed.
func Prepared(ctx context.Context, s *Store) (n int) {
	conn, err := s.writerDB.Conn(ctx)
	if err != nil {
		return -1
	}
	defer conn.Close()
	_ = conn.Raw(func(c any) error {
		caching, ok := c.(*cachingConn)
		if !ok {
			return fmt.Errorf("a connection without cache: %T", c)
		}
		n = caching.parsed
		return nil
	})
	return n
}

// MigrateTo brings an empty database to an older version of the schema, without
// the queue's tables.
func MigrateTo(ctx context.Context, s *Store, version int64) (err error) {
	provider, db, err := s.provider()
	if err != nil {
		return err
	}
	defer s.closeProvider(db, &err)
	_, err = provider.UpTo(ctx, version)
	return err
}

// LimitPages makes the SQLite database full once it has n more pages.
func LimitPages(ctx context.Context, s *Store, n int) error {
	var pages int
	if err := s.writerDB.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
		return err
	}
	_, err := s.writerDB.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages+n))
	return err
}

// SetContent changes a stored message, as an operator may do by hand.
func (t *Messages) SetContent(ctx context.Context, session string, seq int64, kind, content string) error {
	_, err := t.tx.exec(ctx, `UPDATE agent_messages SET kind = $3, content = $4 WHERE session_id = $1 AND seq = $2`, session, seq, kind, content)
	return err
}

// CheckSearchIndex compares the full-text index with the messages, on SQLite.
func (t *Search) CheckSearchIndex(ctx context.Context) error {
	if t.tx.pg != nil {
		return nil
	}
	_, err := t.tx.exec(ctx, `INSERT INTO agent_messages_fts(agent_messages_fts, rank) VALUES ('integrity-check', 1)`)
	return err
}

// StoredTerms is what a memory is searched by.
func StoredTerms(person, text string) string { return storedTerms(person, text) }

// Portables are the tables of an export with their columns.
func Portables() map[string][]string {
	all := make(map[string][]string)
	for _, p := range slices.Concat(portableShared, portables) {
		for _, c := range p.columns {
			if c.value == "" {
				all[p.table] = append(all[p.table], c.name)
			}
		}
	}
	return all
}

// Tables are the tables of the database with their columns, without those that
// hold an index of words.
func Tables(ctx context.Context, tx *Tx) (map[string][]string, error) {
	query := `SELECT table_name, column_name FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`
	if tx.pg == nil {
		query = `SELECT s.name, c.name FROM sqlite_schema s JOIN pragma_table_info(s.name) c
			WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite%' AND NOT EXISTS (
				SELECT 1 FROM sqlite_schema v WHERE v.sql LIKE 'CREATE VIRTUAL%' AND (s.name = v.name OR s.name LIKE v.name || '\_%' ESCAPE '\'))`
	}
	all := make(map[string][]string)
	err := tx.each(ctx, func(scan func(...any) error) error {
		var table, column string
		err := scan(&table, &column)
		all[table] = append(all[table], column)
		return err
	}, query)
	return all, err
}

// MatchPostgres is what the index of PostgreSQL is asked for words.
func MatchPostgres(words string) string { return matchPostgres(searchTerms(words)) }

// MatchSQLite is what words are in the language of SQLite's index.
func MatchSQLite(words string) string { return matchSQLite(searchTerms(words)) }

// PortableQueries are the reads of an export, by what they read.
func PortableQueries() map[string]string {
	all := make(map[string]string)
	for _, p := range slices.Concat(portableShared, portables) {
		all[p.kind] = p.query()
	}
	return all
}

// EmptyLog does what the writer does when nobody has written for a while. It reports
// whether that could be done.
func (s *Store) EmptyLog() bool { return !s.writer.truncate(context.Background()) }

// VectorsSQL is what is made for pgvector, with the number of its version.
func VectorsSQL() (text string, version int) { return pgvectorSQL + castVectorsSQL, pgvectorVersion }

// WorthIndexed is how many messages are indexed while others want to write.
const WorthIndexed = worthIndexed

// IndexMessages brings the full-text index of SQLite up to date, as happens by and by.
func IndexMessages(ctx context.Context, s *Store) error {
	if s.pg != nil {
		return nil
	}
	for {
		var n int64
		err := s.InTx(ctx, func(tx *Tx) (err error) {
			n, err = tx.Search().indexMessages(ctx, 1)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// AddMigrations has a later version of the program: with more steps, by name.
func AddMigrations(s *Store, texts map[string]string) {
	s.steps = func(d migrations.Dialect) fs.FS {
		files, all := migrations.Files(d), fstest.MapFS{}
		names, err := fs.Glob(files, "*.sql")
		for _, name := range names {
			text, readErr := fs.ReadFile(files, name)
			err = errors.Join(err, readErr)
			all[name] = &fstest.MapFile{Data: text}
		}
		if err != nil {
			panic(err) // they are in the program
		}
		for name, text := range texts {
			all[name] = &fstest.MapFile{Data: []byte(text)}
		}
		return all
	}
}

// FillDisk leaves so many pages for a database to grow by.
func FillDisk(ctx context.Context, s *Store, pages int) error {
	var now, limit int
	if err := s.writerDB.QueryRowContext(ctx, "PRAGMA page_count").Scan(&now); err != nil {
		return err
	}
	return s.writerDB.QueryRowContext(ctx, fmt.Sprint("PRAGMA max_page_count = ", now+pages)).Scan(&limit)
}

// Drop breaks the connection of a life, as the end of its process does.
func (l *Life) Drop() { l.hangUp(context.Background()) }

// Beat says once that the process lives.
func (l *Life) Beat(ctx context.Context) error { return l.beat(ctx) }

// Step is one look of a life.
func (l *Life) Step(ctx context.Context) error { return l.step(ctx) }

// Void voids what a process holds that is dead still, and reports whether it was.
func (l *Life) Void(ctx context.Context, owner string) (bool, error) { return l.void(ctx, owner) }

// Tire has so much time pass since this process said last that it lives that it is to say so again.
func (l *Life) Tire() { l.beaten = l.beaten.Add(-lifeBeat) }

// ForgetOthers has as much time pass without another process as makes this one alone.
func (s *Store) ForgetOthers() {
	met := s.company.met.Load().Add(-lingerFor)
	s.company.met.Store(&met)
}

// Age has d pass since this process looked after the others last.
func (s *Store) Age(d time.Duration) {
	for _, at := range []*atomic.Pointer[time.Time]{&s.company.alone, &s.company.met} {
		if old := at.Load(); old != nil {
			at.Store(new(old.Add(-d)))
		}
	}
}

// SetCallClock has calls counted at the times that a test gives, in Unix microseconds.
func (s *Store) SetCallClock(now func() int64) { s.company.clock = now }

// Look looks after the other processes once.
func (l *Life) Look(ctx context.Context) error {
	_, err := l.look(ctx)
	return err
}

// Listen hands on what the process is offered, for d.
func (l *Life) Listen(ctx context.Context, d time.Duration) { l.listen(ctx, d) }

// LifeClass is the first key of the locks of lives.
const LifeClass = lifeClass

// Join puts a process on record and no more, as if it were stopped in the middle of BeginLife.
func (s *Store) Join(ctx context.Context, config LifeConfig) (*Life, error) {
	l := &Life{store: s, config: config, missing: make(map[string]int)}
	s.company.owner.Store(&config.Owner)
	return l, l.beat(ctx)
}

// Spread is what the indexes of words have of a text.
func Spread(text string) string { return spread(indexed(text)) }

// SpreadInSQL is what the schema makes of the last message for the index.
func SpreadInSQL(ctx context.Context, tx *Tx) (string, error) {
	query := `SELECT array_to_string(tsvector_to_array(agent_message_words(content)), ' ') FROM agent_messages ORDER BY id DESC LIMIT 1`
	if tx.pg == nil {
		query = `SELECT body FROM agent_messages_searchable ORDER BY id DESC LIMIT 1`
	}
	return String(ctx, tx, query)
}

// IndexAsBefore has the full-text index of SQLite as versions before 00043 left it.
func IndexAsBefore(ctx context.Context, s *Store) error {
	if s.pg != nil {
		return nil
	}
	return s.InTx(ctx, func(tx *Tx) error {
		return Exec(ctx, tx, `INSERT INTO agent_messages_fts(rowid, body) SELECT id, body FROM agent_messages_searchable`)
	})
}

// SearchIsStale reports whether KeepSearch has anything to do.
func SearchIsStale(ctx context.Context, s *Store) (stale bool, err error) {
	if s.pg == nil {
		return false, nil
	}
	err = s.pg.QueryRow(ctx, staleSQL).Scan(&stale)
	return stale, err
}

// MeasureQueries are the queries of MeasureSession that look beyond the session's rows.
func MeasureQueries() map[string]string {
	return map[string]string{
		"deliveries": `SELECT count(*) FROM deliveries WHERE ` + sessionDeliveries,
		"inbox":      `SELECT count(*) FROM inbound_events WHERE ` + sessionInbox,
	}
}
