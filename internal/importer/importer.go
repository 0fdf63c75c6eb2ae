// Package importer takes codebases, conversations and sessions over from another
// program's database that has the three tables of seed 002.
//
// It reads everything, decides row by row what becomes of it, and then stores
// all of it in one transaction, or nothing. What it decided is a Report, which
// is also all that a dry run makes.
package importer

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// Options say how to take rows over. The functions may not be nil.
type Options struct {
	// Maps are folders of the other machine and where they are on this one.
	Maps []Map

	// Merge makes one codebase of all that are of one repository. Without it each
	// stays as it is.
	Merge bool

	// Skip leaves rows out that cannot be taken, and those that refer to them.
	// Without it one such row refuses the import.
	Skip bool

	// Hosts are those that repositories may be cloned from.
	Hosts remote.Hosts

	// Folder says why a codebase cannot be in a folder of this machine, or nil.
	Folder func(dir string) error

	// Now is the time of rows of which no time is known.
	Now time.Time

	// Reach says why nobody can write in a conversation of such a key, or nil.
	Reach func(key messages.ConversationKey) error

	// Assistant and Platform report whether one of that name is configured here.
	Assistant, Platform func(name string) bool
}

// Map is a folder that is somewhere else here.
type Map struct{ Old, New string }

// ParseMap reads "OLD=NEW", two absolute paths; fault.Invalid for anything else.
func ParseMap(text string) (Map, error) {
	before, after, ok := strings.Cut(text, "=")
	m := Map{Old: path.Clean(before), New: path.Clean(after)}
	if !ok || !path.IsAbs(before) || !path.IsAbs(after) {
		return Map{}, fault.Newf(fault.Invalid, "--map %q is not OLD=NEW with two absolute folders, such as --map /workspace=/srv/repos.", text)
	}
	return m, nil
}

// CheckMaps refuses two maps of one folder.
func CheckMaps(maps []Map) error {
	seen := make(map[string]string)
	for _, m := range maps {
		if to, twice := seen[m.Old]; twice {
			return fault.Newf(fault.Invalid, "--map has %s twice, as %s and as %s; keep one.", m.Old, to, m.New)
		}
		seen[m.Old] = m.New
	}
	return nil
}

// Rows are the rows of the other database by table; see store.ReadSeed.
type Rows = map[string][]store.SeedRow

// DryRun returns what Import would do. to may be nil for an empty database;
// nothing is written.
func DryRun(ctx context.Context, to *store.Store, rows Rows, o Options) (report Report, err error) {
	all := read(rows)
	if to == nil {
		return decide(all, emptyHere(), o).report, nil
	}
	err = to.InRead(ctx, func(tx *store.Tx) error {
		there, err := lookUp(ctx, tx, all)
		if err == nil {
			report = decide(all, there, o).report
		}
		return err
	})
	return report, err
}

// Import stores the rows in one transaction. What is here already, by its id, is
// left as it is, so that a second run changes nothing. If rows cannot be taken
// it is fault.Invalid and names each of them, unless Options.Skip leaves them
// out; then and for every other error nothing was stored. The report is complete
// in both cases.
func Import(ctx context.Context, to *store.Store, rows Rows, o Options) (report Report, err error) {
	all := read(rows)
	err = to.InTx(ctx, func(tx *store.Tx) error {
		there, err := lookUp(ctx, tx, all)
		if err != nil {
			return err
		}
		p := decide(all, there, o)
		report = p.report
		if len(report.Unmapped) > 0 {
			return fault.Newf(fault.Invalid, "Nothing was imported: --map names %s, but no folder of the database is in it.", strings.Join(report.Unmapped, ", "))
		}
		if len(report.Refused) > 0 && !o.Skip {
			return refusal(report.Refused)
		}
		return p.store(ctx, tx)
	})
	return report, err
}

// maxNamed is how many rows the text of an error names; the report has all.
const maxNamed = 200

func refusal(rows []Refusal) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Nothing was imported: %s cannot be imported. Correct them in the other database, or leave them out with --skip.", plural(len(rows), "row"))
	for i, r := range rows {
		if i == maxNamed {
			fmt.Fprintf(&b, "\n  and %d more; --dry-run names all", len(rows)-i)
			break
		}
		b.WriteString("\n  " + r.String())
	}
	return fault.New(fault.Invalid, b.String())
}

// store writes what was decided.
func (p *plan) store(ctx context.Context, tx *store.Tx) error {
	failed := func(table, id string, err error) error {
		if err == nil || fault.Is(err, fault.Canceled) || fault.Is(err, fault.Unavailable) {
			return err
		}
		why := "the database refuses it"
		switch {
		case fault.Is(err, fault.Conflict):
			why = "something with the same ID, name or place already exists"
		case fault.Is(err, fault.NotFound):
			why = "a row that it refers to is missing"
		case fault.Is(err, fault.Invalid):
			why = "a value does not fit into its column"
		}
		return &fault.Error{Kind: fault.KindOf(err), Err: err, Public: "Nothing was imported: " + Refusal{Table: table, ID: id, Why: why}.String() + "."}
	}
	for _, c := range p.codebases {
		if err := tx.Portable().ImportCodebase(ctx, c.Codebase, c.commands); err != nil {
			return failed(store.SeedCodebases, c.ID, err)
		}
	}
	for _, c := range p.conversations {
		if err := tx.Portable().ImportConversation(ctx, c.Conversation); err != nil {
			return failed(store.SeedConversations, c.ID, err)
		}
	}
	for _, s := range p.sessions {
		if err := tx.Portable().ImportSession(ctx, s.Session, s.metadata); err != nil {
			return failed(store.SeedSessions, s.ID, err)
		}
	}
	if len(p.codebases)+len(p.conversations)+len(p.sessions) == 0 {
		return nil
	}
	return tx.Audit(ctx, sessions.AuditEntry{
		Actor: "cli", Action: "import",
		Detail: fmt.Sprintf(`{"codebases":%d,"conversations":%d,"sessions":%d}`, len(p.codebases), len(p.conversations), len(p.sessions)),
	})
}

// here is what the rows may meet in this database.
type here struct {
	codebases []sessions.Codebase                 // all
	byID      map[string]bool                     // conversations
	byKey     map[messages.ConversationKey]string // ids of conversations
	sessions  map[string]bool
}

func emptyHere() here {
	return here{byID: make(map[string]bool), byKey: make(map[messages.ConversationKey]string), sessions: make(map[string]bool)}
}

// lookUp finds what the rows may meet.
func lookUp(ctx context.Context, tx *store.Tx, all tables) (here, error) {
	h := emptyHere()
	var err error
	if h.codebases, err = tx.Registry().List(ctx); err != nil {
		return h, err
	}
	absent := func(err error) bool { return fault.Is(err, fault.NotFound) }
	for _, c := range all.conversations {
		if _, err := tx.Conversations().Conversation(ctx, c.ID); err == nil {
			h.byID[c.ID] = true
		} else if !absent(err) {
			return h, err
		}
		if other, err := tx.Conversations().FindConversation(ctx, c.Key); err == nil {
			h.byKey[c.Key] = other.ID
		} else if !absent(err) {
			return h, err
		}
	}
	for _, s := range all.sessions {
		if _, err := tx.Sessions().Session(ctx, s.ID); err == nil {
			h.sessions[s.ID] = true
		} else if !absent(err) {
			return h, err
		}
	}
	return h, nil
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
