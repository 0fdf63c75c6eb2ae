package importer

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/order"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// plan is what becomes of every row.
type plan struct {
	o      Options
	there  here
	report Report

	codebases     []codebaseRow
	conversations []conversationRow
	sessions      []sessionRow

	merged  map[string]string      // codebases that became another one
	from    map[string]codebaseRow // codebases that are taken or here, as the other database has them
	names   map[string]string      // of those, as they are called here
	mapped  map[string]bool        // maps that met something
	refused map[string]bool        // ids of rows that are left out, with their table
	dropped map[string]bool        // conversations that are here already
}

// decide says what becomes of every row. It depends on its arguments only.
func decide(all tables, there here, o Options) *plan {
	p := &plan{
		o: o, there: there, merged: make(map[string]string), from: make(map[string]codebaseRow), names: make(map[string]string),
		mapped: make(map[string]bool), refused: make(map[string]bool), dropped: make(map[string]bool),
	}
	for _, r := range all.refused {
		p.refuse(r.Table, r.ID, "%s", r.Why)
	}
	p.decideCodebases(all)
	p.decideConversations(all)
	p.decideSessions(all)
	for _, m := range o.Maps {
		if !p.mapped[m.Old] {
			p.report.Unmapped = append(p.report.Unmapped, m.Old)
		}
	}
	p.report.Skip = o.Skip
	return p
}

func (p *plan) refuse(table, id, why string, args ...any) {
	p.refused[table+" "+id] = true
	p.report.Refused = append(p.report.Refused, Refusal{Table: table, ID: id, Why: fmt.Sprintf(why, args...)})
}

// known says why the row that another one refers to cannot be, or nothing.
func (p *plan) known(all tables, column, table, id string) string {
	switch {
	case id == "":
		return ""
	case p.refused[table+" "+id]:
		return fmt.Sprintf("%s is %s, which cannot be imported itself", column, id)
	case !all.known[table][id]:
		return fmt.Sprintf("%s is %s, which is not in %s", column, id, table)
	}
	return ""
}

