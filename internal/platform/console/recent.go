package console

// maxRecent is how many messages are remembered: enough for any that can still
// be edited, and a bound for a console that stays open for months.
const maxRecent = 512

// recent is a map that forgets its oldest keys. The zero value is empty.
type recent[K comparable, V any] struct {
	values map[K]V
	order  []K
}

func (r *recent[K, V]) get(key K) (V, bool) {
	v, ok := r.values[key]
	return v, ok
}

func (r *recent[K, V]) put(key K, value V) {
	if r.values == nil {
		r.values = map[K]V{}
	}
	if _, known := r.values[key]; !known {
		r.order = append(r.order, key)
	}
	r.values[key] = value
	if len(r.order) > maxRecent {
		delete(r.values, r.order[0])
		r.order = r.order[1:]
	}
}
