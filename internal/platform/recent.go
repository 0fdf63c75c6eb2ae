package platform

import "sync"

// Recent remembers the newest entries, up to a limit, for adapters. It is safe for
// concurrent use. What it forgets must cost no more than an extra call.
type Recent[K comparable, V any] struct{ recent }

// recent is a Recent whose keys and values can be anything, so that there is one of it.
type recent struct {
	mu    sync.Mutex // guards all below
	limit int
	byKey map[any]any
	order []any // keys, oldest first, as a ring once full
	next  int   // the oldest in a full ring
}

// NewRecent returns an empty memory of at most limit entries.
func NewRecent[K comparable, V any](limit int) *Recent[K, V] {
	return &Recent[K, V]{recent{limit: limit, byKey: make(map[any]any)}}
}

// Get returns what k has, and whether it is known.
func (r *Recent[K, V]) Get(k K) (V, bool) {
	v, ok := r.get(k).(V)
	return v, ok
}

// Put gives k the value v.
func (r *Recent[K, V]) Put(k K, v V) { r.change(k, func(any) any { return v }) }

// First returns what k was first put with, which is v if it is unknown.
func (r *Recent[K, V]) First(k K, v V) V {
	_, first := r.change(k, func(known any) any {
		if known != nil {
			return known
		}
		return v
	})
	return first.(V)
}

// Take returns what k was put with and makes v its value.
func (r *Recent[K, V]) Take(k K, v V) (V, bool) {
	before, _ := r.change(k, func(any) any { return v })
	known, ok := before.(V)
	return known, ok
}

// Change replaces what k has by what f makes of it, and returns that. f gets the
// zero value if k is unknown, and must not use the memory.
func (r *Recent[K, V]) Change(k K, f func(V) V) V {
	_, after := r.change(k, func(known any) any {
		v, _ := known.(V)
		return f(v)
	})
	return after.(V)
}

func (r *recent) get(k any) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKey[k]
}

// change gives k what f makes of what it has, which is nil if it is unknown.
func (r *recent) change(k any, f func(any) any) (before, after any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.byKey[k]
	after = f(before)
	if !known {
		if len(r.order) < r.limit {
			r.order = append(r.order, k)
		} else {
			delete(r.byKey, r.order[r.next])
			r.order[r.next] = k
			r.next = (r.next + 1) % r.limit
		}
	}
	r.byKey[k] = after
	return before, after
}