func (p *plan) decideCodebases(all tables) {
	list := slices.Clone(all.codebases)
	order.By(list, func(a, b codebaseRow) int { // the oldest keeps name and place
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	byURL, names := make(map[string]sessions.Codebase), make(map[string]bool)
	isHere := make(map[string]sessions.Codebase)
	for _, c := range p.there.codebases {
		isHere[c.ID], names[c.Name] = c, true
		url, _, _ := p.o.canonical(c.RepositoryURL)
		if _, second := byURL[url]; !second {
			byURL[url] = c
		}
	}
	for _, c := range list {
		p.from[c.ID] = c
		folder := p.move(c.DefaultCwd)
		if stored, ok := isHere[c.ID]; ok {
			p.report.Codebases.Here++
			p.names[c.ID] = stored.Name
			p.missing(stored, c.DefaultCwd, true)
			continue
		}
		url := p.address(c)
		first, same := byURL[url]
		same = same && url != ""
		if same && p.o.Merge {
			p.report.Merges = append(p.report.Merges, Merge{ID: c.ID, Name: c.Name, Into: first.Name, URL: url, Done: true})
			p.merged[c.ID] = first.ID
			p.names[c.ID] = first.Name
			p.report.Codebases.Merged++
			continue
		}
		c.DefaultCwd, c.RepositoryURL = folder, url
		c.Name = p.freeName(c.Name, names)
		p.names[c.ID] = c.Name
		c.CreatedAt, c.UpdatedAt = p.both(c.CreatedAt, c.UpdatedAt)
		names[c.Name] = true
		if same {
			p.report.Merges = append(p.report.Merges, Merge{ID: c.ID, Name: c.Name, Into: first.Name, URL: url})
		} else {
			byURL[url] = c.Codebase
		}
		p.codebases = append(p.codebases, c)
		p.report.Codebases.New++
		p.missing(c.Codebase, p.from[c.ID].DefaultCwd, false)
		p.assistant(c.Assistant, "codebase")
	}
}

// missing notes that the folder of a codebase is not here; was is where it is on
// the other machine.
func (p *plan) missing(c sessions.Codebase, was string, stored bool) {
	err := p.o.Folder(c.DefaultCwd)
	if err == nil {
		return
	}
	m := Missing{ID: c.ID, Name: c.Name, Folder: c.DefaultCwd, Was: was, Why: fault.Public(err), Here: stored}
	if c.RepositoryURL == "" {
		m.Clone = fault.New(fault.Invalid, "its repository URL is not known")
	} else {
		m.URL, _, m.Clone = p.o.canonical(c.RepositoryURL)
	}
	p.report.Missing = append(p.report.Missing, m)
}

// address writes a repository's address as it is stored here.
func (p *plan) address(c codebaseRow) string {
	if strings.TrimSpace(c.RepositoryURL) == "" {
		return ""
	}
	url, secret, _ := p.o.canonical(c.RepositoryURL) // missing says if it cannot be cloned
	if secret {
		p.note("the repository URL of %s holds a user name or password, which is left out; revoke it if it is still good", c.Name)
	}
	return url
}

// freeName returns a name that no other codebase has.
func (p *plan) freeName(name string, taken map[string]bool) string {
	free, _ := sessions.FreeName(name, func(name string) (bool, error) { return taken[name], nil }) // it has no error of its own
	if free != name {
		p.note("the codebase %s is called %s here, because there is another one of that name", name, free)
	}
	return free
}

func (p *plan) note(text string, args ...any) {
	p.report.Notes = append(p.report.Notes, fmt.Sprintf(text, args...))
}

func (p *plan) assistant(name, of string) {
	if !p.o.Assistant(name) {
		p.report.add(&p.report.Assistants, name, of)
	}
}

// move applies the longest map that a folder is in.
func (p *plan) move(folder string) string {
	clean := path.Clean(folder)
	var best *Map
	for i, m := range p.o.Maps {
		if _, in := within(m.Old, clean); in && (best == nil || len(m.Old) > len(best.Old)) {
			best = &p.o.Maps[i]
		}
	}
	if best == nil {
		return folder
	}
	p.mapped[best.Old] = true
	rest, _ := within(best.Old, clean)
	return path.Join(best.New, rest)
}

// within returns the path of a folder relative to another one that it is in;
// empty for that one itself.
func within(top, folder string) (string, bool) {
	top, folder = path.Clean(top), path.Clean(folder)
	if !path.IsAbs(top) || !path.IsAbs(folder) {
		return "", false
	}
	if folder == top {
		return "", true
	}
	rest, in := strings.CutPrefix(folder, strings.TrimSuffix(top, "/")+"/")
	if !in {
		return "", false
	}
	return rest, true
}

func (p *plan) decideConversations(all tables) {
	began := make(map[string]time.Time) // the earliest session of each
	for _, s := range all.sessions {
		if at, ok := began[s.ConversationID]; !s.StartedAt.IsZero() && (!ok || s.StartedAt.Before(at)) {
			began[s.ConversationID] = s.StartedAt
		}
	}
	places := make(map[string]string)
	for _, c := range all.conversations {
		why := p.known(all, "codebase_id", store.SeedCodebases, c.CodebaseID)
		other, taken := p.there.byKey[c.Key]
		place := string(c.Key.Platform) + "/" + c.Key.ID
		switch {
		case p.there.byID[c.ID]:
			p.report.Conversations.Here++
			p.dropped[c.ID] = true
			p.move(c.Cwd) // so that its map is not taken for a mistake
			continue
		case why != "":
			p.refuse(store.SeedConversations, c.ID, "%s", why)
			continue
		case taken:
			p.refuse(store.SeedConversations, c.ID, "%s is another conversation here already, %s; `bot sessions rm --conversation %s --yes` deletes that one", place, other, place)
			continue
		case places[place] != "":
			p.refuse(store.SeedConversations, c.ID, "%s appears twice, also as %s", place, places[place])
			continue
		}
		places[place] = c.ID
		if c.CreatedAt.IsZero() {
			c.CreatedAt = began[c.ID]
		}
		c.CreatedAt, c.UpdatedAt = p.both(c.CreatedAt, c.UpdatedAt)
		p.cwd(&c, place)
		if to := p.merged[c.CodebaseID]; to != "" {
			c.CodebaseID = to
		}
		p.conversations = append(p.conversations, c)
		p.report.Conversations.New++
		p.assistant(c.Assistant, "conversation")
		if err := p.o.Reach(c.Key); err != nil {
			p.report.Unreached = append(p.report.Unreached, fault.Public(err))
		}
		if !p.o.Platform(string(c.Key.Platform)) {
			p.report.add(&p.report.Platforms, string(c.Key.Platform), "conversation")
		}
	}
}

// cwd makes the folder of a conversation relative to its codebase.
func (p *plan) cwd(c *conversationRow, place string) {
	was := c.Cwd
	if was == "" {
		return
	}
	if !path.IsAbs(was) {
		c.Cwd = relative(was)
		if c.Cwd != was && c.Cwd == "" && path.Clean(was) != "." {
			p.report.Absolute = append(p.report.Absolute, Cwd{Place: place, Was: was, Codebase: p.nameOf(c.CodebaseID), Outside: true})
		}
		return
	}
	entry := Cwd{Place: place, Was: was}
	own, has := p.from[c.CodebaseID]
	rel, in := "", false
	if has {
		rel, in = p.inside(own, was)
	}
	if !has { // it worked there all the same
		best := -1
		for _, other := range p.sorted() {
			if r, ok := p.inside(other, was); ok && len(path.Clean(other.DefaultCwd)) > best {
				own, rel, in, best = other, r, true, len(path.Clean(other.DefaultCwd))
			}
		}
		if in {
			c.CodebaseID, entry.Linked = own.ID, true
		}
	}
	c.Cwd = rel
	entry.Codebase, entry.Now, entry.Outside = p.nameOf(c.CodebaseID), rel, !in
	p.report.Absolute = append(p.report.Absolute, entry)
}

// inside returns a folder relative to the codebase that it is in, both as the
// other machine had them or where they are here.
func (p *plan) inside(c codebaseRow, folder string) (string, bool) {
	if rel, ok := within(c.DefaultCwd, folder); ok {
		p.move(folder)
		return rel, true
	}
	return within(p.move(c.DefaultCwd), p.move(folder))
}

// sorted returns the codebases in the order of their ids.
func (p *plan) sorted() []codebaseRow {
	list := slices.Collect(maps.Values(p.from))
	order.By(list, func(a, b codebaseRow) int { return strings.Compare(a.ID, b.ID) })
	return list
}

func (p *plan) nameOf(codebase string) string { return p.names[codebase] }

// relative cleans a relative folder; one that leaves its codebase is its top.
func relative(folder string) string {
	clean := path.Clean(folder)
	if clean == "." || clean == ".." || strings.HasPrefix(clean, "../") {
		return ""
	}
	return clean
}

func (p *plan) decideSessions(all tables) {
	of := make(map[string]conversationRow)
	for _, c := range p.conversations {
		of[c.ID] = c
	}
	later := make(map[string]int)
	var taken []sessionRow
	for _, s := range all.sessions {
		why := cmp.Or(
			p.known(all, "conversation_id", store.SeedConversations, s.ConversationID),
			p.known(all, "codebase_id", store.SeedCodebases, s.CodebaseID))
		switch {
		case p.dropped[s.ConversationID] && p.there.sessions[s.ID]:
			p.report.Sessions.Here++
		case p.dropped[s.ConversationID]:
			later[s.ConversationID]++
		case why != "":
			p.refuse(store.SeedSessions, s.ID, "%s", why)
		case p.there.sessions[s.ID]:
			p.refuse(store.SeedSessions, s.ID, "a session of another conversation already has this ID")
		default:
			if to := p.merged[s.CodebaseID]; to != "" {
				s.CodebaseID = to
			}
			s.StartedAt = begin(s, of[s.ConversationID])
			taken = append(taken, s)
		}
	}
	for _, c := range all.conversations {
		if n := later[c.ID]; n > 0 {
			p.note("%s/%s is here already, and %s of it in the other database %s not; they are not taken", c.Key.Platform, c.Key.ID, plural(n, "session"), are(n))
		}
	}
	p.settleActive(taken, of)
	p.sessions = taken
	p.report.Sessions.New = len(taken)
	for _, s := range taken {
		p.assistant(s.Assistant, "session")
	}
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// settleActive leaves one active session to each conversation, the newest.
func (p *plan) settleActive(taken []sessionRow, of map[string]conversationRow) {
	newest, count := make(map[string]*sessionRow), make(map[string]int)
	for i := range taken {
		s := &taken[i]
		if !s.Active {
			continue
		}
		count[s.ConversationID]++
		before := newest[s.ConversationID]
		if before == nil || cmp.Or(s.StartedAt.Compare(before.StartedAt), strings.Compare(s.ID, before.ID)) > 0 {
			newest[s.ConversationID] = s
		}
	}
	for i := range taken {
		s := &taken[i]
		s.Active = s.Active && newest[s.ConversationID] == s
	}
	for _, c := range p.conversations {
		if n := count[c.ID]; n > 1 {
			key := of[c.ID].Key
			p.note("%s/%s has %d active sessions; the newest, %s, stays active", key.Platform, key.ID, n, newest[c.ID].ID)
		}
	}
}

// begin returns when a session began: without a time of its own when its
// conversation did, but not after its own end.
func begin(s sessionRow, c conversationRow) time.Time {
	at := s.StartedAt
	if at.IsZero() {
		at = c.CreatedAt
		if !s.EndedAt.IsZero() && s.EndedAt.Before(at) {
			at = s.EndedAt
		}
	}
	return at
}

// both fills in one of two times by the other. If nothing is known it is now.
func (p *plan) both(created, updated time.Time) (time.Time, time.Time) {
	switch {
	case created.IsZero() && updated.IsZero():
		return p.o.Now, p.o.Now
	case created.IsZero():
		return updated, updated
	case updated.IsZero():
		return created, created
	}
	return created, updated
}
