package setup

// Moved reports whether the option that a secret belongs to has another value with the
// answers so far, so that the secret that is set is not for it.
func Moved(s Service, w Way, f Field, answers map[string]string) bool {
	if f.For == "" {
		return false
	}
	value, given := answers[f.For]
	if !given {
		value, given = w.Set[f.For]
	}
	known := s.Value(f.For)
	if !known.Set {
		known.Text = ""
	}
	return given && !known.Pinned && value != known.Text
}

// Asks reports whether a field's name is that of an option, which has a value already and
// can be checked by itself.
func (w Way) Asks() bool { return w.Act == nil && w.Obtain == nil }
