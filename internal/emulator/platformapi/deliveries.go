package platformapi

import "remote-agent/internal/lists"

// Deliveries are what goes to the bot, oldest first, by their ids. The server's
// lock guards them.
type Deliveries[D any] struct {
	List []*D
	byID map[string]*D
}

// Add adds a delivery under its id.
func (l *Deliveries[D]) Add(id string, d *D) {
	if l.byID == nil {
		l.byID = map[string]*D{}
	}
	l.List = append(l.List, d)
	l.byID[id] = d
}

// Get returns a delivery, or nil.
func (l *Deliveries[D]) Get(id string) *D { return l.byID[id] }

// Forget drops the oldest deliveries that nobody needs, down to keep; zero keeps
// all, a negative number none. done returns the id of a delivery and whether it may
// go.
func (l *Deliveries[D]) Forget(keep int, done func(*D) (id string, ok bool)) {
	for keep != 0 && len(l.List) > max(0, keep) {
		id, ok := done(l.List[0])
		if !ok {
			return
		}
		delete(l.byID, id)
		l.List[0] = nil
		l.List = l.List[1:]
	}
}

// Which returns the ids that pick gives for the deliveries, without the empty.
func (l *Deliveries[D]) Which(pick func(*D) string) []string {
	var out []string
	for _, d := range l.List {
		if id := pick(d); id != "" {
			out = append(out, id)
		}
	}
	return out
}

// Views returns how the deliveries look from outside.
func Views[D, V any](l *Deliveries[D], view func(*D) V) []V {
	return lists.Map(l.List, view)
}
