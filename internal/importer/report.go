package importer

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"remote-agent/internal/fault"
)

// Report says what an import does, or would do.
type Report struct {
	Codebases, Conversations, Sessions Count

	Merges     []Merge   // codebases of a repository that another one is of
	Missing    []Missing // codebases whose folder is not here
	Absolute   []Cwd     // folders of new conversations that have to change
	Assistants []Unknown // that are not configured here
	Platforms  []Unknown // as above
	Unreached  []string  // why nobody can write in new conversations, one each
	Refused    []Refusal // rows that cannot be taken
	Unmapped   []string  // folders of --map that nothing is in
	Notes      []string  // what else changes

	Skip bool // Refused are left out; else they refuse the import
}

// Count is what becomes of the rows of a table that can be taken.
type Count struct {
	New    int // stored
	Here   int // were here already, and stay as they are
	Merged int // became another one
}

// Merge is a codebase of a repository that another one is of. Done tells that it
// became that one.
type Merge struct {
	ID, Name, Into, URL string
	Done                bool
}

// Missing is a codebase whose folder is not on this machine; Was is its folder on
// the other one. Clone says why it cannot be cloned, nil if it can. Here tells that the codebase was here already.
type Missing struct {
	ID, Name, Folder, Was, URL, Why string
	Clone                           error
	Here                            bool
}

// Cwd is the folder of a conversation. Now is relative to the codebase; Outside
// tells that it was in no folder of it. Linked tells that the conversation had no
// codebase and gets the one that the folder is in.
type Cwd struct {
	Place, Was, Now, Codebase string
	Outside, Linked           bool
}

// Unknown is something by name with the number of rows of each kind that have it.
type Unknown struct {
	Name string
	Rows map[string]int
}

// Refusal is a row that cannot be taken.
type Refusal struct{ Table, ID, Why string }

// String implements fmt.Stringer.
func (r Refusal) String() string {
	id := cmp.Or(r.ID, "(no ID)")
	return fmt.Sprintf("%s %s: %s", r.Table, clip(id), r.Why)
}

func (r *Report) add(list *[]Unknown, name, kind string) {
	i := slices.IndexFunc(*list, func(u Unknown) bool { return u.Name == name })
	if i < 0 {
		i = len(*list)
		*list = append(*list, Unknown{Name: name, Rows: make(map[string]int)})
	}
	(*list)[i].Rows[kind]++
}

// Summary returns the line that an import ends with.
func (r Report) Summary() string {
	return fmt.Sprintf("imported %s; %d already existed%s", r.each("%s and %s with %s", isNew), r.Conversations.Here, r.rest())
}

func isNew(c Count) int { return c.New }

// each says how many rows of each table something became of.
func (r Report) each(form string, of func(Count) int) string {
	return fmt.Sprintf(form, plural(of(r.Codebases), "codebase"), plural(of(r.Conversations), "conversation"), plural(of(r.Sessions), "session"))
}

func (r Report) rest() string {
	text := ""
	if r.Codebases.Here+r.Conversations.Here+r.Sessions.Here > 0 {
		text += "\nalready existed, not changed: " + r.each("%s, %s, %s", func(c Count) int { return c.Here })
	}
	if r.Codebases.Merged > 0 {
		text += "\nmerged: " + plural(r.Codebases.Merged, "codebase")
	}
	if r.Skip && len(r.Refused) > 0 {
		text += "\nleft out: " + plural(len(r.Refused), "row")
	}
	return text
}

// Write prints the report. done is false for a dry run; clone tells that missing
// folders are cloned now.
func (r Report) Write(out io.Writer, done, clone bool) error {
	p := &printer{out: out}
	if done {
		p.line("%s", r.Summary())
	} else {
		p.line("dry run: nothing was written")
		p.line("would import %s%s", r.each("%s and %s with %s", isNew), r.rest())
	}
	p.section(len(r.Merges), "codebases of one repository")
	for _, m := range r.Merges {
		if m.Done {
			p.line("  %s becomes %s (%s); its own name, folder and assistant go", m.Name, m.Into, m.URL)
		} else {
			p.line("  %s and %s (%s) stay two; --merge makes one of them", m.Name, m.Into, m.URL)
		}
	}
	p.section(len(r.Missing), "missing folders")
	for _, m := range r.Missing {
		p.line("  %s  %s: %s", m.Name, m.Folder, m.next(done, clone))
	}
	p.section(len(r.Absolute), "absolute paths, and folders outside of their codebase")
	for _, c := range r.Absolute {
		p.line("  %s  %s: %s", c.Place, c.Was, c.becomes())
	}
	for _, list := range []struct {
		title   string
		unknown []Unknown
	}{{"assistants that are not configured here", r.Assistants}, {"platforms that are not configured here", r.Platforms}} {
		p.section(len(list.unknown), list.title)
		for _, u := range list.unknown {
			p.line("  %s: %s", u.Name, u.counts())
		}
	}
	p.section(len(r.Unreached), "conversations that nobody can reach because of their ID; the next message there begins another one")
	for _, why := range r.Unreached {
		p.line("  %s", why)
	}
	title := "rows that cannot be imported, which block the import"
	if r.Skip {
		title = "rows that cannot be imported, which are left out"
	}
	p.section(len(r.Refused), title)
	for _, row := range r.Refused {
		p.line("  %s", row)
	}
	p.section(len(r.Unmapped), "--map that matches no folder, which blocks the import")
	for _, folder := range r.Unmapped {
		p.line("  %s", folder)
	}
	p.section(len(r.Notes), "notes")
	for _, note := range r.Notes {
		p.line("  %s", note)
	}
	return p.err
}

// next says what happens about a missing folder.
func (m Missing) next(done, clone bool) string {
	instead := "import with --map " + m.Was + "=FOLDER"
	if m.Here || done || !path.IsAbs(m.Was) {
		instead = "`bot repo add FOLDER` and choose that with /repo in the chat"
	}
	switch {
	case m.Clone == nil && clone:
		return "cloned from " + m.URL
	case m.Clone == nil && done:
		return "the first message there asks whether to clone " + m.URL
	case m.Clone == nil:
		return "the first message there asks whether to clone " + m.URL + "; --clone clones it now; or " + instead
	}
	return fmt.Sprintf("cannot be cloned: %s. Put the folder there, or %s", strings.TrimSuffix(fault.Public(m.Clone), "."), instead)
}

func (c Cwd) becomes() string {
	folder := cmp.Or(c.Now, ".")
	switch {
	case c.Codebase == "":
		return "in no codebase of the database; left out"
	case c.Outside:
		return "outside of " + c.Codebase + ", so it begins at the top of that"
	case c.Linked:
		return folder + " in " + c.Codebase + ", which the conversation gets as its codebase"
	}
	return folder + " in " + c.Codebase
}

func (u Unknown) counts() string {
	var parts []string
	for _, kind := range []string{"codebase", "conversation", "session"} {
		if n := u.Rows[kind]; n > 0 {
			parts = append(parts, plural(n, kind))
		}
	}
	return strings.Join(parts, ", ")
}

// printer writes lines until one fails.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

func (p *printer) section(n int, title string) {
	if n > 0 {
		p.line("%s (%d):", title, n)
	}
}
