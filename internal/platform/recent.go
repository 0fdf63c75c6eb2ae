package platform

import "sync"

// Recent remembers the newest entries, up to a limit, for adapters. It is safe for
// concurrent use. What it forgets must cost no more than an extra call.
type Recent[K comparable, V any] struct {
	mu    sync.Mutex // guards all below
	limit int
	byKey map[K]V
	order []K // oldest first, as a ring once full
	next  int // the oldest in a full ring
}

// NewRecent returns an empty memory of at most limit entries.
func NewRecent[K comparable, V any](limit int) *Recent[K, V] {
	return &Recent[K, V]{limit: limit, byKey: make(map[K]V)}
}

// Get returns what k has, and whether it is known.
func (r *Recent[K, V]) Get(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.byKey[k]
	return v, ok
}

// Put gives k the value v.
func (r *Recent[K, V]) Put(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(k, v)
}

// First returns what k was first put with, which is v if it is unknown.
func (r *Recent[K, V]) First(k K, v V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.byKey[k]; ok {
		return known
	}
	r.set(k, v)
	return v
}

// Take returns what k was put with and makes v its value.
func (r *Recent[K, V]) Take(k K, v V) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.byKey[k]
	r.set(k, v)
	return known, ok
}

// Change replaces what k has by what f makes of it, and returns that. f gets the
// zero value if k is unknown, and must not use the memory.
func (r *Recent[K, V]) Change(k K, f func(V) V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := f(r.byKey[k])
	r.set(k, v)
	return v
}

// set stores v; r.mu is held.
func (r *Recent[K, V]) set(k K, v V) {
	if _, ok := r.byKey[k]; !ok {
		if len(r.order) < r.limit {
			r.order = append(r.order, k)
		} else {
			delete(r.byKey, r.order[r.next])
			r.order[r.next] = k
			r.next = (r.next + 1) % r.limit
		}
	}
	r.byKey[k] = v
}
